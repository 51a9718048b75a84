//! The group table: changes, what goes with them, statistics, refusals.

use super::{
    add, bucket, change, delete, frame, only_group, through, to, use_group, watching, weighted,
};
use crate::harness::{Bench, Suite, entry, output};
use openflow::{
    Action, Bucket, Counter, ErrorCode, FlowMod, FlowModFlags, FlowRemovedReason,
    GroupCapabilities, GroupDesc, GroupId, GroupModCommand, GroupType, Match, MultipartReply,
    MultipartRequest, PortNo,
};

#[track_caller]
fn refuse(bench: &mut Bench, id: u32, kind: GroupType, buckets: Vec<Bucket>, code: ErrorCode) {
    bench.session.refuse(&change(GroupModCommand::Add, id, kind, buckets), code);
}

fn described(bench: &mut Bench) -> Vec<GroupDesc> {
    let parts = bench.session.ask_parts(&MultipartRequest::GroupDesc);
    let list = |part| match part {
        MultipartReply::GroupDesc(list) => list,
        other => panic!("{other:?}"),
    };
    parts.into_iter().flat_map(list).collect()
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    changes(suite);
    refusals(suite);
    reports(suite);
}

fn changes(suite: &mut Suite) {
    suite.case("groups::a_deleted_group_takes_its_entries_along_and_they_are_reported", |bench| {
        add(bench, 1, GroupType::All, vec![to(2)]);
        let through_it = entry(5, Match::default(), vec![Action::Group(GroupId(1))]);
        let flags = FlowModFlags::SEND_FLOW_REM;
        bench.add(&FlowMod { cookie: 7, flags, ..through_it.clone() });
        let written = vec![openflow::Instruction::WriteActions(vec![Action::Group(GroupId(1))])];
        let later = FlowMod { table: openflow::TableId(4), instructions: written, ..through_it };
        bench.add(&FlowMod { cookie: 8, flags, ..later });
        bench.add(&FlowMod { cookie: 9, flags, ..entry(4, Match::default(), vec![output(3)]) });
        bench.send(1, &frame()).is_only(2, &frame());
        delete(bench, GroupId(1));
        let removed = bench.flows_removed();
        let mut facts: Vec<_> =
            removed.iter().map(|flow| (flow.cookie, flow.reason, flow.packet_count)).collect();
        facts.sort_unstable_by_key(|fact| fact.0);
        let reason = FlowRemovedReason::GroupDelete;
        assert_eq!(facts, [(7, reason, 1), (8, reason, 0)]);
        bench.send(1, &frame()).is_only(3, &frame());
    });
    suite.case("groups::delete_all_empties_the_table", |bench| {
        for id in [1, 2, 0xffff_ff00] {
            add(bench, id, GroupType::All, vec![to(2)]);
        }
        add(bench, 4, GroupType::All, vec![through(1)]);
        use_group(bench, 4);
        delete(bench, GroupId::ALL);
        assert_eq!((described(bench), bench.cookies()), (vec![], vec![]));
    });
    suite.case("groups::delete_of_an_absent_group_is_no_error", |bench| {
        delete(bench, GroupId(5));
    });
    suite.case("groups::modify_acts_at_once_and_keeps_the_groups_own_counters", |bench| {
        only_group(bench, GroupType::All, vec![to(2)]);
        bench.send(1, &frame()).is_only(2, &frame());
        let buckets = vec![weighted(1, 3)];
        bench.session.accept(&change(GroupModCommand::Modify, 1, GroupType::Select, buckets));
        bench.send(1, &frame()).is_only(3, &frame());
        let stats = bench.group(1);
        assert_eq!(stats.total.packets, 2);
        assert_eq!(stats.buckets, [Counter { packets: 1, bytes: 60 }]);
    });
}

