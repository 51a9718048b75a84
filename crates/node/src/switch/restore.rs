//! Bringing a switch back as it was when its process ended.

use crate::journal::Change;
use crate::switch::entries::set;
use crate::switch::{Control, Switch, translate};
use flow::Nanos;
use openflow::{
    Fault, FlowStatsRequest, GroupDesc, GroupMod, GroupModCommand, MeterConfig, MeterMod,
    MeterModCommand,
};

/// A kept thing that the switch does not take back.
#[derive(Clone, PartialEq, Debug)]
pub struct NotRestored {
    /// The thing.
    pub change: Change,
    /// Why.
    pub fault: Fault,
}

impl Switch {
    /// Its meters, groups and entries, as [`Switch::restore`] takes them back.
    pub fn kept(&self) -> Vec<Change> {
        self.all_of(&self.control())
    }

    /// Journals all of that, for a journal that has heard nothing of it. No change comes in between.
    pub fn journal_all(&self) {
        let control = self.control();
        self.all_of(&control).into_iter().for_each(|change| self.journal().record(change));
    }

    fn all_of(&self, control: &Control) -> Vec<Change> {
        let now = self.now();
        let everything = translate::filter(&FlowStatsRequest::default(), &self.ends);
        let meters = control.meters.values().map(|meter| Change::MeterSet(meter.clone(), 0));
        let groups = control.groups.values().map(|group| Change::GroupSet(group.clone(), 0));
        let flows = control.pipeline.flows(&everything, now).map(|entry| set(&entry));
        meters.chain(groups).chain(flows).collect()
    }

    /// Takes kept state back without journalling it again; meters come before groups and groups before flows, whatever their order.
    ///
    /// Ports are not here: they are added with their kept configuration ([`Switch::add_port`]); nor are tables, which come first
    /// ([`Switch::restore_tables`]). Returns what is not taken back.
    pub fn restore(&self, kept: Vec<Change>) -> Vec<NotRestored> {
        let now = self.now();
        let mut control = self.control();
        let (flows, rest): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|c| matches!(c, Change::FlowSet(..)));
        let (groups, meters): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|c| matches!(c, Change::GroupSet(..)));
        control.silent = true;
        let mut refused = self.restore_each(&mut control, meters, now);
        refused.extend(self.restore_groups(&mut control, groups, now));
        refused.extend(self.restore_each(&mut control, flows, now));
        control.silent = false;
        self.publish_locked(&mut control);
        refused
    }

    /// A group that forwards to another needs that one first: tried again as long as that helps.
    fn restore_groups(
        &self,
        control: &mut Control,
        mut waiting: Vec<Change>,
        now: Nanos,
    ) -> Vec<NotRestored> {
        loop {
            let before = waiting.len();
            let refused = self.restore_each(control, waiting, now);
            if refused.is_empty() || refused.len() == before {
                return refused;
            }
            waiting = refused.into_iter().map(|refused| refused.change).collect();
        }
    }

    fn restore_each(
        &self,
        control: &mut Control,
        kept: Vec<Change>,
        now: Nanos,
    ) -> Vec<NotRestored> {
        let try_one = |change: Change| {
            let fault = self.restore_one(control, &change, now).err()?;
            Some(NotRestored { change, fault })
        };
        kept.into_iter().filter_map(try_one).collect()
    }

    fn restore_one(&self, control: &mut Control, kept: &Change, now: Nanos) -> Result<(), Fault> {
        let added = |age_ns: &u64| Nanos(now.0.saturating_sub(*age_ns));
        match kept {
            Change::FlowSet(id, entry) => {
                self.adopt(id, entry);
                self.apply(control, translate::flow_mod_of(id, entry), now)
            }
            Change::GroupSet(group, age) => self.apply_group(control, &adding(group), added(age)),
            Change::MeterSet(meter, age) => {
                self.apply_meter(control, &adding_meter(meter), added(age))
            }
            Change::FlowGone(_)
            | Change::GroupGone(_)
            | Change::MeterGone(_)
            | Change::Tables(_)
            | Change::Used { .. }
            | Change::Counted(_)
            | Change::PortConfig { .. } => Ok(()),
        }
    }
}

fn adding(group: &GroupDesc) -> GroupMod {
    let GroupDesc { kind, id, buckets } = group.clone();
    GroupMod { command: GroupModCommand::Add, kind, id, buckets }
}

fn adding_meter(meter: &MeterConfig) -> MeterMod {
    let MeterConfig { flags, id, bands } = meter.clone();
    MeterMod { command: MeterModCommand::Add, flags, id, bands }
}
