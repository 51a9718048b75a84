//! The meter table: changes, what goes with them, statistics, refusals.

use super::{
    DROP, add, assert_passed, band, change, frames, kilobits, only_meter, packets, passed, remark,
    through,
};
use crate::harness::{Bench, Suite};
use openflow::{
    BandKind, ErrorCode, FlowMod, FlowModFlags, FlowRemovedReason, Message, MeterConfig,
    MeterFlags, MeterId, MeterModCommand, MultipartReply, MultipartRequest, Part,
};
use std::time::Instant;

fn configs(bench: &mut Bench, id: MeterId) -> Vec<MeterConfig> {
    let parts = bench.session.ask_parts(&MultipartRequest::MeterConfig(id));
    let list = |part| match part {
        MultipartReply::MeterConfig(list) => list,
        other => panic!("{other:?}"),
    };
    parts.into_iter().flat_map(list).collect()
}

#[track_caller]
fn refuse(bench: &mut Bench, change: &Message, code: ErrorCode) {
    bench.session.refuse(change, code);
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    changes(suite);
    numbers(suite);
    reports(suite);
}

fn changes(suite: &mut Suite) {
    suite.case("meters::a_deleted_meter_takes_its_entries_along_and_they_are_reported", |bench| {
        add(bench, 1, packets(), &[]);
        add(bench, 2, packets(), &[]);
        let flags = FlowModFlags::SEND_FLOW_REM;
        bench.add(&FlowMod { flags, ..through(1) });
        bench.add(&FlowMod { flags, table: openflow::TableId(3), ..through(1) });
        bench.add(&FlowMod { flags, priority: 7, ..through(2) });
        bench.session.accept(&change(MeterModCommand::Delete, MeterId(1), packets(), &[]));
        let removed = bench.flows_removed();
        assert_eq!(removed.len(), 2, "{removed:?}");
        // 1.3 has no reason of its own for this.
        assert!(
            removed.iter().all(|flow| flow.reason == FlowRemovedReason::Delete && flow.cookie == 1)
        );
        assert_eq!(bench.cookies(), [2]);
    });
    suite.case("meters::delete_all_empties_the_table_and_of_an_absent_one_is_no_error", |bench| {
        for id in [1, 2, 0xffff_0000] {
            add(bench, id, packets(), &[]);
        }
        bench.add(&through(2));
        bench.session.accept(&change(MeterModCommand::Delete, MeterId(77), packets(), &[]));
        bench.session.accept(&change(MeterModCommand::Delete, MeterId::ALL, packets(), &[]));
        assert!(configs(bench, MeterId::ALL).is_empty() && bench.cookies().is_empty());
    });
    suite.case("meters::modify_replaces_the_bands_and_keeps_input_and_entries", |bench| {
        let start = Instant::now();
        only_meter(bench, packets(), &[band(DROP, 1, 2)]);
        passed(bench, &frames(10, 60));
        let bands = [band(DROP, 1, 20), band(remark(1), 3, 30)];
        bench.session.accept(&change(MeterModCommand::Modify, MeterId(1), packets(), &bands));
        assert_passed(passed(bench, &frames(25, 60)), 20, 1.0, start);
        let stats = bench.meter(MeterId(1));
        assert_eq!((stats.input.packets, stats.bands.len(), stats.flow_count), (35, 2, 1));
    });
}

