//! Deletions of all rules of a kind: asked for by a word of their own, never by an empty text.

use super::rules::RuleVerb;
use crate::refusal::{Refusal, Why};
use api::{Fault, RuleChange, RuleKind};
use openflow::{
    FlowMod, FlowModCommand, GroupId, GroupMod, GroupModCommand, GroupType, MeterFlags, MeterId,
    MeterMod, MeterModCommand, TableId,
};

/// The kinds of which a change deletes all.
///
/// # Errors
/// It is no deletion, or it is a strict one.
pub(super) fn kinds<'a>(
    switch: &str,
    verb: RuleVerb,
    change: &'a RuleChange,
) -> Result<&'a [RuleKind], Refusal> {
    let refused = |cause: &str, remedy: &str| {
        let fault = Fault::new(format!("switch {switch}"), "read the field all", cause, remedy);
        Err(Refusal::new(Why::Invalid, fault))
    };
    match verb {
        _ if change.all.is_empty() => Ok(&[]),
        RuleVerb::Delete if change.strict => {
            refused("a strict deletion means single flows", "leave out strict, or all")
        }
        RuleVerb::Delete => Ok(&change.all),
        RuleVerb::Add | RuleVerb::Modify => refused("only deletions have it", "leave it out"),
    }
}

/// Deletes all flows of all tables.
pub(super) fn every_flow() -> FlowMod {
    FlowMod { command: FlowModCommand::Delete, table: TableId::ALL, ..FlowMod::default() }
}

/// Deletes all groups.
pub(super) fn every_group() -> GroupMod {
    GroupMod {
        command: GroupModCommand::Delete,
        kind: GroupType::All,
        id: GroupId::ALL,
        buckets: Vec::new(),
    }
}

/// Deletes all meters.
pub(super) fn every_meter() -> MeterMod {
    MeterMod {
        command: MeterModCommand::Delete,
        flags: MeterFlags::empty(),
        id: MeterId::ALL,
        bands: Vec::new(),
    }
}
