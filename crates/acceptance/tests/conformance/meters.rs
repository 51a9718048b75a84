//! Meters (OpenFlow 1.3.5 §5.7, §6.8, §7.3.4.4, §7.3.5.11 to §7.3.5.13), each band on frames.
//!
//! Rates are so low that a case ends before a bucket gives anything back: what passes is the burst, exactly, and what time has given
//! since is allowed for.

mod ip;
mod table;

use crate::harness::{Bench, Suite, output, plain_frame};
use openflow::{
    Action, BandKind, Counter, FlowMod, Instruction, Match, Message, MeterBand, MeterFlags,
    MeterId, MeterMod, MeterModCommand, PacketInReason, PortNo,
};
use std::time::Instant;

const DROP: BandKind = BandKind::Drop;

fn remark(prec_level: u8) -> BandKind {
    BandKind::DscpRemark { prec_level }
}

fn band(kind: BandKind, rate: u32, burst_size: u32) -> MeterBand {
    MeterBand { kind, rate, burst_size }
}

/// Packets, bursts and statistics.
fn packets() -> MeterFlags {
    MeterFlags::PKTPS | MeterFlags::BURST | MeterFlags::STATS
}

/// Kilobits, bursts and statistics.
fn kilobits() -> MeterFlags {
    MeterFlags::KBPS | MeterFlags::BURST | MeterFlags::STATS
}

fn change(
    command: MeterModCommand,
    id: MeterId,
    flags: MeterFlags,
    bands: &[MeterBand],
) -> Message {
    Message::MeterMod(MeterMod { command, flags, id, bands: bands.to_vec() })
}

fn add(bench: &mut Bench, id: u32, flags: MeterFlags, bands: &[MeterBand]) {
    bench.session.accept(&change(MeterModCommand::Add, MeterId(id), flags, bands));
}

/// An entry that puts everything to a meter and sends it out of port 2.
fn through(meter: u32) -> FlowMod {
    let instructions =
        vec![Instruction::ApplyActions(vec![output(2)]), Instruction::Meter(MeterId(meter))];
    FlowMod { cookie: meter.into(), priority: 1, instructions, ..FlowMod::default() }
}

/// A meter that everything passes.
fn only_meter(bench: &mut Bench, flags: MeterFlags, bands: &[MeterBand]) {
    add(bench, 1, flags, bands);
    bench.add(&through(1));
}

/// Frames of so many bytes.
fn frames(count: usize, len: usize) -> Vec<Vec<u8>> {
    let mut frame = plain_frame("meter");
    frame.resize(len, 1);
    vec![frame; count]
}

/// How many of these frames pass.
fn passed(bench: &mut Bench, frames: &[Vec<u8>]) -> u64 {
    bench.send_all(1, frames).frames.len() as u64
}

/// What a bucket of this burst lets pass: it may be overdrawn by one, and gives a rate back meanwhile.
fn assert_passed(passed: u64, burst: u64, per_second: f64, since: Instant) {
    let most = burst + 1 + (since.elapsed().as_secs_f64() * per_second).ceil() as u64;
    assert!((burst..=most).contains(&passed), "{passed} passed, not {burst} to {most}");
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    drops(suite);
    others(suite);
    ip::cases(suite);
    table::cases(suite);
}

