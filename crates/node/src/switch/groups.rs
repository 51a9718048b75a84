//! Groups and meters: changing and reading them.

use crate::journal::Change;
use crate::switch::features::ACTION_BITS;
use crate::switch::{Control, Switch, translate};
use flow::{Action, GroupLimits, Instructions, MeterLimits, Nanos};
use openflow::{
    ErrorCode, Fault, GroupCapabilities, GroupDesc, GroupFeatures, GroupId, GroupMod,
    GroupModCommand, GroupStats, MeterConfig, MeterFeatures, MeterFlags, MeterId, MeterMod,
    MeterModCommand, MeterStats,
};
use std::collections::{BTreeMap, BTreeSet};

impl Switch {
    /// Applies one group-mod; with a deleted group go the flow entries that use it.
    ///
    /// # Errors
    /// The OpenFlow error to answer with; nothing changed then.
    pub fn group_mod(&self, change: &GroupMod) -> Result<(), Fault> {
        change.check()?;
        let now = self.now();
        let done = self.apply_group(&mut self.control(), change, now);
        self.note_refusals(done.as_ref().err().into_iter());
        done
    }

    pub(crate) fn apply_group(
        &self,
        control: &mut Control,
        change: &GroupMod,
        now: Nanos,
    ) -> Result<(), Fault> {
        let wanted = self.named(control, |share| translate::group_change(change, share))?;
        let more = wanted.weight();
        if more > 0 && !control.takes(more) {
            let what = "the node's memory has no room for more groups of this switch";
            return Err(Fault::new(ErrorCode::GroupModFailedOutOfGroups, what));
        }
        let removed = control.pipeline.group_mod(wanted, now).map_err(translate::group_fault)?;
        self.touch(control);
        match change.command {
            GroupModCommand::Add | GroupModCommand::Modify => self.keep_group(control, change, now),
            GroupModCommand::Delete => self.forget_groups(control, change.id),
        }
        self.after_removal(control, &removed);
        Ok(())
    }

    fn keep_group(&self, control: &mut Control, change: &GroupMod, now: Nanos) {
        let group = GroupDesc { kind: change.kind, id: change.id, buckets: change.buckets.clone() };
        self.record(control, || {
            let stats = control.pipeline.groups().stats(Some(group.id.0), now);
            Change::GroupSet(group.clone(), stats.first().map_or(0, |stats| stats.age_ns))
        });
        control.groups.insert(group.id, group);
    }

    fn forget_groups(&self, control: &mut Control, id: GroupId) {
        let gone: Vec<GroupId> =
            if id == GroupId::ALL { control.groups.keys().copied().collect() } else { vec![id] };
        for id in gone {
            if control.groups.remove(&id).is_none() {
                continue;
            }
            self.record(control, || Change::GroupGone(id.0));
        }
    }

    /// Every group as it was described, by number.
    pub fn groups(&self) -> Vec<GroupDesc> {
        self.control().groups.values().cloned().collect()
    }

    /// Counters of one group, or of all; none of a group that is not there (OpenFlow 1.3.5 §7.3.5.9 has no error for it).
    pub fn group_stats(&self, id: GroupId) -> Vec<GroupStats> {
        let one = (id != GroupId::ALL && id != GroupId::ANY).then_some(id.0);
        self.plane.refresh();
        let now = self.now();
        let control = self.control();
        let stats = control.pipeline.groups().stats(one, now);
        let uses = uses(&control.pipeline, groups_of);
        let flows = |id| uses.get(&id).copied().unwrap_or(0);
        stats.iter().map(|group| translate::group_stats(group, flows(group.id))).collect()
    }

    /// What groups can do.
    pub fn group_features(&self) -> GroupFeatures {
        GroupFeatures {
            types: 0b1111,
            capabilities: GroupCapabilities::all(),
            max_groups: [GroupLimits::default().groups; 4],
            actions: [ACTION_BITS; 4],
        }
    }

    /// Applies one meter-mod; with a deleted meter go the flow entries that use it.
    ///
    /// # Errors
    /// The OpenFlow error to answer with; nothing changed then.
    pub fn meter_mod(&self, change: &MeterMod) -> Result<(), Fault> {
        change.check()?;
        let now = self.now();
        let done = self.apply_meter(&mut self.control(), change, now);
        self.note_refusals(done.as_ref().err().into_iter());
        done
    }

