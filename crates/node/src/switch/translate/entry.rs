//! Flow entries: changes, filters, statistics.

use super::action::{instructions, output, oxm_instructions};
use super::end::Naming;
use super::fault::no_number;
use super::matching::{KeyMask, key_mask, oxm_match};
use crate::journal::{FlowEntry, FlowId};
use flow::{FlowCommand, FlowFilter, FlowFlags, Output, RemovedReason};
use openflow::{
    ErrorCode, Fault, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
    FlowStats, FlowStatsRequest, GroupId, PortNo, TableId, Wording,
};
use port::{Ends, Share};

/// A flow-mod that [`FlowMod::check`] found good.
///
/// # Errors
/// No number is left for a tunnel's end.
pub fn flow_mod(change: &FlowMod, share: &Share) -> Result<flow::FlowMod, Fault> {
    let full = |full| no_number(ErrorCode::FlowModFailedTableFull, full);
    let deletes = matches!(change.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let naming = if deletes { Naming::Look(share) } else { Naming::Give(share) };
    let matched = key_mask(&change.fields, naming).map_err(full)?;
    Ok(flow::FlowMod {
        command: command(change.command),
        table: table(change.table),
        key: matched.key,
        mask: matched.mask,
        priority: change.priority,
        cookie: change.cookie,
        cookie_mask: change.cookie_mask,
        idle_timeout_s: change.idle_timeout_s,
        hard_timeout_s: change.hard_timeout_s,
        flags: flags(change.flags),
        instructions: instructions(&change.instructions, share).map_err(full)?,
        may_miss_headers: !change.version.demands_promised_headers(),
        note: note(&matched, change.wording),
        starts_afresh: change.version.adds_start_afresh(),
        gives_cookie: change.version.modify_gives_its_cookie(),
        age_ns: 0,
        idle_ns: 0,
        counted: flow::Counted::default(),
        out_port: out_port(change.out_port),
        out_group: group(change.out_group),
    })
}

/// The add that brings a kept entry back: it was judged when it came, by the rules of the version in which it came.
pub fn flow_mod_of(id: &FlowId, entry: &FlowEntry) -> flow::FlowMod {
    flow::FlowMod {
        table: Some(id.table),
        key: id.key,
        mask: id.mask,
        priority: id.priority,
        cookie: entry.cookie,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        flags: flags(FlowModFlags::from_bits_retain(entry.flags)),
        instructions: entry.instructions.clone(),
        note: entry.note,
        age_ns: entry.age_ns,
        idle_ns: entry.idle_ns,
        counted: entry.counted,
        may_miss_headers: true,
        ..flow::FlowMod::default()
    }
}

/// Which entries a statistics request is about.
pub fn filter(request: &FlowStatsRequest, ends: &Ends) -> FlowFilter {
    let looked = key_mask(&request.fields, Naming::Look(ends));
    let KeyMask { key, mask, .. } = looked.expect("only giving numbers needs one");
    FlowFilter {
        table: table(request.table),
        key,
        mask,
        cookie: request.cookie,
        cookie_mask: request.cookie_mask,
        out_port: out_port(request.out_port),
        out_group: group(request.out_group),
    }
}

/// An entry for a dump.
pub fn flow_stats(entry: &flow::FlowStats, ends: &Ends) -> FlowStats {
    let (matched, wording) = told(entry);
    let (duration_s, duration_ns) = seconds(entry.age_ns);
    FlowStats {
        table: TableId(entry.table),
        duration_s,
        duration_ns,
        priority: entry.priority,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        flags: flag_bits(entry.flags),
        cookie: entry.cookie,
        packet_count: entry.packets,
        byte_count: entry.bytes,
        fields: oxm_match(&matched, ends),
        instructions: oxm_instructions(&entry.instructions, ends),
        wording,
    }
}

/// What the tables keep of an entry for us: the physical port where one is matched, which 1.0 cannot do, and else what 1.0 said.
fn note(matched: &KeyMask, wording: Wording) -> u32 {
    if names_physical_port(&matched.mask) { matched.in_phy_port } else { wording.bits() }
}

/// The match and the wording of an entry.
fn told(entry: &flow::FlowStats) -> (KeyMask, Wording) {
    let (in_phy_port, wording) = match names_physical_port(&entry.mask) {
        true => (entry.note, Wording::default()),
        false => (0, Wording::from_bits(entry.note)),
    };
    (KeyMask { key: entry.key, mask: entry.mask, in_phy_port }, wording)
}

fn names_physical_port(mask: &wire::Key) -> bool {
    mask.get(wire::Field::InPhyPort) != 0
}

/// News of an entry that went.
pub fn flow_removed(removed: &flow::Removed, ends: &Ends) -> FlowRemoved {
    let entry = &removed.flow;
    let (matched, wording) = told(entry);
    let (duration_s, duration_ns) = seconds(entry.age_ns);
    FlowRemoved {
        cookie: entry.cookie,
        priority: entry.priority,
        reason: match removed.reason {
            RemovedReason::IdleTimeout => FlowRemovedReason::IdleTimeout,
            RemovedReason::HardTimeout => FlowRemovedReason::HardTimeout,
            // OpenFlow 1.3 has no reason for a deleted meter (1.4's OFPRR_METER_DELETE): the closest is "deleted".
            RemovedReason::Delete | RemovedReason::MeterDelete => FlowRemovedReason::Delete,
            RemovedReason::GroupDelete => FlowRemovedReason::GroupDelete,
        },
        table: TableId(entry.table),
        duration_s,
        duration_ns,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        packet_count: entry.packets,
        byte_count: entry.bytes,
        fields: oxm_match(&matched, ends),
        wording,
    }
}

/// Whole seconds, and nanoseconds beyond.
pub fn seconds(nanos: u64) -> (u32, u32) {
    ((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32)
}

/// The bits of an entry's flags.
pub(crate) fn flag_bits(flags: FlowFlags) -> FlowModFlags {
    let bit = |set: bool, bit: FlowModFlags| if set { bit } else { FlowModFlags::empty() };
    bit(flags.send_flow_removed, FlowModFlags::SEND_FLOW_REM)
        | bit(flags.check_overlap, FlowModFlags::CHECK_OVERLAP)
        | bit(flags.reset_counts, FlowModFlags::RESET_COUNTS)
        | bit(flags.no_packet_counts, FlowModFlags::NO_PKT_COUNTS)
        | bit(flags.no_byte_counts, FlowModFlags::NO_BYT_COUNTS)
}

fn flags(bits: FlowModFlags) -> FlowFlags {
    FlowFlags {
        send_flow_removed: bits.contains(FlowModFlags::SEND_FLOW_REM),
        check_overlap: bits.contains(FlowModFlags::CHECK_OVERLAP),
        reset_counts: bits.contains(FlowModFlags::RESET_COUNTS),
        no_packet_counts: bits.contains(FlowModFlags::NO_PKT_COUNTS),
        no_byte_counts: bits.contains(FlowModFlags::NO_BYT_COUNTS),
    }
}

fn command(command: FlowModCommand) -> FlowCommand {
    match command {
        FlowModCommand::Add => FlowCommand::Add,
        FlowModCommand::Modify => FlowCommand::Modify,
        FlowModCommand::ModifyStrict => FlowCommand::ModifyStrict,
        FlowModCommand::Delete => FlowCommand::Delete,
        FlowModCommand::DeleteStrict => FlowCommand::DeleteStrict,
    }
}

fn table(table: TableId) -> Option<u8> {
    (table != TableId::ALL).then_some(table.0)
}

/// A filter by output: only `OFPP_ANY` means no filter (§7.3.4.1). A number that nothing can be sent to selects nothing, as port
/// 0 does, which no entry outputs to.
fn out_port(port: PortNo) -> Option<Output> {
    (port != PortNo::ANY).then(|| output(port, 0).unwrap_or(Output::Port(0)))
}

fn group(group: GroupId) -> Option<u32> {
    (group != GroupId::ANY).then_some(group.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::{Action, Instruction, Match, OxmField, Version};
    use std::sync::Arc;

    #[test]
    fn a_change_carries_everything_but_its_buffer() {
        let change = FlowMod {
            cookie: 1,
            cookie_mask: 2,
            table: TableId::ALL,
            command: FlowModCommand::DeleteStrict,
            idle_timeout_s: 3,
            hard_timeout_s: 4,
            priority: 5,
            buffer_id: None,
            out_port: PortNo(6),
            out_group: GroupId(7),
            flags: FlowModFlags::all(),
            fields: Match::default().with(OxmField::InPort, 8),
            instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(9))])],
            version: Version::V1_0,
            wording: Wording::from_bits(77),
        };
        let found = flow_mod(&change, &Share::new(Arc::default())).unwrap();
        assert_eq!((found.command, found.table), (FlowCommand::DeleteStrict, None));
        assert_eq!((found.cookie, found.cookie_mask, found.priority), (1, 2, 5));
        assert_eq!((found.idle_timeout_s, found.hard_timeout_s), (3, 4));
        assert_eq!((found.out_port, found.out_group), (Some(flow::Output::Port(6)), Some(7)));
        assert_eq!(flag_bits(found.flags), FlowModFlags::all());
        assert_eq!(found.key.get(wire::Field::InPort), 8);
        assert_eq!(found.instructions.apply.len(), 1);
        assert_eq!((found.note, found.starts_afresh, found.gives_cookie), (77, true, true));
    }

    #[test]
    fn any_port_and_any_group_filter_nothing() {
        let found = filter(&FlowStatsRequest::default(), &Ends::default());
        assert_eq!(found, FlowFilter::default());
    }

    #[test]
    fn a_port_that_nothing_is_sent_to_filters_everything() {
        for number in [0, 0xffff_ff01] {
            let request = FlowStatsRequest { out_port: PortNo(number), ..Default::default() };
            assert_eq!(
                filter(&request, &Ends::default()).out_port,
                Some(Output::Port(0)),
                "{number:#x}"
            );
        }
    }
}
