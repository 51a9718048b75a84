//! `suiro flow`.

use super::rules::{Deletion, FLOWS, delete, send};
use super::{Context, offload, out};
use crate::args::FlowCommand;
use crate::failure::Failure;
use api::{FlowsView, Method, SwitchView, quoted};
use std::cmp::Reverse;

/// Does what the command says.
pub fn run(context: &Context, command: FlowCommand) -> Result<(), Failure> {
    match command {
        FlowCommand::Add(texts) => send(context, &FLOWS, Method::POST, texts, false),
        FlowCommand::Mod { texts, strict } => send(context, &FLOWS, Method::PATCH, texts, strict),
        FlowCommand::Del { texts, strict, all } => {
            delete(context, &FLOWS, texts, Deletion { strict, all })
        }
        FlowCommand::List { switch, filter, rungs: true, .. } => {
            offload::flows(context, &switch, &filter)
        }
        FlowCommand::List { switch, filter, names, .. } => {
            let path =
                format!("/v1/switches/{switch}/flows?filter={}&names={names}", quoted(&filter));
            let FlowsView { mut flows } = context.client.get(&path)?;
            flows.sort_by_key(|flow| (flow.table, Reverse(flow.priority)));
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