fn refusals(suite: &mut Suite) {
    use ErrorCode as Code;
    suite.case("groups::loops_are_refused_however_long", |bench| {
        refuse(bench, 1, GroupType::All, vec![through(1)], Code::GroupModFailedLoop);
        add(bench, 1, GroupType::All, vec![to(2)]);
        add(bench, 2, GroupType::All, vec![through(1)]);
        add(bench, 3, GroupType::All, vec![through(2)]);
        let back = change(GroupModCommand::Modify, 1, GroupType::All, vec![through(3)]);
        bench.session.refuse(&back, Code::GroupModFailedLoop);
        use_group(bench, 3);
        bench.send(1, &frame()).is_only(2, &frame());
    });
    suite.case("groups::eight_groups_may_be_chained_and_a_ninth_is_refused", |bench| {
        add(bench, 1, GroupType::Indirect, vec![to(2)]);
        for id in 2..=8 {
            add(bench, id, GroupType::Indirect, vec![through(id - 1)]);
        }
        let code = Code::GroupModFailedChainingUnsupported;
        refuse(bench, 9, GroupType::Indirect, vec![through(8)], code);
        use_group(bench, 8);
        bench.send(1, &frame()).is_only(2, &frame());
    });
    suite.case("groups::a_group_that_another_forwards_to_is_not_deleted", |bench| {
        add(bench, 1, GroupType::All, vec![to(2)]);
        only_chain(bench);
        let deletion = change(GroupModCommand::Delete, 1, GroupType::All, vec![]);
        bench.session.refuse(&deletion, Code::GroupModFailedChainedGroup);
        bench.send(1, &frame()).is_only(2, &frame());
        delete(bench, GroupId(2));
        delete(bench, GroupId(1));
    });
    suite.case("groups::what_is_refused_changes_nothing", |bench| {
        only_group(bench, GroupType::All, vec![to(2)]);
        refuse(bench, 1, GroupType::All, vec![to(3)], Code::GroupModFailedGroupExists);
        for (buckets, code) in [
            (vec![weighted(1, 3)], Code::GroupModFailedInvalidGroup),
            (vec![through(9)], Code::BadActionBadOutGroup),
            (vec![bucket(vec![output(0)])], Code::BadActionBadOutPort),
            (
                vec![Bucket { watch_port: PortNo::CONTROLLER, ..to(3) }],
                Code::GroupModFailedBadWatch,
            ),
            (vec![Bucket { watch_group: GroupId(9), ..to(3) }], Code::GroupModFailedBadWatch),
        ] {
            let change = change(GroupModCommand::Modify, 1, GroupType::All, buckets);
            bench.session.refuse(&change, code);
        }
        let unwatched = change(GroupModCommand::Modify, 1, GroupType::FastFailover, vec![to(3)]);
        bench.session.refuse(&unwatched, Code::GroupModFailedBadWatch);
        bench.send(1, &frame()).is_only(2, &frame());
    });
}

/// As many buckets as a group may have, the last with these actions. With sixteen bytes of them the group-mod takes 65520 bytes and the
/// description 65528: the most of a multiple of eight.
fn largest(last: Vec<Action>) -> Vec<Bucket> {
    let mut buckets = vec![bucket(vec![output(2); 3]); 1023];
    buckets.push(bucket(last));
    buckets
}

/// Everything goes through group 2 to group 1.
fn only_chain(bench: &mut Bench) {
    add(bench, 2, GroupType::Indirect, vec![through(1)]);
    use_group(bench, 2);
}

