//! `OFPET_FLOW_MOD_FAILED`, `OFPET_GROUP_MOD_FAILED`, `OFPET_METER_MOD_FAILED`.

use super::{
    PERMITTED, Row, elsewhere, encoded, entry, never, patched, raw, refuse, refuse_bytes, sent,
};
use crate::groups::{add as add_group, bucket, change as group};
use crate::harness::{Bench, output};
use openflow::{
    Action, BandKind, Bucket, ErrorCode as Code, FlowMod, FlowModCommand, FlowModFlags, GroupId,
    GroupModCommand, GroupType, Instruction, Match, Message, MeterBand, MeterFlags, MeterId,
    MeterMod, MeterModCommand, MultipartReply, MultipartRequest, PortNo, TableFeatures, TableId,
};

/// What a table can do.
pub fn features(bench: &mut Bench, table: u8) -> TableFeatures {
    let parts = bench.session.ask_parts(&MultipartRequest::TableFeatures(vec![]));
    let lists = parts.into_iter().flat_map(|part| match part {
        MultipartReply::TableFeatures(list) => list,
        other => panic!("{other:?}"),
    });
    let mut lists = lists.filter(|features| features.table == TableId(table));
    lists.next().unwrap()
}

fn flow(change: FlowMod) -> Message {
    Message::FlowMod(change)
}

fn nothing() -> FlowMod {
    entry(Match::default(), vec![])
}

fn all(id: u32, buckets: Vec<Bucket>) -> Message {
    group(GroupModCommand::Add, id, GroupType::All, buckets)
}

fn through(id: u32) -> Bucket {
    bucket(vec![Action::Group(GroupId(id))])
}

fn meter(
    command: MeterModCommand,
    id: u32,
    flags: MeterFlags,
    bands: &[(BandKind, u32)],
) -> Message {
    let bands = bands.iter().map(|&(kind, rate)| MeterBand { kind, rate, burst_size: 1 }).collect();
    Message::MeterMod(MeterMod { command, flags, id: MeterId(id), bands })
}

fn add_meter(id: u32, bands: &[(BandKind, u32)]) -> Message {
    meter(MeterModCommand::Add, id, MeterFlags::PKTPS, bands)
}

/// The rows.
pub fn rows() -> Vec<Row> {
    [flows(), groups(), meters()].into_iter().flatten().collect()
}

fn flows() -> Vec<Row> {
    vec![
        never(Code::FlowModFailedUnknown, "every refusal has a code of its own"),
        elsewhere(
            Code::FlowModFailedTableFull,
            "a table that holds as many entries as the node's configuration allows, or whose masks have no room left; a tunnel end more than the switch may name",
            "errors::flow_mod_failed_OFPFMFC_TABLE_FULL",
        ),
        sent(
            Code::FlowModFailedBadTableId,
            "a table that does not exist, or all of them for anything but a deletion",
            |bench, code| {
                for command in
                    [FlowModCommand::Add, FlowModCommand::Modify, FlowModCommand::ModifyStrict]
                {
                    for table in [TableId(254), TableId::ALL] {
                        refuse(bench, code, [flow(FlowMod { command, table, ..nothing() })]);
                    }
                }
                let command = FlowModCommand::Delete;
                refuse(bench, code, [flow(FlowMod { command, table: TableId(254), ..nothing() })]);
            },
        ),
        sent(
            Code::FlowModFailedOverlap,
            "an add with OFPFF_CHECK_OVERLAP over an entry of the same priority that could match the same packet",
            |bench, code| {
                bench.add(&nothing());
                refuse(
                    bench,
                    code,
                    [flow(FlowMod { flags: FlowModFlags::CHECK_OVERLAP, ..nothing() })],
                );
            },
        ),
        never(Code::FlowModFailedEperm, PERMITTED),
        never(
            Code::FlowModFailedBadTimeout,
            "every timeout is supported (1.0 sends it for emergency entries)",
        ),
        sent(
            Code::FlowModFailedBadCommand,
            "a command that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(
                    bench,
                    code,
                    [5, 255].map(|command| patched(&flow(nothing()), 25, &[command])),
                );
            },
        ),
        sent(
            Code::FlowModFailedBadFlags,
            "a flag that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [flow(FlowMod { flags: FlowModFlags::from_bits_retain(1 << 5), ..nothing() })],
                );
            },
        ),
    ]
}

