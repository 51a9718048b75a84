//! Flow-mod rules (OpenFlow 1.3.5 §5.3, §5.4, §6.4, §6.5, §7.3.4.1), each on frames.

mod tables;
mod timeouts;

use crate::harness::{Bench, Suite, entry, output, plain_frame};
use openflow::{
    ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStats,
    FlowStatsRequest, GroupId, Instruction, Match, OxmField, PortNo, TableId,
};

/// Where [`plain_frame`]s come from and go to.
const SOURCE: u128 = 0x0200_0000_00dd;
const TARGET: u128 = 0x0200_0000_00ee;

fn from_source() -> Match {
    Match::default().with(OxmField::EthSrc, SOURCE)
}

fn both_addresses() -> Match {
    from_source().with(OxmField::EthDst, TARGET)
}

/// An entry of this cookie that sends what matches to a port.
fn to_port(cookie: u64, priority: u16, fields: Match, port: u32) -> FlowMod {
    FlowMod { cookie, ..entry(priority, fields, vec![output(port)]) }
}

fn with(command: FlowModCommand, change: FlowMod) -> FlowMod {
    FlowMod { command, ..change }
}

/// Deletes what the match covers in table 0.
fn delete(fields: Match) -> FlowMod {
    FlowMod { command: FlowModCommand::Delete, fields, ..FlowMod::default() }
}

/// Some frames from port 1; where they came out.
fn ports_reached(bench: &mut Bench, frames: usize) -> Vec<u32> {
    let outcome = bench.send_all(1, &vec![plain_frame("rules"); frames]);
    outcome.frames.iter().map(|(port, _)| *port).collect()
}

fn counts(flow: &FlowStats) -> (u64, u64) {
    (flow.packet_count, flow.byte_count)
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    adds(suite);
    modifies(suite);
    deletes(suite);
    filters(suite);
    tables::cases(suite);
    timeouts::cases(suite);
}

fn adds(suite: &mut Suite) {
    suite.case("rules::add_replaces_the_same_match_and_priority_and_keeps_counters", |bench| {
        let flags = FlowModFlags::SEND_FLOW_REM;
        bench.add(&FlowMod { flags, ..to_port(1, 5, from_source(), 2) });
        assert_eq!(ports_reached(bench, 3), [2, 2, 2]);
        bench.add(&FlowMod { idle_timeout_s: 90, ..to_port(2, 5, from_source(), 3) });
        assert_eq!(ports_reached(bench, 2), [3, 3]);
        assert_eq!(bench.cookies(), [2]);
        let flow = bench.flow(2);
        assert_eq!((counts(&flow), flow.idle_timeout_s), ((5, 300), 90));
        assert_eq!(flow.flags, FlowModFlags::empty());
        assert_eq!(bench.flows_removed(), [], "a replaced entry is not reported");
    });
    suite.case("rules::add_with_reset_counts_starts_at_zero", |bench| {
        bench.add(&to_port(1, 5, from_source(), 2));
        ports_reached(bench, 3);
        let flags = FlowModFlags::RESET_COUNTS;
        bench.add(&FlowMod { flags, ..to_port(2, 5, from_source(), 2) });
        assert_eq!(counts(&bench.flow(2)), (0, 0));
        ports_reached(bench, 1);
        assert_eq!(counts(&bench.flow(2)), (1, 60));
    });
    suite.case(
        "rules::the_higher_priority_wins_and_the_lower_one_takes_over_when_it_goes",
        |bench| {
            bench.add(&to_port(1, 5, both_addresses(), 2));
            bench.add(&to_port(2, 6, Match::default(), 3));
            assert_eq!(ports_reached(bench, 1), [3]);
            bench.add(&with(FlowModCommand::DeleteStrict, to_port(0, 6, Match::default(), 3)));
            assert_eq!(ports_reached(bench, 1), [2]);
            assert_eq!(counts(&bench.flow(1)), (1, 60));
        },
    );
    suite.case("rules::check_overlap_refuses_what_overlaps_at_the_same_priority", |bench| {
        let checked = |change| FlowMod { flags: FlowModFlags::CHECK_OVERLAP, ..change };
        bench.add(&to_port(1, 5, from_source(), 2));
        let target = Match::default().with(OxmField::EthDst, TARGET);
        for fields in [from_source(), both_addresses(), Match::default(), target.clone()] {
            let overlapping = checked(to_port(2, 5, fields, 3));
            bench.refuse(&overlapping, ErrorCode::FlowModFailedOverlap);
        }
        assert_eq!(ports_reached(bench, 1), [2]);
        bench.add(&checked(to_port(3, 6, target, 3)));
        bench.add(&checked(to_port(4, 5, Match::default().with(OxmField::EthSrc, 7), 3)));
        bench.add(&FlowMod { table: TableId(1), ..checked(to_port(5, 5, from_source(), 3)) });
        assert_eq!(bench.cookies(), [1, 3, 4, 5]);
    });
    suite.case("rules::without_check_overlap_overlapping_entries_are_taken", |bench| {
        bench.add(&to_port(1, 5, from_source(), 2));
        bench.add(&to_port(2, 5, both_addresses(), 2));
        assert_eq!(bench.cookies(), [1, 2]);
        assert_eq!(ports_reached(bench, 1), [2]);
    });
    suite.case("rules::an_entry_reads_back_as_it_was_added", |bench| {
        let flags =
            FlowModFlags::SEND_FLOW_REM | FlowModFlags::NO_PKT_COUNTS | FlowModFlags::NO_BYT_COUNTS;
        let change = FlowMod {
            idle_timeout_s: 700,
            hard_timeout_s: 800,
            flags,
            table: TableId(3),
            ..to_port(u64::MAX - 1, 9, both_addresses(), 2)
        };
        bench.add(&change);
        let [flow]: [FlowStats; 1] = bench.flows(FlowStatsRequest::default()).try_into().unwrap();
        assert_eq!((flow.table, flow.priority, flow.cookie), (TableId(3), 9, u64::MAX - 1));
        assert_eq!((flow.idle_timeout_s, flow.hard_timeout_s, flow.flags), (700, 800, flags));
        assert_eq!(flow.instructions, change.instructions);
        let fields = [OxmField::EthSrc, OxmField::EthDst].map(|field| flow.fields.exact(field));
        assert_eq!((fields, flow.fields.0.len()), ([Some(SOURCE), Some(TARGET)], 2));
    });
    suite.case("rules::an_entry_without_counts_forwards_like_any", |bench| {
        let flags = FlowModFlags::NO_PKT_COUNTS | FlowModFlags::NO_BYT_COUNTS;
        bench.add(&FlowMod { flags, ..to_port(1, 5, from_source(), 2) });
        assert_eq!(ports_reached(bench, 2), [2, 2]);
    });
    suite.case("rules::counters_are_of_whole_frames_of_every_length", |bench| {
        bench.add(&to_port(1, 5, from_source(), 2));
        let frames: Vec<_> = [60, 61, 64, 255, 1000, 1514]
            .map(|len| {
                let mut frame = plain_frame("length");
                frame.resize(len, 7);
                frame
            })
            .into();
        assert_eq!(bench.send_all(1, &frames).frames.len(), frames.len());
        let bytes = frames.iter().map(Vec::len).sum::<usize>();
        assert_eq!(counts(&bench.flow(1)), (6, bytes as u64));
    });
}