fn drops(suite: &mut Suite) {
    suite.case("meters::a_drop_band_in_packets_passes_its_burst_and_counts_exactly", |bench| {
        let start = Instant::now();
        only_meter(bench, packets(), &[band(DROP, 1, 10)]);
        let passed = passed(bench, &frames(40, 60));
        assert_passed(passed, 10, 1.0, start);
        let stats = bench.meter(MeterId(1));
        assert_eq!(stats.input, Counter { packets: 40, bytes: 2400 });
        assert_eq!(stats.bands, [Counter { packets: 40 - passed, bytes: (40 - passed) * 60 }]);
        assert_eq!(stats.flow_count, 1);
        assert_eq!(bench.flow(1).packet_count, 40, "the entry matched them all");
    });
    suite.case("meters::a_drop_band_in_kilobits_passes_its_burst_of_bytes", |bench| {
        let start = Instant::now();
        // 8 kbit are 1000 bytes, 1 kbit/s is 125 bytes a second.
        only_meter(bench, kilobits(), &[band(DROP, 1, 8)]);
        assert_passed(passed(bench, &frames(20, 200)), 5, 125.0 / 200.0, start);
    });
    suite.case("meters::large_frames_cost_more_kilobits_and_no_more_packets", |bench| {
        let start = Instant::now();
        only_meter(bench, kilobits(), &[band(DROP, 1, 24)]);
        assert_passed(passed(bench, &frames(10, 1500)), 2, 125.0 / 1500.0, start);
        let modify = change(MeterModCommand::Modify, MeterId(1), packets(), &[band(DROP, 1, 5)]);
        bench.session.accept(&modify);
        assert_passed(passed(bench, &frames(10, 1500)), 5, 1.0, start);
    });
    suite.case("meters::without_a_unit_rates_are_kilobits", |bench| {
        let start = Instant::now();
        only_meter(bench, MeterFlags::BURST, &[band(DROP, 1, 8)]);
        assert_passed(passed(bench, &frames(20, 200)), 5, 125.0 / 200.0, start);
    });
    suite.case("meters::what_keeps_to_the_rate_passes_whole", |bench| {
        only_meter(bench, MeterFlags::KBPS | MeterFlags::STATS, &[band(DROP, 10_000_000, 0)]);
        assert_eq!(passed(bench, &frames(40, 1500)), 40);
        let stats = bench.meter(MeterId(1));
        let input = Counter { packets: 40, bytes: 60_000 };
        assert_eq!((stats.input, stats.bands), (input, vec![Counter::default()]));
    });
    suite.case("meters::without_bands_everything_passes_and_is_counted", |bench| {
        only_meter(bench, packets(), &[]);
        assert_eq!(passed(bench, &frames(30, 60)), 30);
        assert_eq!(bench.meter(MeterId(1)).input.packets, 30);
    });
    suite.case("meters::entries_share_a_meter_and_each_meter_has_its_own_buckets", |bench| {
        let start = Instant::now();
        add(bench, 1, packets(), &[band(DROP, 1, 6)]);
        add(bench, 2, packets(), &[band(DROP, 1, 6)]);
        for (port, meter) in [(1, 1), (3, 1), (4, 2)] {
            let fields = Match::default().with(openflow::OxmField::InPort, port);
            bench.add(&FlowMod { cookie: port as u64, fields, ..through(meter) });
        }
        let frames = frames(10, 60);
        let first = passed(bench, &frames);
        let second = bench.send_all(3, &frames).frames.len() as u64;
        assert_passed(first + second, 6, 1.0, start);
        assert_passed(bench.send_all(4, &frames).frames.len() as u64, 6, 1.0, start);
        assert_eq!(bench.meter(MeterId(1)).flow_count, 2);
    });
}

fn others(suite: &mut Suite) {
    suite.case("meters::a_meter_acts_before_the_entrys_actions_in_any_table", |bench| {
        let start = Instant::now();
        add(bench, 1, packets(), &[band(DROP, 1, 3)]);
        let list = vec![Instruction::GotoTable(openflow::TableId(5))];
        bench.add(&FlowMod { priority: 1, instructions: list, ..FlowMod::default() });
        bench.add(&FlowMod { table: openflow::TableId(5), ..through(1) });
        assert_passed(passed(bench, &frames(10, 60)), 3, 1.0, start);
    });
    suite.case("meters::the_controllers_meter_limits_packet_ins_and_nothing_else", |bench| {
        let start = Instant::now();
        let limit =
            change(MeterModCommand::Add, MeterId::CONTROLLER, packets(), &[band(DROP, 1, 5)]);
        let list =
            vec![Instruction::ApplyActions(vec![output(2), Action::output(PortNo::CONTROLLER)])];
        bench.add(&FlowMod { priority: 1, instructions: list, ..FlowMod::default() });
        bench.session.accept(&limit);
        for frame in frames(20, 60) {
            bench.inject(1, &frame);
        }
        // Without the limit the marker can ask the controller again.
        let seen = |bench: &mut Bench| bench.meter(MeterId::CONTROLLER).input.packets == 20;
        while !seen(bench) {}
        let delete = change(MeterModCommand::Delete, MeterId::CONTROLLER, packets(), &[]);
        bench.session.accept(&delete);
        let outcome = bench.send_all::<&[u8]>(1, &[]);
        assert_eq!(outcome.frames.len(), 20);
        assert_passed(outcome.packet_ins.len() as u64, 5, 1.0, start);
        assert!(outcome.packet_ins.iter().all(|packet| packet.reason == PacketInReason::Action));
    });
}