fn reports(suite: &mut Suite) {
    suite.case("groups::statistics_are_exact_for_the_group_and_each_bucket", |bench| {
        only_group(bench, GroupType::All, vec![to(2), to(3)]);
        add(bench, 2, GroupType::All, vec![through(1)]);
        bench.add(&entry(
            9,
            Match::default().with(openflow::OxmField::EthSrc, 1),
            vec![Action::Group(GroupId(1))],
        ));
        bench.send_all(1, &[frame(), frame(), [frame(), vec![0; 40]].concat()]);
        let stats = bench.group(1);
        let counted = Counter { packets: 3, bytes: 220 };
        assert_eq!((stats.id, stats.total, stats.buckets), (GroupId(1), counted, vec![counted; 2]));
        assert_eq!(stats.ref_count, 3, "two entries and a group");
        assert_eq!(bench.group(2).total, Counter::default());
    });
    suite.case("groups::a_failed_over_bucket_counts_what_it_took", |bench| {
        only_group(bench, GroupType::FastFailover, vec![watching(77), watching(3)]);
        bench.send_all(1, &[frame(), frame()]);
        let stats = bench.group(1);
        let counted = Counter { packets: 2, bytes: 120 };
        assert_eq!(stats.buckets, [Counter::default(), counted]);
    });
    suite.case(
        "groups::statistics_of_all_groups_come_by_number_and_of_an_absent_one_not",
        |bench| {
            for id in [30, 1, 0xffff_ff00] {
                add(bench, id, GroupType::All, vec![]);
            }
            let request = MultipartRequest::Group(GroupId::ALL);
            let [MultipartReply::Group(groups)] = &bench.session.ask_parts(&request)[..] else {
                panic!()
            };
            let ids: Vec<u32> = groups.iter().map(|group| group.id.0).collect();
            assert_eq!(ids, [1, 30, 0xffff_ff00]);
            let absent = bench.session.ask_parts(&MultipartRequest::Group(GroupId(2)));
            assert_eq!(absent, [MultipartReply::Group(vec![])]);
        },
    );
    suite.case("groups::descriptions_are_what_was_given", |bench| {
        let watched = Bucket { watch_port: PortNo(3), watch_group: GroupId(1), ..to(3) };
        let given = [
            (1, GroupType::All, vec![to(2), bucket(vec![])]),
            (2, GroupType::Select, vec![weighted(7, 2), weighted(0, 3)]),
            (3, GroupType::Indirect, vec![bucket(vec![Action::PushVlan(0x8100), output(2)])]),
            (4, GroupType::FastFailover, vec![watched]),
        ];
        for (id, kind, buckets) in &given {
            add(bench, *id, *kind, buckets.clone());
        }
        let wanted = given.map(|(id, kind, buckets)| GroupDesc { kind, id: GroupId(id), buckets });
        assert_eq!(described(bench), wanted);
    });
    suite.case(
        "groups::the_longest_description_is_given_whole_and_what_is_longer_is_refused",
        |bench| {
            let longest = || largest(vec![Action::PopVlan; 2]);
            add(bench, 1, GroupType::All, longest());
            add(bench, 2, GroupType::All, vec![to(2)]);
            add(bench, 3, GroupType::All, longest());
            let longer = largest(vec![Action::PopVlan; 3]);
            refuse(bench, 4, GroupType::All, longer.clone(), ErrorCode::GroupModFailedOutOfBuckets);
            let change = change(GroupModCommand::Modify, 2, GroupType::All, longer);
            bench.session.refuse(&change, ErrorCode::GroupModFailedOutOfBuckets);
            let group = |id, buckets| GroupDesc { kind: GroupType::All, id: GroupId(id), buckets };
            let parts = bench.session.ask_parts(&MultipartRequest::GroupDesc);
            let each = [group(1, longest()), group(2, vec![to(2)]), group(3, longest())];
            assert_eq!(parts, each.map(|group| MultipartReply::GroupDesc(vec![group])));
        },
    );
    suite.case("groups::features_say_what_the_other_cases_show", |bench| {
        let parts = bench.session.ask_parts(&MultipartRequest::GroupFeatures);
        let [MultipartReply::GroupFeatures(features)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(features.types, 0b1111);
        assert_eq!(features.capabilities, GroupCapabilities::all());
        assert!(features.max_groups.iter().all(|&most| most >= 1024));
        // OFPAT_*: output, the TTL actions, tags, queue, group, set-field, PBB.
        let actions = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];
        let bits = actions.iter().fold(0, |bits, action| bits | 1_u32 << action);
        assert_eq!(features.actions, [bits; 4]);
    });
}
