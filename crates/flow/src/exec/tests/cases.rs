//! What the model does not say: when a packet is handed over for good, what bounds it, meters, packet-outs, counters.

use super::frame::Frame;
use super::recorder::{Recorder, Step, apply, recorded, walk};
use super::{NOW, Switch};
use crate::action::{Action, Output, PortNo, Transport};
use crate::action_set::ActionSet;
use crate::exec::{MAX_COPIES, Run, Tables, Trail, packet_out};
use crate::group::{Bucket, GroupKind};
use crate::limits::MAX_CHAIN;
use crate::meter::{Band, BandKind, CONTROLLER_METER, MeterConfig, MeterMod, MeterUnit};
use crate::packet::PacketInReason;
use crate::tally::Counted;
use wire::{DropReason, Field};

fn to(port: PortNo) -> Action {
    Action::Output(Output::Port(port))
}

fn bucket(actions: &[Action]) -> Bucket {
    Bucket { actions: actions.to_vec(), ..Bucket::default() }
}

fn frame() -> Frame {
    Frame::new(1, 2)
}

fn ports(switch: &Switch, actions: &[Action]) -> Vec<PortNo> {
    apply(switch, &frame(), 1, actions).0.sent.iter().map(|sent| sent.port).collect()
}

fn is_handed_over(switch: &Switch, actions: &[Action]) -> bool {
    apply(switch, &frame(), 1, actions).1
}

const CONTROLLER: Action = Action::Output(Output::Controller { max_len: 128 });

#[test]
fn to_set_the_field_of_one_transport_leaves_the_others_packets_alone() {
    let every = [Transport::Udp, Transport::Tcp, Transport::Icmpv4];
    for field in [Field::TpSrc, Field::TpDst, Field::IcmpType, Field::IcmpCode] {
        for (&of, carried) in Transport::with(field).iter().flat_map(|of| every.map(|it| (of, it)))
        {
            let before = frame().carrying(carried);
            let set = Action::SetField { field, of: Some(of), value: 5, mask: field.full() };
            let (verdicts, _) = apply(&Switch::new(), &before, 1, &[set, to(2)]);
            let unchanged = verdicts.sent[0].bytes == before.bytes();
            assert_eq!(unchanged, of != carried, "{set:?} on {carried:?}");
        }
    }
}

#[test]
fn the_last_output_hands_the_packet_over_when_nothing_follows() {
    let mut switch = Switch::new();
    switch.add_group(1, GroupKind::All, vec![bucket(&[to(2)]), bucket(&[Action::PopVlan, to(3)])]);
    switch.add_group(2, GroupKind::Indirect, vec![bucket(&[Action::Group(1)])]);
    let yes: [&[Action]; 8] = [
        &[to(2)],
        &[to(2), to(3), to(4)],
        &[Action::DecNwTtl, to(2)],
        &[Action::Output(Output::Flood)],
        &[Action::Output(Output::All), to(2)],
        &[to(2), CONTROLLER],
        &[to(2), Action::Group(1)],
        &[Action::Group(2)],
    ];
    for actions in yes {
        assert!(is_handed_over(&switch, actions), "{actions:?}");
    }
    let no: [&[Action]; 4] = [&[], &[CONTROLLER], &[to(2), Action::DecNwTtl], &[to(5)]];
    for actions in no {
        assert!(!is_handed_over(&switch, actions), "{actions:?}");
    }
}

