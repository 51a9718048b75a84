//! Rules, groups and meters in `ovs-ofctl`'s syntax.

use super::Node;
use super::directory::Member;
use super::everything::{self, every_flow, every_group, every_meter};
use crate::refusal::{Refusal, Why};
use crate::switch::FlowDump;
use api::{Applied, Cookie, Fault, FlowLine, GroupView, MeterView, PortName, RuleChange, RuleKind};
use openflow::text::{self, TextError};
use openflow::{
    Action, ErrorCode, FlowMod, FlowModCommand, FlowStats, FlowStatsRequest, GroupId, GroupMod,
    GroupModCommand, Instruction, MeterId, MeterMod, MeterModCommand, OxmField, PortNo,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rules applied before others may have a turn at the switch.
const PORTION: usize = 256;

/// What to do with rules, groups or meters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleVerb {
    /// Add them; a rule replaces one with the same match and priority.
    Add,
    /// Change those that are there.
    Modify,
    /// Delete them.
    Delete,
}

/// Rules on their way out.
pub struct FlowLines {
    dump: FlowDump,
    names: BTreeMap<u32, String>,
}

impl FlowLines {
    /// Bytes that it takes while it is read: names of entries, and digests of those that were shown.
    pub fn memory(&self) -> usize {
        self.dump.memory()
    }
}

impl Iterator for FlowLines {
    type Item = FlowLine;

    fn next(&mut self) -> Option<FlowLine> {
        let names = &self.names;
        self.dump.next().map(|flow| flow_line(&flow, &|port| names.get(&port.0).cloned()))
    }
}

fn flow_line(flow: &FlowStats, name: text::Name<'_>) -> FlowLine {
    FlowLine {
        text: text::print_flow(flow, name),
        table: flow.table.0,
        priority: flow.priority,
        cookie: Cookie::new(flow.cookie),
        packets: flow.packet_count,
        bytes: flow.byte_count,
        duration_s: f64::from(flow.duration_s) + f64::from(flow.duration_ns) / 1e9,
        idle_timeout_s: flow.idle_timeout_s,
        hard_timeout_s: flow.hard_timeout_s,
        matching: text::print_match(&flow.fields, name),
        actions: text::print_instructions(&flow.instructions, name),
    }
}

impl RuleVerb {
    /// The same of groups.
    pub(super) fn of_groups(self) -> GroupModCommand {
        match self {
            Self::Add => GroupModCommand::Add,
            Self::Modify => GroupModCommand::Modify,
            Self::Delete => GroupModCommand::Delete,
        }
    }

    /// The same of meters.
    pub(super) fn of_meters(self) -> MeterModCommand {
        match self {
            Self::Add => MeterModCommand::Add,
            Self::Modify => MeterModCommand::Modify,
            Self::Delete => MeterModCommand::Delete,
        }
    }
}

impl Node {
    /// The rules that a filter selects, as `ovs-ofctl dump-flows` prints them. `with_names` prints ports by name.
    ///
    /// # Errors
    /// There is no such switch, or the filter says nothing.
    pub fn flows(
        &self,
        switch: &str,
        filter: &str,
        with_names: bool,
    ) -> Result<FlowLines, Refusal> {
        let member = self.member(switch)?;
        let request = match filter.trim() {
            "" => FlowStatsRequest::default(),
            filter => text::parse_filter(filter, &resolver(&member))
                .map_err(|error| misread(switch, "filter", filter, &error))?,
        };
        let refused = |fault: openflow::Fault| refused(switch, "list its flows", filter, &fault);
        let dump = member.switch.flows(&request).map_err(refused)?;
        let names = if with_names { port_names(&member) } else { BTreeMap::new() };
        Ok(FlowLines { dump, names })
    }

    /// Applies a change; the API's whole request is read before any of it is applied. Returns how many parts were, and which ports they name in vain.
    ///
    /// # Errors
    /// There is no such switch, a text says nothing, the tables refuse one (of flows the refusal says how many stand), or it is in force
    /// but not saved.
    pub async fn change_rules(
        &self,
        switch: &str,
        verb: RuleVerb,
        change: &RuleChange,
    ) -> Result<Applied, Refusal> {
        let member = self.member(switch)?;
        let parsed = Parsed::read(&member, switch, verb, change)?;
        let named = if verb == RuleVerb::Delete { BTreeSet::new() } else { parsed.ports() };
        let there = port_names(&member);
        let absent_ports = named.into_iter().filter(|port| !there.contains_key(port)).collect();
        let applied = parsed.apply(&member, switch, change).await;
        member.switch.publish();
        let (offload, id) = (self.offload.clone(), member.id);
        // No frame runs by the older rules when this is answered.
        let _ = tokio::task::spawn_blocking(move || offload.settle(id)).await;
        applied?;
        self.saved(&format!("switch {switch}")).await?;
        Ok(Applied { applied: parsed.len(), absent_ports })
    }

