//! Interfaces that a port kept from the host's own stack, given back without an open port.

use super::Door;
use super::keeper::{Entry, Keeper};
use api::chain;
use datapath::PortAt;
use port::{NetnsRef, PortKind, PortSpec};

impl Keeper {
    /// Gives back what a port isolated that is not open now: it will not be closed.
    pub(super) fn release_unopened(&self, at: PortAt) {
        let entry = self.entries.get(&at).filter(|entry| entry.open.is_none());
        let Some((label, spec)) =
            entry.and_then(|entry| Some((&entry.wanted.label, isolates(entry)?)))
        else {
            return;
        };
        if let Err(error) = port::release(spec) {
            tracing::warn!("{label}: {}", chain(&error));
        }
    }

    /// Gives back what this node isolated earlier for ports that nobody wants any more.
    pub(super) fn release_others(&self) {
        for netns in self.watch.namespaces() {
            let wanted = |name: &str| self.entries.values().any(|entry| is_on(entry, netns, name));
            match port::release_others(netns, self.owner, wanted) {
                Ok(names) => names.iter().for_each(|name| {
                    tracing::info!(
                        "interface {name}: given back to the host: no port has it any more"
                    );
                }),
                Err(error) => tracing::warn!("interfaces without a port: {}", chain(&error)),
            }
        }
    }
}

/// The specification of a port that keeps its interface from the host.
fn isolates(entry: &Entry) -> Option<&PortSpec> {
    match &entry.wanted.door {
        Door::Interface(spec) if matches!(spec.kind, PortKind::AfPacket | PortKind::AfXdp) => {
            Some(spec)
        }
        Door::Interface(_) | Door::Vlink { .. } => None,
    }
}

fn is_on(entry: &Entry, netns: Option<&NetnsRef>, name: &str) -> bool {
    isolates(entry).is_some_and(|spec| spec.netns.as_ref() == netns && spec.interface == name)
}