fn groups() -> Vec<Row> {
    vec![
        sent(Code::GroupModFailedGroupExists, "an add of a group that is there", |bench, code| {
            add_group(bench, 1, GroupType::All, vec![]);
            refuse(bench, code, [all(1, vec![])]);
        }),
        sent(
            Code::GroupModFailedInvalidGroup,
            "a reserved number, an indirect group without exactly one bucket, or a weight outside a select group",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [0xffff_ff01, GroupId::ALL.0, GroupId::ANY.0].map(|id| all(id, vec![])),
                );
                refuse(
                    bench,
                    code,
                    [0, 2].map(|count| {
                        group(
                            GroupModCommand::Add,
                            1,
                            GroupType::Indirect,
                            vec![bucket(vec![]); count],
                        )
                    }),
                );
                refuse(bench, code, [all(1, vec![Bucket { weight: 1, ..bucket(vec![]) }])]);
            },
        ),
        never(Code::GroupModFailedWeightUnsupported, "weights are supported"),
        elsewhere(
            Code::GroupModFailedOutOfGroups,
            "more than 32768 groups",
            "errors::group_mod_failed_OFPGMFC_OUT_OF_GROUPS",
        ),
        sent(
            Code::GroupModFailedOutOfBuckets,
            "more than 1024 buckets in one group, or 131072 in all, or a group-mod of more than 65520 bytes: its group could not be \
             described; a tunnel end more than the switch may name",
            |bench, code| {
                refuse(bench, code, [all(1, vec![bucket(vec![]); 1025])]);
            },
        ),
        sent(
            Code::GroupModFailedChainingUnsupported,
            "a chain of more than 8 groups",
            |bench, code| {
                add_group(bench, 1, GroupType::All, vec![]);
                (2..=8).for_each(|id| add_group(bench, id, GroupType::All, vec![through(id - 1)]));
                refuse(bench, code, [all(9, vec![through(8)])]);
            },
        ),
        never(
            Code::GroupModFailedWatchUnsupported,
            "every kind of group may watch ports and groups",
        ),
        sent(Code::GroupModFailedLoop, "a group that would lead to itself", |bench, code| {
            refuse(bench, code, [all(1, vec![through(1)])]);
            add_group(bench, 1, GroupType::All, vec![]);
            add_group(bench, 2, GroupType::All, vec![through(1)]);
            refuse(
                bench,
                code,
                [group(GroupModCommand::Modify, 1, GroupType::All, vec![through(2)])],
            );
        }),
        sent(
            Code::GroupModFailedUnknownGroup,
            "a modify of a group that is not there",
            |bench, code| {
                refuse(bench, code, [group(GroupModCommand::Modify, 1, GroupType::All, vec![])]);
            },
        ),
        sent(
            Code::GroupModFailedChainedGroup,
            "a deletion of a group that another forwards to",
            |bench, code| {
                add_group(bench, 1, GroupType::All, vec![]);
                add_group(bench, 2, GroupType::All, vec![through(1)]);
                refuse(bench, code, [group(GroupModCommand::Delete, 1, GroupType::All, vec![])]);
            },
        ),
        sent(
            Code::GroupModFailedBadType,
            "a kind of group that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(
                    bench,
                    code,
                    [4, 128].map(|kind| patched(&all(1, vec![]), 10, &[kind])),
                );
            },
        ),
        sent(
            Code::GroupModFailedBadCommand,
            "a command that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(bench, code, [patched(&all(1, vec![]), 8, &[0, 3])]);
            },
        ),
        sent(Code::GroupModFailedBadBucket, "a bucket of the wrong length", |bench, code| {
            let head = encoded(&all(1, vec![]));
            refuse_bytes(
                bench,
                code,
                [raw(head[1], &[&head[8..], &[0, 8, 0, 0, 0, 0, 0, 0]].concat())],
            );
        }),
        sent(
            Code::GroupModFailedBadWatch,
            "a port or group to watch that can never be, or none in fast failover",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [group(
                        GroupModCommand::Add,
                        1,
                        GroupType::FastFailover,
                        vec![bucket(vec![output(2)])],
                    )],
                );
                for bucket in [
                    Bucket { watch_port: PortNo::CONTROLLER, ..bucket(vec![]) },
                    Bucket { watch_group: GroupId(9), ..bucket(vec![]) },
                ] {
                    refuse(
                        bench,
                        code,
                        [group(GroupModCommand::Add, 1, GroupType::FastFailover, vec![bucket])],
                    );
                }
            },
        ),
        never(Code::GroupModFailedEperm, PERMITTED),
    ]
}