    /// The groups of a switch.
    ///
    /// # Errors
    /// There is no such switch.
    pub fn groups(&self, switch: &str) -> Result<Vec<GroupView>, Refusal> {
        let member = self.member(switch)?;
        let stats = member.switch.group_stats(GroupId::ALL);
        let stats: BTreeMap<_, _> =
            stats.iter().map(|stats| (stats.id, text::print_group_stats(stats))).collect();
        let view = |group: &openflow::GroupDesc| GroupView {
            group_id: group.id.0,
            text: text::print_group(group, &text::no_names),
            stats: stats.get(&group.id).cloned().unwrap_or_default(),
        };
        Ok(member.switch.groups().iter().map(view).collect())
    }

    /// The meters of a switch.
    ///
    /// # Errors
    /// There is no such switch.
    pub fn meters(&self, switch: &str) -> Result<Vec<MeterView>, Refusal> {
        let member = self.member(switch)?;
        let stats = member.switch.meter_stats(MeterId::ALL).unwrap_or_default();
        let stats: BTreeMap<_, _> =
            stats.iter().map(|stats| (stats.id, text::print_meter_stats(stats))).collect();
        let view = |meter: &openflow::MeterConfig| MeterView {
            meter_id: meter.id.0,
            text: text::print_meter(meter),
            stats: stats.get(&meter.id).cloned().unwrap_or_default(),
        };
        Ok(member.switch.meters(MeterId::ALL).unwrap_or_default().iter().map(view).collect())
    }
}

/// A change whose texts were all understood.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) meters: Vec<MeterMod>,
    pub(super) groups: Vec<GroupMod>,
    pub(super) flows: Vec<FlowMod>,
}

impl Parsed {
    /// Reads every text of a change.
    pub(super) fn read(
        member: &Member,
        switch: &str,
        verb: RuleVerb,
        change: &RuleChange,
    ) -> Result<Self, Refusal> {
        Self::read_with(&resolver(member), switch, verb, change)
    }

    /// The same, with ports that are known by `resolve`.
    pub(super) fn read_with(
        resolve: &dyn Fn(&str) -> Option<PortNo>,
        switch: &str,
        verb: RuleVerb,
        change: &RuleChange,
    ) -> Result<Self, Refusal> {
        let flow_command = flow_command(verb, change.strict);
        let (group_command, meter_command) = (verb.of_groups(), verb.of_meters());
        let flow = |text: &String| text::parse_flow(text, flow_command, resolve);
        let group = |text: &String| text::parse_group(text, group_command, resolve);
        let meter = |text: &String| text::parse_meter(text, meter_command);
        let mut parsed = Self {
            meters: read_all(switch, "meter", &change.meters, meter)?,
            groups: read_all(switch, "group", &change.groups, group)?,
            flows: read_all(switch, "flow", &change.flows, flow)?,
        };
        for kind in everything::kinds(switch, verb, change)? {
            match kind {
                RuleKind::Flows => parsed.flows.push(every_flow()),
                RuleKind::Groups => parsed.groups.push(every_group()),
                RuleKind::Meters => parsed.meters.push(every_meter()),
            }
        }
        Ok(parsed)
    }

    fn len(&self) -> usize {
        self.meters.len() + self.groups.len() + self.flows.len()
    }

