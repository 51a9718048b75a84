//! # Who carries decisions out
//!
//! **Question answered**: what must an enforcement point be able to do, so that the agent can steer with it?
//!
//! The kernel's program on one interface is one ([`Kernel`](crate::Kernel) opens it); the tests' double is another; the
//! switch's workers ([`Workers`](crate::Workers)) are the third. An enforcer places undecided units by itself, with the core table that it was given last: the agent is
//! never on the path of a frame.

use crate::rule::Target;
use crate::selector::Selector;
use api::steer::{InterfaceSpec, PolicyKind};
use place::{CoreId, CoreTable, Facts, Reason, UnitId, VmId};
use std::collections::BTreeMap;
use std::error::Error;
use xdp::steer::Key;

/// One entry: frames, and where they go. Entries of the same priority and selector are the same entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Which entry.
    pub key: EntryKey,
    /// Where to.
    pub target: Target,
    /// Its flows have priority.
    pub is_priority: bool,
    /// Its flows want their machine's own core.
    pub wants_own_core: bool,
    /// The machine that its frames are for.
    pub vm: Option<VmId>,
}

/// Which entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryKey {
    /// The highest that selects wins.
    pub priority: u16,
    /// Which frames.
    pub selector: Selector,
}

/// A change of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Add it, or let the one of its key do this from now on.
    Put(Entry),
    /// Remove it. One that is not there is no error.
    Remove(EntryKey),
}

/// An entry as it is in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryStatus {
    /// What it is.
    pub entry: Entry,
    /// The unit that its frames are moved as.
    pub unit: UnitId,
    /// Frames that it took.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A unit as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitStatus {
    /// Which.
    pub unit: UnitId,
    /// Where its frames go; `None` while nothing was decided.
    pub core: Option<CoreId>,
    /// Where they will go when those under way are done.
    pub wanted: Option<CoreId>,
    /// Why it is there.
    pub reason: Option<Reason>,
    /// When that was decided: nanoseconds of the monotonic clock.
    pub decided_at_ns: u64,
    /// Frames so far.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Times that it moved.
    pub moves: u64,
    /// The machine that its frames are for.
    pub vm: Option<VmId>,
    /// It has priority.
    pub is_priority: bool,
    /// It must stay where it is: its rule says so.
    pub is_fixed: bool,
}

/// Nanoseconds that a core spent since it is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreTimes {
    /// By stage, in the order of `place::Stage::ALL`.
    pub stages: [u64; 4],
    /// In everything else that is not idling.
    pub other: u64,
    /// Idle.
    pub idle: u64,
}

impl CoreTimes {
    /// All of it.
    pub fn whole(&self) -> u64 {
        self.stages.iter().sum::<u64>() + self.other + self.idle
    }
}

/// A decision that the enforcer made by itself, or carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When: nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// About which unit.
    pub unit: UnitId,
    /// Where it was, if anywhere.
    pub from: Option<CoreId>,
    /// Where it is now.
    pub core: CoreId,
    /// Why.
    pub reason: Reason,
    /// What was known of it, if the enforcer chose.
    pub facts: Option<Facts>,
}

/// How urgent a move is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// When the frames under way are done, however long that takes.
    WhenDrained,
    /// Frames that come before the old core is done may be dropped, and are counted.
    DropToDrain,
}

/// Something that failed. The enforcer's own error is its source.
#[derive(Debug, thiserror::Error)]
#[error("{step} failed")]
pub struct EnforceError {
    /// What was tried.
    pub step: &'static str,
    /// Why it failed.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// One enforcement point.
pub trait Enforcer: Send {
    /// Where it is done: `native` (in the driver), or `workers`.
    fn hook(&self) -> &'static str;

    /// What the user must know of it, if anything.
    fn note(&self) -> Option<String>;

    /// The only cores that it can steer to; `None`: any of the table's.
    fn cores(&self) -> Option<Vec<CoreId>> {
        None
    }

    /// How many units it ever placed on each core; enforcers that steer to all cores count together.
    ///
    /// # Errors
    /// The kernel refuses.
    fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, EnforceError>;

    /// Gives it the cores, as they are now, and who chooses among them. What it places counts in addition to [`Core::placed`](place::Core::placed) from the last
    /// [`Enforcer::arrivals`] on.
    ///
    /// # Errors
    /// The kernel refuses.
    fn set_core_table(&mut self, table: &CoreTable, policy: PolicyKind)
    -> Result<(), EnforceError>;

