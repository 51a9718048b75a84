//! A port on the rung xdp: the stage `offload` of its interface's hook, beside the worker stage.

use super::error::OffloadError;
use super::flows::{Flows, STAGES, program};
use super::price::{self, Cost, Line};
use super::seat::{Interface, RungPort, Seat};
use crate::abi::{Verdict, VerdictCount};
use crate::hook::{Hook, Lease, Life, Mode, Stage};
use crate::verified::verified;
use crate::worker::{SOCKETS, VERDICTS, Worker};
use aya::Ebpf;
use aya::maps::{Array, Map, MapData, PerCpuArray};
use aya::programs::Xdp;
use offload::ProviderName;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(super) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/offload_xdp.bpf.o"));

pub(super) const OFFLOAD: &str = "suiro_offload";
pub(super) const UNFINISHED: &str = "MAY_BE_UNFINISHED";
const HANDED: &str = "handed";

/// A port on the rung xdp. Dropping it leaves its flows where they are: hook and stages are pinned.
pub struct XdpPort {
    seat: Seat<Self>,
    /// Frames that the stage gave to the socket.
    handed: Array<MapData, u64>,
    /// Frames that the worker stage gave to it.
    verdicts: PerCpuArray<MapData, VerdictCount>,
    may_be_open: bool,
    _programs: Ebpf,
    _lease: Lease,
}

impl RungPort for XdpPort {
    const RUNG: ProviderName = ProviderName::Xdp;
    /// Seen on an Intel Xeon, Linux 6.18.
    const ASSUMED: Cost = Cost {
        plain: Line { frame_ns: 200.0, byte_ns: 0.0 },
        sum: Line { frame_ns: 30.0, byte_ns: 0.1 },
        is_measured: false,
    };
    /// A redirect to a veth, above a drop: 80 to 107 with live frames on an Intel Xeon, Linux 6.18.
    const AFTER_NS: f32 = 100.0;

    fn measure(flows: &Flows) -> Result<Cost, OffloadError> {
        price::xdp(flows, Self::AFTER_NS)
    }

    fn may_be_open(&self) -> bool {
        self.may_be_open
    }

    fn seat(&self) -> &Seat<Self> {
        &self.seat
    }

    /// What a driver took, a veth or a TAP has in its ring.
    fn is_sent(&self) -> bool {
        true
    }

    fn given(&self) -> io::Result<u64> {
        let by_worker = self.verdicts.get(&(Verdict::Worker as u32), 0);
        let by_worker = by_worker.map_err(io::Error::other)?;
        let by_worker: u64 = by_worker.iter().map(|count| count.frames).sum();
        Ok(by_worker + self.handed.get(&0, 0).map_err(io::Error::other)?)
    }
}

/// What a port of the rung xdp is made of.
pub struct XdpParts<'p> {
    /// The interface.
    pub interface: Interface<'p>,
    /// Its worker stage, in force, with its socket.
    pub worker: &'p Worker,
    /// Whether senders on this host may leave checksums open.
    pub may_be_unfinished: bool,
}

impl XdpPort {
    /// Takes the stage. Flows that an earlier process left there stay where they are.
    ///
    /// # Errors
    /// No permission, the kernel is too old, or another version of suiro has left pins.
    pub fn open(flows: &Arc<Flows>, parts: &XdpParts<'_>) -> Result<Self, OffloadError> {
        Seat::take(flows, &parts.interface, |seat| Self::load(seat, parts))
    }

    fn load(seat: Seat<Self>, parts: &XdpParts<'_>) -> Result<Self, OffloadError> {
        let (flows, place) = (&seat.flows, seat.place);
        let hook = Hook::on(seat.index, Mode::Native)?;
        let [stages, sockets] = [STAGES, SOCKETS].map(|map| flows.beside(place, map));
        removed(&stages)?;
        hook.pin_stages(&stages)?;
        removed(&sockets)?;
        parts.worker.pin_sockets(&sockets).map_err(OffloadError::pin(&sockets, "pin it"))?;
        let maps = [(STAGES, stages), (SOCKETS, sockets.clone())];
        let unfinished = u32::from(parts.may_be_unfinished);
        let globals = [(UNFINISHED, unfinished)];
        let programs = flows.load(OBJECT, place, &globals, &maps);
        removed(&sockets)?;
        let mut programs = programs?;
        let stage: &mut Xdp = program(&mut programs, OFFLOAD)?;
        verified(|| stage.load()).map_err(OffloadError::load("load the stage"))?;
        let link = flows.link(place);
        removed(&link)?;
        let lease = hook.lease(Stage::Offload, stage, Life::Pinned(&link))?;
        let handed = taken(&mut programs)?;
        let verdicts = parts.worker.map(VERDICTS).and_then(|map| PerCpuArray::try_from(map).ok());
        let verdicts = verdicts.ok_or(OffloadError::BrokenBuild(VERDICTS))?;
        let may_be_open = parts.may_be_unfinished;
        Ok(Self { seat, handed, verdicts, may_be_open, _programs: programs, _lease: lease })
    }
}

fn taken(programs: &mut Ebpf) -> Result<Array<MapData, u64>, OffloadError> {
    let map: Option<Map> = programs.take_map(HANDED);
    map.and_then(|map| Array::try_from(map).ok()).ok_or(OffloadError::BrokenBuild(HANDED))
}

/// What an earlier process pinned is in the way.
fn removed(pin: &Path) -> Result<(), OffloadError> {
    match std::fs::remove_file(pin) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(OffloadError::pin(pin, "remove it")(error))
        }
        _ => Ok(()),
    }
}
