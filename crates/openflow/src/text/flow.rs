//! Flows and filters of flows, read.

use super::actions::parse_instructions;
use super::error::TextError;
use super::fields::parse_match;
use super::obeyed::{Use, Word, not_everything};
use super::ports::{Resolve, port};
use super::scan::{Item, Span, next_item};
use super::value;
use crate::action::Instruction;
use crate::flow_mod::{DEFAULT_PRIORITY, FlowMod, FlowModCommand, FlowModFlags};
use crate::ids::{GroupId, PortNo, TableId};
use crate::matching::Match;
use crate::multipart::FlowStatsRequest;
use crate::version::Version;
use crate::wording::Wording;

/// Reads a flow: match, options and, unless it is to be deleted, `actions=...`.
///
/// A line of `dump-flows` can be added again: ages and counters are skipped. No other command passes over a word,
/// and a deletion that would select every flow is refused.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_flow(
    text: &str,
    command: FlowModCommand,
    resolve: Resolve<'_>,
) -> Result<FlowMod, TextError> {
    let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let parts = Parts::read(Span::whole(text), Use::Change(command), resolve)?;
    parts.fields.iter().try_for_each(of_a_switch)?;
    let fields = parse_match(&parts.fields, resolve)?;
    let instructions = match (parts.actions, deletes) {
        (Some(actions), false) => parse_instructions(actions, &fields, resolve)?,
        (None, false) => {
            return Err(Span::whole(text)
                .error("no actions", "end it with actions=ACTION,... or actions=drop"));
        }
        (Some(actions), true) => {
            return Err(actions.error("actions in a deletion", "leave them out"));
        }
        (None, true) => Vec::new(),
    };
    let table = parts.table.unwrap_or(if deletes { TableId::ALL } else { TableId(0) });
    check_table(&parts, table, command, &instructions)?;
    not_everything(parts.whole, deletes && parts.selects_all(&fields, command))?;
    let (cookie, cookie_mask) = parts.cookie_of(command)?;
    let flow = FlowMod {
        cookie,
        cookie_mask,
        table,
        command,
        idle_timeout_s: parts.idle_timeout_s,
        hard_timeout_s: parts.hard_timeout_s,
        priority: parts.priority,
        buffer_id: None,
        out_port: parts.out_port,
        out_group: parts.out_group,
        flags: parts.flags,
        fields,
        instructions,
        version: Version::V1_3,
        wording: Wording::default(),
    };
    flow.check()
        .map_err(|fault| parts.whole.error(fault.what, "see ovs-fields(7) and ovs-actions(7)"))?;
    Ok(flow)
}

/// Reads a filter of flows, as `dump-flows` takes it: match, `table`, `cookie=V/M`, `out_port`, `out_group`.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_filter(text: &str, resolve: Resolve<'_>) -> Result<FlowStatsRequest, TextError> {
    let parts = Parts::read(Span::whole(text), Use::List, resolve)?;
    if let Some(actions) = parts.actions {
        return Err(actions.error("actions in a filter", "leave them out"));
    }
    let (cookie, cookie_mask) =
        parts.cookie.map_or((0, 0), |(value, mask, _)| (value, mask.unwrap_or(u64::MAX)));
    Ok(FlowStatsRequest {
        table: parts.table.unwrap_or(TableId::ALL),
        out_port: parts.out_port,
        out_group: parts.out_group,
        cookie,
        cookie_mask,
        fields: parse_match(&parts.fields, resolve)?,
    })
}

/// Refuses what steering's rules have and a switch's have not.
fn of_a_switch(item: &Item<'_>) -> Result<(), TextError> {
    match ["ip_frag", "nw_frag", "vm_id"].iter().any(|name| item.is(name)) {
        true => Err(item.whole.error(
            "a field of steering rules, not of a switch's",
            "leave it out, or write a steering rule: suiro steer flow add",
        )),
        false => Ok(()),
    }
}

fn check_table(
    parts: &Parts<'_>,
    table: TableId,
    command: FlowModCommand,
    instructions: &[Instruction],
) -> Result<(), TextError> {
    let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    if table == TableId::ALL && !deletes {
        return Err(parts.whole.error("a flow in all tables", "name one table, 0 to 254"));
    }
    let backwards = |i: &Instruction| matches!(i, Instruction::GotoTable(next) if *next <= table);
    if instructions.iter().any(backwards) {
        return Err(parts
            .whole
            .error("goto_table to no later table", "go to a table above the flow's own"));
    }
    Ok(())
}

/// A flow's text, taken apart.
struct Parts<'a> {
    whole: Span<'a>,
    table: Option<TableId>,
    priority: u16,
    /// Value, mask, and the word.
    cookie: Option<(u64, Option<u64>, Span<'a>)>,
    idle_timeout_s: u16,
    hard_timeout_s: u16,
    out_port: PortNo,
    out_group: GroupId,
    flags: FlowModFlags,
    fields: Vec<Item<'a>>,
    actions: Option<Span<'a>>,
}