fn modifies(suite: &mut Suite) {
    suite.case("rules::modify_changes_instructions_only_of_all_that_the_match_covers", |bench| {
        let kept = FlowMod {
            idle_timeout_s: 70,
            hard_timeout_s: 80,
            flags: FlowModFlags::SEND_FLOW_REM,
            ..to_port(1, 5, both_addresses(), 2)
        };
        bench.add(&kept);
        bench.add(&to_port(2, 4, from_source(), 2));
        bench.add(&to_port(3, 3, Match::default(), 2));
        ports_reached(bench, 2);
        let change = to_port(9, 1, from_source(), 3);
        bench.add(&with(FlowModCommand::Modify, change));
        assert_eq!(ports_reached(bench, 1), [3]);
        let flow = bench.flow(1);
        assert_eq!((counts(&flow), flow.priority, flow.flags), ((3, 180), 5, kept.flags));
        assert_eq!((flow.idle_timeout_s, flow.hard_timeout_s), (70, 80));
        let to = |port| vec![Instruction::ApplyActions(vec![output(port)])];
        assert_eq!(bench.flow(2).instructions, to(3));
        assert_eq!(bench.flow(3).instructions, to(2), "a wider entry is not covered");
    });
    suite.case("rules::modify_strict_changes_the_entry_of_that_match_and_priority", |bench| {
        for (cookie, priority) in [(1, 5), (2, 6)] {
            bench.add(&to_port(cookie, priority, from_source(), 2));
        }
        bench.add(&to_port(3, 5, both_addresses(), 2));
        bench.add(&with(FlowModCommand::ModifyStrict, to_port(9, 5, from_source(), 4)));
        let to = |port| vec![Instruction::ApplyActions(vec![output(port)])];
        assert_eq!([1, 2, 3].map(|cookie| bench.flow(cookie).instructions), [to(4), to(2), to(2)]);
    });
    suite.case("rules::modify_of_nothing_is_no_error_and_adds_nothing", |bench| {
        for command in [FlowModCommand::Modify, FlowModCommand::ModifyStrict] {
            bench.add(&with(command, to_port(1, 5, from_source(), 2)));
        }
        assert!(bench.cookies().is_empty());
        assert!(ports_reached(bench, 1).is_empty());
    });
    suite.case("rules::modify_with_reset_counts_clears_counters", |bench| {
        for command in [FlowModCommand::Modify, FlowModCommand::ModifyStrict] {
            bench.add(&to_port(1, 5, from_source(), 2));
            ports_reached(bench, 2);
            let flags = FlowModFlags::RESET_COUNTS;
            bench.add(&FlowMod { flags, ..with(command, to_port(0, 5, from_source(), 2)) });
            assert_eq!(counts(&bench.flow(1)), (0, 0), "{command:?}");
        }
    });
    suite.case("rules::modify_ignores_out_port_and_out_group", |bench| {
        bench.add(&to_port(1, 5, from_source(), 2));
        let change = to_port(0, 5, from_source(), 3);
        let change = FlowMod { out_port: PortNo(4), out_group: GroupId(4), ..change };
        bench.add(&with(FlowModCommand::Modify, change));
        assert_eq!(ports_reached(bench, 1), [3]);
    });
    suite.case("rules::modify_heeds_the_cookie_mask", |bench| {
        bench.add(&to_port(0x11, 5, from_source(), 2));
        let change = |cookie, cookie_mask| {
            let change = with(FlowModCommand::Modify, to_port(cookie, 5, from_source(), 3));
            FlowMod { cookie_mask, ..change }
        };
        bench.add(&change(0x21, 0xf0));
        assert_eq!(ports_reached(bench, 1), [2]);
        bench.add(&change(0x1f, 0xf0));
        assert_eq!(ports_reached(bench, 1), [3]);
    });
}

