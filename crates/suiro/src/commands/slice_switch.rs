//! `suiro slice switch`, `flows` and `why` of a packet: switches of slices, as their nodes have them.

use super::slice::path;
use super::{Context, of_controller, out, port, switch, why};
use crate::failure::Failure;
use api::{
    FlowsView, Method, PortView, SliceLeg, SliceWhy, SwitchView, WhyQuestion, WhyVerdict, quoted,
};
use serde::Serialize;
use std::cmp::Reverse;

/// A slice and a switch of it.
type Which<'a> = (&'a str, &'a str);

fn switch_path((slice, switch): Which<'_>) -> String {
    format!("{}/switches/{}", path(slice), quoted(switch))
}

/// A switch with its ports.
#[derive(Serialize)]
struct Shown {
    switch: SwitchView,
    ports: Vec<PortView>,
}

/// `suiro slice switch`.
pub fn show(context: &Context, which: Which<'_>) -> Result<(), Failure> {
    let path = switch_path(which);
    let switch: SwitchView = context.controller.get(&path).map_err(of_controller)?;
    let ports = context.controller.get(&(path + "/ports")).map_err(of_controller)?;
    let shown = Shown { switch, ports };
    context.print(&shown, |shown| switch::show(&shown.switch) + &port::list(&shown.ports))
}

/// `suiro slice flows`.
pub fn flows(context: &Context, which: Which<'_>, filter: &str) -> Result<(), Failure> {
    let path = switch_path(which);
    let found = context.controller.get(&format!("{path}/flows?filter={}", quoted(filter)));
    let FlowsView { mut flows } = found.map_err(of_controller)?;
    flows.sort_by_key(|flow| (flow.table, Reverse(flow.priority)));
    // A leading space, as `suiro flow list` and ovs-ofctl print.
    context
        .print(&flows, |flows| flows.iter().map(|flow| format!(" {}\n", flow.text)).collect())?;
    let switch: SwitchView = context.controller.get(&path).map_err(of_controller)?;
    let all = switch.flows as usize;
    if context.json || flows.len() == all || !filter.is_empty() {
        return Ok(());
    }
    out(&format!("{} of {all} rules; a match behind the switch's name narrows that\n", flows.len()))
}

/// `suiro slice why` of a packet.
pub fn why(context: &Context, which: Which<'_>, packet: String) -> Result<(), Failure> {
    let question = WhyQuestion { flow: packet, ..WhyQuestion::default() };
    let path = switch_path(which) + "/why";
    let answer = context.controller.send(Method::POST, &path, &question);
    let answer: SliceWhy = answer.map_err(of_controller)?;
    context.print(&answer, told)?;
    if answer.verdict == WhyVerdict::Dropped { Err(Failure::Dropped) } else { Ok(()) }
}

fn told(answer: &SliceWhy) -> String {
    let legs: String = answer.legs.iter().map(leg).collect();
    legs + match answer.verdict {
        WhyVerdict::Leaves => "ARRIVES\n",
        WhyVerdict::Controller => "CONTROLLER\n",
        WhyVerdict::Dropped => "DROPPED\n",
        WhyVerdict::Storm => "STORM: it goes round, or to more places than are followed\n",
    }
}

fn leg(leg: &SliceLeg) -> String {
    let by = leg.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let mut text = format!("AT {}{by}, node {}\n", leg.entry, leg.node);
    leg.why.iter().for_each(|answer| text += &why::page(answer));
    leg.fault.iter().for_each(|fault| text += &format!("  not known: {fault}\n"));
    for onward in &leg.onward {
        text += &format!(
            "GOES ON from {} by {} to {}, node {}\n",
            onward.from, onward.by, onward.to, onward.node
        );
    }
    text
}
