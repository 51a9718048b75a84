//! No frame is lost without a reason: received + injected = sent + dropped + packet-ins, switch by switch.

use crate::line::Wired;
use crate::rig::{Rig, at, controller, output, set, udp};
use datapath::{PacketOut, SwitchId};
use flow::Action;
use proptest::prelude::*;
use wire::Field;

/// What a switch does with the frames of one flow: at most one copy leaves, so frames can be counted.
#[derive(Clone, Debug)]
enum Fate {
    Forward(u32),
    Edit(u32),
    Controller,
    Drop,
    Expire,
}

impl Fate {
    fn actions(&self) -> Vec<Action> {
        match *self {
            Fate::Forward(port) => vec![output(port)],
            Fate::Edit(port) => vec![Action::PushVlan(0x8100), set(Field::EthSrc, 5), output(port)],
            Fate::Controller => vec![controller(60)],
            Fate::Drop => vec![],
            Fate::Expire => vec![Action::SetNwTtl(1), Action::DecNwTtl, output(1)],
        }
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    // 1, 2: lines; 3, 4: vlinks to the other switches; 9: no port.
    let port = prop_oneof![Just(1u32), Just(2), Just(3), Just(4), Just(9)];
    let fate = prop_oneof![
        4 => port.clone().prop_map(Fate::Forward),
        2 => port.prop_map(Fate::Edit),
        1 => Just(Fate::Controller),
        1 => Just(Fate::Drop),
        1 => Just(Fate::Expire),
    ];
    proptest::collection::vec(fate, 6)
}

fn frames() -> impl Strategy<Value = Vec<(u32, u32, u16, usize)>> {
    let frame = (0..3u32, 1..=2u32, 0..7u16, prop_oneof![Just(0usize), 0..2000usize]);
    proptest::collection::vec(frame, 1..200)
}

/// Three switches in a triangle of vlinks.
fn triangle(rig: &mut Rig, fates: &[Vec<Fate>]) {
    for (switch, fates) in fates.iter().enumerate() {
        let rules = fates.iter().enumerate().map(|(flow, fate)| {
            (
                10,
                vec![
                    (Field::EthType, 0x0800),
                    (Field::IpProto, 17),
                    (Field::TpSrc, 1000 + flow as u128),
                ],
                fate.actions(),
            )
        });
        rig.switch(switch as u32, &[1, 2], &rules.collect::<Vec<_>>());
    }
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        rig.vlink(at(one, 3), at(other, 4));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_is_sent_or_dropped_or_handed_to_the_controller(
        fates in proptest::collection::vec(fates(), 3),
        frames in frames(),
    ) {
        let mut rig = Rig::new(2);
        triangle(&mut rig, &fates);
        for &(switch, port, flow, len) in &frames {
            rig.line(switch, port).put([Wired::from(udp(flow, 0, len))]);
        }
        for switch in 0..3 {
            let frame = udp(switch as u16, 0, 50);
            let out = PacketOut { switch: SwitchId(switch), in_port: 1, frame, offload: Default::default(), actions: vec![output(3)] };
            rig.datapath.packet_out(out).unwrap();
        }
        (0..3).for_each(|switch| [1, 2].iter().for_each(|&port| rig.line(switch, port).settle()));
        rig.quiet();
        for switch in 0..3 {
            let counters = rig.datapath.switch_counters(SwitchId(switch)).unwrap();
            let (rx, tx) = (1..=4).map(|port| rig.traffic(switch, port)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            let dropped: u64 = counters.drops.iter().map(|&(_, count)| count).sum();
            prop_assert_eq!(rx + counters.packet_outs, tx + dropped + counters.packet_ins, "switch {}: {:?}", switch, counters);
        }
        let received: u64 = (0..3).flat_map(|s| [1, 2].map(|p| (s, p))).map(|(s, p)| rig.traffic(s, p).0).sum();
        prop_assert_eq!(received, frames.len() as u64);
    }
}
