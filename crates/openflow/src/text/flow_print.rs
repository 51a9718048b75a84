//! Flows, printed.

use super::actions_print::print_instructions;
use super::flow::FLAGS;
use super::match_print::print_match;
use super::ports::{Name, print_port};
use super::value::print_duration;
use crate::flow_mod::{DEFAULT_PRIORITY, FlowMod, FlowModCommand, FlowModFlags};
use crate::ids::{GroupId, PortNo, TableId};
use crate::matching::Match;
use crate::multipart::{AggregateStats, FlowStats};

/// A flow entry as one line of `ovs-ofctl dump-flows`, without its leading space.
pub fn print_flow(flow: &FlowStats, name: Name<'_>) -> String {
    let age = print_duration(flow.duration_s, flow.duration_ns);
    let head = format!(
        "cookie={:#x}, duration={age}, table={}, n_packets={}, n_bytes={}, ",
        flow.cookie, flow.table.0, flow.packet_count, flow.byte_count
    );
    let options = print_options(flow.idle_timeout_s, flow.hard_timeout_s, flow.flags);
    let rule = print_rule(&flow.fields, flow.priority, name);
    format!("{head}{options}{rule}actions={}", print_instructions(&flow.instructions, name))
}

/// A flow-mod as text that [`super::parse_flow`] reads back, given the same command.
pub fn print_flow_mod(flow: &FlowMod, name: Name<'_>) -> String {
    let deletes = matches!(flow.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let mut text = String::new();
    if flow.cookie != 0 || flow.cookie_mask != 0 {
        text += &match flow.cookie_mask {
            0 => format!("cookie={:#x}, ", flow.cookie),
            mask => format!("cookie={:#x}/{mask:#x}, ", flow.cookie),
        };
    }
    if flow.table != (if deletes { TableId::ALL } else { TableId(0) }) {
        text += &format!("table={}, ", flow.table.0);
    }
    if flow.out_port != PortNo::ANY {
        text += &format!("out_port={}, ", print_port(flow.out_port, name));
    }
    if flow.out_group != GroupId::ANY {
        text += &format!(
            "out_group={}, ",
            if flow.out_group == GroupId::ALL {
                "all".into()
            } else {
                flow.out_group.0.to_string()
            }
        );
    }
    text += &print_options(flow.idle_timeout_s, flow.hard_timeout_s, flow.flags);
    text += &print_rule(&flow.fields, flow.priority, name);
    if !deletes {
        text += &format!("actions={}", print_instructions(&flow.instructions, name));
    }
    text.trim_end().trim_end_matches(',').to_owned()
}

/// Sums over flows, as `ovs-ofctl dump-aggregate` prints them.
pub fn print_aggregate(sums: &AggregateStats) -> String {
    format!(
        "packet_count={} byte_count={} flow_count={}",
        sums.packet_count, sums.byte_count, sums.flow_count
    )
}

/// Timeouts and flags, each with what separates it from what follows.
fn print_options(idle_timeout_s: u16, hard_timeout_s: u16, flags: FlowModFlags) -> String {
    let timeout = |name: &str, seconds: u16| {
        if seconds == 0 { String::new() } else { format!("{name}={seconds}, ") }
    };
    let flags: String = FLAGS
        .iter()
        .filter(|(_, f)| flags.contains(*f))
        .map(|(name, _)| format!("{name} "))
        .collect();
    timeout("idle_timeout", idle_timeout_s) + &timeout("hard_timeout", hard_timeout_s) + &flags
}

/// Priority, unless it is the default, and match, with a space after them if there is any.
fn print_rule(fields: &Match, priority: u16, name: Name<'_>) -> String {
    let priority = (priority != DEFAULT_PRIORITY).then(|| format!("priority={priority}"));
    let fields = Some(print_match(fields, name)).filter(|text| !text.is_empty());
    let rule = priority.into_iter().chain(fields).collect::<Vec<_>>().join(",");
    if rule.is_empty() { rule } else { rule + " " }
}