fn numbers(suite: &mut Suite) {
    use ErrorCode as Code;
    use MeterModCommand::{Add, Delete, Modify};
    suite.case("meters::an_entry_needs_a_meter_that_is_there", |bench| {
        bench.refuse(&through(1), Code::MeterModFailedUnknownMeter);
        add(bench, 1, packets(), &[]);
        bench.add(&through(1));
    });
    suite.case("meters::an_entry_cannot_use_a_virtual_meter", |bench| {
        bench.session.accept(&change(Add, MeterId::CONTROLLER, packets(), &[]));
        for id in [MeterId(0), MeterId::CONTROLLER, MeterId::SLOWPATH, MeterId::ALL] {
            bench.refuse(&through(id.0), Code::MeterModFailedInvalidMeter);
        }
    });
    suite.case("meters::there_is_no_slow_path_to_meter_and_all_is_for_deletions", |bench| {
        for id in [MeterId(0), MeterId::SLOWPATH, MeterId::ALL, MeterId(0xffff_0001)] {
            refuse(bench, &change(Add, id, packets(), &[]), Code::MeterModFailedInvalidMeter);
        }
        refuse(
            bench,
            &change(Delete, MeterId(0), packets(), &[]),
            Code::MeterModFailedInvalidMeter,
        );
    });
    suite.case("meters::a_number_is_given_once_and_modified_only_when_given", |bench| {
        add(bench, 1, packets(), &[]);
        refuse(bench, &change(Add, MeterId(1), packets(), &[]), Code::MeterModFailedMeterExists);
        refuse(
            bench,
            &change(Modify, MeterId(2), packets(), &[]),
            Code::MeterModFailedUnknownMeter,
        );
    });
    suite.case("meters::bands_that_mean_nothing_are_refused_and_change_nothing", |bench| {
        let kept = [band(DROP, 5, 6)];
        add(bench, 1, packets(), &kept);
        let both = MeterFlags::KBPS | MeterFlags::PKTPS;
        let experimenter = BandKind::Experimenter { experimenter: 7 };
        for (flags, bands, code) in [
            (both, vec![], Code::MeterModFailedBadFlags),
            (MeterFlags::from_bits_retain(16), vec![], Code::MeterModFailedBadFlags),
            (packets(), vec![band(DROP, 0, 1)], Code::MeterModFailedBadRate),
            (packets(), vec![band(remark(0), 1, 1)], Code::MeterModFailedBadBandValue),
            (packets(), vec![band(experimenter, 1, 1)], Code::MeterModFailedBadBand),
            (packets(), vec![band(DROP, 1, 1); 9], Code::MeterModFailedOutOfBands),
        ] {
            refuse(bench, &change(Modify, MeterId(1), flags, &bands), code);
            refuse(bench, &change(Add, MeterId(2), flags, &bands), code);
        }
        let [config]: [MeterConfig; 1] = configs(bench, MeterId::ALL).try_into().unwrap();
        assert_eq!(config.bands, kept);
    });
}

fn reports(suite: &mut Suite) {
    suite.case("meters::configurations_are_what_was_given", |bench| {
        let given = [
            (1, packets(), vec![band(DROP, 5, 6), band(remark(2), 3, 4)]),
            (2, kilobits(), vec![]),
            (0xffff_0000, MeterFlags::KBPS, vec![band(DROP, u32::MAX, u32::MAX)]),
        ];
        for (id, flags, bands) in &given {
            add(bench, *id, *flags, bands);
        }
        let wanted = given.map(|(id, flags, bands)| MeterConfig { flags, id: MeterId(id), bands });
        assert_eq!(configs(bench, MeterId::ALL), wanted);
        assert_eq!(configs(bench, MeterId(2)), wanted[1..2]);
    });
    suite.case("meters::statistics_come_by_number_and_of_an_absent_meter_not", |bench| {
        for id in [9, 3] {
            add(bench, id, packets(), &[band(DROP, 1, 1)]);
        }
        let parts = bench.session.ask_parts(&MultipartRequest::Meter(MeterId::ALL));
        let [MultipartReply::Meter(meters)] = &parts[..] else { panic!("{parts:?}") };
        let facts: Vec<_> = meters.iter().map(|meter| (meter.id.0, meter.bands.len())).collect();
        assert_eq!(facts, [(3, 1), (9, 1)]);
        for absent in
            [MultipartRequest::Meter(MeterId(4)), MultipartRequest::MeterConfig(MeterId(4))]
        {
            let request = Message::MultipartRequest(Part::last(absent));
            refuse(bench, &request, ErrorCode::MeterModFailedUnknownMeter);
        }
    });
    suite.case("meters::features_say_what_the_other_cases_show", |bench| {
        let parts = bench.session.ask_parts(&MultipartRequest::MeterFeatures);
        let [MultipartReply::MeterFeatures(features)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(features.band_types, 1 << 1 | 1 << 2, "drop and DSCP remark");
        assert_eq!(features.capabilities, MeterFlags::all());
        assert!(features.max_meter >= 1024 && features.max_bands >= 2 && features.max_color >= 3);
    });
}
