//! Threads of ports that need no privileges, or few: what opens a port has many, and a thread inherits them.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Gives up all capabilities of the calling thread. Its open sockets go on as they are.
pub(crate) fn drop_privileges() {
    keep_only(CapabilitySet::empty());
}

/// Gives up all capabilities of the calling thread but these, as far as it has them.
pub(crate) fn keep_only(kept: CapabilitySet) {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    let (kept, none) = (kept & held, CapabilitySet::empty());
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: none };
    // Less may always be had: there is nothing to fail.
    let _ = set_capabilities(None, sets);
}
