//! Groups and meters: changes for the tables.

use super::action::actions;
use super::entry::seconds;
use super::fault::no_number;
use flow::{Counted, GroupKind, MeterUnit};
use openflow::{
    BandKind, Bucket, Counter, ErrorCode, Fault, GroupId, GroupMod, GroupModCommand, GroupStats,
    GroupType, MeterBand, MeterFlags, MeterId, MeterMod, MeterModCommand, MeterStats, PortNo,
};
use port::{NoNumber, Share};

/// A group-mod that [`GroupMod::check`] found good.
///
/// # Errors
/// No number is left for a tunnel's end.
pub fn group_change(change: &GroupMod, share: &Share) -> Result<flow::GroupMod, Fault> {
    let id = change.id.0;
    let kind = kind(change.kind);
    let buckets = || {
        let buckets: Result<_, _> = change.buckets.iter().map(|one| bucket(one, share)).collect();
        buckets.map_err(|full| no_number(ErrorCode::GroupModFailedOutOfBuckets, full))
    };
    Ok(match change.command {
        GroupModCommand::Add => flow::GroupMod::Add { id, kind, buckets: buckets()? },
        GroupModCommand::Modify => flow::GroupMod::Modify { id, kind, buckets: buckets()? },
        GroupModCommand::Delete if change.id == GroupId::ALL => flow::GroupMod::DeleteAll,
        GroupModCommand::Delete => flow::GroupMod::Delete { id },
    })
}

fn kind(kind: GroupType) -> GroupKind {
    match kind {
        GroupType::All => GroupKind::All,
        GroupType::Select => GroupKind::Select,
        GroupType::Indirect => GroupKind::Indirect,
        GroupType::FastFailover => GroupKind::FastFailover,
    }
}

fn bucket(bucket: &Bucket, share: &Share) -> Result<flow::Bucket, NoNumber> {
    Ok(flow::Bucket {
        weight: bucket.weight,
        watch_port: (bucket.watch_port != PortNo::ANY).then_some(bucket.watch_port.0),
        watch_group: (bucket.watch_group != GroupId::ANY).then_some(bucket.watch_group.0),
        actions: actions(&bucket.actions, share)?,
    })
}

/// A meter-mod that [`MeterMod::check`] found good.
pub fn meter_change(change: &MeterMod) -> flow::MeterMod {
    let id = change.id.0;
    match change.command {
        MeterModCommand::Add => flow::MeterMod::Add { id, config: meter_config(change) },
        MeterModCommand::Modify => flow::MeterMod::Modify { id, config: meter_config(change) },
        MeterModCommand::Delete if change.id == MeterId::ALL => flow::MeterMod::DeleteAll,
        MeterModCommand::Delete => flow::MeterMod::Delete { id },
    }
}

fn meter_config(change: &MeterMod) -> flow::MeterConfig {
    flow::MeterConfig {
        // Without either flag, kilobits: OpenFlow 1.3.5 §7.3.4.4 gives rates no other default.
        unit: if change.flags.contains(MeterFlags::PKTPS) {
            MeterUnit::Pktps
        } else {
            MeterUnit::Kbps
        },
        burst: change.flags.contains(MeterFlags::BURST),
        stats: change.flags.contains(MeterFlags::STATS),
        bands: change.bands.iter().filter_map(band).collect(),
    }
}

fn band(band: &MeterBand) -> Option<flow::Band> {
    let kind = match band.kind {
        BandKind::Drop => flow::BandKind::Drop,
        BandKind::DscpRemark { prec_level } => flow::BandKind::DscpRemark { level: prec_level },
        BandKind::Experimenter { .. } => return None,
    };
    Some(flow::Band { rate: band.rate, burst: band.burst_size, kind })
}

/// A group's counters for a controller; `flows` entries refer to it.
pub fn group_stats(stats: &flow::GroupStats, flows: u32) -> GroupStats {
    let (duration_s, duration_ns) = seconds(stats.age_ns);
    GroupStats {
        id: GroupId(stats.id),
        ref_count: stats.groups_to_it + flows,
        total: counter(stats.counted),
        duration_s,
        duration_ns,
        buckets: stats.buckets.iter().copied().map(counter).collect(),
    }
}

/// A meter's counters for a controller; `flow_count` entries use it.
pub fn meter_stats(stats: &flow::MeterStats, flow_count: u32) -> MeterStats {
    let (duration_s, duration_ns) = seconds(stats.age_ns);
    MeterStats {
        id: MeterId(stats.id),
        flow_count,
        input: counter(stats.counted),
        duration_s,
        duration_ns,
        bands: stats.bands.iter().copied().map(counter).collect(),
    }
}

fn counter(counted: Counted) -> Counter {
    Counter { packets: counted.packets, bytes: counted.bytes }
}
