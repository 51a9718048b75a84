//! Instructions (OpenFlow 1.3.5 §5.9, §7.2.4) on every framing.

use crate::harness::{Bench, Suite, output};
use crate::oracle::{Frame, Framing, Sample, act};
use openflow::{
    Action, BandKind, FlowMod, Instruction, Match, Message, MeterBand, MeterFlags, MeterId,
    MeterMod, MeterModCommand, Oxm, OxmField, TableId,
};

/// The cases.
pub fn cases(suite: &mut Suite) {
    type Test = fn(&mut Bench, &Frame);
    let tests: [(&str, Test); 7] = [
        ("apply_actions", applied),
        ("write_actions", written),
        ("clear_actions", cleared),
        ("goto_table", goes_through_every_table),
        ("write_metadata", metadata_is_written_under_its_mask),
        ("later_table_sees_what_was_applied", later_table_sees_the_edit),
        ("meter", metered),
    ];
    for framing in Framing::ALL {
        for sample in [Sample::Arp, Sample::Ipv4Tcp, Sample::Ipv6Tcp] {
            let frame = framing.around(sample);
            for (name, test) in tests {
                let frame = frame.clone();
                let name = format!("instruction::{name}::{}::{}", sample.name(), framing.name());
                suite.case(name, move |bench| test(bench, &frame));
            }
        }
    }
}

/// An action that any frame can take.
fn readdress(to: u128) -> Action {
    Action::SetField(Oxm::exact(OxmField::EthDst, to))
}

fn add(bench: &mut Bench, table: u8, fields: Match, instructions: Vec<Instruction>) {
    let table = TableId(table);
    bench.add(&FlowMod { table, priority: 1, fields, instructions, ..FlowMod::default() });
}

fn goto(table: u8) -> Instruction {
    Instruction::GotoTable(TableId(table))
}

fn readdressed(frame: &Frame, to: u128) -> Vec<u8> {
    let mut frame = frame.clone();
    act(&mut frame, &readdress(to)).unwrap();
    frame.bytes()
}

/// At once, in order: an output sends the frame as it is then.
fn applied(bench: &mut Bench, frame: &Frame) {
    let actions = vec![output(2), readdress(7), output(3), readdress(8), output(4)];
    add(bench, 0, Match::default(), vec![Instruction::ApplyActions(actions)]);
    let wanted = [(2, frame.bytes()), (3, readdressed(frame, 7)), (4, readdressed(frame, 8))];
    bench.send(1, &frame.bytes()).is_exactly(&wanted);
}

/// At the end of the tables, in the set's order.
fn written(bench: &mut Bench, frame: &Frame) {
    let write = Instruction::WriteActions(vec![output(3), readdress(7)]);
    add(bench, 0, Match::default(), vec![write, goto(1)]);
    add(bench, 1, Match::default(), vec![Instruction::ApplyActions(vec![output(2)])]);
    let wanted = [(2, frame.bytes()), (3, readdressed(frame, 7))];
    bench.send(1, &frame.bytes()).is_exactly(&wanted);
}

fn cleared(bench: &mut Bench, frame: &Frame) {
    let write = Instruction::WriteActions(vec![output(3), readdress(7)]);
    add(bench, 0, Match::default(), vec![write, goto(1)]);
    let rest = vec![output(2)];
    add(
        bench,
        1,
        Match::default(),
        vec![Instruction::WriteActions(rest), Instruction::ClearActions],
    );
    // In one entry the set is cleared before it is written to (§5.9).
    bench.send(1, &frame.bytes()).is_only(2, &frame.bytes());
}

fn goes_through_every_table(bench: &mut Bench, frame: &Frame) {
    let Message::FeaturesReply(features) = bench.session.ask(&Message::FeaturesRequest) else {
        panic!("no features")
    };
    let last = features.tables - 1;
    for table in 0..last {
        add(bench, table, Match::default(), vec![goto(table + 1)]);
    }
    add(bench, last, Match::default(), vec![Instruction::ApplyActions(vec![output(2)])]);
    bench.send(1, &frame.bytes()).is_only(2, &frame.bytes());
}

fn metadata_is_written_under_its_mask(bench: &mut Bench, frame: &Frame) {
    let write = |value, mask| Instruction::WriteMetadata { value, mask };
    add(bench, 0, Match::default(), vec![write(0xaaaa_bbbb_cccc_dddd, u64::MAX), goto(1)]);
    add(
        bench,
        1,
        Match::default(),
        vec![write(0x1111_2222_3333_4444, 0xff00_0000_0000_00ff), goto(2)],
    );
    let wanted = 0x11aa_bbbb_cccc_dd44;
    let to_2 = vec![Instruction::ApplyActions(vec![output(2)])];
    add(bench, 2, Match::default().with(OxmField::Metadata, wanted), to_2);
    bench.send(1, &frame.bytes()).is_only(2, &frame.bytes());
}

fn later_table_sees_the_edit(bench: &mut Bench, frame: &Frame) {
    let before = Match::default().with(OxmField::EthDst, frame.get(OxmField::EthDst).unwrap());
    let apply = Instruction::ApplyActions(vec![readdress(7)]);
    add(bench, 0, before.clone(), vec![apply, goto(1)]);
    let [to_2, to_3] = [2, 3].map(|port| vec![Instruction::ApplyActions(vec![output(port)])]);
    add(bench, 1, before, to_2);
    add(bench, 1, Match::default().with(OxmField::EthDst, 7), to_3);
    bench.send(1, &frame.bytes()).is_only(3, &readdressed(frame, 7));
}

/// The meter acts before everything else of its entry: of five frames it lets its burst of two pass.
fn metered(bench: &mut Bench, frame: &Frame) {
    let band = MeterBand { kind: BandKind::Drop, rate: 1, burst_size: 2 };
    bench.session.accept(&Message::MeterMod(MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::PKTPS | MeterFlags::BURST,
        id: MeterId(1),
        bands: vec![band],
    }));
    let apply = Instruction::ApplyActions(vec![readdress(7), output(2)]);
    add(bench, 0, Match::default(), vec![apply, Instruction::Meter(MeterId(1))]);
    let outcome = bench.send_all(1, &vec![frame.bytes(); 5]);
    let passed = readdressed(frame, 7);
    // One more in the unlikely case that the sending took a second.
    assert!((2..5).contains(&outcome.frames.len()), "{outcome:02x?}");
    assert!(outcome.frames.iter().all(|(port, bytes)| *port == 2 && *bytes == passed));
}
