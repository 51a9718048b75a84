//! Interfaces that a port kept from the host's own stack, given back without an open port.

use super::Door;
use super::keeper::{Entry, Keeper};
use api::{Kind, PortSpec, chain};
use datapath::PortAt;

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

    /// Gives back what this node isolated earlier for ports that nobody wants any more, and switches on what such ports had switched off.
    pub(super) fn release_others(&self) {
        if let Err(error) = self.opener.put_back_others() {
            tracing::warn!("offloads that an earlier node switched off stay so: {error}");
        }
        for netns in self.watch.namespaces() {
            let takers = || self.entries.values().filter(|entry| isolates(entry).is_some());
            let wanted = |name: &str| takers().any(|entry| entry.is_on(netns, name));
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
        Door::Interface(wanted) => {
            let spec = &wanted.0;
            matches!(spec.kind, Kind::AfPacket(_) | Kind::AfXdp(_)).then_some(spec)
        }
        Door::Vlink { .. } => None,
    }
}
