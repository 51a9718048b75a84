//! # The ports' thread
//!
//! **Question answered**: which interface is under each port now, and what happens when it comes, changes or goes?
//!
//! One thread owns the table and watches every interface. It keeps privileges after the start ([`crate::host::privilege`]). What may block for
//! milliseconds in the kernel happens on it, or, where one opens or closes an interface, on a thread that it starts: others' ports go on meanwhile.
//!
//! ## Invariants
//!
//! * A port that is wanted is in the table, open or not. One that cannot be opened keeps its [`Fault`] and is tried again when its
//!   interface appears, and every [`RETRY`] in case it came without notice (a namespace made anew).
//! * The table's owner is the thread; others read copies ([`Ports::status`]) and send requests.
//! * A port that lost its interface stays a port of its switch, with its link down: controllers keep their rules.
//! * Lock order: the board's locks are leaves; no other is taken under one.

mod change;
mod closers;
mod hold;
mod isolated;
mod keeper;
mod openers;
mod quota;
mod vlink;
mod watch;

pub(crate) use watch::{ring, wake_fd};

use crate::host::memory::Shares;
use crate::offload::Offload;
use crate::roll::Roll;
use crate::switch::Switch;
use api::{Fault, PortSpec};
use datapath::{Datapath, PortAt, PortQueues};
use keeper::Keeper;
use openflow::PortConfig;
use port::{Chosen, Details, Ends, Keep, NetnsRef, Outside, PacketSocket, PortDetail, PortFacts};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use xdp::offload::Flows;

/// Time between two attempts to open what could not be opened, and between two looks at namespaces. Chosen: a user notices no
/// less, and a thousand ports cost no more.
pub const RETRY: Duration = Duration::from_secs(2);

/// A port that somebody wants.
pub struct Wanted {
    /// Where.
    pub at: PortAt,
    /// `port guest1 of switch sw0`, for messages.
    pub label: String,
    /// Its name.
    pub name: String,
    /// How frames get there.
    pub door: Door,
    /// Its configuration (`OFPPC_*`).
    pub config: PortConfig,
    /// What packets that leave by it wait in; none for a vlink.
    pub queues: PortQueues,
    /// Its switch.
    pub switch: Arc<Switch>,
}

/// How frames get to a port.
#[derive(Clone)]
pub enum Door {
    /// By what a specification says, and what the node chose.
    Interface(Box<(PortSpec, Chosen)>),
    /// By the other end of a vlink.
    Vlink {
        /// This end, `sw0:to-sw1`.
        end: String,
        /// The other one, `sw1:to-sw0`; it may be wanted later.
        peer: String,
        /// Address of this end.
        mac: [u8; 6],
    },
}

/// What to do with a port that cannot be opened now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFailure {
    /// Keep it and try again: what the configuration or the store says is wanted.
    Keep,
    /// Forget it: whoever asks learns why and asks again.
    Forget,
}

/// A port as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortStatus {
    /// What is true of its interface, or was when it was last there.
    pub facts: PortFacts,
    /// Why it is not open, if it is not.
    pub fault: Option<Fault>,
}

