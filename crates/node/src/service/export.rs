//! What a node has, as a configuration file that another start, or another host, can take.

use super::Node;
use super::directory::Member;
use super::owner::Owner;
use super::parts::adding;
use super::rules::port_names;
use crate::config::{Located, SwitchConfig, written};
use openflow::{FlowStats, FlowStatsRequest, MeterId, text};

/// What of it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// What the configuration file and commands made: what a new file takes over.
    Own,
    /// What parts declare, and controllers' rules, too: what another host needs.
    All,
}

impl Node {
    /// What the node has, as TOML.
    pub fn export(&self, extent: Extent) -> String {
        let wanted = |owner: &Owner| extent == Extent::All || !matches!(owner, Owner::Part(_));
        let mut left = Left::default();
        let members = self.directory.all();
        let members = members.iter().filter(|member| wanted(&member.owner()));
        let switches: Vec<_> =
            members.map(|member| exported(member, extent, &wanted, &mut left)).collect();
        let guests = self.things.all().into_iter().filter(|(owner, _)| wanted(owner));
        let guests: Vec<_> = guests
            .flat_map(|(_, things)| things.guests.into_iter().map(|guest| guest.value))
            .collect();
        written(&left.remarks(), &switches, &guests)
    }
}

/// What is not written, and why.
#[derive(Default)]
struct Left {
    ending: usize,
    controllers: usize,
}

impl Left {
    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!("Exported by suiro {}.", env!("CARGO_PKG_VERSION"))];
        if self.ending > 0 {
            remarks.push(format!(
                "Left out: {} flows that end by themselves (timeouts).",
                self.ending
            ));
        }
        if self.controllers > 0 {
            let count = self.controllers;
            let text = "rules of switches with controllers, which make them again";
            remarks.push(format!("Left out: {count} {text}; --all writes them."));
        }
        remarks
    }
}

fn exported(
    member: &Member,
    extent: Extent,
    wanted: &impl Fn(&Owner) -> bool,
    left: &mut Left,
) -> SwitchConfig {
    let state = member.state();
    let mut switch = SwitchConfig::bare(state.spec.clone());
    let ports = state.ports.values().filter(|port| wanted(&port.owner));
    switch.ports = ports.map(|port| unnumbered(port.spec.clone())).collect();
    let is_called = !state.spec.controllers.is_empty() || !state.spec.listen.is_empty();
    drop(state);
    let names = port_names(member);
    let name = |port: openflow::PortNo| names.get(&port.0).cloned();
    let all: Vec<FlowStats> =
        member.switch.flows(&FlowStatsRequest::default()).into_iter().flatten().collect();
    let (lasting, ending): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|flow| flow.idle_timeout_s == 0 && flow.hard_timeout_s == 0);
    left.ending += ending.len();
    let groups = member.switch.groups();
    let meters = member.switch.meters(MeterId::ALL).unwrap_or_default();
    if is_called && extent == Extent::Own {
        left.controllers += lasting.len() + groups.len() + meters.len();
        return switch;
    }
    let flow = |flow: &FlowStats| unnumbered(text::print_flow_mod(&adding(flow), &name));
    switch.flows = lasting.iter().map(flow).collect();
    switch.groups =
        groups.iter().map(|group| unnumbered(text::print_group(group, &name))).collect();
    switch.meters = meters.iter().map(|meter| unnumbered(text::print_meter(meter))).collect();
    switch
}

/// What is written has no line yet.
fn unnumbered<T>(value: T) -> Located<T> {
    Located { value, line: 0 }
}
