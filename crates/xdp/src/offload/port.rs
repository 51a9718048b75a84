//! A port on the rung tc: programs on its socket and at its hook, and when nothing of a flow is under way in its worker.
//!
//! Nothing is when the socket's queue is empty, all that the filter let through was received or lost, all that was received was sent, and the
//! stacks behind the exits have all that was sent. Frames that the socket lost are nobody's in particular: an empty queue settles them all.

use super::abi::OffloadPort;
use super::error::OffloadError;
use super::flows::Flows;
use super::sys;
use crate::verified::verified;
use aya::Ebpf;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{TcAttachOptions, TcError};
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, SocketFilter, TcAttachType};
use offload::PortReason;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const CHOOSE: &str = "suiro_choose";
pub(super) const OBEY: &str = "suiro_obey";

/// An interface in the calling thread's network namespace.
#[derive(Clone, Debug)]
pub struct Interface<'n> {
    /// Its name.
    pub name: &'n str,
    /// Its index.
    pub index: u32,
    /// Its namespace, by inode.
    pub netns: u64,
    /// Why flows cannot leave by it, if they cannot.
    pub exit: Result<(), PortReason>,
}

/// A port on the rung tc. Dropping it leaves its flows where they are: the program at the hook is pinned.
pub struct TcPort {
    pub(super) flows: Arc<Flows>,
    /// Its place in map `ports`.
    pub(super) place: u32,
    pub(super) index: u32,
    pub(super) netns: u64,
    pub(super) exit: Result<(), PortReason>,
    pub(super) filter: Ebpf,
    /// Sockets that send frames out of the port.
    senders: Vec<OwnedFd>,
    rising: Mutex<Vec<Rising>>,
    /// Whether there are any: what the worker looks at.
    is_rising: AtomicBool,
}

/// A flow that shall go up.
struct Rising {
    place: u32,
    exit: Arc<TcPort>,
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
        let &Interface { index, netns, exit, .. } = interface;
        let place = flows.port_of(index, netns)?;
        let opened = Self::load(flows, place, interface.name);
        let filter = opened.inspect_err(|_| flows.release_port(place))?;
        flows
            .ports
            .u64_at(place as usize, offset_of!(OffloadPort, seq))
            .store(0, Ordering::Release);
        // No worker holds a frame yet.
        flows.flows_of(place).iter().for_each(|&(_, flow)| flows.set_done(flow));
        let (rising, is_rising) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self {
            flows: flows.clone(),
            place,
            index,
            netns,
            exit,
            filter,
            senders,
            rising,
            is_rising,
        })
    }

    fn load(flows: &Flows, place: u32, name: &str) -> Result<Ebpf, OffloadError> {
        let mut ebpf = flows.load(place)?;
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

    /// Takes the programs off; flows that come in at the port are gone with it.
    pub fn close(&self) {
        self.flows.release_port(self.place);
    }

    /// Frames for the worker that nobody received: an earlier process had been killed.
    pub fn orphans(&self) -> u64 {
        let at = offset_of!(OffloadPort, orphans);
        self.flows.ports.u64_at(self.place as usize, at).load(Ordering::Relaxed)
    }

    /// Whether a flow waits until nothing of it is under way: then the worker calls [`TcPort::quiet`].
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.is_rising.load(Ordering::Relaxed)
    }

    /// The worker found its queue empty, has received so many frames since the port was opened, and has sent or dropped each of them; `lost`
    /// reads how many the socket lost since.
    ///
    /// # Errors
    /// `lost` failed.
    pub fn quiet(&self, received: u64, lost: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
        let Ok(mut rising) = self.rising.try_lock() else { return Ok(()) };
        rising.retain(|flow| self.flows.is_rising(flow.place));
        self.is_rising.store(!rising.is_empty(), Ordering::Relaxed);
        // In this order: what is given by now is in `seq`, whatever comes meanwhile.
        let given: Vec<u64> = rising.iter().map(|flow| self.flows.given(flow.place)).collect();
        let settled = received + lost()?;
        let seq = self.flows.ports.u64_at(self.place as usize, offset_of!(OffloadPort, seq));
        if seq.load(Ordering::Acquire) != settled {
            return Ok(());
        }
        for (flow, given) in rising.iter().zip(given) {
            if flow.exit.is_sent() {
                self.flows.done(flow.place).store(given, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Whether the stack behind the port has all that was sent out of it.
    fn is_sent(&self) -> bool {
        self.senders.iter().all(|socket| sys::is_sent(socket.as_fd()))
    }

    /// The flow goes up to the rung as soon as nothing of it is under way.
    pub(super) fn raise(&self, place: u32, exit: &Arc<Self>) {
        self.flows.want_rung(place);
        let mut rising = self.rising.lock().unwrap_or_else(PoisonError::into_inner);
        rising.retain(|flow| flow.place != place);
        rising.push(Rising { place, exit: exit.clone() });
        self.is_rising.store(true, Ordering::Relaxed);
    }
}

fn program<'e, P>(ebpf: &'e mut Ebpf, name: &'static str) -> Result<&'e mut P, OffloadError>
where
    &'e mut P: TryFrom<&'e mut aya::programs::Program>,
{
    let found = ebpf.program_mut(name).and_then(|program| program.try_into().ok());
    found.ok_or(OffloadError::BrokenBuild(name))
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
