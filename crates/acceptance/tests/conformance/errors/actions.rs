//! `OFPET_BAD_ACTION`: of entries, buckets and packet-outs.

use super::{PERMITTED, Row, entry, never, refuse, refuse_bytes, sent, with_action};
use crate::groups::{bucket, change};
use openflow::{
    Action, ErrorCode as Code, GroupId, GroupModCommand, GroupType, Instruction, Match, Message,
    Oxm, OxmField, PacketOut, PortNo, SUIRO,
};

/// An entry that applies an action, and one that writes it.
fn entries(fields: &Match, action: &Action) -> [Message; 2] {
    let list = || vec![action.clone()];
    [Instruction::ApplyActions(list()), Instruction::WriteActions(list())]
        .map(|instruction| Message::FlowMod(entry(fields.clone(), vec![instruction])))
}

/// A bucket and a packet-out with an action: nothing is known of their packets.
fn others(action: &Action) -> [Message; 2] {
    let buckets = vec![bucket(vec![action.clone()])];
    let (actions, data) = (vec![action.clone()], vec![0; 60]);
    let in_port = PortNo::CONTROLLER;
    [
        change(GroupModCommand::Add, 1, GroupType::Indirect, buckets),
        Message::PacketOut(PacketOut { buffer_id: None, in_port, actions, data }),
    ]
}

/// Everywhere that an action may stand.
fn everywhere(action: Action) -> Vec<Message> {
    entries(&Match::default(), &action).into_iter().chain(others(&action)).collect()
}

fn set(field: OxmField, value: u128) -> Action {
    Action::SetField(Oxm::Known { field, value, mask: None })
}

/// The rows.
pub fn rows() -> Vec<Row> {
    vec![
        sent(
            Code::BadActionBadType,
            "an action type that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(
                    bench,
                    code,
                    [1, 10, 13, 28].map(|kind| with_action(&[0, kind, 0, 8, 0, 0, 0, 0])),
                );
            },
        ),
        sent(
            Code::BadActionBadLen,
            "an action longer or shorter than its type, or past the end of its list",
            |bench, code| {
                let short = with_action(&[0, 0, 0, 8, 0, 0, 0, 2]);
                let odd = with_action(&[0, 17, 0, 7, 0x81, 0, 0, 0]);
                let past = with_action(&[0, 17, 0, 16, 0x81, 0, 0, 0]);
                refuse_bytes(bench, code, [short, odd, past]);
            },
        ),
        sent(
            Code::BadActionBadExperimenter,
            "an experimenter's action that suiro does not know",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    everywhere(Action::Experimenter {
                        experimenter: 0x00ab_cdef,
                        body: vec![0; 8],
                    }),
                );
            },
        ),
        sent(
            Code::BadActionBadExpType,
            "an action of Nicira other than the set-field with a mask; of suiro's, place (for steering entries) and unknown ones",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    everywhere(Action::Experimenter {
                        experimenter: 0x2320,
                        body: vec![0, 99, 0, 0, 0, 0, 0, 0],
                    }),
                );
                for subtype in [1, 99] {
                    let body = vec![0, subtype, 0, 0, 0, 0, 0, 0];
                    refuse(
                        bench,
                        code,
                        everywhere(Action::Experimenter { experimenter: SUIRO, body }),
                    );
                }
            },
        ),
        sent(
            Code::BadActionBadOutPort,
            "a port number that no port can have, or the tables outside a packet-out",
            |bench, code| {
                for port in [PortNo(0), PortNo::ANY, PortNo(0xffff_ff01)] {
                    refuse(bench, code, everywhere(Action::output(port)));
                }
                refuse(bench, code, entries(&Match::default(), &Action::output(PortNo::TABLE)));
            },
        ),
        sent(
            Code::BadActionBadArgument,
            "an Ethernet type that the header to push cannot have",
            |bench, code| {
                for action in
                    [Action::PushVlan(0x0800), Action::PushMpls(0x8100), Action::PushPbb(0x8847)]
                {
                    refuse(bench, code, everywhere(action));
                }
            },
        ),
        never(Code::BadActionEperm, PERMITTED),
        sent(
            Code::BadActionTooMany,
            "more than 512 actions in one list; in a packet-out, a tunnel end more than the switch may name",
            |bench, code| {
                let list = vec![Action::output(PortNo(2)); 513];
                let change = entry(Match::default(), vec![Instruction::ApplyActions(list)]);
                refuse(bench, code, [Message::FlowMod(change)]);
            },
        ),
        sent(Code::BadActionBadQueue, "all queues at once (OFPQ_ALL)", |bench, code| {
            refuse(bench, code, everywhere(Action::SetQueue(u32::MAX)));
        }),
        sent(Code::BadActionBadOutGroup, "a group that is not there", |bench, code| {
            for id in [GroupId(9), GroupId::ALL, GroupId::ANY] {
                refuse(bench, code, everywhere(Action::Group(id)));
            }
        }),
        sent(
            Code::BadActionMatchInconsistent,
            "an edit of a header that neither the match nor an earlier action promises",
            |bench, code| {
                let actions = [
                    set(OxmField::Ipv4Dst, 1),
                    set(OxmField::TcpDst, 1),
                    Action::DecNwTtl,
                    Action::PopVlan,
                    Action::PopMpls(0x0800),
                    Action::PopPbb,
                ];
                for action in actions {
                    refuse(bench, code, entries(&Match::default(), &action));
                }
            },
        ),
        never(Code::BadActionUnsupportedOrder, "actions may stand in any order"),
        never(Code::BadActionBadTag, "a tag that cannot be pushed is OFPBAC_BAD_ARGUMENT"),
        sent(Code::BadActionBadSetType, "a field that cannot be set, or none", |bench, code| {
            refuse(bench, code, everywhere(set(OxmField::InPort, 1)));
            let unknown = [0, 25, 0, 16, 0x80, 0, 99 << 1, 4, 0, 0, 0, 1, 0, 0, 0, 0];
            refuse_bytes(bench, code, [with_action(&unknown)]);
        }),
        sent(Code::BadActionBadSetLen, "a field of another length than it has", |bench, code| {
            let wrong = [0, 25, 0, 16, 0x80, 0, 3 << 1, 4, 0, 0, 0, 1, 0, 0, 0, 0];
            refuse_bytes(bench, code, [with_action(&wrong)]);
        }),
        sent(
            Code::BadActionBadSetArgument,
            "a value that the field cannot have, or a mask, which 1.3 does not have",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    entries(
                        &Match::default().with(OxmField::EthType, 0x0800),
                        &set(OxmField::IpDscp, 64),
                    ),
                );
                let tagged = Match::default().with(OxmField::VlanVid, 0x1005);
                refuse(bench, code, entries(&tagged, &set(OxmField::VlanVid, 5)));
                let masked = [
                    0,
                    25,
                    0,
                    24,
                    0x80,
                    0,
                    3 << 1 | 1,
                    12,
                    0,
                    0,
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    0,
                    0,
                ];
                refuse_bytes(bench, code, [with_action(&masked)]);
            },
        ),
    ]
}