fn meters() -> Vec<Row> {
    vec![
        never(Code::MeterModFailedUnknown, "every refusal has a code of its own"),
        sent(Code::MeterModFailedMeterExists, "an add of a meter that is there", |bench, code| {
            bench.session.accept(&add_meter(1, &[]));
            refuse(bench, code, [add_meter(1, &[])]);
        }),
        sent(
            Code::MeterModFailedInvalidMeter,
            "a number that no meter can have, or a virtual meter in an entry; there is no slow path to meter",
            |bench, code| {
                let slow_path = MeterId::SLOWPATH.0;
                refuse(
                    bench,
                    code,
                    [0, 0xffff_0001, slow_path, MeterId::ALL.0].map(|id| add_meter(id, &[])),
                );
                let uses = |id| entry(Match::default(), vec![Instruction::Meter(id)]);
                refuse(
                    bench,
                    code,
                    [MeterId(0), MeterId::CONTROLLER, MeterId::ALL].map(|id| flow(uses(id))),
                );
            },
        ),
        sent(
            Code::MeterModFailedUnknownMeter,
            "a modify or statistics of a meter that is not there, or an entry that names one",
            |bench, code| {
                refuse(bench, code, [meter(MeterModCommand::Modify, 1, MeterFlags::PKTPS, &[])]);
                refuse(
                    bench,
                    code,
                    [flow(entry(Match::default(), vec![Instruction::Meter(MeterId(1))]))],
                );
            },
        ),
        sent(
            Code::MeterModFailedBadCommand,
            "a command that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(bench, code, [patched(&add_meter(1, &[]), 8, &[0, 3])]);
            },
        ),
        sent(
            Code::MeterModFailedBadFlags,
            "kilobits and packets at once, or an unknown flag",
            |bench, code| {
                let flags =
                    [MeterFlags::KBPS | MeterFlags::PKTPS, MeterFlags::from_bits_retain(1 << 4)];
                refuse(bench, code, flags.map(|flags| meter(MeterModCommand::Add, 1, flags, &[])));
            },
        ),
        sent(Code::MeterModFailedBadRate, "a rate of 0", |bench, code| {
            refuse(bench, code, [add_meter(1, &[(BandKind::Drop, 0)])]);
        }),
        never(Code::MeterModFailedBadBurst, "every burst is supported"),
        sent(
            Code::MeterModFailedBadBand,
            "a band that is neither drop nor DSCP remark",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [add_meter(1, &[(BandKind::Experimenter { experimenter: 9 }, 1)])],
                );
                let known = add_meter(1, &[(BandKind::Drop, 1)]);
                refuse_bytes(bench, code, [patched(&known, 16, &[0, 3])]);
            },
        ),
        sent(Code::MeterModFailedBadBandValue, "a remark by 0", |bench, code| {
            refuse(bench, code, [add_meter(1, &[(BandKind::DscpRemark { prec_level: 0 }, 1)])]);
        }),
        elsewhere(
            Code::MeterModFailedOutOfMeters,
            "more than 65536 meters",
            "errors::meter_mod_failed_OFPMMFC_OUT_OF_METERS",
        ),
        sent(Code::MeterModFailedOutOfBands, "more than 8 bands", |bench, code| {
            refuse(bench, code, [add_meter(1, &[(BandKind::Drop, 1); 9])]);
        }),
    ]
}
