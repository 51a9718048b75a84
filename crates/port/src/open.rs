//! One entrance for every kind of kernel-backed port.

use crate::af_xdp::{Transmitters, without};
use crate::bypass::Doors;
use crate::chosen::Chosen;
use crate::common::Common;
use crate::ends::Ends;
use crate::error::OpenError;
use crate::isolation::isolated;
use crate::mailbox::Bells;
use crate::opened::OpenPort;
use crate::settings::Notes;
use crate::tap::Finders;
use crate::vxlan::{Groups, Ledger, Node};
use api::{Kind, PortSpec};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vhost::GuestBounds;
use xdp::offload::Flows;

/// Opens ports for the same workers, several at a time, and owns what a worker's ports share.
pub struct Opener {
    workers: usize,
    /// By which number the interfaces that it isolates are known again.
    owner: u32,
    /// Where vhost-user ports note where their guests' rings stand.
    records: Option<PathBuf>,
    /// What guests may cost.
    guest_bounds: Option<Arc<GuestBounds>>,
    /// What the thread of each guest does first.
    confine: fn(),
    /// Where AF_XDP ports note which offloads they switched off.
    offloads: Notes,
    /// Where flows go past the workers.
    flows: Mutex<Option<Arc<Flows>>>,
    /// Made for the first port that can use them.
    transmitters: OnceLock<Result<Transmitters, String>>,
    /// Who gets which tunnel's datagrams.
    groups: Groups,
    /// Which numbers of tunnels' keys are used.
    ledger: Arc<Ledger>,
    /// The numbers of tunnels' ends.
    ends: Arc<Ends>,
    /// Where tunnels and TAPs meet past the kernel.
    doors: Doors,
    /// Programs of TAPs.
    finders: Finders,
}

impl Opener {
    /// For `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            owner: 0,
            records: None,
            guest_bounds: None,
            confine: || {},
            offloads: Notes::default(),
            flows: Mutex::default(),
            transmitters: OnceLock::new(),
            groups: Groups::default(),
            ledger: Arc::new(Ledger::new(None)),
            ends: Arc::default(),
            doors: Doors::default(),
            finders: Finders::default(),
        }
    }

    /// Marks the interfaces that it keeps from the host's own stack as this owner's ([`crate::release_others`]).
    #[must_use]
    pub fn with_owner(mut self, owner: u32) -> Self {
        self.owner = owner;
        self
    }

    /// Notes in this directory, which must be on a tmpfs, where guests' packed rings stand: they outlive a process that is killed.
    #[must_use]
    pub fn with_records(mut self, directory: PathBuf) -> Self {
        self.records = Some(directory);
        self
    }

    /// Notes in this directory, which must be on a tmpfs, which offloads AF_XDP ports switched off. A port takes over what an earlier process
    /// noted of its interface; the rest stays as it is until [`Opener::put_back_others`].
    #[must_use]
    pub fn with_offloads(mut self, directory: PathBuf) -> Self {
        self.offloads = Notes::new(directory);
        self
    }

    /// Puts back what ports of an earlier process switched off and no port has taken over: when all that are wanted at the start are open, and no
    /// program of the others is there.
    ///
    /// # Errors
    /// The first one; the others are tried all the same.
    pub fn put_back_others(&self) -> io::Result<()> {
        self.offloads.put_back_others()
    }

    /// Lets flows of ports that are opened from now on go past the workers where ports can ([`crate::PortControl::past`]), or no more.
    pub fn set_flows(&self, flows: Option<Arc<Flows>>) {
        *self.flows.lock().unwrap_or_else(PoisonError::into_inner) = flows;
    }

    fn flows(&self) -> Option<Arc<Flows>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes in this directory, which must outlive a power cut, which sequence numbers of tunnels' keys are used. Without one no tunnel is
    /// encrypted; without what is in it keys must not be used again.
    #[must_use]
    pub fn with_ledger(mut self, directory: PathBuf) -> Self {
        self.ledger = Arc::new(Ledger::new(Some(directory)));
        self
    }

    /// Bounds what guests cost by memory that nobody touched before.
    #[must_use]
    pub fn with_guest_bounds(mut self, bound: Arc<GuestBounds>) -> Self {
        self.guest_bounds = Some(bound);
        self
    }

    /// Has the thread of each guest, which reads what that sends, give up first what it does not need.
    #[must_use]
    pub fn with_confined_guests(mut self, confine: fn()) -> Self {
        self.confine = confine;
        self
    }

    /// Has tunnels tell and be told ends by these numbers, which are the node's.
    #[must_use]
    pub fn with_ends(mut self, ends: Arc<Ends>) -> Self {
        self.ends = ends;
        self
    }

    /// Rings these bells, which the workers watch, when something comes to a queue that nobody polls.
    #[must_use]
    pub fn with_bells(mut self, bells: Bells) -> Self {
        self.doors = Doors::new(bells);
        self
    }

    /// Opens a port for which the node has nothing to choose.
    ///
    /// # Errors
    /// As [`Opener::open_chosen`].
    pub fn open(&self, spec: &PortSpec) -> Result<OpenPort, OpenError> {
        self.open_chosen(spec, &Chosen::default())
    }

    /// Opens a port. Blocks for some milliseconds: control threads only.
    ///
    /// # Errors
    /// Every one names the interface, the step, the cause and a remedy; nothing is left behind.
    pub fn open_chosen(&self, spec: &PortSpec, chosen: &Chosen) -> Result<OpenPort, OpenError> {
        let common = &Common::from(spec);
        match &spec.kind {
            Kind::Tap(_) => crate::tap::open(common, self.workers, &self.doors, &self.finders),
            Kind::AfPacket(packet) => isolated(common, packet.into(), self.owner, || {
                // The host is to have every frame of an interface that it shares.
                let flows = self.flows().filter(|_| packet.host != Some(true));
                crate::af_packet::open(common, self.workers, flows.as_ref())
            }),
            Kind::AfXdp(xdp) => isolated(common, xdp.into(), self.owner, || {
                let flows = self.flows();
                let flows = flows.as_ref();
                crate::af_xdp::open((common, xdp), self.workers, &self.offloads, flows, || {
                    self.transmitters()
                })
            }),
            Kind::VhostUser(guest) => {
                let Self { workers, confine, .. } = *self;
                let (records, bounds) = (self.records.as_deref(), self.guest_bounds.as_ref());
                let around = crate::vhost_user::Around { workers, records, bounds, confine };
                crate::vhost_user::open((common, guest), chosen, around)
            }
            Kind::Vxlan(tunnel) => {
                let Self { groups, ledger, ends, doors, .. } = self;
                let node = Node { groups, ledger, ends, doors };
                crate::vxlan::open((common, tunnel), chosen, self.workers, node)
            }
            Kind::Vlink(_) => Err(OpenError::WrongInterface {
                interface: common.interface.clone(),
                why: "a vlink has no interface: the datapath joins its ends".into(),
            }),
        }
    }

    /// Or why there are none, in words.
    fn transmitters(&self) -> Result<&Transmitters, &str> {
        let made = self
            .transmitters
            .get_or_init(|| Transmitters::new(self.workers).map_err(|error| without(&error)));
        made.as_ref().map_err(String::as_str)
    }
}

/// Opens a port that shares nothing with others.
///
/// # Errors
/// As [`Opener::open`].
pub fn open(spec: &PortSpec, workers: usize) -> Result<OpenPort, OpenError> {
    Opener::new(workers).open(spec)
}
