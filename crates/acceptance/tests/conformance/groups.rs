//! Groups (OpenFlow 1.3.5 §5.6, §6.7, §7.3.4.3, §7.3.5.6 to §7.3.5.9), each kind on frames.

mod liveness;
mod table;

pub use liveness::{configure, set_link};

use crate::harness::{Bench, Suite, entry, output, plain_frame};
use openflow::{
    Action, Bucket, Counter, GroupId, GroupMod, GroupModCommand, GroupType, Instruction, Match,
    Message, Oxm, OxmField, PacketInReason, PortNo,
};

/// A bucket that watches nothing.
pub fn bucket(actions: Vec<Action>) -> Bucket {
    Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GroupId::ANY, actions }
}

fn to(port: u32) -> Bucket {
    bucket(vec![output(port)])
}

fn weighted(weight: u16, port: u32) -> Bucket {
    Bucket { weight, ..to(port) }
}

fn watching(port: u32) -> Bucket {
    Bucket { watch_port: PortNo(port), ..to(port) }
}

fn through(group: u32) -> Bucket {
    bucket(vec![Action::Group(GroupId(group))])
}

/// A change of a group.
pub fn change(command: GroupModCommand, id: u32, kind: GroupType, buckets: Vec<Bucket>) -> Message {
    Message::GroupMod(GroupMod { command, kind, id: GroupId(id), buckets })
}

/// Adds a group that must be taken.
#[track_caller]
pub fn add(bench: &mut Bench, id: u32, kind: GroupType, buckets: Vec<Bucket>) {
    bench.session.accept(&change(GroupModCommand::Add, id, kind, buckets));
}

fn delete(bench: &mut Bench, id: GroupId) {
    bench.session.accept(&change(GroupModCommand::Delete, id.0, GroupType::All, vec![]));
}

/// Everything goes to this group.
fn use_group(bench: &mut Bench, id: u32) {
    bench.add(&entry(1, Match::default(), vec![Action::Group(GroupId(id))]));
}

/// A group of its own that takes everything.
fn only_group(bench: &mut Bench, kind: GroupType, buckets: Vec<Bucket>) {
    add(bench, 1, kind, buckets);
    use_group(bench, 1);
}

fn frame() -> Vec<u8> {
    plain_frame("group")
}

/// A frame of this flow.
fn of_flow(flow: u16) -> Vec<u8> {
    let mut frame = frame();
    frame[10..12].copy_from_slice(&flow.to_be_bytes());
    frame
}

/// Where one frame of each of these flows comes out, in order of flows.
fn ways(bench: &mut Bench, flows: std::ops::Range<u16>) -> Vec<u32> {
    let flows: Vec<u16> = flows.collect();
    let mut ways = Vec::new();
    // So few at a time that no queue on the way overflows.
    for some in flows.chunks(40) {
        let frames: Vec<_> = some.iter().map(|&flow| of_flow(flow)).collect();
        let outcome = bench.send_all(1, &frames);
        for frame in &frames {
            let mut ports = outcome.frames.iter().filter(|(_, found)| found == frame);
            let (port, _) = ports.next().expect("each frame comes out");
            assert!(ports.next().is_none(), "each frame comes out once");
            ways.push(*port);
        }
    }
    ways
}

fn set_target(last: u8) -> Action {
    Action::SetField(Oxm::exact(OxmField::EthDst, 0x0200_0000_0000 | u128::from(last)))
}

fn frame_to(last: u8) -> Vec<u8> {
    let mut frame = frame();
    frame[5] = last;
    frame
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    every_kind(suite);
    buckets(suite);
    liveness::cases(suite);
    table::cases(suite);
}

