//! Bringing a switch back as it was when its process ended.

use crate::journal::Change;
use crate::switch::{Control, Switch, translate};
use flow::Nanos;
use openflow::{ErrorCode, Fault, GroupMod, GroupModCommand, MeterMod, MeterModCommand, text};

/// A kept thing that the switch does not take back.
#[derive(Clone, PartialEq, Debug)]
pub struct NotRestored {
    /// The thing.
    pub change: Change,
    /// Why.
    pub fault: Fault,
}

impl Switch {
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
        match kept {
            Change::FlowSet(id, entry) => {
                self.apply(control, translate::flow_mod_of(id, entry), now)
            }
            Change::GroupSet(_, text) => self.apply_group(control, &group_of(text)?, now),
            Change::MeterSet(_, text) => self.apply_meter(control, &meter_of(text)?, now),
            Change::FlowGone(_)
            | Change::GroupGone(_)
            | Change::MeterGone(_)
            | Change::Tables(_)
            | Change::PortConfig { .. } => Ok(()),
        }
    }
}

fn group_of(kept: &str) -> Result<GroupMod, Fault> {
    let bad = Fault::new(ErrorCode::GroupModFailedBadCommand, "its kept text cannot be read");
    text::parse_group(kept, GroupModCommand::Add, &text::no_ports).map_err(|_| bad)
}

fn meter_of(kept: &str) -> Result<MeterMod, Fault> {
    let bad = Fault::new(ErrorCode::MeterModFailedBadCommand, "its kept text cannot be read");
    text::parse_meter(kept, MeterModCommand::Add).map_err(|_| bad)
}
