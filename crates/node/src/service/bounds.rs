//! Bounds that are kept where nobody can be told: workers, sessions and guests count, and here is looked how much more it is.

use super::Node;
use super::directory::Member;
use crate::hits::Who;
use api::{Bound, Kind};
use datapath::SwitchId;
use std::collections::HashMap;
use wire::DropReason;

/// What was counted at the last look, of everything that is there.
#[derive(Default)]
pub(super) struct Counted {
    before: HashMap<Source, u64>,
    now: HashMap<Source, u64>,
}

/// A counter: the bound, the switch by its number, and whose it is: two callers of one host have one each.
type Source = (Bound, SwitchId, Option<String>);

impl Counted {
    /// How much more it is. All of these begin at 0 with the process; what counts less than before began anew.
    fn more(&mut self, source: Source, total: u64) -> u64 {
        let before = self.before.get(&source).copied().unwrap_or(0);
        self.now.insert(source, total);
        total.checked_sub(before).unwrap_or(total)
    }

    /// What was not seen at this look is forgotten.
    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

impl Node {
    /// Notes who has hit bounds since the last look.
    pub(super) fn note_hits(&self, counted: &mut Counted) {
        for member in self.directory.all() {
            let name = member.name();
            // What counts, and who is behind it.
            let mut note_of = |bound, [source, who]: [Option<String>; 2], total, text: &str| {
                let times = counted.more((bound, member.id, source), total);
                if times > 0 {
                    let by = Who { switch: Some(name.to_string()), name: who };
                    self.hits.tell(bound, by, times, text);
                }
            };
            for peer in member.switch.connections() {
                let (both, lost) = ([Some(peer.peer), Some(peer.who)], peer.lost_packet_ins);
                note_of(Bound::UnreadPacketIns, both, lost, "packet-ins that it did not read");
            }
            let mut note = |bound, who: Option<String>, total, text: &str| {
                note_of(bound, [who.clone(), who], total, text);
            };
            let counters = self.datapath.switch_counters(member.id).unwrap_or_default();
            for (reason, frames) in counters.drops {
                match reason {
                    DropReason::TooManyCopies => {
                        note(Bound::Copies, None, frames, "frames were not multiplied further");
                    }
                    DropReason::PacketInFull => {
                        note(Bound::PacketIns, None, frames, "packet-ins were not made");
                    }
                    _ => {}
                }
            }
            for (port, frames) in member.switch.storms() {
                let who = Some(port_name(&member, port));
                note(Bound::FloodCopies, who, frames, "frames were not flooded");
            }
            for (port, times) in self.costly_guests(&member) {
                let text = "its guest wants more memory than it may have";
                note(Bound::GuestMemory, Some(port), times, text);
            }
        }
        counted.turn();
        self.hits.settle();
    }

    /// The member's ports to guests, with how often each guest would have cost more than it may.
    fn costly_guests(&self, member: &Member) -> Vec<(String, u64)> {
        let guests: Vec<_> = {
            let state = member.state();
            let ports = state.ports.iter();
            let guests = ports.filter(|(_, port)| matches!(port.spec.kind, Kind::VhostUser(_)));
            guests.map(|(name, port)| (name.to_string(), member.at(port.number))).collect()
        };
        let hits = |(name, at)| {
            let guest = self.ports.detail(at).guest?;
            Some((name, guest.look.bounds_hit()))
        };
        guests.into_iter().filter_map(hits).collect()
    }
}

fn port_name(member: &Member, number: u32) -> String {
    let state = member.state();
    let found = state.ports.iter().find(|(_, port)| port.number == number);
    found.map_or_else(|| number.to_string(), |(name, _)| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_more_than_at_the_last_look_is_told() {
        let mut counted = Counted::default();
        let mut look = |total: Option<u64>| {
            let more = total.map(|total| counted.more((Bound::Copies, SwitchId(1), None), total));
            counted.turn();
            more
        };
        assert_eq!(look(Some(70)), Some(70));
        assert_eq!(look(Some(75)), Some(5));
        assert_eq!(look(Some(75)), Some(0));
        assert_eq!(look(Some(3)), Some(3), "it began anew");
        assert_eq!(look(None), None);
        assert_eq!(look(Some(9)), Some(9), "another of its number");
    }
}
