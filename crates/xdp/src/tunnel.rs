//! Which tunnel port's socket gets a datagram: `bpf/tunnel.bpf.c` on one group of sockets.

use crate::error::{AttachError, MapError};
use crate::object;
use aya::maps::{HashMap, MapData, PerCpuArray, ReusePortSockArray};
use aya::programs::{ProgramError, SkReuseport};
use aya::{Ebpf, EbpfError};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tunnel.bpf.o"));
const OWNERS: &str = "owners";
const SOCKETS: &str = "sockets";
const STRAYS: &str = "strays";

/// `TUNNEL_ANY_VNI`.
const ANY_VNI: u32 = 1 << 24;
/// `TUNNEL_SOCKETS_MAX`.
const SOCKETS_MAX: usize = 65_536;

/// `struct tunnel_key`: the VNI, and the sender's address as words in network order, or whoever sends.
type Key = [u32; 5];
/// `struct tunnel_owner`: place of the first socket, and how many.
type Owner = [u32; 2];

/// The program on a `SO_REUSEPORT` group of UDP sockets, and who owns what. It ends with the group's last socket.
pub struct TunnelDemux {
    ebpf: Ebpf,
    /// By place in map `sockets`: whether a port has it.
    taken: Vec<bool>,
}

impl TunnelDemux {
    /// Loads the program and puts it on the group of `nobody`, the socket that gets what no port owns.
    ///
    /// # Errors
    /// No permission, or the socket was not bound with `SO_REUSEPORT`.
    pub fn new(nobody: impl AsFd) -> Result<Self, AttachError> {
        let load = |step: &'static str| {
            move |source: EbpfError| AttachError::Load { step, source: Box::new(source) }
        };
        let mut ebpf = object::load(OBJECT).map_err(load("load the maps of tunnels"))?;
        let program = ebpf.program_mut("suiro_tunnel").ok_or(AttachError::BrokenBuild)?;
        let program: &mut SkReuseport =
            program.try_into().map_err(|_: ProgramError| AttachError::BrokenBuild)?;
        let loaded = program.load();
        loaded.map_err(|error| load("load the program of tunnels")(error.into()))?;
        let attached = program.attach(nobody.as_fd());
        attached.map_err(|error| load("put the program on the sockets")(error.into()))?;
        let mut demux = Self { ebpf, taken: vec![true] };
        let filled = demux.set_socket(0, nobody.as_fd().as_raw_fd());
        filled.map_err(|source| AttachError::Fill { source })?;
        Ok(demux)
    }

    /// Gives datagrams of this VNI from these senders to these sockets of the group, by the hash of their addresses; without a VNI those of
    /// every VNI that no other port has of the sender; with the unspecified address as sender, those of whom no other port has them. Returns the place of the first, for [`TunnelDemux::remove`].
    ///
    /// # Errors
    /// The kernel refuses, or there are too many ports; then nothing is given.
    pub fn add<S: AsFd>(
        &mut self,
        vni: Option<u32>,
        remotes: &[IpAddr],
        sockets: &[S],
    ) -> Result<u32, MapError> {
        let first = self.take(sockets.len())?;
        let filled = self.fill(vni, remotes, first, sockets);
        if filled.is_err() {
            // What was not given yet cannot be taken back, which is no matter.
            let _ = self.remove(vni, remotes, first, sockets.len());
        }
        filled.map(|()| first)
    }

    fn fill<S: AsFd>(
        &mut self,
        vni: Option<u32>,
        remotes: &[IpAddr],
        first: u32,
        sockets: &[S],
    ) -> Result<(), MapError> {
        for (place, socket) in (first..).zip(sockets) {
            self.set_socket(place, socket.as_fd().as_raw_fd())?;
        }
        let owner = [first, sockets.len() as u32];
        let mut owners = self.owners()?;
        remotes.iter().try_for_each(|&remote| {
            owners.insert(key(vni, remote), owner, 0).map_err(MapError::access(OWNERS))
        })
    }

    /// Whether someone owns this VNI, or, without one, the rest, from this sender.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn is_owned(&mut self, vni: Option<u32>, remote: IpAddr) -> Result<bool, MapError> {
        Ok(self.owners()?.get(&key(vni, remote), 0).is_ok())
    }

    /// Takes back what [`TunnelDemux::add`] gave; the sockets leave the group when they are closed.
    ///
    /// # Errors
    /// The kernel refuses to change the map.
    pub fn remove(
        &mut self,
        vni: Option<u32>,
        remotes: &[IpAddr],
        first: u32,
        sockets: usize,
    ) -> Result<(), MapError> {
        let range = first as usize..first as usize + sockets;
        self.taken[range].fill(false);
        let mut owners = self.owners()?;
        let removed = remotes.iter().map(|&remote| owners.remove(&key(vni, remote)));
        let outcomes: Vec<_> = removed.collect();
        outcomes.into_iter().collect::<Result<(), _>>().map_err(MapError::access(OWNERS))
    }

    /// Datagrams so far that nobody owned.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn strays(&self) -> Result<u64, MapError> {
        let map = self.ebpf.map(STRAYS).ok_or(MapError::Missing { map: STRAYS })?;
        let counts = PerCpuArray::<_, u64>::try_from(map).map_err(MapError::access(STRAYS))?;
        Ok(counts.get(&0, 0).map_err(MapError::access(STRAYS))?.iter().sum())
    }

    /// The first of `count` places in a row that are free, now taken.
    fn take(&mut self, count: usize) -> Result<u32, MapError> {
        let free = |window: &[bool]| window.iter().all(|taken| !taken);
        let first = self.taken.windows(count.max(1)).position(free).unwrap_or(self.taken.len());
        let end = first + count;
        if end > SOCKETS_MAX {
            return Err(MapError::Full { map: SOCKETS });
        }
        self.taken.resize(self.taken.len().max(end), false);
        self.taken[first..end].fill(true);
        Ok(first as u32)
    }

    fn set_socket(&mut self, place: u32, socket: RawFd) -> Result<(), MapError> {
        let map = self.ebpf.map_mut(SOCKETS).ok_or(MapError::Missing { map: SOCKETS })?;
        let mut sockets = ReusePortSockArray::try_from(map).map_err(MapError::access(SOCKETS))?;
        sockets.set(place, &socket, 0).map_err(MapError::access(SOCKETS))
    }

    fn owners(&mut self) -> Result<HashMap<&mut MapData, Key, Owner>, MapError> {
        let map = self.ebpf.map_mut(OWNERS).ok_or(MapError::Missing { map: OWNERS })?;
        HashMap::try_from(map).map_err(MapError::access(OWNERS))
    }
}

/// The unspecified address stands for whoever sends.
fn key(vni: Option<u32>, remote: IpAddr) -> Key {
    let vni = vni.unwrap_or(ANY_VNI);
    if remote.is_unspecified() {
        return [vni, 0, 0, 0, 0];
    }
    let remote = match remote {
        IpAddr::V4(remote) => remote.to_ipv6_mapped(),
        IpAddr::V6(remote) => remote,
    };
    let octets = remote.octets();
    let word = |at: usize| {
        u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
    };
    [vni, word(0), word(4), word(8), word(12)]
}
