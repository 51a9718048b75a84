//! Steering: what may be asked of it, and what it shows.

mod spec;
mod view;

pub use spec::{
    Detached, GROUPS_RANGE, InterfaceSpec, PolicyKind, PolicyPatch, PolicySpec, RULES_RANGE,
    SteerRules, Unmatched, VmSpec,
};
pub use view::{
    CandidateView, CoreView, DecisionView, FaultView, FlowView, InterfaceView, SteerView, UnitView,
    VmView, WhyView,
};

/// The first part of a steered switch's name. No interface has a colon in its name.
pub const SWITCH_PREFIX: &str = "switch:";

/// Names a steered thing for people: `switch sw0`, `interface eth0`.
pub fn called(name: &str) -> String {
    match name.strip_prefix(SWITCH_PREFIX) {
        Some(switch) => format!("switch {switch}"),
        None => format!("interface {name}"),
    }
}
