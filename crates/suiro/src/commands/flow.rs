//! `suiro flow`.

use super::rules::{Deletion, FLOWS, delete, send};
use super::{Context, offload, out};
use crate::args::{FlowCommand, FlowOrder, RuleTexts};
use crate::failure::Failure;
use api::{FlowLine, FlowsView, Method, SwitchView, quoted};
use std::cmp::Reverse;

/// Does what the command says.
pub fn run(context: &Context, command: FlowCommand) -> Result<(), Failure> {
    match command {
        FlowCommand::Add(texts) => add(context, texts),
        FlowCommand::Mod { texts, strict } => {
            send(context, &FLOWS, Method::PATCH, texts, strict).map(drop)
        }
        FlowCommand::Del { texts, strict, all } => {
            delete(context, &FLOWS, texts, Deletion { strict, all })
        }
        FlowCommand::List { switch, filter, rungs: true, .. } => {
            offload::flows(context, &switch, &filter)
        }
        FlowCommand::List { switch, filter, names, sort, .. } => {
            let path =
                format!("/v1/switches/{switch}/flows?filter={}&names={names}", quoted(&filter));
            let FlowsView { mut flows } = context.client.get(&path)?;
            arrange(&mut flows, sort);
            // A leading space, as ovs-ofctl prints: scripts that cut it keep working.
            if flows.is_empty() && filter.is_empty() && !context.json {
                return say_that_it_learns(context, &switch.to_string());
            }
            context.print(&flows, |flows| {
                flows.iter().map(|flow| format!(" {}\n", flow.text)).collect()
            })
        }
    }
}

/// Adds flows. The first ones of a switch that forwards by itself change less than one may think, so that is said.
fn add(context: &Context, texts: RuleTexts) -> Result<(), Failure> {
    let switch = texts.switch.clone();
    let added = send(context, &FLOWS, Method::POST, texts, false)?;
    if context.json {
        return Ok(());
    }
    let view: SwitchView = context.client.get(&format!("/v1/switches/{switch}"))?;
    if !view.alone || view.flows as usize > added {
        return Ok(());
    }
    out(&format!(
        "note: {switch} forwards by itself what no rule matches; a controller, or --fail-mode secure, ends that\n"
    ))
}

fn arrange(flows: &mut [FlowLine], order: FlowOrder) {
    flows.sort_by_key(|flow| (flow.table, Reverse(flow.priority)));
    match order {
        FlowOrder::Table => {}
        FlowOrder::Packets => flows.sort_by_key(|flow| Reverse(flow.packets)),
        FlowOrder::Bytes => flows.sort_by_key(|flow| Reverse(flow.bytes)),
        FlowOrder::Newest => flows.sort_by(|a, b| a.duration_s.total_cmp(&b.duration_s)),
    }
}

/// A switch without rules that forwards all the same: by itself, where no controller is.
fn say_that_it_learns(context: &Context, switch: &str) -> Result<(), Failure> {
    let view: SwitchView = context.client.get(&format!("/v1/switches/{switch}"))?;
    match view.alone {
        true => out(&format!(
            "no rules: {switch} learns addresses by itself (suiro switch macs {switch}); a controller, or --fail-mode secure, ends that\n"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Cookie;

    fn flow(table: u8, priority: u16, packets: u64, duration_s: f64) -> FlowLine {
        FlowLine {
            text: String::new(),
            table,
            priority,
            cookie: Cookie::new(0),
            packets,
            bytes: 1000 / packets,
            duration_s,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            matching: String::new(),
            actions: String::new(),
        }
    }

    #[test]
    fn rules_come_by_table_and_priority_or_by_what_is_asked_for() {
        let order = |by| {
            let mut flows = [
                flow(1, 5, 10, 1.0),
                flow(0, 1, 100, 3.0),
                flow(0, 9, 1, 2.0),
                flow(1, 7, 10, 2.0),
            ];
            arrange(&mut flows, by);
            flows.map(|flow| (flow.table, flow.priority))
        };
        assert_eq!(order(FlowOrder::Table), [(0, 9), (0, 1), (1, 7), (1, 5)]);
        assert_eq!(order(FlowOrder::Packets), [(0, 1), (1, 7), (1, 5), (0, 9)]);
        assert_eq!(order(FlowOrder::Bytes), [(0, 9), (1, 7), (1, 5), (0, 1)]);
        assert_eq!(order(FlowOrder::Newest), [(1, 5), (0, 9), (1, 7), (0, 1)]);
    }
}
