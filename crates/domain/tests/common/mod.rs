//! A domain of three sites and five nodes, and shorthands.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses some of it; a test may panic"
)]

pub mod walk;

use domain::{Admitted, Decision, Domain, Fault, NodeFacts, Slice, Uid, World, admit};

pub const DEMO: &str = include_str!("../data/demo.yaml");
pub const DOMAIN: &str = include_str!("../data/domain.yaml");
pub const UID: Uid = Uid(0x9f31_c2aa_0000_0000_0000_0000_0000_0001);

pub fn facts(cpu: &str, memory: &str) -> NodeFacts {
    let kinds = serde_json::from_str(r#"["process", "port"]"#).unwrap();
    NodeFacts { cpu: cpu.parse().unwrap(), memory: memory.parse().unwrap(), kinds, alive: true }
}

/// Every node is there with 4 cores and 8 GiB.
pub fn world() -> World {
    world_of(DOMAIN)
}

pub fn world_of(text: &str) -> World {
    let domain =
        Domain::parse("domain.yaml", text).unwrap_or_else(|faults| panic!("{}", all(&faults)));
    let mut world = World::new(domain.spec);
    let nodes: Vec<_> = world.domain().nodes.keys().cloned().collect();
    nodes.into_iter().for_each(|node| world.set_facts(node, facts("4", "8G")));
    world
}

pub fn slice(text: &str) -> Slice {
    Slice::parse("demo.yaml", text).unwrap_or_else(|faults| panic!("{}", all(&faults)))
}

pub fn decide(world: &World, slice: &Slice) -> Decision {
    admit(world, slice, UID).unwrap_or_else(|faults| panic!("{}", all(&faults)))
}

pub fn admitted(world: &World, slice: &Slice) -> Admitted {
    Admitted { spec: slice.spec.clone(), decision: decide(world, slice) }
}

/// What a user sees.
pub fn all(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}
