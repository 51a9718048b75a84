//! What a controller knows: what is wanted, as the store has it, and what nodes have said.
//!
//! What is wanted is in the store; what is here of it is read at the start and changed behind each commit. What nodes have said is here alone: they say it
//! again within seconds.

use crate::kept::{self, DOMAIN, QUARANTINE, SLICES};
use crate::record::{Record, Version};
use crate::store::{Revision, Store, StoreError};
use crate::{declared, fault};
use api::{AuditReport, CircuitState, Declaration, PartName, Report, SliceState};
use domain::file::domain::DomainSpec;
use domain::{Name, Quarantine, SliceKey, Span, UNDERLAY, World};
use serde_json::json;
use serve::error::ApiError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A node that has been silent for so long is taken as away (domain's design, D9: shown within 7 s).
pub const AWAY: Duration = Duration::from_secs(6);

/// What the controller knows.
pub struct State {
    /// What has been admitted.
    pub world: World,
    /// The operator's domain as it was written, if it was.
    pub domain: Option<(Declaration, Revision)>,
    /// All slices, those that go among them.
    pub slices: BTreeMap<SliceKey, Kept>,
    /// The part that each node has beside those of slices.
    pub underlay: BTreeMap<Name, Version>,
    /// What nodes have said, and when.
    pub nodes: BTreeMap<Name, (Report, Instant)>,
    /// The newest question what differs.
    pub asked: u64,
    /// What nodes have answered to such questions.
    pub audits: BTreeMap<Name, AuditReport>,
    /// What readers of events were told last.
    pub told: Told,
}

/// What readers of events were told last.
#[derive(Default)]
pub struct Told {
    /// How each slice is.
    pub slices: BTreeMap<SliceKey, SliceState>,
    /// How each link of each slice is.
    pub links: BTreeMap<SliceKey, BTreeMap<String, CircuitState>>,
    /// Nodes that are here.
    pub here: BTreeSet<Name>,
    /// How long before its end each slice's end was told last, in seconds.
    pub ends: BTreeMap<SliceKey, i64>,
}

/// A slice, with what is computed from it.
pub struct Kept {
    /// What is kept.
    pub record: Record,
    /// When it was written.
    pub revision: Revision,
    /// What each node shall have: nothing before its time.
    pub parts: BTreeMap<Name, Version>,
    /// Its time has come.
    pub has_begun: bool,
    /// This generation was ready once.
    pub was_ready: bool,
}

impl Kept {
    /// Computes what follows from a record at that time, in seconds since 1970.
    pub fn new(record: Record, revision: Revision, now_s: i64) -> Self {
        let mut kept =
            Self { record, revision, parts: BTreeMap::new(), has_begun: false, was_ready: false };
        kept.begin(now_s);
        kept
    }

    /// Has it begin if its time has come; returns whether it has just now.
    pub fn begin(&mut self, now_s: i64) -> bool {
        if self.has_begun || Span::of(&self.record.spec).from > now_s {
            return false;
        }
        self.has_begun = true;
        self.parts = self.record.parts();
        true
    }
}

impl State {
    /// What a store has.
    ///
    /// # Errors
    /// It cannot be read, or holds what this release cannot read.
    pub fn read(store: &dyn Store, now_s: i64) -> Result<Self, ApiError> {
        let broken = |error: StoreError| fault::store(&error);
        let none = json!({"suiro": "domain/1", "sites": {}});
        let world = World::new(kept::read("an empty domain", none)?);
        let mut state = Self {
            world,
            domain: None,
            slices: BTreeMap::new(),
            underlay: BTreeMap::new(),
            nodes: BTreeMap::new(),
            asked: 0,
            audits: BTreeMap::new(),
            told: Told::default(),
        };
        if let Some((value, revision)) = store.get(DOMAIN).map_err(broken)? {
            let declared: Declaration = kept::read(DOMAIN, value)?;
            state.set_domain(declared::domain(&declared)?.spec);
            state.domain = Some((declared, revision));
        }
        if let Some((value, _)) = store.get(QUARANTINE).map_err(broken)? {
            *state.world.quarantine_mut() = kept::read::<Quarantine>(QUARANTINE, value)?;
        }
        for (name, (value, revision)) in store.range(SLICES).map_err(broken)? {
            let record: Record = kept::read(&name, value)?;
            if !record.going {
                state.world.insert(record.admitted());
            }
            state.slices.insert(record.spec.key(), Kept::new(record, revision, now_s));
        }
        Ok(state)
    }

    /// Puts a domain in place of the one before.
    pub fn set_domain(&mut self, spec: DomainSpec) {
        self.world.set_domain(spec);
        let parts = domain::compile::underlay(&self.world);
        self.underlay =
            parts.into_iter().map(|(node, part)| (node, Version::of(&part, "domain"))).collect();
    }

    /// What a node shall have: the version of each part, or none where it shall go.
    pub fn wanted(&self, node: &Name) -> BTreeMap<PartName, Option<String>> {
        let name: PartName = UNDERLAY.parse().expect("a plain word");
        let underlay = self.underlay.get(node).map(|part| (name, Some(part.version.clone())));
        let slices = self.slices.values().filter_map(|kept| {
            let wanted = kept.parts.get(node).map(|part| part.version.clone());
            (wanted.is_some() || kept.record.had.contains(node))
                .then(|| (kept.record.part(), wanted))
        });
        underlay.into_iter().chain(slices).collect()
    }

    /// What a node has said, if it has lately.
    pub fn said(&self, node: &Name) -> Option<&Report> {
        self.nodes.get(node).filter(|(_, at)| at.elapsed() < AWAY).map(|(report, _)| report)
    }
}
