//! The numbers of tunnels' ends that rules and groups name: given when they come, and free when nothing names them any longer.

use crate::journal::{FlowEntry, FlowId};
use crate::switch::{Control, Switch};
use flow::Action;
use openflow::Fault;
use port::Share;
use std::sync::atomic::Ordering;
use wire::Field;

const ENDS: [Field; 2] = [Field::TunSrc, Field::TunDst];

impl Switch {
    /// Translates what names ends. If no number is left, those that nothing names any longer become free first.
    pub(super) fn named<T>(
        &self,
        control: &mut Control,
        translate: impl Fn(&Share) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        translate(&self.ends).or_else(|fault| {
            // What a change names that is half made stands in no table yet.
            let is_whole = self.half_made.load(Ordering::Relaxed) == 0;
            if !is_whole || !std::mem::take(&mut control.may_name_less) {
                return Err(fault);
            }
            let used = ENDS.into_iter().flat_map(|field| control.pipeline.values(field));
            self.ends.keep(&used.map(|number| number as u16).collect());
            translate(&self.ends)
        })
    }

    /// Holds the numbers that a kept entry names, which were given when it was read.
    pub(super) fn adopt(&self, id: &FlowId, entry: &FlowEntry) {
        let matched = ENDS.map(|field| id.key.get(field));
        let actions = entry.instructions.apply.iter().chain(&entry.instructions.write);
        let set = actions.filter_map(|action| match *action {
            Action::SetField { field, value, .. } => ENDS.contains(&field).then_some(value),
            _ => None,
        });
        matched.into_iter().chain(set).for_each(|number| self.ends.adopt(number as u16));
    }
}
