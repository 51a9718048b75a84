//! Threads of ports that need no privileges: what opens a port has many, and a thread inherits them.

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Gives up all capabilities of the calling thread. Its open sockets go on as they are.
pub(crate) fn drop_privileges() {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // Less may always be had: there is nothing to fail.
    let _ = set_capabilities(None, sets);
}
