//! Which numbers ports get that ask for none: each the next after the last, so that a number rests long before it comes again.
//!
//! Rules outlive ports. A number that a port has had is given to another one only when no flow and no group names it any more. One that no
//! port has had may be named: a rule was written ahead.

use super::Node;
use super::directory::Member;
use crate::refusal::{Refusal, Why};
use crate::switch::Switch;
use api::{Fault, PortNumber, PortSpec};
use openflow::{Action, FlowStatsRequest, Instruction, OxmField};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is remembered of a switch's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    /// The last one given to a port that asked for none.
    last: u32,
    /// The highest that a port has had.
    highest: u32,
}

impl Numbers {
    /// Of a switch about whose past only this is known: numbers that its ports have, or that something names.
    pub fn after(seen: impl IntoIterator<Item = u32>) -> Self {
        let ordinary = seen.into_iter().filter(|&number| number <= PortNumber::MAX);
        let highest = ordinary.max().unwrap_or(0);
        Self { last: highest, highest }
    }

    /// The next number that no port has, if none has had it either.
    pub fn unheard(self, is_taken: impl Fn(PortNumber) -> bool) -> Option<PortNumber> {
        self.in_turn(is_taken).next().filter(|number| number.get() > self.highest)
    }

    /// The next number that no port has and that is not of a port that went and is still `named`.
    pub fn next(
        self,
        is_taken: impl Fn(PortNumber) -> bool,
        named: &BTreeSet<u32>,
    ) -> Option<PortNumber> {
        let is_left = |number: u32| number > self.highest || !named.contains(&number);
        self.in_turn(is_taken).find(|number| is_left(number.get()))
    }

    fn in_turn(self, is_taken: impl Fn(PortNumber) -> bool) -> impl Iterator<Item = PortNumber> {
        let turn = (self.last + 1..=PortNumber::MAX).chain(1..=self.last);
        turn.filter_map(PortNumber::new).filter(move |&number| !is_taken(number))
    }

    /// A port has this number; `asked`: it was asked for by number.
    pub fn note(&mut self, number: PortNumber, asked: bool) {
        if !number.is_ordinary() {
            return;
        }
        self.highest = self.highest.max(number.get());
        if !asked {
            self.last = number.get();
        }
    }

    /// As it is kept.
    pub fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.last) << 32 | u64::from(self.highest)).to_be_bytes()
    }

    /// As it was kept.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = u64::from_be_bytes(bytes.try_into().ok()?);
        Some(Self { last: (word >> 32) as u32, highest: word as u32 })
    }
}

impl Node {
    /// The number of a port to be made: the one that it asks for, or the next.
    ///
    /// # Errors
    /// Every one is taken or named.
    pub(super) async fn number_for(
        &self,
        member: &Member,
        spec: &PortSpec,
        thing: &str,
    ) -> Result<PortNumber, Refusal> {
        if let Some(asked) = spec.number {
            return Ok(asked);
        }
        let (numbers, taken) = {
            let state = member.state();
            let taken: BTreeSet<u32> = state.ports.values().map(|port| port.number).collect();
            (state.numbers, taken)
        };
        let is_taken = |number: PortNumber| taken.contains(&number.get());
        let next = match numbers.unheard(is_taken) {
            Some(number) => Some(number),
            None => {
                let switch = member.switch.clone();
                // Rules may be many: nobody else waits for them. A panic in there is logged, and every number in doubt is left alone.
                let named = tokio::task::spawn_blocking(move || named(&switch)).await;
                named.ok().and_then(|named| numbers.next(is_taken, &named))
            }
        };
        next.ok_or_else(|| {
            let cause = format!(
                "each number up to {} is a port's, or named by a flow or group",
                PortNumber::MAX
            );
            let remedy =
                "remove a port, delete rules of ports that went, or ask for a number with --number";
            Refusal::new(Why::Impossible, Fault::new(thing, "number it", cause, remedy))
        })
    }

    /// Notes that a port has got its number, for this node and the next.
    pub(super) fn note_number(&self, member: &Member, number: PortNumber, asked: bool) {
        let numbers = {
            let mut state = member.state();
            state.numbers.note(number, asked);
            state.numbers
        };
        self.store.put_numbers(&member.name(), &numbers.to_bytes());
    }
}

/// Every port number that a flow or a group of a switch names. Reads all of them, a portion at a time.
pub fn named(switch: &Arc<Switch>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    // Asking for all flows of all tables is never refused.
    for flow in switch.flows(&FlowStatsRequest::default()).into_iter().flatten() {
        for field in [OxmField::InPort, OxmField::InPhyPort] {
            found.extend(flow.fields.get(field).map(|(port, _)| port as u32));
        }
        flow.instructions.iter().for_each(|instruction| match instruction {
            Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                found.extend(outputs(actions));
            }
            _ => {}
        });
    }
    for bucket in switch.groups().iter().flat_map(|group| &group.buckets) {
        found.insert(bucket.watch_port.0);
        found.extend(outputs(&bucket.actions));
    }
    found
}

fn outputs(actions: &[Action]) -> impl Iterator<Item = u32> {
    actions.iter().filter_map(|action| match action {
        Action::Output { port, .. } => Some(port.0),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u32) -> PortNumber {
        PortNumber::new(number).unwrap()
    }

    #[test]
    fn a_number_that_was_given_back_comes_last() {
        let mut numbers = Numbers::default();
        for wanted in 1..=3 {
            let next = numbers.unheard(|_| false).unwrap();
            assert_eq!(next.get(), wanted);
            numbers.note(next, false);
        }
        assert_eq!(numbers.unheard(|_| false), Some(number(4)));
        assert_eq!(Numbers::from_bytes(&numbers.to_bytes()), Some(numbers));
        assert_eq!(Numbers::from_bytes(&[1]), None);
    }

    #[test]
    fn past_the_highest_come_the_lowest_that_nothing_names() {
        let numbers = Numbers::after([7, PortNumber::MAX, PortNumber::LOCAL.get()]);
        let named = BTreeSet::from([1, 2, 4]);
        assert_eq!(numbers.unheard(|_| false), None);
        assert_eq!(numbers.next(|taken| taken.get() == 3, &named), Some(number(5)));
        assert_eq!(numbers.next(|_| true, &named), None);
    }

    #[test]
    fn a_rule_written_ahead_waits_for_its_port_and_one_of_a_port_that_went_does_not() {
        let mut numbers = Numbers::default();
        numbers.note(number(2), true);
        numbers.note(number(1), false);
        // 2 was asked for, and its port is gone; a rule still names it. No port has had 3.
        assert_eq!(numbers.unheard(|_| false), None);
        assert_eq!(numbers.next(|_| false, &BTreeSet::from([2, 3])), Some(number(3)));
        numbers.note(PortNumber::LOCAL, true);
        assert_eq!(numbers, Numbers { last: 1, highest: 2 });
    }
}