#[test]
fn outputs_of_several_tables_are_told_at_once() {
    let step = |port| Step { apply: vec![to(port)], ..Step::default() };
    let set = Step { write: vec![to(4)], ..Step::default() };
    let (verdicts, handed_over) = walk(&Switch::new(), &frame(), 1, &[step(2), step(3), set]);
    assert_eq!(verdicts.sent.iter().map(|sent| sent.port).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(handed_over);
}

#[test]
fn a_waiting_group_keeps_the_entry_that_named_it() {
    let mut switch = Switch::new();
    switch.add_group(1, GroupKind::Indirect, vec![bucket(&[CONTROLLER])]);
    let first = Step { apply: vec![Action::Group(1)], miss: true, ..Step::default() };
    let (verdicts, _) = walk(&switch, &frame(), 1, &[first, Step::default()]);
    let why = verdicts.told[0].0;
    assert_eq!((why.table, why.cookie, why.reason), (0, 0xc0, PacketInReason::Action));
}

#[test]
fn copies_are_bounded_and_the_bound_has_a_reason() {
    let mut switch = Switch::new();
    let copies = |group: u32| vec![bucket(&[Action::Group(group)]); 200];
    switch.add_group(1, GroupKind::All, vec![bucket(&[to(2)])]);
    switch.add_group(2, GroupKind::All, copies(1));
    switch.add_group(3, GroupKind::All, copies(2));
    switch.add_group(4, GroupKind::All, copies(3)); // eight million copies
    let (verdicts, _) = apply(&switch, &frame(), 1, &[Action::Group(4)]);
    assert!(verdicts.sent.len() <= MAX_COPIES as usize + switch.ports.len());
    assert_eq!(verdicts.lost, Some(DropReason::TooManyCopies));
    let floods = vec![Action::Output(Output::All); 400];
    assert_eq!(apply(&switch, &frame(), 1, &floods).0.lost, Some(DropReason::TooManyCopies));
}

#[test]
fn the_longest_chain_of_groups_delivers_also_behind_a_packet_out_to_the_tables() {
    let mut switch = Switch::new();
    switch.add_group(1, GroupKind::All, vec![bucket(&[to(2)])]);
    for id in 2..=u32::from(MAX_CHAIN) {
        switch.add_group(id, GroupKind::All, vec![bucket(&[Action::Group(id - 1)])]);
    }
    let last = Action::Group(u32::from(MAX_CHAIN));
    assert_eq!(ports(&switch, &[last, Action::DecNwTtl]), [2]);
    assert_eq!(ports(&switch, &[last]), [2]);
    let mut table = OneEntry(vec![last]);
    let actions = [Action::Output(Output::Table), to(3)];
    let (verdicts, _) =
        recorded(&switch, &frame(), 1, |run| _ = packet_out(run, &actions, &mut table));
    assert_eq!(verdicts.sent.iter().map(|sent| sent.port).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_select_group_keeps_a_flow_on_its_bucket() {
    let mut switch = Switch::new();
    let weighted = |port| Bucket { weight: 1, ..bucket(&[to(port)]) };
    switch.add_group(1, GroupKind::Select, vec![weighted(2), weighted(3), weighted(4)]);
    let taken = |port| {
        let frame = Frame { ports: [port, 80], ..frame() };
        let again = Frame { ttl: 60, ..frame.clone() };
        let port = |frame| apply(&switch, frame, 1, &[Action::Group(1)]).0.sent[0].port;
        assert_eq!(port(&frame), port(&again));
        port(&frame)
    };
    let all: Vec<PortNo> = (0..300).map(taken).collect();
    for port in 2..=4 {
        let share = all.iter().filter(|&&taken| taken == port).count();
        assert!((70..130).contains(&share), "{share} of 300 at port {port}");
    }
}

#[test]
fn groups_and_buckets_count_what_they_are_given() {
    let mut switch = Switch::new();
    switch.add_group(
        1,
        GroupKind::All,
        vec![bucket(&[Action::PushVlan(0x8100), to(2)]), bucket(&[to(3)])],
    );
    for actions in
        [&[Action::Group(1)][..], &[Action::Group(1), Action::PushVlan(0x8100), Action::Group(1)]]
    {
        apply(&switch, &frame(), 1, actions);
    }
    let length = frame().bytes().len() as u64;
    let all = Counted { packets: 3, bytes: 3 * length + 4 };
    let stats = &switch.groups.stats(Some(1), NOW)[0];
    assert_eq!((stats.counted, &stats.buckets[..]), (all, &[all, all][..]));
}

fn add_meter(switch: &mut Switch, id: u32, kind: BandKind) {
    // A packet in an age: only the first one keeps to the rate.
    let config = MeterConfig {
        unit: MeterUnit::Pktps,
        burst: true,
        stats: true,
        bands: vec![Band { rate: 1, burst: 0, kind }],
    };
    switch.meters.apply(MeterMod::Add { id, config }, NOW).unwrap();
    while switch.meters.pass(id, 64, NOW) == crate::meter::MeterVerdict::Pass {}
}

#[test]
fn a_meter_that_drops_ends_the_packets_way_but_not_what_already_left() {
    let mut switch = Switch::new();
    add_meter(&mut switch, 1, BandKind::Drop);
    let metered =
        Step { meter: Some(1), apply: vec![to(2)], write: vec![to(3)], ..Step::default() };
    let (verdicts, _) = walk(&switch, &frame(), 1, std::slice::from_ref(&metered));
    assert_eq!((verdicts.sent.len(), verdicts.discarded), (0, Some(DropReason::Meter)));
    let before = Step { apply: vec![to(4)], write: vec![to(3)], ..Step::default() };
    let (verdicts, handed_over) = walk(&switch, &frame(), 1, &[before, metered]);
    assert_eq!(verdicts.sent.iter().map(|sent| sent.port).collect::<Vec<_>>(), [4]);
    assert_eq!((verdicts.lost, handed_over), (Some(DropReason::Meter), true));
}

#[test]
fn a_meter_that_remarks_changes_the_dscp_of_later_outputs_only() {
    let mut switch = Switch::new();
    add_meter(&mut switch, 1, BandKind::DscpRemark { level: 1 });
    let before = Step { apply: vec![to(2)], ..Step::default() };
    let metered = Step { meter: Some(1), apply: vec![to(3)], ..Step::default() };
    let (verdicts, _) = walk(&switch, &frame(), 1, &[before, metered]);
    let remarked = Frame { dscp: 12, ..frame() };
    assert_eq!(
        [&verdicts.sent[0].bytes, &verdicts.sent[1].bytes],
        [&frame().bytes(), &remarked.bytes()]
    );
}

#[test]
fn packet_ins_pass_the_controllers_meter() {
    let mut switch = Switch::new();
    assert_eq!(apply(&switch, &frame(), 1, &[CONTROLLER]).0.told.len(), 1);
    add_meter(&mut switch, CONTROLLER_METER, BandKind::Drop);
    assert_eq!(apply(&switch, &frame(), 1, &[CONTROLLER]).0.discarded, Some(DropReason::Meter));
}

#[test]
fn a_packet_in_after_a_metadata_write_shows_it_to_the_next_table() {
    let (verdicts, _) = recorded(&Switch::new(), &frame(), 1, |mut run| {
        assert!(run.write_metadata(0xff00, 0x0f0f).is_continue());
        assert!(run.write_metadata(0x00ff, 0x00f0).is_continue());
        assert_eq!(run.packet().key.get(Field::Metadata), 0x0ff0 & !0x0f0 | 0x0f0);
        run.finish(&ActionSet::default());
    });
    assert_eq!(verdicts.discarded, Some(DropReason::ByRule));
}

/// Tables of one entry that applies these actions.
struct OneEntry(Vec<Action>);

impl Tables<Recorder> for OneEntry {
    fn walk(&mut self, mut run: Run<'_, '_, Recorder>) -> Trail {
        let _cut_or_not = run.apply(&self.0);
        run.finish(&ActionSet::default())
    }
}

#[test]
fn a_packet_out_to_the_tables_takes_the_packet_if_it_comes_last_and_a_copy_if_not() {
    let set_dst =
        Action::SetField { field: Field::EthDst, of: None, value: 7, mask: Field::EthDst.full() };
    let mut tables = OneEntry(vec![set_dst, to(2)]);
    let in_tables = (2, Frame { dst: 7, ..frame() }.bytes());
    let unchanged = (3, frame().bytes());
    let table = Action::Output(Output::Table);
    let cases = [
        (vec![table], vec![&in_tables], true),
        (vec![to(3), table], vec![&unchanged, &in_tables], true),
        (vec![table, to(3)], vec![&in_tables, &unchanged], true),
        (vec![table, Action::DecNwTtl], vec![&in_tables], false),
    ];
    for (actions, expected, handed_over) in cases {
        let out = |run: Run<'_, '_, Recorder>| _ = packet_out(run, &actions, &mut tables);
        let (verdicts, done) = recorded(&Switch::new(), &frame(), 1, out);
        let sent: Vec<_> = verdicts.sent.into_iter().map(|sent| (sent.port, sent.bytes)).collect();
        assert_eq!(sent.iter().collect::<Vec<_>>(), expected, "{actions:?}");
        assert_eq!((done, verdicts.discarded), (handed_over, None), "{actions:?}");
    }
}

#[test]
fn a_packet_out_to_tables_that_drop_is_discarded_once() {
    let mut tables = OneEntry(vec![]);
    for actions in
        [&[Action::Output(Output::Table)][..], &[Action::Output(Output::Table), Action::PopVlan]]
    {
        let (verdicts, _) =
            recorded(&Switch::new(), &frame(), 1, |run| _ = packet_out(run, actions, &mut tables));
        assert_eq!(verdicts.discarded, Some(DropReason::ByRule));
    }
}

#[test]
fn normal_learns_per_vlan_and_floods_what_it_does_not_know() {
    let (switch, normal) = (Switch::new(), [Action::Output(Output::Normal)]);
    let sent = |frame: &Frame, in_port| {
        let (verdicts, _) = apply(&switch, frame, in_port, &normal);
        verdicts.sent.iter().map(|sent| sent.port).collect::<Vec<_>>()
    };
    let (there, back) = (Frame::new(0xa, 0xb), Frame::new(0xb, 0xa));
    assert_eq!(sent(&there, 1).len(), 4, "unknown: ports 2, 3, 7 and the local one");
    assert_eq!(sent(&back, 3), [1]);
    assert_eq!(sent(&there, 1), [3]);
    assert_eq!(sent(&there.clone().tagged(0), 1), [3], "a priority tag is no VLAN");
    assert_eq!(sent(&there.clone().tagged(9), 1).len(), 4, "another VLAN knows nothing of it");
    assert_eq!(sent(&back, 1), [], "behind the ingress");
    assert_eq!(switch.macs.dump(NOW).len(), 3);
}

#[test]
fn a_station_behind_a_port_that_went_down_is_looked_for_everywhere() {
    let switch = Switch::new();
    switch.macs.learn(0, 1, 5, NOW);
    assert_eq!(ports(&switch, &[Action::Output(Output::Normal)]).len(), 4);
    switch.macs.learn(0, 1, 6, NOW);
    let (verdicts, _) = apply(&switch, &frame(), 1, &[Action::Output(Output::Normal)]);
    assert_eq!(verdicts.discarded, Some(DropReason::PortNoForward));
}

#[test]
fn nothing_is_learned_from_a_frame_whose_sender_is_a_group() {
    let (switch, normal) = (Switch::new(), [Action::Output(Output::Normal)]);
    for group in [0x0100_5e00_0001, 0xffff_ffff_ffff] {
        apply(&switch, &Frame::new(0xb, group), 1, &normal);
        assert!(switch.macs.dump(NOW).is_empty(), "{group:#x}");
        let (verdicts, _) = apply(&switch, &Frame::new(group, 0xb), 2, &normal);
        assert_eq!(verdicts.sent.len(), 4, "a group is not behind one port");
        switch.macs.flush();
    }
}

#[test]
fn nothing_is_learned_from_a_packet_out_that_names_no_port() {
    let switch = Switch::new();
    apply(&switch, &frame(), 0xffff_fffd, &[Action::Output(Output::Normal)]);
    assert!(switch.macs.dump(NOW).is_empty());
}