fn every_kind(suite: &mut Suite) {
    suite.case("groups::all_gives_every_bucket_a_copy_of_its_own", |bench| {
        let edited = bucket(vec![set_target(9), output(2)]);
        only_group(bench, GroupType::All, vec![edited, to(3), to(4)]);
        let outcome = bench.send(1, &frame());
        outcome.is_exactly(&[(2, frame_to(9)), (3, frame()), (4, frame())]);
    });
    suite.case("groups::all_sends_back_only_by_in_port", |bench| {
        let back = bucket(vec![Action::output(PortNo::IN_PORT)]);
        only_group(bench, GroupType::All, vec![to(1), to(2)]);
        bench.send(1, &frame()).is_only(2, &frame());
        add(bench, 2, GroupType::All, vec![back]);
        bench.add(&entry(2, Match::default(), vec![Action::Group(GroupId(2))]));
        bench.send(1, &frame()).is_only(1, &frame());
    });
    suite.case("groups::without_buckets_everything_is_dropped", |bench| {
        for kind in [GroupType::All, GroupType::Select, GroupType::FastFailover] {
            add(bench, 1, kind, vec![]);
            use_group(bench, 1);
            bench.send(1, &frame()).is_nothing();
            delete(bench, GroupId(1));
        }
    });
    suite.case("groups::indirect_has_its_one_bucket", |bench| {
        only_group(bench, GroupType::Indirect, vec![bucket(vec![set_target(9), output(3)])]);
        bench.send(1, &frame()).is_only(3, &frame_to(9));
    });
    suite.case("groups::select_spreads_flows_by_weight", |bench| {
        only_group(bench, GroupType::Select, vec![weighted(1, 2), weighted(3, 3)]);
        let ways = ways(bench, 0..800);
        let light = ways.iter().filter(|&&port| port == 2).count();
        // 200 are expected with a deviation of 12: six of those are never met by chance.
        assert!((128..272).contains(&light), "{light} of 800 took the bucket of weight 1 of 4");
        assert!(ways.iter().all(|port| [2, 3].contains(port)));
    });
    suite.case("groups::select_keeps_a_flow_in_its_bucket", |bench| {
        let buckets = vec![weighted(1, 2), weighted(1, 3), weighted(1, 4)];
        only_group(bench, GroupType::Select, buckets);
        let first = ways(bench, 0..60);
        assert_eq!(ways(bench, 0..60), first);
        let others = [2, 3, 4].map(|port| first.iter().filter(|&&way| way == port).count());
        assert!(others.iter().all(|&flows| flows > 0), "{others:?}");
    });
    suite.case("groups::select_never_takes_a_bucket_of_weight_0", |bench| {
        only_group(bench, GroupType::Select, vec![weighted(0, 2), weighted(1, 3)]);
        assert_eq!(ways(bench, 0..60), [3; 60]);
        let none = vec![weighted(0, 2)];
        bench.session.accept(&change(GroupModCommand::Modify, 1, GroupType::Select, none));
        bench.send(1, &frame()).is_nothing();
    });
    suite.case("groups::fast_failover_takes_the_first_live_bucket", |bench| {
        only_group(bench, GroupType::FastFailover, vec![watching(77), watching(3), watching(2)]);
        bench.send(1, &frame()).is_only(3, &frame());
    });
}

fn buckets(suite: &mut Suite) {
    suite.case("groups::a_bucket_is_an_action_set", |bench| {
        // The output is given first and executed last; of two set-fields of a field the later one counts (§5.10).
        let actions = vec![output(2), set_target(8), set_target(9)];
        only_group(bench, GroupType::Indirect, vec![bucket(actions)]);
        bench.send(1, &frame()).is_only(2, &frame_to(9));
    });
    suite.case("groups::a_bucket_may_ask_the_controller", |bench| {
        let up = bucket(vec![Action::output(PortNo::CONTROLLER)]);
        only_group(bench, GroupType::All, vec![up]);
        let packet = bench.send(1, &frame()).one_packet_in();
        assert_eq!((packet.reason, packet.data), (PacketInReason::Action, frame()));
    });
    suite.case("groups::a_group_works_on_the_packet_as_it_is_then_and_leaves_it_so", |bench| {
        add(bench, 1, GroupType::All, vec![bucket(vec![set_target(8), output(2)])]);
        let actions = vec![set_target(7), Action::Group(GroupId(1)), output(3)];
        bench.add(&entry(1, Match::default(), actions));
        bench.send(1, &frame()).is_exactly(&[(2, frame_to(8)), (3, frame_to(7))]);
    });
    suite.case("groups::in_an_action_set_the_group_stands_in_for_the_output", |bench| {
        add(bench, 1, GroupType::Indirect, vec![to(2)]);
        let write = vec![output(3), Action::Group(GroupId(1)), set_target(9)];
        let mut change = entry(1, Match::default(), vec![]);
        change.instructions = vec![Instruction::WriteActions(write)];
        bench.add(&change);
        bench.send(1, &frame()).is_only(2, &frame_to(9));
    });
    suite.case("groups::chains_lead_on_and_every_group_counts", |bench| {
        add(bench, 3, GroupType::Indirect, vec![bucket(vec![set_target(9), output(4)])]);
        add(bench, 2, GroupType::All, vec![through(3), to(2)]);
        only_group(bench, GroupType::Select, vec![Bucket { weight: 5, ..through(2) }]);
        bench.send(1, &frame()).is_exactly(&[(2, frame()), (4, frame_to(9))]);
        for id in [1, 2, 3] {
            assert_eq!(bench.group(id).total, Counter { packets: 1, bytes: 60 }, "group {id}");
        }
    });
    suite.case("groups::a_packet_out_may_go_to_a_group", |bench| {
        add(bench, 1, GroupType::All, vec![to(2), to(3)]);
        let actions = vec![Action::Group(GroupId(1))];
        let outcome = bench.packet_out(PortNo::CONTROLLER, actions, &frame());
        outcome.is_exactly(&[(2, frame()), (3, frame())]);
    });
}