fn deletes(suite: &mut Suite) {
    suite.case("rules::delete_takes_what_the_match_covers_whatever_its_priority", |bench| {
        bench.add(&to_port(1, 5, both_addresses(), 2));
        bench.add(&to_port(2, 4, from_source(), 3));
        bench.add(&to_port(3, 3, Match::default(), 4));
        bench.add(&FlowMod { priority: 77, ..delete(from_source()) });
        assert_eq!(bench.cookies(), [3]);
        assert_eq!(ports_reached(bench, 1), [4]);
    });
    suite.case("rules::delete_strict_takes_the_entry_of_that_match_and_priority", |bench| {
        bench.add(&to_port(1, 5, from_source(), 2));
        bench.add(&to_port(2, 4, from_source(), 3));
        bench.add(&to_port(3, 5, both_addresses(), 4));
        let strict = |priority| {
            let change = with(FlowModCommand::DeleteStrict, delete(from_source()));
            FlowMod { priority, ..change }
        };
        bench.add(&strict(6));
        assert_eq!(bench.cookies(), [1, 2, 3]);
        bench.add(&strict(5));
        assert_eq!(bench.cookies(), [2, 3]);
    });
    suite.case("rules::delete_covers_masked_matches_by_their_bits", |bench| {
        let under = |value, mask| Match::default().with_masked(OxmField::EthSrc, value, mask);
        bench.add(&to_port(1, 5, under(0x0200_0000_0000, 0xffff_0000_0000), 2));
        bench.add(&to_port(2, 5, under(0x0200_0000_00d0, 0xffff_ffff_fff0), 2));
        bench.add(&to_port(3, 5, under(0x0300_0000_0000, 0xffff_0000_0000), 2));
        bench.add(&delete(under(0x0200_0000_0000, 0xffff_ff00_0000)));
        assert_eq!(bench.cookies(), [1, 3]);
        bench.add(&delete(under(0x0200_0000_0000, 0xff00_0000_0000)));
        assert_eq!(bench.cookies(), [3]);
    });
    suite.case("rules::delete_is_reported_to_whom_the_entry_asked_with_all_its_facts", |bench| {
        let flags = FlowModFlags::SEND_FLOW_REM;
        let change = FlowMod {
            flags,
            idle_timeout_s: 70,
            hard_timeout_s: 80,
            ..to_port(7, 5, from_source(), 2)
        };
        bench.add(&change);
        bench.add(&to_port(8, 4, from_source(), 2));
        ports_reached(bench, 3);
        bench.add(&delete(from_source()));
        let removed = bench.flows_removed();
        assert_eq!(removed.len(), 1, "{removed:?}");
        let removed = &removed[0];
        assert_eq!(removed.reason, FlowRemovedReason::Delete);
        assert_eq!((removed.cookie, removed.priority, removed.table), (7, 5, TableId(0)));
        assert_eq!((removed.idle_timeout_s, removed.hard_timeout_s), (70, 80));
        assert_eq!((removed.packet_count, removed.byte_count), (3, 180));
        assert_eq!(removed.fields, from_source());
    });
    suite.case("rules::delete_of_nothing_is_no_error", |bench| {
        bench.add(&delete(from_source()));
        bench.add(&with(FlowModCommand::DeleteStrict, delete(from_source())));
    });
    suite.case("rules::delete_of_one_table_leaves_the_others_and_of_all_none", |bench| {
        for (cookie, table) in [(1, 0), (2, 1), (3, 200)] {
            let table = TableId(table);
            bench.add(&FlowMod { table, ..to_port(cookie, 5, from_source(), 2) });
        }
        bench.add(&FlowMod { table: TableId(1), ..delete(Match::default()) });
        assert_eq!(bench.cookies(), [1, 3]);
        bench.add(&FlowMod { table: TableId::ALL, ..delete(Match::default()) });
        assert!(bench.cookies().is_empty());
    });
    suite.case("rules::delete_strict_in_all_tables_takes_one_of_each", |bench| {
        for (cookie, table, priority) in [(1, 0, 5), (2, 1, 5), (3, 2, 6)] {
            let table = TableId(table);
            bench.add(&FlowMod { table, ..to_port(cookie, priority, from_source(), 2) });
        }
        let strict = with(FlowModCommand::DeleteStrict, delete(from_source()));
        bench.add(&FlowMod { table: TableId::ALL, priority: 5, ..strict });
        assert_eq!(bench.cookies(), [3]);
    });
}

