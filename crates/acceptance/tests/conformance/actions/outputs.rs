//! Outputs to ordinary and reserved ports (§4.5, §7.2.5.1), queues and groups, on every framing.

use super::indirect;
use crate::harness::{Bench, Suite, entry, output};
use crate::oracle::{Framing, Sample};
use openflow::{
    Action, FlowMod, GroupId, Instruction, Match, OxmField, PacketInReason, PortNo, TableId,
};

/// What a list of outputs does with a frame from port 1: the ports that it leaves by.
type Leaves = (&'static str, Vec<Action>, &'static [u32]);

/// The cases.
pub fn cases(suite: &mut Suite) {
    for framing in Framing::ALL {
        for sample in [Sample::Arp, Sample::Ipv4Tcp, Sample::Ipv6Tcp] {
            let frame = framing.around(sample).bytes();
            let case =
                |what: &str| format!("output::{what}::{}::{}", sample.name(), framing.name());
            for (name, actions, ports) in lists() {
                for is_set in [false, true] {
                    // An action set holds one output.
                    if is_set
                        && actions.iter().filter(|a| matches!(a, Action::Output { .. })).count() > 1
                    {
                        continue;
                    }
                    let how = if is_set { "write" } else { "apply" };
                    let (frame, actions) = (frame.clone(), actions.clone());
                    suite.case(case(&format!("{name}::{how}")), move |bench| {
                        add(bench, is_set, actions);
                        let wanted: Vec<_> = ports.iter().map(|port| (*port, &frame)).collect();
                        bench.send(1, &frame).is_exactly(&wanted);
                    });
                }
            }
            let of = frame.clone();
            suite.case(case("controller::apply"), move |bench| {
                controller(bench, false, PacketInReason::Action, &of);
            });
            let of = frame.clone();
            suite.case(case("controller::write"), move |bench| {
                controller(bench, true, PacketInReason::Action, &of);
            });
            let of = frame.clone();
            suite.case(case("controller::max_len"), move |bench| {
                let up = Action::Output { port: PortNo::CONTROLLER, max_len: 20 };
                bench.add(&entry(1, Match::default(), vec![up]));
                let packet = bench.send(1, &of).one_packet_in();
                assert_eq!(usize::from(packet.total_len), of.len());
                // Cut only if the rest can be had by its buffer (§6.1.2).
                let bytes = if packet.buffer_id.is_some() { &of[..20] } else { &of[..] };
                assert_eq!(packet.data, bytes);
            });
            let of = frame.clone();
            suite.case(case("controller::table_miss"), move |bench| {
                let up = Action::output(PortNo::CONTROLLER);
                bench.add(&entry(0, Match::default(), vec![up]));
                let packet = bench.send(1, &of).one_packet_in();
                assert_eq!((packet.reason, packet.data), (PacketInReason::NoMatch, of));
            });
            let of = frame.clone();
            suite.case(case("table_in_packet_out"), move |bench| {
                let fields = Match::default().with(OxmField::InPort, 3);
                bench.add(&entry(1, fields, vec![output(2)]));
                let through = vec![Action::output(PortNo::TABLE)];
                bench.packet_out(PortNo(3), through.clone(), &of).is_only(2, &of);
                bench.packet_out(PortNo(4), through, &of).is_nothing();
            });
            suite.fresh(case("normal::learns"), move |bench| learns(bench, framing, sample));
            packet_outs(suite, framing, sample);
        }
    }
}

