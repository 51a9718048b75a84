//! Random rules, of kinds that different rungs are made for.

use super::frames::{MACS, address};
use super::{ABSENT, TUNNEL, VLINK};
use crate::random::Random;
use flow::{Action, FlowMod, Instructions, Output};
use wire::{Field, Key};

type Match = Vec<(Field, u128, u128)>;

const IPV4: (Field, u128, u128) = (Field::EthType, 0x0800, 0xffff);

/// The rules of a switch.
pub fn table(random: &mut Random) -> Vec<FlowMod> {
    let actions = actions(random);
    match random.below(6) {
        // The ingress decides.
        0 => (1..=4).map(|port| rule(10, in_port(port), instructions(random))).collect(),
        // A few bits decide.
        1 => vec![
            rule(10, vec![IPV4], all(actions)),
            rule(9, vec![(Field::EthType, 0x0806, 0xffff)], instructions(random)),
        ],
        // Many entries of one program: prefixes.
        2 => (0..24).map(|n| rule(10, prefix(n, 32), all(actions.clone()))).collect(),
        // Many entries of one program: stations.
        3 => MACS.into_iter().map(|mac| rule(10, station(mac), all(actions.clone()))).collect(),
        // A bridge, beside a rule or two.
        4 => {
            let bridge = rule(1, vec![], all(vec![Action::Output(Output::Normal)]));
            let few = 1 + random.below(2);
            rules(random, few).into_iter().chain([bridge]).collect()
        }
        _ => {
            let count = 1 + random.below(12);
            rules(random, count)
        }
    }
}

/// Rules of one program, which forwards by one port as it is, or as a router does.
pub fn plain(random: &mut Random) -> Vec<FlowMod> {
    let to = random.of(&[2, 2, 2, 3, TUNNEL]);
    let actions = match random.one_in(2) {
        true => vec![Action::Output(Output::Port(to))],
        false => route(Action::Output(Output::Port(to))),
    };
    match random.below(5) {
        0 => vec![rule(10, in_port(1), all(actions))],
        1 => vec![rule(10, vec![IPV4], all(actions))],
        2 => (0..24).map(|n| rule(10, prefix(n, 32), all(actions.clone()))).collect(),
        3 => MACS.into_iter().map(|mac| rule(10, station(mac), all(actions.clone()))).collect(),
        _ => vec![rule(1, vec![], all(vec![Action::Output(Output::Normal)]))],
    }
}

/// What a router does with a frame.
fn route(output: Action) -> Vec<Action> {
    let set = |field: Field, value: u64| Action::SetField {
        field,
        of: None,
        value: value.into(),
        mask: field.full(),
    };
    vec![set(Field::EthDst, MACS[1]), set(Field::EthSrc, MACS[2]), Action::DecNwTtl, output]
}

/// Rules of any kind.
pub fn rules(random: &mut Random, count: u64) -> Vec<FlowMod> {
    let any = |_| {
        let found = match random.below(7) {
            0 => vec![],
            1 => in_port(1 + random.below(5) as u32),
            2 => vec![IPV4],
            3 => prefix(random.below(24), random.of(&[8, 24, 30, 32])),
            4 => vec![
                IPV4,
                (Field::IpProto, 17, 0xff),
                (Field::TpDst, 2000 + random.below(4) as u128, 0xffff),
            ],
            5 => station(random.of(&MACS)),
            _ => vec![(Field::VlanVid, 0x1000 | 7, 0x1fff)],
        };
        let mut change = rule(1 + random.below(20) as u16, found, instructions(random));
        if random.one_in(5) {
            (change.table, change.instructions.goto) = (Some(1), None);
        }
        change
    };
    (0..count).map(any).collect()
}

fn rule(priority: u16, fields: Match, instructions: Instructions) -> FlowMod {
    let (mut key, mut mask) = (Key::default(), Key::default());
    for (field, value, bits) in fields {
        key.set(field, value & bits);
        mask.set(field, bits);
    }
    FlowMod { key, mask, priority, instructions, may_miss_headers: true, ..FlowMod::default() }
}

fn in_port(port: u32) -> Match {
    vec![(Field::InPort, port.into(), Field::InPort.full())]
}

fn prefix(number: u64, bits: u32) -> Match {
    let mask = u32::MAX << (32 - bits);
    vec![IPV4, (Field::Ipv4Dst, u32::from(address(number)).into(), mask.into())]
}

fn station(mac: u64) -> Match {
    vec![(Field::EthDst, mac.into(), Field::EthDst.full())]
}

fn all(apply: Vec<Action>) -> Instructions {
    Instructions { apply, ..Instructions::default() }
}

fn instructions(random: &mut Random) -> Instructions {
    let mut instructions = all(actions(random));
    if random.one_in(8) {
        instructions.meter = Some(1 + random.below(2) as u32);
    }
    if random.one_in(8) {
        (instructions.goto, instructions.metadata) = (Some(1), Some((random.below(3), 3)));
    }
    if random.one_in(8) {
        instructions.write = vec![output(random)];
    }
    instructions
}

/// Something that changes a frame.
pub fn edit(random: &mut Random) -> Action {
    let set =
        |field: Field, value: u128| Action::SetField { field, of: None, value, mask: field.full() };
    match random.below(7) {
        0 => set(Field::EthDst, random.of(&MACS).into()),
        1 => set(Field::EthSrc, random.of(&MACS).into()),
        2 | 3 => Action::DecNwTtl,
        4 => Action::PushVlan(0x8100),
        5 => set(Field::TunnelId, random.below(1 << 25).into()),
        _ => Action::SetQueue(7),
    }
}

fn output(random: &mut Random) -> Action {
    let to = match random.below(24) {
        0 => Output::InPort,
        1 => Output::All,
        2 => Output::Flood,
        3 | 4 => Output::Normal,
        5 => Output::Controller { max_len: random.of(&[0, 64, 0xffff]) },
        6 => Output::Port(ABSENT),
        7 => Output::Port(1),
        8 => Output::Port(TUNNEL),
        9..12 => Output::Port(VLINK),
        12..16 => Output::Port(3),
        _ => Output::Port(2),
    };
    Action::Output(to)
}

fn actions(random: &mut Random) -> Vec<Action> {
    let edits = |random: &mut Random, count| (0..count).map(|_| edit(random)).collect::<Vec<_>>();
    match random.below(12) {
        0 => vec![],
        1 => vec![Action::Group(1 + random.below(3) as u32)],
        2 => {
            let (first, edit, last) = (output(random), edit(random), output(random));
            vec![first, edit, last]
        }
        3 | 4 => route(output(random)),
        5 => {
            let count = 1 + random.below(2);
            let mut actions = edits(random, count);
            actions.push(output(random));
            actions
        }
        _ => vec![output(random)],
    }
}