fn filters(suite: &mut Suite) {
    suite.case("rules::delete_heeds_the_cookie_mask", |bench| {
        for cookie in [0x11, 0x12, 0x21] {
            bench.add(&to_port(cookie, cookie as u16, from_source(), 2));
        }
        let masked =
            |cookie, cookie_mask| FlowMod { cookie, cookie_mask, ..delete(Match::default()) };
        bench.add(&masked(0x31, 0xff));
        assert_eq!(bench.cookies(), [0x11, 0x12, 0x21]);
        bench.add(&masked(0x10, 0xf0));
        assert_eq!(bench.cookies(), [0x21]);
        let strict = with(FlowModCommand::DeleteStrict, masked(0x22, 0xff));
        bench.add(&FlowMod { fields: from_source(), priority: 0x21, ..strict });
        assert_eq!(bench.cookies(), [0x21]);
    });
    suite.case("rules::delete_heeds_out_port", |bench| {
        bench.add(&to_port(1, 1, from_source(), 2));
        bench.add(&to_port(2, 2, from_source(), 3));
        let written = vec![Instruction::WriteActions(vec![output(2)])];
        bench.add(&FlowMod { instructions: written, ..to_port(3, 3, from_source(), 2) });
        let up = vec![openflow::Action::output(PortNo::CONTROLLER)];
        bench.add(&FlowMod { cookie: 4, ..entry(4, from_source(), up) });
        let by_port = |out_port| FlowMod { out_port, ..delete(from_source()) };
        for nowhere in [PortNo(4), PortNo(0), PortNo::LOCAL, PortNo(0xffff_ff01)] {
            bench.add(&by_port(nowhere));
            assert_eq!(bench.cookies(), [1, 2, 3, 4], "{nowhere:?}");
        }
        bench.add(&by_port(PortNo(2)));
        assert_eq!(bench.cookies(), [2, 4]);
        bench.add(&by_port(PortNo::CONTROLLER));
        assert_eq!(bench.cookies(), [2]);
        bench.add(&by_port(PortNo::ANY));
        assert!(bench.cookies().is_empty());
    });
    suite.case("rules::delete_heeds_out_group", |bench| {
        for id in [7, 8] {
            crate::groups::add(bench, id, openflow::GroupType::All, vec![]);
            let actions = vec![openflow::Action::Group(GroupId(id))];
            bench.add(&FlowMod { cookie: id.into(), ..entry(id as u16, from_source(), actions) });
        }
        bench.add(&to_port(1, 1, from_source(), 2));
        bench.add(&FlowMod { out_group: GroupId(9), ..delete(from_source()) });
        assert_eq!(bench.cookies(), [1, 7, 8]);
        bench.add(&FlowMod { out_group: GroupId(7), ..delete(from_source()) });
        assert_eq!(bench.cookies(), [1, 8]);
        let both = FlowMod { out_group: GroupId(8), out_port: PortNo(2), ..delete(from_source()) };
        bench.add(&both);
        assert_eq!(bench.cookies(), [1, 8], "both filters must agree");
    });
}
