//! Actions: what comes out is what [`crate::oracle::act`] says, in apply-actions, in the action set and in a group's bucket.

mod headers;
mod order;
mod outputs;
mod random;
mod refusals;
mod set_field;
mod ttl;

use crate::harness::{Bench, Suite, output};
use crate::oracle::{Frame, act};
use openflow::{
    Action, Bucket, FlowMod, GroupId, GroupMod, GroupModCommand, GroupType, Instruction, Match,
    Message, OxmField, PortNo,
};

/// The cases.
pub fn cases(suite: &mut Suite) {
    set_field::cases(suite);
    headers::cases(suite);
    ttl::cases(suite);
    order::cases(suite);
    outputs::cases(suite);
    random::cases(suite);
    refusals::cases(suite);
}

/// Where actions stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In an apply-actions instruction.
    Apply,
    /// In a write-actions instruction: in the action set, run at the end of the tables.
    Write,
    /// In the bucket of an indirect group.
    Bucket,
}

impl Place {
    const ALL: [Self; 3] = [Self::Apply, Self::Write, Self::Bucket];

    /// The places where a list means what its order says: an action set, and a bucket is one, has an order of its own (§5.6, §5.10).
    fn of(actions: &[Action]) -> &'static [Self] {
        if actions.len() == 1 { &Self::ALL } else { &[Self::Apply] }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Write => "write",
            Self::Bucket => "bucket",
        }
    }

    /// Adds an entry for `fields` that carries out the actions and sends the frame to port 2.
    fn program(self, bench: &mut Bench, fields: Match, actions: &[Action]) {
        let mut actions = actions.to_vec();
        actions.push(output(2));
        let instruction = match self {
            Self::Apply => Instruction::ApplyActions(actions),
            Self::Write => Instruction::WriteActions(actions),
            Self::Bucket => {
                indirect(bench, actions);
                Instruction::ApplyActions(vec![Action::Group(GroupId(1))])
            }
        };
        let instructions = vec![instruction];
        bench.add(&FlowMod { priority: 1, fields, instructions, ..FlowMod::default() });
    }
}

/// Adds indirect group 1.
fn indirect(bench: &mut Bench, actions: Vec<Action>) {
    let bucket = Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GroupId::ANY, actions };
    bench.session.accept(&Message::GroupMod(GroupMod {
        command: GroupModCommand::Add,
        kind: GroupType::Indirect,
        id: GroupId(1),
        buckets: vec![bucket],
    }));
}

/// A match of what actions on this frame's headers need: its Ethernet type and its tag, if there is one.
fn headers_of(frame: &Frame) -> Match {
    let with = |fields: Match, field| match frame.get(field) {
        Some(value) => fields.with(field, value),
        None => fields,
    };
    with(with(Match::default(), OxmField::EthType), OxmField::VlanVid)
}

/// Sends the frame through the actions: what comes out of port 2 is what the oracle says, and nothing else comes out.
fn becomes_what_the_oracle_says(
    bench: &mut Bench,
    place: Place,
    fields: Match,
    actions: &[Action],
    frame: &Frame,
) {
    place.program(bench, fields, actions);
    let mut wanted = frame.clone();
    for action in actions {
        act(&mut wanted, action).expect("a TTL that does not run out");
    }
    bench.send(1, &frame.bytes()).is_only(2, &wanted.bytes());
}
