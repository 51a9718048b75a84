//! Who carries decisions out: what an enforcement point does, so that the agent can steer with it.
//!
//! There are three: the kernel's program on one interface (crate `xdp`), the workers of one switch (crate `datapath`), the double of the
//! tests. An enforcer places undecided units by itself, with the core table that it was given last. The agent is on no frame's path.

use super::{
    CoreTimes, EnforceError, EntryStatus, Event, FlowKey, OpenError, Options, PolicyKind, Step,
    UnitStatus, Urgency,
};
use crate::{CoreId, CoreTable, Reason, Stage, UnitId};
use std::collections::BTreeMap;

/// One enforcement point.
pub trait Enforcer: Send {
    /// Where it is done: `native` (in the driver), or `workers`.
    fn hook(&self) -> &'static str;

    /// What the user must know of it, if anything.
    fn note(&self) -> Option<String> {
        None
    }

    /// The only cores that it can steer to; `None`: any of the table's.
    fn cores(&self) -> Option<Vec<CoreId>> {
        None
    }

    /// How many units it ever placed on each core; enforcers that steer to all cores count together.
    ///
    /// # Errors
    /// The kernel refuses.
    fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, EnforceError>;

    /// Gives it the cores, as they are now, and who chooses among them. What it places counts in addition to [`Core::placed`](crate::Core::placed) from the last
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
    fn settle(&mut self) {}

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
    fn missed_unit(&self, key: &FlowKey) -> Option<UnitId>;

    /// Says which threads are which part of a guest, for [`Enforcer::times`].
    ///
    /// # Errors
    /// The kernel refuses.
    fn set_threads(&mut self, threads: &[(u32, Stage)]) -> Result<(), EnforceError>;

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
        options: &Options,
        table: &CoreTable,
    ) -> Result<Box<dyn Enforcer>, OpenError>;
}