    /// The ordinary ports that they receive from or send to.
    fn ports(&self) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for flow in &self.flows {
            let from = flow.fields.exact(OxmField::InPort);
            found.extend(from.and_then(|port| u32::try_from(port).ok()).map(PortNo));
            flow.instructions.iter().for_each(|step| match step {
                Instruction::WriteActions(list) | Instruction::ApplyActions(list) => {
                    found.extend(outputs(list));
                }
                _ => {}
            });
        }
        found.extend(
            self.groups.iter().flat_map(|g| &g.buckets).flat_map(|bucket| outputs(&bucket.actions)),
        );
        found.into_iter().filter(|port| port.is_ordinary()).map(|port| port.0).collect()
    }

    /// Applies them: meters, then groups, then rules, which may name both. A refusal says how many of several flows stand.
    pub(super) async fn apply(
        &self,
        member: &Arc<Member>,
        switch: &str,
        change: &RuleChange,
    ) -> Result<(), Refusal> {
        let applied = self.try_apply(member, switch, change).await;
        applied.map_err(|(mut refusal, done)| {
            let all = self.flows.len();
            if let Some(done) = done.filter(|_| all > 1) {
                refusal.fault.cause += &format!("; of {all} flows {done} are in force");
            }
            refusal
        })
    }

    /// The same for who takes back what stands: a refusal comes with the number of flows that do.
    pub(super) async fn try_apply(
        &self,
        member: &Arc<Member>,
        switch: &str,
        change: &RuleChange,
    ) -> Result<(), (Refusal, Option<usize>)> {
        for (index, part) in self.meters.iter().enumerate() {
            let refused =
                |fault| refused(switch, "change a meter", said(&change.meters, index), &fault);
            member.switch.meter_mod(part).map_err(|fault| (refused(fault), None))?;
        }
        for (index, part) in self.groups.iter().enumerate() {
            let refused =
                |fault| refused(switch, "change a group", said(&change.groups, index), &fault);
            member.switch.group_mod(part).map_err(|fault| (refused(fault), None))?;
            tokio::task::yield_now().await;
        }
        for (portion, part) in self.flows.chunks(PORTION).enumerate() {
            let failed = member.switch.flow_mods(part.iter()).await;
            if let Some((index, fault)) = failed.first() {
                let text = said(&change.flows, portion * PORTION + index);
                let refusal = refused(switch, "change a flow", text, fault);
                return Err((refusal, Some(portion * PORTION + part.len() - failed.len())));
            }
            member.switch.journal().room().await;
        }
        Ok(())
    }
}

/// The text of a part; what deletes all has none.
fn said(texts: &[String], index: usize) -> &str {
    texts.get(index).map_or("all", String::as_str)
}

fn flow_command(verb: RuleVerb, strict: bool) -> FlowModCommand {
    match (verb, strict) {
        (RuleVerb::Add, _) => FlowModCommand::Add,
        (RuleVerb::Modify, false) => FlowModCommand::Modify,
        (RuleVerb::Modify, true) => FlowModCommand::ModifyStrict,
        (RuleVerb::Delete, false) => FlowModCommand::Delete,
        (RuleVerb::Delete, true) => FlowModCommand::DeleteStrict,
    }
}

fn read_all<T>(
    switch: &str,
    what: &str,
    texts: &[String],
    read: impl Fn(&String) -> Result<T, TextError>,
) -> Result<Vec<T>, Refusal> {
    texts
        .iter()
        .map(|text| read(text).map_err(|error| misread(switch, what, text, &error)))
        .collect()
}

/// The names of a switch's ports by their numbers.
pub(super) fn port_names(member: &Member) -> BTreeMap<u32, String> {
    member.state().ports.iter().map(|(name, port)| (port.number, name.to_string())).collect()
}

/// The numbers of a switch's ports by their names.
pub(super) fn resolver(member: &Member) -> impl Fn(&str) -> Option<PortNo> {
    let numbers: BTreeMap<PortName, u32> =
        member.state().ports.iter().map(|(name, port)| (name.clone(), port.number)).collect();
    move |name| numbers.get(name).copied().map(PortNo)
}

/// Where actions send.
fn outputs(actions: &[Action]) -> impl Iterator<Item = PortNo> {
    actions.iter().filter_map(|action| match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    })
}

fn misread(switch: &str, what: &str, text: &str, error: &TextError) -> Refusal {
    let cause =
        format!("{what} {text:?}, column {}: {:?}: {}", error.at + 1, error.word, error.problem);
    Refusal::new(
        Why::Invalid,
        Fault::new(format!("switch {switch}"), format!("read a {what}"), cause, &*error.remedy),
    )
}

fn refused(switch: &str, step: &str, text: &str, fault: &openflow::Fault) -> Refusal {
    let cause = format!("{text:?}: {fault}");
    let remedy = match fault.code {
        ErrorCode::FlowModFailedTableFull => {
            "delete flows first; [node] flows_per_table in the configuration file is the limit of a table, its memory that of the node"
        }
        ErrorCode::FlowModFailedBadTableId | ErrorCode::BadInstructionBadTableId => {
            "name tables that the switch has, gotos a later one: ovs-ofctl dump-tables lists them"
        }
        _ => "see ovs-fields(7) and ovs-actions(7); the error is OpenFlow's own",
    };
    Refusal::new(Why::Impossible, Fault::new(format!("switch {switch}"), step, cause, remedy))
}
