//! A port on the rung tc: programs on its socket and at its hook.

use super::abi::OffloadPort;
use super::error::OffloadError;
use super::flows::{Flows, program};
use super::price::{self, Cost, Line};
use super::seat::{Interface, RungPort, Seat};
use super::sys;
use crate::verified::verified;
use aya::Ebpf;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{TcAttachOptions, TcError};
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, SocketFilter, TcAttachType};
use offload::ProviderName;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/offload_tc.bpf.o"));

pub(super) const CHOOSE: &str = "suiro_choose";
pub(super) const OBEY: &str = "suiro_obey";

/// A port on the rung tc. Dropping it leaves its flows where they are: the program at the hook is pinned.
pub struct TcPort {
    seat: Seat<Self>,
    pub(super) filter: Ebpf,
    /// Sockets that send frames out of the port.
    senders: Vec<OwnedFd>,
}

impl RungPort for TcPort {
    const RUNG: ProviderName = ProviderName::Tc;
    /// Seen on the prototype, an empty program subtracted: look-up at the filter, edits, counts. Segments travel whole, and nothing is copied or summed.
    const ASSUMED: Cost = Cost {
        plain: Line { frame_ns: 130.0, byte_ns: 0.0 },
        sum: Line { frame_ns: 0.0, byte_ns: 0.0 },
        is_measured: false,
    };
    /// The frame goes on at the exit's other end at once.
    const AFTER_NS: f32 = 0.0;

    fn measure(flows: &Flows) -> Result<Cost, OffloadError> {
        price::tc(flows, Self::AFTER_NS)
    }

    fn may_be_open(&self) -> bool {
        false
    }

    fn seat(&self) -> &Seat<Self> {
        &self.seat
    }

    fn is_sent(&self) -> bool {
        self.senders.iter().all(|socket| sys::is_sent(socket.as_fd()))
    }

    fn given(&self) -> io::Result<u64> {
        Ok(seq(&self.seat.flows, self.seat.place).load(Ordering::Acquire))
    }
}

impl TcPort {
    /// Puts the programs on an interface, whose frames nobody receives yet. Flows that an earlier process left there stay where they are.
    ///
    /// # Errors
    /// No permission, the kernel is too old, or another version of suiro has left pins.
    pub fn open(
        flows: &Arc<Flows>,
        interface: &Interface<'_>,
        senders: Vec<OwnedFd>,
    ) -> Result<Self, OffloadError> {
        Seat::take(flows, interface, |seat| {
            let filter = Self::load(flows, seat.place, interface.name)?;
            seq(flows, seat.place).store(0, Ordering::Release);
            Ok(Self { seat, filter, senders })
        })
    }

    fn load(flows: &Flows, place: u32, name: &str) -> Result<Ebpf, OffloadError> {
        let mut ebpf = flows.load(OBJECT, place, &[], &[])?;
        let choose: &mut SocketFilter = program(&mut ebpf, CHOOSE)?;
        verified(|| choose.load()).map_err(OffloadError::load("load the filter"))?;
        let obey: &mut SchedClassifier = program(&mut ebpf, OBEY)?;
        verified(|| obey.load()).map_err(OffloadError::load("load the program at the hook"))?;
        hook(obey, name, &flows.link(place))?;
        Ok(ebpf)
    }

    /// Puts the filter on the port's receiving socket, before that is bound.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn filter(&self, socket: impl AsFd) -> Result<(), OffloadError> {
        let choose = self.filter.program(CHOOSE).and_then(|program| program.try_into().ok());
        let choose: &SocketFilter = choose.ok_or(OffloadError::BrokenBuild(CHOOSE))?;
        choose
            .attach(socket.as_fd())
            .map_err(|error| OffloadError::load("put the filter on the socket")(error))
    }
}

/// Frames that the filter let through.
fn seq(flows: &Flows, place: u32) -> &AtomicU64 {
    flows.ports.u64_at(place as usize, offset_of!(OffloadPort, seq))
}

/// Runs the program at the interface's hook, first of all, in the place of what is pinned there.
fn hook(obey: &mut SchedClassifier, name: &str, path: &Path) -> Result<(), OffloadError> {
    let failed = OffloadError::load::<ProgramError>("put the program at the hook (tcx)");
    if let Ok(before) = PinnedLink::from_pin(path) {
        let link = FdLink::from(before).try_into().ok();
        if link.is_some_and(|link| obey.attach_to_link(link).is_ok()) {
            return Ok(());
        }
        // Its interface is gone, and it stands for nothing.
        std::fs::remove_file(path).map_err(OffloadError::pin(path, "remove it"))?;
    }
    let order = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = obey.attach_with_options(name, TcAttachType::Ingress, order).map_err(&failed)?;
    let link = obey.take_link(id).map_err(&failed)?;
    let link: FdLink = link.try_into().map_err(|_| failed(TcError::InvalidLinkOperation.into()))?;
    let pinned = link.pin(path);
    pinned.map_err(|error| OffloadError::pin(path, "pin it")(io::Error::other(error)))?;
    Ok(())
}
