//! The action set: what a packet carries through the tables and undergoes at their end (OpenFlow 1.3.5 §5.10).
//!
//! At most one action of each type, and one set-field for each field of each transport: the last one written wins. It is kept in the
//! order of execution, so that running it is running a list. The order inside a step that the specification leaves
//! open is: tags are popped from the outside in, and TTLs are set before fields.

use crate::action::{Action, Transport};
use arrayvec::ArrayVec;
use wire::Field;

/// Types of action other than set-field.
const TYPES: usize = 15;

/// One action of each type and one for each field: a set can hold no more.
const CAPACITY: usize = TYPES + set_fields();

/// How many different set-fields there are.
const fn set_fields() -> usize {
    let (mut count, mut at) = (0, 0);
    while at < Field::ALL.len() {
        let shared_by = Transport::with(Field::ALL[at]).len();
        count += if shared_by == 0 { 1 } else { shared_by };
        at += 1;
    }
    count
}

/// The action set of one packet. Empty until written to; making one costs a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet(ArrayVec<Action, CAPACITY>);

impl ActionSet {
    /// A set with `actions` written to it.
    pub fn of(actions: &[Action]) -> Self {
        let mut set = Self::default();
        set.write(actions);
        set
    }

    /// Empties the set (`OFPIT_CLEAR_ACTIONS`).
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Merges actions into the set (`OFPIT_WRITE_ACTIONS`).
    pub fn write(&mut self, actions: &[Action]) {
        for &action in actions {
            self.write_one(action);
        }
    }

    /// What is to be executed, in order: with a group the output counts for nothing.
    pub fn program(&self) -> &[Action] {
        match self.0.as_slice() {
            [first @ .., Action::Group(_), Action::Output(_)] => &self.0[..first.len() + 1],
            all => all,
        }
    }

    fn write_one(&mut self, action: Action) {
        let rank = rank(&action);
        match self.0.binary_search_by_key(&rank, self::rank) {
            Ok(at) => self.0[at] = action,
            Err(at) => self.0.insert(at, action),
        }
    }
}

/// Step in the order of execution, and place in the step; equal ranks replace each other.
fn rank(action: &Action) -> (u8, u16) {
    match *action {
        Action::CopyTtlIn => (1, 0),
        Action::PopVlan => (2, 0),
        Action::PopPbb => (2, 1),
        Action::PopMpls(_) => (2, 2),
        Action::PushMpls(_) => (3, 0),
        Action::PushPbb(_) => (4, 0),
        Action::PushVlan(_) => (5, 0),
        Action::EnsureVlan => (5, 1),
        Action::CopyTtlOut => (6, 0),
        Action::DecMplsTtl => (7, 0),
        Action::DecNwTtl => (7, 1),
        Action::SetMplsTtl(_) => (8, 0),
        Action::SetNwTtl(_) => (8, 1),
        Action::SetField { field, of, .. } => (9, set_rank(field, of)),
        Action::SetQueue(_) => (10, 0),
        Action::Group(_) => (11, 0),
        Action::Output(_) => (12, 0),
    }
}

/// One number for each field of each transport.
fn set_rank(field: Field, of: Option<Transport>) -> u16 {
    u16::from(field as u8) << 8 | of.map_or(0, |transport| 1 + transport as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Output;

    fn set_field(field: Field, value: u128) -> Action {
        set_of(field, None, value)
    }

    fn set_of(field: Field, of: Option<Transport>, value: u128) -> Action {
        Action::SetField { field, of, value, mask: field.full() }
    }

    #[test]
    fn the_order_is_that_of_the_specification_whatever_was_written_first() {
        let in_order = [
            Action::CopyTtlIn,
            Action::PopVlan,
            Action::PopPbb,
            Action::PopMpls(0x0800),
            Action::PushMpls(0x8847),
            Action::PushPbb(0x88e7),
            Action::PushVlan(0x8100),
            Action::CopyTtlOut,
            Action::DecMplsTtl,
            Action::DecNwTtl,
            Action::SetMplsTtl(3),
            Action::SetNwTtl(4),
            set_field(Field::EthDst, 1),
            set_field(Field::VlanVid, 0x1007),
            Action::SetQueue(2),
            Action::Output(Output::Port(1)),
        ];
        let mut backwards = in_order;
        backwards.reverse();
        assert_eq!(ActionSet::of(&backwards).program(), in_order);
    }

    #[test]
    fn the_last_write_of_a_type_or_field_wins() {
        let set = ActionSet::of(&[
            set_field(Field::EthDst, 1),
            Action::Output(Output::Port(1)),
            set_field(Field::EthSrc, 2),
            set_field(Field::EthDst, 3),
            Action::Output(Output::Flood),
        ]);
        let left = [
            set_field(Field::EthDst, 3),
            set_field(Field::EthSrc, 2),
            Action::Output(Output::Flood),
        ];
        assert_eq!(set.program(), left);
    }

    #[test]
    fn the_same_field_of_another_transport_is_another_field() {
        let port = |of, value| set_of(Field::TpDst, Some(of), value);
        let (tcp, udp) = (port(Transport::Tcp, 80), port(Transport::Udp, 53));
        let set = ActionSet::of(&[udp, port(Transport::Tcp, 79), tcp]);
        assert_eq!(set.program(), [tcp, udp]);
    }

    #[test]
    fn a_group_takes_the_place_of_an_output() {
        let set = ActionSet::of(&[
            Action::Output(Output::Port(1)),
            Action::Group(7),
            Action::SetQueue(1),
        ]);
        assert_eq!(set.program(), [Action::SetQueue(1), Action::Group(7)]);
    }

    #[test]
    fn a_set_holds_every_action_there_is() {
        let mut set = ActionSet::of(&[
            Action::CopyTtlIn,
            Action::CopyTtlOut,
            Action::PopVlan,
            Action::PopPbb,
            Action::PopMpls(0),
            Action::PushMpls(0),
            Action::PushPbb(0),
            Action::PushVlan(0),
            Action::DecMplsTtl,
            Action::DecNwTtl,
            Action::SetMplsTtl(0),
            Action::SetNwTtl(0),
            Action::SetQueue(0),
            Action::Group(0),
            Action::Output(Output::All),
        ]);
        for &field in Field::ALL {
            let shared = Transport::with(field).iter().copied().map(Some);
            let alone = Transport::with(field).is_empty().then_some(None);
            set.write(&shared.chain(alone).map(|of| set_of(field, of, 0)).collect::<Vec<_>>());
        }
        assert!(set.0.is_full());
        set.clear();
        assert!(set.program().is_empty());
    }
}
