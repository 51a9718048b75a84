//! Vlinks: two ports of two switches that are each other's other end. There is nothing to open; both must be wanted, and name each other.

use super::Door;
use super::keeper::{Entry, Keeper, Opened, REPORT};
use api::{Fault, chain};
use datapath::PortAt;
use port::PortFacts;

impl Keeper {
    /// Joins both ends of a vlink if both are wanted.
    pub(super) fn join(&mut self, at: PortAt) -> Result<(Opened, PortFacts), Fault> {
        let entry = &self.entries[&at];
        let Some((peer, far)) = self.far_end(entry) else {
            let cause =
                format!("its other end {} is not there, or does not name it", peer_name(entry));
            let remedy = "add the other end, with this one as its peer";
            return Err(Fault::new(&entry.wanted.label, "join its ends", cause, remedy));
        };
        if far.open.is_none() {
            let attached = self.datapath.attach_vlink(at, peer);
            let failed =
                |error| Fault::new(&entry.wanted.label, "join its ends", chain(&error), REPORT);
            attached.map_err(failed)?;
            let facts = vlink_facts(far, true);
            self.came_up(peer, Opened::Vlink, facts);
        }
        Ok((Opened::Vlink, vlink_facts(&self.entries[&at], true)))
    }

    /// The vlink port that this one names, if it names this one.
    fn far_end(&self, near: &Entry) -> Option<(PortAt, &Entry)> {
        let Door::Vlink { end: here, peer: there, .. } = &near.wanted.door else { return None };
        let joins = |entry: &Entry| matches!(&entry.wanted.door, Door::Vlink { end, peer, .. } if end == there && peer == here);
        self.entries.iter().find(|(_, entry)| joins(entry)).map(|(&at, entry)| (at, entry))
    }

    /// One end of a vlink is gone: the other one has no peer any more.
    pub(super) fn part(&mut self, at: PortAt) {
        let Some((peer, _)) = self.far_end(&self.entries[&at]) else { return };
        let far = self.entries.get_mut(&peer).expect("found just now");
        far.open = None;
        let cause = format!("its other end {} was removed", peer_name(far));
        let fault = Fault::new(
            &far.wanted.label,
            "join its ends",
            cause,
            "add the other end, or remove this one",
        );
        self.show_fault(peer, fault);
    }
}

fn peer_name(entry: &Entry) -> &str {
    match &entry.wanted.door {
        Door::Vlink { peer, .. } => peer,
        Door::Interface(_) => "",
    }
}

/// A vlink has no interface: its facts are ours to say. No MTU: the ports behind it have one.
pub(super) fn vlink_facts(entry: &Entry, joined: bool) -> PortFacts {
    let Door::Vlink { mac, peer, .. } = &entry.wanted.door else { return PortFacts::default() };
    PortFacts {
        mac: *mac,
        up: true,
        carrier: joined,
        mode: format!("vlink to {peer}"),
        ..PortFacts::default()
    }
}