impl<'a> Parts<'a> {
    fn read(whole: Span<'a>, used: Use, resolve: Resolve<'_>) -> Result<Self, TextError> {
        let mut parts = Parts {
            whole,
            table: None,
            priority: DEFAULT_PRIORITY,
            cookie: None,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: FlowModFlags::empty(),
            fields: Vec::new(),
            actions: None,
        };
        let mut rest = whole;
        while let Some((item, next)) = next_item(rest)? {
            if item.is("actions") || item.is("action") {
                let start = item.key.at - whole.at + item.key.text.len() + 1;
                parts.actions = Some(whole.from(start.min(whole.text.len())));
                break;
            }
            parts.option(item, used, resolve)?;
            rest = next;
        }
        Ok(parts)
    }

    fn option(&mut self, item: Item<'a>, used: Use, resolve: Resolve<'_>) -> Result<(), TextError> {
        let name = item.key.text.to_ascii_lowercase();
        if let Some(word) = word(&name) {
            used.obeys(&item, word)?;
        }
        match name.as_str() {
            "table" => self.table = Some(TableId(value::small(item.required()?, u8::MAX)?)),
            "priority" => self.priority = value::small(item.required()?, u16::MAX)?,
            "idle_timeout" => self.idle_timeout_s = value::small(item.required()?, u16::MAX)?,
            "hard_timeout" => self.hard_timeout_s = value::small(item.required()?, u16::MAX)?,
            "cookie" => self.cookie = Some(cookie(item.required()?)?),
            "out_port" => self.out_port = port(item.required()?, resolve)?,
            "out_group" => self.out_group = group(item.required()?)?,
            name => match word(name) {
                Some(Word::Flag(flag)) => {
                    item.bare()?;
                    self.flags |= flag;
                }
                Some(_) => {}
                None => self.fields.push(item),
            },
        }
        Ok(())
    }

    /// Whether a deletion names nothing that narrows it. A strict one needs a word, as it means one flow.
    fn selects_all(&self, fields: &Match, command: FlowModCommand) -> bool {
        match command {
            FlowModCommand::DeleteStrict => self.whole.trim().text.is_empty(),
            _ => {
                fields.0.is_empty()
                    && self.table.is_none_or(|table| table == TableId::ALL)
                    && (self.out_port, self.out_group) == (PortNo::ANY, GroupId::ANY)
                    && self.cookie.is_none_or(|(_, mask, _)| mask == Some(0))
            }
        }
    }

    /// Cookie and mask: additions set it, everything else filters by it (OpenFlow 1.3.5 §6.4).
    fn cookie_of(&self, command: FlowModCommand) -> Result<(u64, u64), TextError> {
        let Some((value, mask, word)) = self.cookie else { return Ok((0, 0)) };
        match (command, mask) {
            (FlowModCommand::Add, Some(_)) => {
                Err(word.error("a cookie mask in an addition", "give the value alone"))
            }
            (FlowModCommand::Add, None) => Ok((value, 0)),
            (_, Some(mask)) => Ok((value, mask)),
            (FlowModCommand::Delete | FlowModCommand::DeleteStrict, None) => Err(word.error(
                "a deletion filters by cookie and mask",
                "write cookie=VALUE/-1 for all its bits",
            )),
            (FlowModCommand::Modify | FlowModCommand::ModifyStrict, None) => Err(word.error(
                "a change filters by cookie and mask, and sets no cookie",
                "write cookie=VALUE/-1 for all its bits",
            )),
        }
    }
}

/// Flags by name, in the order in which ovs-ofctl prints them.
pub(super) const FLAGS: &[(&str, FlowModFlags)] = &[
    ("send_flow_rem", FlowModFlags::SEND_FLOW_REM),
    ("check_overlap", FlowModFlags::CHECK_OVERLAP),
    ("reset_counts", FlowModFlags::RESET_COUNTS),
    ("no_packet_counts", FlowModFlags::NO_PKT_COUNTS),
    ("no_byte_counts", FlowModFlags::NO_BYT_COUNTS),
];

/// What kind of word this is, unless it is a match field, `table` or `cookie`.
fn word(name: &str) -> Option<Word> {
    match name {
        "priority" => Some(Word::Priority),
        "idle_timeout" | "hard_timeout" => Some(Word::Timeout),
        "out_port" | "out_group" => Some(Word::Output),
        "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => Some(Word::Past),
        _ => FLAGS.iter().find(|(flag, _)| *flag == name).map(|(_, flag)| Word::Flag(*flag)),
    }
}

/// `VALUE[/MASK]`; -1 means every bit.
fn cookie(word: Span<'_>) -> Result<(u64, Option<u64>, Span<'_>), TextError> {
    let read = |word: Span<'_>| {
        if word.text == "-1" { Ok(u64::MAX) } else { value::number(word, u64::MAX) }
    };
    match word.split("/") {
        Some((value, mask)) => Ok((read(value)?, Some(read(mask)?), word)),
        None => Ok((read(word)?, None, word)),
    }
}

/// A group's number, `all` or `any`.
pub(super) fn group(word: Span<'_>) -> Result<GroupId, TextError> {
    match word.text.to_ascii_lowercase().as_str() {
        "all" => Ok(GroupId::ALL),
        "any" => Ok(GroupId::ANY),
        _ => Ok(GroupId(value::small(word, GroupId::MAX.0)?)),
    }
}