    /// Changes entries; of several steps for one key the last counts. Many at once cost little more than one.
    ///
    /// # Errors
    /// No room, too many different masks, or the kernel refuses; what was there is there still, as far as it was not to be removed.
    fn change(&mut self, steps: &[Step]) -> Result<(), EnforceError>;

    /// Does what is left of the last change, without waiting.
    fn settle(&mut self);

    /// Every entry, with its counters.
    ///
    /// # Errors
    /// The kernel refuses.
    fn entries(&mut self) -> Result<Vec<EntryStatus>, EnforceError>;

    /// Every unit that any frame came for.
    ///
    /// # Errors
    /// The kernel refuses.
    fn units(&mut self) -> Result<Vec<UnitStatus>, EnforceError>;

    /// Has a unit moved.
    ///
    /// # Errors
    /// The kernel refuses.
    fn want(
        &mut self,
        unit: UnitId,
        core: CoreId,
        reason: Reason,
        urgency: Urgency,
    ) -> Result<(), EnforceError>;

    /// What the cores' time went into. Empty when it cannot measure that.
    ///
    /// # Errors
    /// The kernel refuses.
    fn times(&mut self) -> Result<Vec<(CoreId, CoreTimes)>, EnforceError>;

    /// What happened since the last call.
    fn events(&mut self) -> Vec<Event>;

    /// Frames so far by what became of them, in the enforcer's own words.
    ///
    /// # Errors
    /// The kernel refuses.
    fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, EnforceError>;

    /// Frames so far that each core's stack had.
    ///
    /// # Errors
    /// The kernel refuses.
    fn core_counts(&mut self) -> Result<Vec<(CoreId, u64)>, EnforceError>;

    /// The unit that frames of this key are in, when no entry takes them.
    fn missed_unit(&self, key: &Key) -> Option<UnitId>;

    /// Says which threads are which part of a guest, for [`Enforcer::times`].
    ///
    /// # Errors
    /// The kernel refuses.
    fn set_threads(&mut self, threads: &[(u32, place::Stage)]) -> Result<(), EnforceError>;

    /// Whether the interface is still there and steered by this: it may have been removed, and made anew.
    fn is_alive(&self) -> bool;

    /// Every few seconds, while it is alive: gives back what others have left on it.
    fn look_after(&mut self) {}

    /// Ends steering; nothing of it is left.
    ///
    /// # Errors
    /// Something is left; the error says what.
    fn detach(self: Box<Self>) -> Result<(), EnforceError>;
}

/// Where enforcers come from.
pub trait Opener: Send {
    /// Takes up what an earlier process left on the interface; `None` when there is nothing.
    ///
    /// # Errors
    /// There is something, but it cannot be taken up.
    fn adopt(&self, interface: &str) -> Result<Option<Box<dyn Enforcer>>, OpenError>;

    /// Begins to steer an interface, to any of the table's cores.
    ///
    /// # Errors
    /// No such interface, another program is on it, or the kernel refuses.
    fn attach(
        &self,
        interface: &str,
        spec: &InterfaceSpec,
        table: &CoreTable,
    ) -> Result<Box<dyn Enforcer>, OpenError>;
}

/// Why an interface is not steered.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no interface of that name.
    #[error("there is no interface of that name here")]
    NoInterface,
    /// Another program has the place.
    #[error("another XDP program is on it: {program}")]
    Occupied {
        /// Its name and number.
        program: String,
    },
    /// The kernel refuses.
    #[error("{step} failed")]
    Refused {
        /// What was tried.
        step: &'static str,
        /// What the user can do.
        remedy: String,
        /// Why it failed.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// What the user can do.
    pub fn remedy(&self, interface: &str) -> String {
        match self {
            Self::NoInterface => {
                "see `ip link` for the interfaces of this network namespace".into()
            }
            Self::Occupied { program } if program.starts_with("suiro_") => {
                "it is another version's of suiro: end that node, or detach with that version"
                    .into()
            }
            Self::Occupied { .. } => format!(
                "see whose it is with `ip link show {interface}`; end that program, or remove its own with `ip link set dev {interface} xdp off`"
            ),
            Self::Refused { remedy, .. } => remedy.clone(),
        }
    }
}
