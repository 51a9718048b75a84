//! The domain with everything that has been admitted, and the sums of it.
//!
//! The ledger is kept by difference, and always equals the sums over all decisions.

use crate::decision::Decision;
use crate::file::domain::DomainSpec;
use crate::file::slice::{GuestKind, Named, SliceSpec};
use crate::ids::Quarantine;
use crate::words::{Cpu, Name, Size, SliceKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a node says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFacts {
    /// Cores that it has.
    pub cpu: Cpu,
    /// Memory that it has.
    pub memory: Size,
    /// Kinds of guest that it has proved.
    pub kinds: Vec<GuestKind>,
    /// Whether it is there now. A node that is away keeps what it has and gets nothing more.
    pub alive: bool,
}

/// A slice that has been admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Admitted {
    /// What it says.
    pub spec: SliceSpec,
    /// What has been decided.
    pub decision: Decision,
}

/// The domain with everything that has been admitted.
#[derive(Clone, Debug)]
pub struct World {
    domain: DomainSpec,
    facts: Named<NodeFacts>,
    slices: BTreeMap<SliceKey, Admitted>,
    quarantine: Quarantine,
    ledger: Ledger,
    ids: BTreeSet<u32>,
    last_id: u32,
    now: i64,
}

/// What is promised of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeUse {
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
}

/// What a tenant has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TenantUse {
    /// Guests' shares of cores, in thousandths.
    pub cpu: u64,
    /// Guests' bytes of memory.
    pub memory: u64,
    /// Bit/s of links between nodes.
    pub rate: u64,
    /// Slices.
    pub slices: u64,
    /// Switches.
    pub switches: u64,
    /// Links.
    pub links: u64,
}

/// Sums over decisions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// By node.
    pub nodes: Named<NodeUse>,
    /// Bit/s each way, by segment.
    pub segments: Named<u64>,
    /// By tenant.
    pub tenants: Named<TenantUse>,
}

impl World {
    /// A domain in which nothing has been admitted.
    pub fn new(domain: DomainSpec) -> Self {
        Self {
            domain,
            facts: Named::new(),
            slices: BTreeMap::new(),
            quarantine: Quarantine::default(),
            ledger: Ledger::default(),
            ids: BTreeSet::new(),
            last_id: 0,
            now: 0,
        }
    }

    /// What time it is, in seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The caller's clock has moved.
    pub fn set_now(&mut self, unix_s: i64) {
        self.now = unix_s;
    }

    /// The operator has changed the domain. What has been admitted stays.
    pub fn set_domain(&mut self, domain: DomainSpec) {
        self.domain = domain;
    }

    /// A node has said what it has.
    pub fn set_facts(&mut self, node: Name, facts: NodeFacts) {
        self.facts.insert(node, facts);
    }

    /// Keeps an admitted slice, in place of the one of its name if there is one.
    pub fn insert(&mut self, admitted: Admitted) -> Option<Admitted> {
        let old = self.remove(&admitted.spec.key());
        self.ledger.add(&admitted, 1);
        for circuit in admitted.decision.circuits.values() {
            self.ids.insert(circuit.id);
            self.last_id = circuit.id;
        }
        self.slices.insert(admitted.spec.key(), admitted);
        old
    }

    /// A slice is gone. Its ids are free unless the caller takes them into quarantine.
    pub fn remove(&mut self, key: &SliceKey) -> Option<Admitted> {
        let old = self.slices.remove(key)?;
        self.ledger.add(&old, -1);
        old.decision.circuits.values().for_each(|circuit| {
            self.ids.remove(&circuit.id);
        });
        Some(old)
    }

    /// The operator's file.
    pub fn domain(&self) -> &DomainSpec {
        &self.domain
    }

    /// What a node has said of itself.
    pub fn facts(&self, node: &Name) -> Option<&NodeFacts> {
        self.facts.get(node)
    }

    /// A slice.
    pub fn slice(&self, key: &SliceKey) -> Option<&Admitted> {
        self.slices.get(key)
    }

    /// All slices.
    pub fn slices(&self) -> impl Iterator<Item = (&SliceKey, &Admitted)> {
        self.slices.iter()
    }

    /// Ids that are out of use.
    pub fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }

    /// Ids that are out of use, to hold, confirm and release them.
    pub fn quarantine_mut(&mut self) -> &mut Quarantine {
        &mut self.quarantine
    }

    /// Sums over all slices, whenever they are.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Free ids, in the order in which they are given out.
    pub(crate) fn free_ids(&self) -> impl Iterator<Item = u32> {
        crate::ids::free(self.last_id, |id| self.ids.contains(&id) || self.quarantine.holds(id))
    }
}

impl Ledger {
    /// Has each quantity be at least what it is in the other.
    pub(crate) fn raise(&mut self, other: &Self) {
        fn raise(a: &mut u64, b: u64) {
            *a = (*a).max(b);
        }
        for (node, used) in &other.nodes {
            let own = self.nodes.entry(node.clone()).or_default();
            raise(&mut own.cpu, used.cpu);
            raise(&mut own.memory, used.memory);
        }
        for (segment, &rate) in &other.segments {
            raise(self.segments.entry(segment.clone()).or_default(), rate);
        }
        for (tenant, used) in &other.tenants {
            let own = self.tenants.entry(tenant.clone()).or_default();
            let TenantUse { cpu, memory, rate, slices, switches, links } = *used;
            raise(&mut own.cpu, cpu);
            raise(&mut own.memory, memory);
            raise(&mut own.rate, rate);
            raise(&mut own.slices, slices);
            raise(&mut own.switches, switches);
            raise(&mut own.links, links);
        }
    }

    /// Adds a slice, or takes it away.
    pub(crate) fn add(&mut self, Admitted { spec, decision }: &Admitted, sign: i64) {
        let change = |sum: &mut u64, by: u64| {
            *sum =
                sum.checked_add_signed(sign * by as i64).expect("what goes has been added before");
        };
        let tenant = self.tenants.entry(spec.tenant.clone()).or_default();
        change(&mut tenant.slices, 1);
        change(&mut tenant.switches, spec.switches.len() as u64);
        change(&mut tenant.links, spec.links.len() as u64);
        for (name, guest) in &spec.guests {
            let (cpu, memory) = (u64::from(spec.cpu(guest).0), spec.memory(guest).0);
            change(&mut tenant.cpu, cpu);
            change(&mut tenant.memory, memory);
            let node = self.nodes.entry(decision.nodes[name].clone()).or_default();
            change(&mut node.cpu, cpu);
            change(&mut node.memory, memory);
        }
        for circuit in decision.circuits.values().filter(|circuit| !circuit.hops.is_empty()) {
            change(&mut tenant.rate, circuit.rate);
            for segment in circuit.hops.iter().filter_map(|hop| hop.segment.as_ref()) {
                change(self.segments.entry(segment.clone()).or_default(), circuit.rate);
            }
        }
    }
}
