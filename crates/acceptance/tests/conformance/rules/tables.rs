//! Several tables: goto, metadata, action sets, table-miss entries (OpenFlow 1.3.5 §5.1, §5.4, §5.9 to §5.11).

use super::{from_source, ports_reached, to_port};
use crate::harness::{Suite, output, plain_frame};
use openflow::{
    Action, ErrorCode, FlowMod, Instruction, Match, Oxm, OxmField, PacketInReason, PortNo, TableId,
};

fn in_table(table: u8, priority: u16, fields: Match, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod { table: TableId(table), priority, fields, instructions, ..FlowMod::default() }
}

fn goto(table: u8) -> Instruction {
    Instruction::GotoTable(TableId(table))
}

fn set_target(value: u128) -> Action {
    Action::SetField(Oxm::exact(OxmField::EthDst, value))
}

/// The frame that cases send, to this Ethernet address.
fn frame_to(last: u8) -> Vec<u8> {
    let mut frame = plain_frame("tables");
    frame[5] = last;
    frame
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    suite.case("rules::goto_leads_through_later_tables_and_what_they_lack_ends_there", |bench| {
        bench.add(&in_table(0, 1, Match::default(), vec![goto(7)]));
        bench.add(&in_table(7, 1, Match::default(), vec![goto(253)]));
        assert!(ports_reached(bench, 1).is_empty(), "no entry in the last table");
        let out = vec![Instruction::ApplyActions(vec![output(2)])];
        bench.add(&in_table(253, 1, from_source(), out));
        assert_eq!(ports_reached(bench, 1), [2]);
    });
    suite.case("rules::goto_leads_forward_only_and_to_tables_that_exist", |bench| {
        for (from, to) in [(3, 3), (3, 2), (3, 0), (3, 254), (253, 254)] {
            let change = in_table(from, 1, Match::default(), vec![goto(to)]);
            bench.refuse(&change, ErrorCode::BadInstructionBadTableId);
        }
    });
    suite.case("rules::written_metadata_is_matched_under_a_mask_in_later_tables", |bench| {
        let write = |value, mask| Instruction::WriteMetadata { value, mask };
        bench.add(&in_table(0, 1, Match::default(), vec![write(0xabcd, 0xffff), goto(1)]));
        bench.add(&in_table(1, 1, Match::default(), vec![write(0x0012, 0x00ff), goto(2)]));
        let metadata = Match::default().with_masked(OxmField::Metadata, 0xab12, 0xffff_ffff);
        let out = |port| vec![Instruction::ApplyActions(vec![output(port)])];
        bench.add(&in_table(2, 2, metadata, out(3)));
        bench.add(&in_table(2, 1, Match::default(), out(4)));
        assert_eq!(ports_reached(bench, 1), [3]);
    });
    suite.case("rules::written_actions_wait_for_the_end_and_applied_ones_do_not", |bench| {
        let write = Instruction::WriteActions(vec![output(2), set_target(0x0200_0000_0001)]);
        bench.add(&in_table(0, 1, Match::default(), vec![write, goto(1)]));
        let apply = Instruction::ApplyActions(vec![output(3)]);
        bench.add(&in_table(1, 1, Match::default(), vec![apply]));
        let outcome = bench.send(1, &frame_to(0xee));
        outcome.is_exactly(&[(2, frame_to(0x01)), (3, frame_to(0xee))]);
    });
    suite.case("rules::a_later_write_replaces_the_action_of_the_same_type", |bench| {
        bench.add(&in_table(
            0,
            1,
            Match::default(),
            vec![Instruction::WriteActions(vec![output(2)]), goto(1)],
        ));
        bench.add(&in_table(
            1,
            1,
            Match::default(),
            vec![Instruction::WriteActions(vec![output(3)])],
        ));
        bench.send(1, &frame_to(0xee)).is_only(3, &frame_to(0xee));
    });
    suite.case("rules::clear_actions_empties_the_set_before_the_same_entry_writes", |bench| {
        let write = Instruction::WriteActions(vec![set_target(0x0200_0000_0001), output(2)]);
        bench.add(&in_table(0, 1, Match::default(), vec![write, goto(1)]));
        let again = vec![Instruction::WriteActions(vec![output(3)]), Instruction::ClearActions];
        bench.add(&in_table(1, 1, Match::default(), again));
        bench.send(1, &frame_to(0xee)).is_only(3, &frame_to(0xee));
    });
    suite.case("rules::an_action_set_is_executed_in_its_own_order", |bench| {
        // Output was written first and is executed last (§5.10): it sends what the set-field made.
        let write = vec![output(2), set_target(0x0200_0000_0001)];
        bench.add(&in_table(0, 1, Match::default(), vec![Instruction::WriteActions(write)]));
        bench.send(1, &frame_to(0xee)).is_only(2, &frame_to(0x01));
    });
    suite.case("rules::instructions_are_executed_in_their_own_order", |bench| {
        // Given backwards: goto, write-metadata, write-actions, clear-actions, apply-actions (§5.9).
        let write = Instruction::WriteActions(vec![output(2)]);
        let apply = Instruction::ApplyActions(vec![set_target(0x0200_0000_0001)]);
        let metadata = Instruction::WriteMetadata { value: 5, mask: 7 };
        let list = vec![goto(1), metadata, write, Instruction::ClearActions, apply];
        bench.add(&in_table(0, 1, Match::default(), list));
        let seen =
            Match::default().with(OxmField::EthDst, 0x0200_0000_0001).with(OxmField::Metadata, 5);
        bench.add(&in_table(1, 1, seen, vec![]));
        bench.send(1, &frame_to(0xee)).is_only(2, &frame_to(0x01));
    });
    suite.case("rules::what_no_entry_matches_is_dropped_without_a_table_miss_entry", |bench| {
        bench.add(&to_port(1, 5, Match::default().with(OxmField::EthSrc, 1), 2));
        bench.send(1, &plain_frame("lost")).is_nothing();
    });
    suite.case("rules::a_table_miss_entry_asks_the_controller_as_such", |bench| {
        let up = vec![Instruction::ApplyActions(vec![Action::output(PortNo::CONTROLLER)])];
        bench.add(&FlowMod { cookie: 0x77, ..in_table(0, 0, Match::default(), up.clone()) });
        let packet = bench.send(1, &plain_frame("who")).one_packet_in();
        assert_eq!((packet.reason, packet.cookie), (PacketInReason::NoMatch, 0x77));
        bench.add(&in_table(0, 1, Match::default(), up.clone()));
        let packet = bench.send(1, &plain_frame("who")).one_packet_in();
        assert_eq!(packet.reason, PacketInReason::Action, "a priority makes it an ordinary entry");
    });
    suite.case("rules::a_table_miss_entry_may_do_what_any_entry_may", |bench| {
        bench.add(&in_table(0, 0, Match::default(), vec![goto(4)]));
        let out = vec![Instruction::ApplyActions(vec![output(2)])];
        bench.add(&in_table(4, 0, Match::default(), out));
        assert_eq!(ports_reached(bench, 1), [2]);
    });
    suite.case("rules::a_table_miss_of_a_later_table_names_that_table", |bench| {
        bench.add(&in_table(0, 5, Match::default(), vec![goto(9)]));
        let up = vec![Instruction::ApplyActions(vec![Action::output(PortNo::CONTROLLER)])];
        bench.add(&in_table(9, 0, Match::default(), up));
        let packet = bench.send(1, &plain_frame("who")).one_packet_in();
        assert_eq!((packet.table, packet.reason), (TableId(9), PacketInReason::NoMatch));
    });
}
