//! The control thread's handle on one steered switch.

use super::Datapath;
use crate::id::SwitchId;
use crate::steering::{
    Classifier, ENTRIES_MAX, ENTRY_FIRST, FCF_FIRST, Placed, Shared, SteeredUnit, SteeringEntry,
    SteeringError, TooManyMasks,
};
use place::steering::{FlowKey, Options, PolicyKind, Unmatched, Urgency};
use place::{CoreId, CoreTable, Reason, UnitId};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What workers gave each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandoverCounts {
    /// Core of the worker that received the frames.
    pub from: CoreId,
    /// Core of the worker that they were for; the same for those that stayed.
    pub to: CoreId,
    /// Frames given.
    pub given: u64,
    /// Frames that the other took; as many as were given, but for those on the way.
    pub taken: u64,
    /// Frames lost: the ring was full.
    pub full: u64,
    /// Frames lost: more waited for a move away from there than may.
    pub held_out: u64,
}

/// Steering of one switch. Dropping it changes nothing: [`Datapath::unsteer`] ends it, and so does the removal of the switch.
pub struct Steering {
    switch: SwitchId,
    shared: Arc<Shared>,
    options: Options,
    secret: [u64; 2],
    classifier: Arc<Classifier>,
    entries: Vec<SteeringEntry>,
    /// Units without an entry, those that had none for longest first.
    free: VecDeque<UnitId>,
    /// What a unit had counted for entries before its present one.
    before: HashMap<UnitId, SteeredUnit>,
}

impl Steering {
    pub(crate) fn new(
        (switch, shared): (SwitchId, Arc<Shared>),
        options: Options,
        secret: [u64; 2],
        classifier: Arc<Classifier>,
    ) -> Self {
        let first = ENTRY_FIRST;
        let free = (first..first + ENTRIES_MAX as u32).map(UnitId).collect();
        let (entries, before) = (Vec::new(), HashMap::new());
        Self { switch, shared, options, secret, classifier, entries, free, before }
    }

    /// The switch.
    pub fn switch(&self) -> SwitchId {
        self.switch
    }

    /// Cores of the workers, in order of their numbers.
    pub fn cores(&self) -> &[CoreId] {
        &self.shared.cores
    }

    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// A unit for a new entry.
    ///
    /// # Errors
    /// [`SteeringError::Full`].
    pub fn free_unit(&mut self) -> Result<UnitId, SteeringError> {
        let unit = self.free.pop_front().ok_or(SteeringError::Full(ENTRIES_MAX))?;
        self.before.insert(unit, self.shared.status(unit, self.classifier.facts(unit)));
        Ok(unit)
    }

    /// A unit from [`Steering::free_unit`] that no entry got.
    pub fn return_unit(&mut self, unit: UnitId) {
        self.free.push_back(unit);
    }

    /// Puts these entries in force in place of those that were. An entry that stays, by unit, keeps its place and counters. Waits until
    /// every worker classifies by them: microseconds, a millisecond when ports have queues that are full.
    ///
    /// # Errors
    /// Nothing changed then.
    pub fn set_entries(
        &mut self,
        datapath: &Datapath,
        entries: Vec<SteeringEntry>,
    ) -> Result<(), SteeringError> {
        let before: HashMap<UnitId, SteeringEntry> = std::mem::take(&mut self.entries)
            .into_iter()
            .map(|entry| (entry.unit, entry))
            .collect();
        let same = |entry: &SteeringEntry| {
            before.get(&entry.unit).is_some_and(|old| is_same_but_target(old, entry))
        };
        let changed = entries.len() != before.len() || !entries.iter().all(same);
        if changed && let Err(error) = self.reclassify(datapath, &entries, &before) {
            self.entries = before.into_values().collect();
            return Err(error);
        }
        for entry in &entries {
            if before.get(&entry.unit).is_some_and(|old| old != entry) {
                self.shared.set_target(entry);
            }
        }
        let stays: std::collections::HashSet<UnitId> =
            entries.iter().map(|entry| entry.unit).collect();
        self.free.extend(before.keys().filter(|unit| !stays.contains(unit)));
        self.entries = entries;
        Ok(())
    }

