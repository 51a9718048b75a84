//! The paper's Core Table: each core's load and the guests pinned to it.

use std::time::Duration;

use crate::{CoreId, Load, NumaNode, StageLoads, VmId};

/// Cores that one table holds. The kernel program walks the whole table for one decision, and its loops must end.
pub const CORES_MAX: usize = 128;

/// Guests that one core remembers by their id ([`Pinned`]).
pub const PINNED_MAX: usize = 16;

/// May flows be placed on this core?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Any flow.
    #[default]
    Allowed,
    /// Priority flows only: what a host keeps free for those who pay for it.
    Reserved,
    /// None.
    Excluded,
}

/// The guests whose virtual CPUs are pinned to a core.
///
/// Every one makes the core *pinned*; the first [`PINNED_MAX`] are known by their id. A guest beyond them, or one that
/// nobody gave an id, keeps other flows away all the same, only that its own flows do not find this core as theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    ids: [Option<VmId>; PINNED_MAX],
    /// Guests without an id here.
    unnamed: u16,
}

impl Pinned {
    /// Adds a guest; `None` is one without an id. A guest that is here already changes nothing.
    pub fn add(&mut self, vm: Option<VmId>) {
        if vm.is_some_and(|vm| self.contains(vm)) {
            return;
        }
        match self.ids.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) if vm.is_some() => *slot = vm,
            _ => self.unnamed = self.unnamed.saturating_add(1),
        }
    }

    /// Whether nothing is pinned here: the paper's first condition for a core to be chosen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many guests are pinned here.
    pub fn len(&self) -> usize {
        usize::from(self.unnamed) + self.ids().count()
    }

    /// Whether `vm` is known to be pinned here.
    pub fn contains(&self, vm: VmId) -> bool {
        self.ids.contains(&Some(vm))
    }

    /// The guests known by their id, in the order they were added.
    pub fn ids(&self) -> impl Iterator<Item = VmId> + '_ {
        self.ids.iter().copied().flatten()
    }
}

impl FromIterator<Option<VmId>> for Pinned {
    fn from_iter<I: IntoIterator<Item = Option<VmId>>>(guests: I) -> Self {
        let mut pinned = Self::default();
        guests.into_iter().for_each(|vm| pinned.add(vm));
        pinned
    }
}

/// One core as policies see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    id: CoreId,
    /// Its memory's NUMA node.
    pub numa: NumaNode,
    /// The other hardware thread of the same core, if there is one.
    pub sibling: Option<CoreId>,
    /// Whether flows may come here.
    pub role: Role,
    /// Guests pinned here.
    pub pinned: Pinned,
    /// Measured until [`CoreTable::at`], and smoothed ([`Smoothed`](crate::Smoothed)).
    pub load: StageLoads,
    /// Units placed here that `load` does not show ([`Arrivals`](crate::Arrivals)). Who places counts them up until the table is refreshed.
    pub placed: u32,
}

impl Core {
    /// An idle core of the first NUMA node, allowed, nothing pinned.
    pub fn new(id: CoreId) -> Self {
        Self {
            id,
            numa: NumaNode(0),
            sibling: None,
            role: Role::Allowed,
            pinned: Pinned::default(),
            load: StageLoads::default(),
            placed: 0,
        }
    }

    /// Its number.
    pub fn id(&self) -> CoreId {
        self.id
    }
}

/// All cores of a host, in the order of their ids, with what the administrator set for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreTable {
    cores: Vec<Core>,
    /// A core above this load takes no ordinary flow. The paper's 50 (VS-extend §4).
    pub threshold: Load,
    /// A core above this load takes no priority flow. Ours: the paper has one threshold.
    pub priority_threshold: Load,
    /// When the loads were measured, on a clock of the caller's.
    pub at: Duration,
}

impl CoreTable {
    /// The paper's threshold.
    pub const THRESHOLD: Load = Load::percent(50);

    /// A table of `cores`, with the paper's threshold, and no limit for priority flows.
    ///
    /// # Errors
    /// More than [`CORES_MAX`] cores, or ids that do not rise.
    pub fn new(cores: Vec<Core>) -> Result<Self, BadCores> {
        if cores.len() > CORES_MAX {
            return Err(BadCores::TooMany { have: cores.len() });
        }
        if let Some(pair) = cores.windows(2).find(|pair| pair[0].id >= pair[1].id) {
            return Err(BadCores::Order { before: pair[0].id, after: pair[1].id });
        }
        Ok(Self {
            cores,
            threshold: Self::THRESHOLD,
            priority_threshold: Load::FULL,
            at: Duration::ZERO,
        })
    }

    /// All cores, by rising id.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// One core.
    pub fn core(&self, id: CoreId) -> Option<&Core> {
        self.place_of(id).map(|at| &self.cores[at])
    }

    /// One core, to be refreshed.
    pub fn core_mut(&mut self, id: CoreId) -> Option<&mut Core> {
        self.place_of(id).map(|at| &mut self.cores[at])
    }

    fn place_of(&self, id: CoreId) -> Option<usize> {
        self.cores.binary_search_by_key(&id, Core::id).ok()
    }
}

/// Why these cores make no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCores {
    /// The host has more cores than a table holds.
    #[error("{have} cores, of at most {CORES_MAX}: name the cores that flows may use")]
    TooMany {
        /// As many as were given.
        have: usize,
    },
    /// Ids must rise.
    #[error("core {after} stands behind core {before}: list each core once, by rising number")]
    Order {
        /// The one in front.
        before: CoreId,
        /// The one behind, which is not larger.
        after: CoreId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_cores_in_the_order_of_their_ids() {
        let table = CoreTable::new(vec![Core::new(CoreId(1)), Core::new(CoreId(4))]).unwrap();
        assert_eq!(table.core(CoreId(4)).map(Core::id), Some(CoreId(4)));
        assert_eq!(table.core(CoreId(2)), None);
        let twice = CoreTable::new(vec![Core::new(CoreId(1)), Core::new(CoreId(1))]);
        assert_eq!(twice, Err(BadCores::Order { before: CoreId(1), after: CoreId(1) }));
    }

    #[test]
    fn a_table_holds_no_more_cores_than_the_kernel_program_walks() {
        let cores = |n: u16| (0..n).map(|id| Core::new(CoreId(id))).collect();
        assert!(CoreTable::new(cores(128)).is_ok());
        assert_eq!(CoreTable::new(cores(129)), Err(BadCores::TooMany { have: 129 }));
    }

    #[test]
    fn a_guest_without_an_id_makes_a_core_pinned() {
        assert!(Pinned::default().is_empty());
        assert!(!Pinned::from_iter([None]).is_empty());
    }

    #[test]
    fn the_seventeenth_guest_is_counted_but_not_known() {
        let pinned: Pinned = (1..=17).map(VmId::new).chain([VmId::new(3)]).collect();
        assert_eq!(pinned.len(), 17);
        assert!(pinned.contains(VmId::new(16).unwrap()));
        assert!(!pinned.contains(VmId::new(17).unwrap()));
    }
}