    pub(crate) fn apply_meter(
        &self,
        control: &mut Control,
        change: &MeterMod,
        now: Nanos,
    ) -> Result<(), Fault> {
        if change.command == MeterModCommand::Add && !control.takes(1) {
            let what = "the node's memory has no room for more meters of this switch";
            return Err(Fault::new(ErrorCode::MeterModFailedOutOfMeters, what));
        }
        let removed = control
            .pipeline
            .meter_mod(translate::meter_change(change), now)
            .map_err(translate::meter_fault)?;
        self.touch(control);
        match change.command {
            MeterModCommand::Add | MeterModCommand::Modify => self.keep_meter(control, change, now),
            MeterModCommand::Delete => self.forget_meters(control, change.id),
        }
        self.after_removal(control, &removed);
        Ok(())
    }

    fn keep_meter(&self, control: &mut Control, change: &MeterMod, now: Nanos) {
        let meter = MeterConfig { flags: change.flags, id: change.id, bands: change.bands.clone() };
        self.record(control, || {
            let stats = control.pipeline.meters().stats(Some(meter.id.0), now);
            Change::MeterSet(meter.clone(), stats.first().map_or(0, |stats| stats.age_ns))
        });
        control.meters.insert(meter.id, meter);
    }

    fn forget_meters(&self, control: &mut Control, id: MeterId) {
        let gone: Vec<MeterId> =
            if id == MeterId::ALL { control.meters.keys().copied().collect() } else { vec![id] };
        for id in gone {
            if control.meters.remove(&id).is_none() {
                continue;
            }
            self.record(control, || Change::MeterGone(id.0));
        }
    }

    /// One meter as it was described, or all, by number.
    ///
    /// # Errors
    /// `OFPMMFC_UNKNOWN_METER`.
    pub fn meters(&self, id: MeterId) -> Result<Vec<MeterConfig>, Fault> {
        let control = self.control();
        let found: Vec<_> = match id {
            MeterId::ALL => control.meters.values().cloned().collect(),
            _ => control.meters.get(&id).into_iter().cloned().collect(),
        };
        if found.is_empty() && id != MeterId::ALL { Err(unknown_meter()) } else { Ok(found) }
    }

    /// Counters of one meter, or of all.
    ///
    /// # Errors
    /// `OFPMMFC_UNKNOWN_METER`.
    pub fn meter_stats(&self, id: MeterId) -> Result<Vec<MeterStats>, Fault> {
        let one = (id != MeterId::ALL).then_some(id.0);
        self.plane.refresh();
        let now = self.now();
        let control = self.control();
        let stats = control.pipeline.meters().stats(one, now);
        if one.is_some() && stats.is_empty() {
            return Err(unknown_meter());
        }
        let uses = uses(&control.pipeline, |instructions| instructions.meter.into_iter().collect());
        let flows = |id| uses.get(&id).copied().unwrap_or(0);
        Ok(stats.iter().map(|meter| translate::meter_stats(meter, flows(meter.id))).collect())
    }

    /// What meters can do: drop and DSCP remark, in either unit.
    pub fn meter_features(&self) -> MeterFeatures {
        let limits = MeterLimits::default();
        MeterFeatures {
            max_meter: limits.meters,
            band_types: 1 << 1 | 1 << 2,
            capabilities: MeterFlags::all(),
            max_bands: limits.bands.min(u8::MAX.into()) as u8,
            max_color: 3,
        }
    }
}

/// How many entries use each of what their instructions name: one look at each of these, however many are asked for.
fn uses(
    pipeline: &flow::Pipeline,
    named: impl Fn(&Instructions) -> BTreeSet<u32>,
) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    for (instructions, uses) in pipeline.instructions_in_use() {
        for id in named(instructions) {
            *found.entry(id).or_default() += uses;
        }
    }
    found
}

fn groups_of(instructions: &Instructions) -> BTreeSet<u32> {
    let group = |action: &Action| match action {
        Action::Group(id) => Some(*id),
        _ => None,
    };
    instructions.apply.iter().chain(&instructions.write).filter_map(group).collect()
}

fn unknown_meter() -> Fault {
    Fault::new(ErrorCode::MeterModFailedUnknownMeter, "the meter does not exist")
}
