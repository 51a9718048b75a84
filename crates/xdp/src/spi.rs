//! Which socket gets an ESP packet: `bpf/spi.bpf.c` on one group of sockets.

use crate::error::{AttachError, MapError};
use crate::object;
use aya::maps::{HashMap, MapData, PerCpuArray, ReusePortSockArray};
use aya::programs::{ProgramError, SkReuseport};
use aya::{Ebpf, EbpfError};
use std::os::fd::{AsFd, AsRawFd};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/spi.bpf.o"));
const SPIS: &str = "spis";
const SOCKETS: &str = "sockets";
const STRAYS: &str = "strays";

/// `TUNNEL_SOCKETS_MAX`.
const SOCKETS_MAX: usize = 65_536;

/// The program on a `SO_REUSEPORT` group of UDP sockets, and who owns which SPI. It ends with the group's last socket.
pub struct SpiDemux {
    ebpf: Ebpf,
    /// By place in map `sockets`: whether a port has it.
    taken: Vec<bool>,
}

impl SpiDemux {
    /// Loads the program and puts it on the group of `nobody`, the socket that gets what no port owns.
    ///
    /// # Errors
    /// No permission, or the socket was not bound with `SO_REUSEPORT`.
    pub fn new(nobody: impl AsFd) -> Result<Self, AttachError> {
        let load = |step: &'static str| {
            move |source: EbpfError| AttachError::Load { step, source: Box::new(source) }
        };
        let mut ebpf = object::load(OBJECT).map_err(load("load the maps of SPIs"))?;
        let program = ebpf.program_mut("suiro_spi").ok_or(AttachError::BrokenBuild)?;
        let program: &mut SkReuseport =
            program.try_into().map_err(|_: ProgramError| AttachError::BrokenBuild)?;
        let loaded = program.load();
        loaded.map_err(|error| load("load the program of SPIs")(error.into()))?;
        let attached = program.attach(nobody.as_fd());
        attached.map_err(|error| load("put the program on the sockets")(error.into()))?;
        let mut demux = Self { ebpf, taken: Vec::new() };
        demux.add(nobody).map_err(|source| AttachError::Fill { source })?;
        Ok(demux)
    }

    /// Adds a socket of the group, which owns nothing yet; its place.
    ///
    /// # Errors
    /// The kernel refuses, or there are too many.
    pub fn add(&mut self, socket: impl AsFd) -> Result<u32, MapError> {
        let free = self.taken.iter().position(|taken| !taken).unwrap_or(self.taken.len());
        if free >= SOCKETS_MAX {
            return Err(MapError::Full { map: SOCKETS });
        }
        let map = self.ebpf.map_mut(SOCKETS).ok_or(MapError::Missing { map: SOCKETS })?;
        let mut sockets = ReusePortSockArray::try_from(map).map_err(MapError::access(SOCKETS))?;
        let fd = socket.as_fd().as_raw_fd();
        sockets.set(free as u32, &fd, 0).map_err(MapError::access(SOCKETS))?;
        self.taken.resize(self.taken.len().max(free + 1), false);
        self.taken[free] = true;
        Ok(free as u32)
    }

    /// Takes a place back; its socket leaves the group when it is closed.
    pub fn remove(&mut self, place: u32) {
        self.taken[place as usize] = false;
    }

    /// Gives packets of this SPI to the socket at this place.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn own(&mut self, spi: u32, place: u32) -> Result<(), MapError> {
        self.spis()?.insert(spi.to_be(), place, 0).map_err(MapError::access(SPIS))
    }

    /// Takes back what [`SpiDemux::own`] gave.
    ///
    /// # Errors
    /// The kernel refuses, or nobody owns it.
    pub fn disown(&mut self, spi: u32) -> Result<(), MapError> {
        self.spis()?.remove(&spi.to_be()).map_err(MapError::access(SPIS))
    }

    /// Whether someone owns this SPI.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn is_owned(&mut self, spi: u32) -> Result<bool, MapError> {
        Ok(self.spis()?.get(&spi.to_be(), 0).is_ok())
    }

    /// Datagrams so far that nobody owned; keepalives are none.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn strays(&self) -> Result<u64, MapError> {
        let map = self.ebpf.map(STRAYS).ok_or(MapError::Missing { map: STRAYS })?;
        let counts = PerCpuArray::<_, u64>::try_from(map).map_err(MapError::access(STRAYS))?;
        Ok(counts.get(&0, 0).map_err(MapError::access(STRAYS))?.iter().sum())
    }

    fn spis(&mut self) -> Result<HashMap<&mut MapData, u32, u32>, MapError> {
        let map = self.ebpf.map_mut(SPIS).ok_or(MapError::Missing { map: SPIS })?;
        HashMap::try_from(map).map_err(MapError::access(SPIS))
    }
}