/// The table as others read it.
#[derive(Default)]
struct Board {
    ports: Mutex<HashMap<PortAt, PortStatus>>,
    /// Of open ports: what changes too often to be told as news is read where it is.
    details: Mutex<HashMap<PortAt, Arc<dyn Details>>>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, HashMap<PortAt, PortStatus>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn details(&self) -> MutexGuard<'_, HashMap<PortAt, Arc<dyn Details>>> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = oneshot::Sender<Result<(), Fault>>;

enum Request {
    Serve(Arc<Datapath>),
    Add(Box<Wanted>, OnFailure, Answer),
    /// The first hears when no worker has it, the second when its interface is let go.
    Remove(PortAt, Keep, oneshot::Sender<()>, Answer),
    SetAdmin(PortAt, bool),
    Change(Box<Wanted>, Vec<&'static str>, Answer),
    Reload(PortAt, Answer),
    Discard(Box<PortSpec>, Answer),
    Faulted(PortAt, io::Error),
    SetFlows(Option<Arc<Flows>>, oneshot::Sender<()>),
    ReleaseOthers,
    /// A TCP socket in a namespace, of IPv6 if that is true.
    Socket(NetnsRef, bool, oneshot::Sender<io::Result<OwnedFd>>),
    /// A packet socket on an interface of the node's own namespace.
    PacketSocket(&'static str, oneshot::Sender<io::Result<PacketSocket>>),
    /// Ports by their labels: why each has no link whatever its interface has, or that it has its own again.
    Hold(HashMap<String, Option<Fault>>),
    Stop(Keep, oneshot::Sender<()>),
}

impl Request {
    /// The port that it is about, if it must be open for it, or known not to be.
    fn port(&self) -> Option<PortAt> {
        match self {
            Self::Remove(at, ..) | Self::Reload(at, _) | Self::Faulted(at, _) => Some(*at),
            Self::Change(to, ..) => Some(to.at),
            _ => None,
        }
    }
}

/// What a thread has begun, and will tell of.
pub struct UnderWay(oneshot::Receiver<Result<(), Fault>>);

impl UnderWay {
    /// Waits for it.
    ///
    /// # Errors
    /// It failed.
    pub async fn done(self) -> Result<(), Fault> {
        self.0.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// The handle of the thread.
pub struct Ports {
    requests: Sender<Request>,
    wake: Arc<OwnedFd>,
    board: Arc<Board>,
    ends: Arc<Ends>,
    /// Of ports that were removed: whether their interfaces are let go.
    going: Mutex<Vec<UnderWay>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Ports {
    /// Starts the thread, which has the capabilities of its caller and keeps them.
    ///
    /// # Errors
    /// The system refuses a thread or an eventfd.
    pub fn start(
        directories: Directories,
        offload: Arc<Offload>,
        roll: &Roll,
    ) -> io::Result<Arc<Self>> {
        let (requests, inbox) = channel();
        let wake = Arc::new(watch::wake_fd()?);
        let board = Arc::new(Board::default());
        let ends = Arc::<Ends>::default();
        let own = Own { directories, ends: ends.clone(), offload };
        let thread = spawn(inbox, own, wake.clone(), board.clone(), roll)?;
        let (going, thread) = (Mutex::default(), Mutex::new(Some(thread)));
        Ok(Arc::new(Self { requests, wake, board, ends, going, thread }))
    }

    /// The numbers of tunnels' ends: the node's only table of them.
    pub fn ends(&self) -> &Arc<Ends> {
        &self.ends
    }

    /// The datapath that ports are attached to; before it nothing can be added.
    pub fn serve(&self, datapath: Arc<Datapath>) {
        self.send(Request::Serve(datapath));
    }

    /// Opens a port and adds it to its switch.
    ///
    /// # Errors
    /// Why it cannot be opened now; with [`OnFailure::Keep`] it is wanted all the same.
    pub async fn add(&self, wanted: Wanted, on_failure: OnFailure) -> Result<(), Fault> {
        self.begin_to_add(wanted, on_failure).done().await
    }

    /// The same, while others are opened, too.
    pub fn begin_to_add(&self, wanted: Wanted, on_failure: OnFailure) -> UnderWay {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Add(Box::new(wanted), on_failure, answer));
        UnderWay(answered)
    }

    /// Removes a port from its switch, while its interface goes.
    pub async fn remove(&self, at: PortAt, keep: Keep) -> UnderWay {
        let ((detached, is_detached), (answer, is_gone)) = (oneshot::channel(), oneshot::channel());
        self.send(Request::Remove(at, keep, detached, answer));
        // A thread that has ended is reported by what is under way.
        let _ = is_detached.await;
        UnderWay(is_gone)
    }

    /// Notes an interface that goes meanwhile: [`Ports::gone`] waits for it.
    pub fn goes(&self, going: UnderWay) {
        self.going.lock().unwrap_or_else(PoisonError::into_inner).push(going);
    }

    /// Waits until all interfaces that were [noted](Ports::goes) are let go, so that they may be had again.
    ///
    /// # Errors
    /// The kernel refuses to remove one; the port is gone all the same.
    pub async fn gone(&self) -> Result<(), Fault> {
        let going = {
            let mut going = self.going.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *going)
        };
        let mut result = Ok(());
        for gone in going {
            result = result.and(gone.done().await);
        }
        result
    }

    /// Brings these keys of a port to what `to` says, while it carries on; all of them or none.
    ///
    /// # Errors
    /// The host refuses one of them.
    pub async fn change(&self, to: Wanted, keys: Vec<&'static str>) -> Result<(), Fault> {
        self.ask(|answer| Request::Change(Box::new(to), keys, answer)).await
    }

    /// Reads a port's files again: a tunnel's keys.
    ///
    /// # Errors
    /// They cannot be used: the port goes on as it was.
    pub async fn reload(&self, at: PortAt) -> Result<(), Fault> {
        self.ask(|answer| Request::Reload(at, answer)).await
    }

    /// Removes what a port that no switch has may have left: its TAP.
    ///
    /// # Errors
    /// It cannot be had to be removed: most often there is none.
    pub async fn discard(&self, spec: PortSpec) -> Result<(), Fault> {
        self.ask(|answer| Request::Discard(Box::new(spec), answer)).await
    }

    /// Sets a port's interface up or down, some time soon. Never waits.
    pub fn set_admin(&self, at: PortAt, up: bool) {
        self.send(Request::SetAdmin(at, up));
    }

    /// Lets flows go past the workers of ports that can, or no more; such ports are opened anew. Returns when they are.
    pub async fn set_flows(&self, flows: Option<Arc<Flows>>) {
        let (done, told) = oneshot::channel();
        self.send(Request::SetFlows(flows, done));
        // A thread that has ended has no ports.
        let _ = told.await;
    }

    /// Gives interfaces back to the host that no wanted port has, some time soon: all that are wanted at the start have been added.
    pub fn release_others(&self) {
        self.send(Request::ReleaseOthers);
    }

    /// Makes a TCP socket in a network namespace, of IPv6 if that is true.
    ///
    /// # Errors
    /// The namespace is not there, or the host refuses.
    pub async fn socket(&self, netns: NetnsRef, is_v6: bool) -> io::Result<OwnedFd> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Socket(netns, is_v6, answer));
        answered.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }

    /// Makes a packet socket on an interface of the node's own namespace.
    ///
    /// # Errors
    /// There is no such interface, or the host refuses.
    pub async fn packet_socket(&self, interface: &'static str) -> io::Result<PacketSocket> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::PacketSocket(interface, answer));
        answered.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }

    /// Ports by their labels, those that come later included: why each has no link, or that it has its own again. Never waits.
    pub fn hold(&self, ports: HashMap<String, Option<Fault>>) {
        self.send(Request::Hold(ports));
    }

    /// A worker found a port's queue broken.
    pub fn faulted(&self, at: PortAt, error: io::Error) {
        self.send(Request::Faulted(at, error));
    }

    /// The port as it is now, if it is wanted.
    pub fn status(&self, at: PortAt) -> Option<PortStatus> {
        self.board.lock().get(&at).cloned()
    }

    /// What only its kind of port has to show; nothing of one that is not open.
    pub fn detail(&self, at: PortAt) -> PortDetail {
        let details = self.board.details().get(&at).cloned();
        details.map(|details| details.read()).unwrap_or_default()
    }

    /// Where a tunnel's packets go, those to `end` of one that has no end of its own; `None` of what is no open tunnel.
    pub fn outside(&self, at: PortAt, end: Option<IpAddr>) -> Option<Outside> {
        let details = self.board.details().get(&at).cloned();
        details?.outside(end)
    }

    /// The cores that open tunnels' own threads seal on, each as often as there are such threads.
    pub fn sealing_cores(&self) -> Vec<usize> {
        let details: Vec<_> = self.board.details().values().cloned().collect();
        details.iter().filter_map(|details| details.read().sealing?.on.core).collect()
    }

    /// Closes every port and ends the thread.
    pub async fn stop(&self, keep: Keep) {
        let (done, ended) = oneshot::channel();
        self.send(Request::Stop(keep, done));
        // An error means that the thread has ended already.
        let _ = ended.await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = thread.map(JoinHandle::join);
    }

    async fn ask(&self, request: impl FnOnce(Answer) -> Request) -> Result<(), Fault> {
        let (answer, answered) = oneshot::channel();
        self.send(request(answer));
        UnderWay(answered).done().await
    }

    fn send(&self, request: Request) {
        // A thread that has ended takes no requests; `ask` reports that by the missing answer.
        if self.requests.send(request).is_ok() {
            watch::ring(&self.wake);
        }
    }
}

fn ended() -> Fault {
    let remedy = "restart suiro; please report its last log lines";
    Fault::new("ports", "asking their thread", "it has ended", remedy)
}

/// Where ports keep what must outlive the process.
#[derive(Clone, Debug)]
pub struct Directories {
    /// Where guests' packed rings stand; on a tmpfs.
    pub rings: PathBuf,
    /// Which offloads were switched off; on a tmpfs.
    pub offloads: PathBuf,
    /// Which sequence numbers of tunnels' keys are used; outlives the host.
    pub ledger: PathBuf,
    /// By what the node knows the interfaces again that it keeps from the host's own stack.
    pub owner: u32,
    /// What the node may use.
    pub memory: Shares,
    /// Bytes that a guest may share.
    pub shared: u64,
}

/// What the ports' thread is given: where ports keep things, by which numbers their tunnels tell ends, and who has flows past the workers.
struct Own {
    directories: Directories,
    ends: Arc<Ends>,
    offload: Arc<Offload>,
}

fn spawn(
    inbox: Receiver<Request>,
    own: Own,
    wake: Arc<OwnedFd>,
    board: Arc<Board>,
    roll: &Roll,
) -> io::Result<JoinHandle<()>> {
    let run = move |duty| {
        // The first message brings the datapath; without one there is nothing to do.
        if let Ok(Request::Serve(datapath)) = inbox.recv() {
            Keeper::new(datapath, board, wake, own, duty).run(&inbox);
        }
    };
    roll.spawn("suiro-ports", run)
}