    fn reclassify(
        &mut self,
        datapath: &Datapath,
        entries: &[SteeringEntry],
        before: &HashMap<UnitId, SteeringEntry>,
    ) -> Result<(), SteeringError> {
        let how = (self.options.unmatched, self.options.is_fcf);
        let classifier = Classifier::new(entries, how, self.secret);
        let classifier = Arc::new(classifier.map_err(|TooManyMasks| SteeringError::Masks)?);
        let new = entries.iter().filter(|entry| !before.contains_key(&entry.unit));
        new.for_each(|entry| self.shared.set_target(entry));
        datapath.reclassify(self, &classifier)?;
        self.classifier = classifier;
        Ok(())
    }

    /// How many units were ever placed on each core.
    pub fn arrivals(&self) -> BTreeMap<CoreId, u32> {
        self.shared.choosing().arrivals()
    }

    /// Gives it the cores as they are now, and who chooses among those that have a worker.
    pub fn set_core_table(&self, table: &CoreTable, policy: PolicyKind) {
        let table = table.clone();
        let before = self.shared.choosing().set(table, policy, &self.shared.cores);
        drop(before);
        self.shared.ask_again();
    }

    /// Has a unit moved to the worker of a core; false when there is no such worker.
    pub fn want(&self, unit: UnitId, core: CoreId, reason: Reason, urgency: Urgency) -> bool {
        let worker = self.shared.worker_on(core);
        worker.map(|worker| self.shared.want(unit, worker, reason, urgency)).is_some()
    }

    /// Units that were placed since the last call.
    pub fn placed(&self) -> Vec<Placed> {
        self.shared.choosing().take_placed()
    }

    /// Every unit that an entry has, or that any frame came for.
    pub fn units(&self) -> Vec<SteeredUnit> {
        let groups = match self.options.unmatched {
            Unmatched::Groups(groups) => 0..u32::from(groups),
            Unmatched::Stay => 0..0,
        };
        let fields = if self.options.is_fcf { FCF_FIRST..ENTRY_FIRST } else { 0..0 };
        let used = groups
            .chain(fields)
            .map(|unit| self.unit(UnitId(unit)))
            .filter(|unit| unit.core.is_some());
        used.chain(self.entries.iter().map(|entry| self.unit(entry.unit))).collect()
    }

    /// One unit.
    pub fn unit(&self, id: UnitId) -> SteeredUnit {
        let mut unit = self.shared.status(id, self.classifier.facts(id));
        if let Some(before) = self.before.get(&id) {
            unit.frames -= before.frames.min(unit.frames);
            unit.bytes -= before.bytes.min(unit.bytes);
            unit.dropped -= before.dropped.min(unit.dropped);
            unit.moves -= before.moves.min(unit.moves);
        }
        unit
    }

    /// The unit of frames of that key when no entry selects them; `None` when they stay where they arrive.
    pub fn missed_unit(&self, key: &FlowKey) -> Option<UnitId> {
        self.classifier.missed_unit(key)
    }

    /// What every worker gave to each, itself included.
    pub fn handovers(&self) -> Vec<HandoverCounts> {
        let (cores, workers) = (&self.shared.cores, &self.shared.workers);
        let pairs = (0..cores.len()).flat_map(|from| (0..cores.len()).map(move |to| (from, to)));
        let count = |(from, to): (usize, usize)| {
            let given = &workers[from].given[to];
            let taken = if from == to { &given.frames } else { &workers[to].taken[from].frames };
            HandoverCounts {
                from: cores[from],
                to: cores[to],
                given: given.frames.get(),
                taken: taken.get(),
                full: given.full.get(),
                held_out: given.held_out.get(),
            }
        };
        pairs.map(count).collect()
    }

    /// Frames that belong to no unit and stayed where they arrived.
    pub fn unsteered(&self) -> u64 {
        self.shared.workers.iter().map(|worker| worker.unsteered.get()).sum()
    }
}

fn is_same_but_target(one: &SteeringEntry, other: &SteeringEntry) -> bool {
    use place::steering::Target::Hash;
    (one.target == Hash) == (other.target == Hash)
        && SteeringEntry { target: other.target, ..*one } == *other
}