fn lists() -> Vec<Leaves> {
    let to = |port| Action::output(port);
    let queue = Action::SetQueue(0);
    vec![
        ("ordinary", vec![output(3)], &[3]),
        ("several", vec![output(4), output(2)], &[2, 4]),
        ("the_same_twice", vec![output(2), output(2)], &[2, 2]),
        ("its_own_port_is_no_output", vec![output(1)], &[]),
        ("absent_port_is_no_output", vec![output(99)], &[]),
        ("in_port", vec![to(PortNo::IN_PORT)], &[1]),
        ("all", vec![to(PortNo::ALL)], &[2, 3, 4]),
        ("flood", vec![to(PortNo::FLOOD)], &[2, 3, 4]),
        ("all_and_in_port", vec![to(PortNo::ALL), to(PortNo::IN_PORT)], &[1, 2, 3, 4]),
        ("normal::floods_the_unknown", vec![to(PortNo::NORMAL)], &[2, 3, 4]),
        ("local::without_one_drops", vec![to(PortNo::LOCAL)], &[]),
        ("set_queue", vec![queue, output(2)], &[2]),
    ]
}

fn add(bench: &mut Bench, is_set: bool, actions: Vec<Action>) {
    let instruction = match is_set {
        true => Instruction::WriteActions(actions),
        false => Instruction::ApplyActions(actions),
    };
    let instructions = vec![instruction];
    bench.add(&FlowMod { priority: 1, instructions, ..FlowMod::default() });
}

fn controller(bench: &mut Bench, is_set: bool, reason: PacketInReason, frame: &[u8]) {
    add(bench, is_set, vec![Action::output(PortNo::CONTROLLER)]);
    let packet = bench.send(2, frame).one_packet_in();
    assert_eq!((packet.reason, packet.table), (reason, TableId(0)));
    assert_eq!(packet.fields, Match::default().with(OxmField::InPort, 2));
    assert_eq!((usize::from(packet.total_len), &packet.data[..]), (frame.len(), frame));
}

/// The switch learns where a station is from what it sends, and then floods no more.
fn learns(bench: &mut Bench, framing: Framing, sample: Sample) {
    bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::NORMAL)]));
    let there = framing.around(sample);
    let mut back = there.clone();
    (back.src, back.dst) = (there.dst, there.src);
    let (there, back) = (there.bytes(), back.bytes());
    bench.send(1, &there).is_exactly(&[2, 3, 4].map(|port| (port, &there)));
    bench.send(4, &back).is_only(1, &back);
    bench.send(1, &there).is_only(4, &there);
    // It has moved.
    bench.send(3, &back).is_only(1, &back);
    bench.send(1, &there).is_only(3, &there);
}

/// The same outputs from the controller, with an ingress port and without.
fn packet_outs(suite: &mut Suite, framing: Framing, sample: Sample) {
    let to = |port| vec![Action::output(port)];
    let cases: [(&str, PortNo, Vec<Action>, &'static [u32]); 10] = [
        ("ordinary", PortNo::CONTROLLER, vec![output(3)], &[3]),
        ("several", PortNo::CONTROLLER, vec![output(3), output(2)], &[2, 3]),
        ("all", PortNo::CONTROLLER, to(PortNo::ALL), &[1, 2, 3, 4]),
        ("all_but_ingress", PortNo(2), to(PortNo::ALL), &[1, 3, 4]),
        ("flood", PortNo::CONTROLLER, to(PortNo::FLOOD), &[1, 2, 3, 4]),
        ("flood_but_ingress", PortNo(4), to(PortNo::FLOOD), &[1, 2, 3]),
        ("in_port", PortNo(2), to(PortNo::IN_PORT), &[2]),
        ("its_own_port", PortNo(2), vec![output(2)], &[]),
        ("group", PortNo::CONTROLLER, vec![Action::Group(GroupId(1))], &[4]),
        ("nothing", PortNo::CONTROLLER, vec![], &[]),
    ];
    for (name, in_port, actions, ports) in cases {
        let frame = framing.around(sample).bytes();
        let name = format!("packet_out::{name}::{}::{}", sample.name(), framing.name());
        suite.case(name, move |bench| {
            indirect(bench, vec![output(4)]);
            let wanted: Vec<_> = ports.iter().map(|port| (*port, &frame)).collect();
            bench.packet_out(in_port, actions, &frame).is_exactly(&wanted);
        });
    }
}
