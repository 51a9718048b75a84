//! What a new version of a part makes of the rules of a switch: only what is not so yet is put, only what is still as the part declared it is taken.

use super::super::Node;
use super::super::directory::Member;
use super::super::rules::{Parsed, RuleVerb, port_names};
use crate::config::{Located, SwitchConfig};
use crate::journal::{Change, FlowId};
use crate::refusal::{Refusal, Why};
use crate::switch::translate;
use api::{Action, Declared, Fault, ObjectChange, RuleChange, SwitchName};
use openflow::text;
use openflow::{
    FlowMod, FlowModCommand, GroupDesc, GroupMod, GroupModCommand, MeterConfig, MeterId, MeterMod,
    MeterModCommand, PortNo,
};
use port::Share;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Stands for the number of a port that is not there yet: rules that name it are not there either.
const NOT_YET: PortNo = PortNo(api::PortNumber::MAX);

/// Changes of rules, and the texts that they come from.
#[derive(Default)]
pub struct Mods {
    parsed: Parsed,
    texts: RuleChange,
}

/// What becomes of the rules of a switch.
#[derive(Default)]
pub struct Moves {
    /// What comes, or becomes otherwise.
    pub put: Mods,
    /// What goes.
    pub take: Mods,
    /// What takes `put` back.
    pub back: Mods,
    /// The same, told.
    pub told: Vec<ObjectChange>,
}

impl Mods {
    /// Carries them out.
    ///
    /// # Errors
    /// The tables refuse one; others may be in force.
    pub async fn apply(&self, member: &Arc<Member>) -> Result<(), Refusal> {
        let applied = self.parsed.try_apply(member, &member.name(), &self.texts).await;
        member.switch.publish();
        applied.map_err(|(refusal, _)| refusal)
    }
}

/// One change, and what takes it back.
struct Move<Change> {
    action: Action,
    text: String,
    change: Change,
    back: Option<Change>,
}

/// Things that a number names, with their texts.
type ByNumber<Change> = BTreeMap<u32, (String, Change)>;

/// A flow that a text declares.
struct Flow {
    /// Its place in the text.
    place: usize,
    text: String,
    change: FlowMod,
    entry: flow::FlowMod,
}

/// Rules that a text declares, the last one of each identity.
struct Wanted {
    /// The numbers of the ends that they name, until the switch names them.
    ends: Share,
    flows: HashMap<FlowId, Flow>,
    groups: ByNumber<GroupMod>,
    meters: ByNumber<MeterMod>,
}

impl Node {
    /// What becomes of the rules of a switch; of one that is not there yet, all come.
    ///
    /// # Errors
    /// A rule says what no table can hold.
    pub(in crate::service) fn moves(
        &self,
        member: Option<&Arc<Member>>,
        declared: &SwitchConfig,
        before: Option<&SwitchConfig>,
    ) -> Result<Moves, Refusal> {
        let wanted = self.wanted_rules(member, declared)?;
        // What was declared was read when it was; should that fail now, it is nobody's to take.
        let before = before.and_then(|before| self.wanted_rules(member, before).ok());
        let before = before.unwrap_or_else(|| self.none_wanted());
        let mut moves = Moves::default();
        let name = &declared.spec.name;
        self.flow_moves(member, name, (&wanted, &before), &mut moves);
        group_moves(member, name, (&wanted, &before), &mut moves);
        meter_moves(member, name, (&wanted, &before), &mut moves);
        Ok(moves)
    }

    /// Puts the rules that are declared of a switch and are not so yet.
    ///
    /// # Errors
    /// One says what no table can hold, or the tables are full; others may be in force.
    pub(in crate::service) async fn put_declared(
        &self,
        member: &Arc<Member>,
        declared: &SwitchConfig,
    ) -> Result<(), Refusal> {
        self.moves(Some(member), declared, None)?.put.apply(member).await
    }

    /// Rules of a switch that none of these declarations of it has: as they are printed, and what removes each.
    ///
    /// # Errors
    /// A declared rule cannot be read.
    pub(super) fn undeclared_rules(
        &self,
        member: &Arc<Member>,
        declared: &[&SwitchConfig],
    ) -> Result<Vec<(String, String)>, Refusal> {
        let switch = member.name();
        let wanted: Result<Vec<_>, _> =
            declared.iter().map(|one| self.wanted_rules(Some(member), one)).collect();
        let wanted = wanted?;
        let mut flows = HashSet::new();
        let mut found = Vec::new();
        for change in member.switch.kept() {
            match change {
                Change::FlowSet(id, _) if !wanted.iter().any(|it| it.flows.contains_key(&id)) => {
                    flows.insert(id);
                }
                Change::GroupSet(group, _)
                    if !wanted.iter().any(|it| it.groups.contains_key(&group.id.0)) =>
                {
                    found.push(numbered(&switch, "group", "group_id", group.id.0));
                }
                Change::MeterSet(meter, _)
                    if !wanted.iter().any(|it| it.meters.contains_key(&meter.id.0)) =>
                {
                    found.push(numbered(&switch, "meter", "meter", meter.id.0));
                }
                _ => {}
            }
        }
        let names = port_names(member);
        let name = |port: PortNo| names.get(&port.0).cloned();
        let entries = member.switch.entries_among(&flows).into_values();
        found.extend(entries.map(|entry| {
            let flow = translate::flow_stats(&entry, self.ports.ends());
            let (fields, actions) = (
                text::print_match(&flow.fields, &name),
                text::print_instructions(&flow.instructions, &name),
            );
            let rule = format!("table={},priority={},{fields}", flow.table.0, flow.priority);
            (format!("flow {rule} {actions}"), format!("suiro flow del {switch} --strict '{rule}'"))
        }));
        found.sort();
        Ok(found)
    }

    fn none_wanted(&self) -> Wanted {
        let ends = Share::unbounded(self.ports.ends().clone());
        Wanted { ends, flows: HashMap::new(), groups: BTreeMap::new(), meters: BTreeMap::new() }
    }

    fn wanted_rules(
        &self,
        member: Option<&Arc<Member>>,
        declared: &SwitchConfig,
    ) -> Result<Wanted, Refusal> {
        let switch = &declared.spec.name;
        let resolve = resolver(member, declared);
        let texts = RuleChange {
            flows: texts(&declared.flows),
            groups: texts(&declared.groups),
            meters: texts(&declared.meters),
            ..RuleChange::default()
        };
        let Parsed { meters, groups, flows } =
            Parsed::read_with(&resolve, switch, RuleVerb::Add, &texts)?;
        let mut wanted = self.none_wanted();
        for (place, (text, change)) in texts.flows.into_iter().zip(flows).enumerate() {
            let entry = change.check().and_then(|()| translate::flow_mod(&change, &wanted.ends));
            let entry = entry.map_err(|fault| {
                let cause = format!("{text:?}: {fault}");
                let remedy = "see ovs-fields(7) and ovs-actions(7); the error is OpenFlow's own";
                let fault = Fault::new(format!("switch {switch}"), "read a flow", cause, remedy);
                Refusal::new(Why::Invalid, fault)
            })?;
            wanted.flows.insert(id_of(&entry), Flow { place, text, change, entry });
        }
        let groups = texts.groups.into_iter().zip(groups);
        wanted.groups = groups.map(|(text, group)| (group.id.0, (text, group))).collect();
        let meters = texts.meters.into_iter().zip(meters);
        wanted.meters = meters.map(|(text, meter)| (meter.id.0, (text, meter))).collect();
        Ok(wanted)
    }

    fn flow_moves(
        &self,
        member: Option<&Arc<Member>>,
        name: &SwitchName,
        (wanted, before): (&Wanted, &Wanted),
        moves: &mut Moves,
    ) {
        let ids: HashSet<FlowId> =
            wanted.flows.keys().chain(before.flows.keys()).cloned().collect();
        let there = member.map(|member| member.switch.entries_among(&ids)).unwrap_or_default();
        let mut found = Vec::new();
        for (id, Flow { text, change, entry, .. }) in in_order(&wanted.flows) {
            let is = there.get(id);
            if is.is_some_and(|is| is_same(is, entry)) {
                continue;
            }
            let back = match is {
                Some(is) => adding(&translate::flow_stats(is, self.ports.ends())),
                None => FlowMod { command: FlowModCommand::DeleteStrict, ..change.clone() },
            };
            let (action, text) = (action(is.is_some()), text.clone());
            found.push(Move { action, text, change: change.clone(), back: Some(back) });
        }
        for (id, Flow { text, change, entry, .. }) in in_order(&before.flows) {
            let is_as_declared = there.get(id).is_some_and(|is| is_same(is, entry));
            if !wanted.flows.contains_key(id) && is_as_declared {
                let change = FlowMod { command: FlowModCommand::DeleteStrict, ..change.clone() };
                let text = text.clone();
                found.push(Move { action: Action::Remove, text, change, back: None });
            }
        }
        for one in found {
            moves.add(
                Declared::Flow,
                name,
                one,
                |parsed| &mut parsed.flows,
                |texts| &mut texts.flows,
            );
        }
    }
}

impl Moves {
    /// Notes a move of the kind whose lists these are.
    fn add<Change>(
        &mut self,
        kind: Declared,
        switch: &SwitchName,
        Move { action, text, change, back }: Move<Change>,
        changes: fn(&mut Parsed) -> &mut Vec<Change>,
        texts: fn(&mut RuleChange) -> &mut Vec<String>,
    ) {
        let note = |mods: &mut Mods, change| {
            changes(&mut mods.parsed).push(change);
            texts(&mut mods.texts).push(text.clone());
        };
        note(if action == Action::Remove { &mut self.take } else { &mut self.put }, change);
        back.into_iter().for_each(|back| note(&mut self.back, back));
        let (switch, name) = (Some(switch.clone()), Some(text));
        let (keys, interrupts) = (Vec::new(), None);
        self.told.push(ObjectChange { action, kind, switch, name, keys, interrupts });
    }
}

/// Things that a number names: groups, or meters.
struct Numbered<'a, Found, Change> {
    there: HashMap<u32, &'a Found>,
    is_same: fn(&Found, &Change) -> bool,
    /// The change that makes one what it was found to be.
    back_to: fn(&Found) -> Change,
    /// The change of a declared one by another verb.
    by: fn(&Change, RuleVerb) -> Change,
}

impl<Found, Change> Numbered<'_, Found, Change> {
    fn moves(&self, wanted: &ByNumber<Change>, before: &ByNumber<Change>) -> Vec<Move<Change>> {
        let is_as_declared = |id: &u32, one: &Change| {
            self.there.get(id).is_some_and(|found| (self.is_same)(found, one))
        };
        let differs = wanted.iter().filter(|(id, (_, one))| !is_as_declared(id, one));
        let put = differs.map(|(id, (text, one))| {
            let found = self.there.get(id);
            let verb = if found.is_some() { RuleVerb::Modify } else { RuleVerb::Add };
            let back = found
                .map_or_else(|| (self.by)(one, RuleVerb::Delete), |found| (self.back_to)(found));
            Move {
                action: action(found.is_some()),
                text: text.clone(),
                change: (self.by)(one, verb),
                back: Some(back),
            }
        });
        let left = before
            .iter()
            .filter(|(id, (_, one))| !wanted.contains_key(id) && is_as_declared(id, one));
        let take = left.map(|(_, (text, one))| {
            let change = (self.by)(one, RuleVerb::Delete);
            Move { action: Action::Remove, text: text.clone(), change, back: None }
        });
        put.chain(take).collect()
    }
}

fn group_moves(
    member: Option<&Arc<Member>>,
    name: &SwitchName,
    (wanted, before): (&Wanted, &Wanted),
    moves: &mut Moves,
) {
    let groups = member.map(|member| member.switch.groups()).unwrap_or_default();
    let numbered = Numbered {
        there: groups.iter().map(|group| (group.id.0, group)).collect(),
        is_same: |found: &GroupDesc, group: &GroupMod| {
            (found.kind, &found.buckets) == (group.kind, &group.buckets)
        },
        back_to: |found| GroupMod {
            command: GroupModCommand::Modify,
            kind: found.kind,
            id: found.id,
            buckets: found.buckets.clone(),
        },
        by: |group, verb| GroupMod { command: verb.of_groups(), ..group.clone() },
    };
    for found in numbered.moves(&wanted.groups, &before.groups) {
        moves.add(
            Declared::Group,
            name,
            found,
            |parsed| &mut parsed.groups,
            |texts| &mut texts.groups,
        );
    }
}

fn meter_moves(
    member: Option<&Arc<Member>>,
    name: &SwitchName,
    (wanted, before): (&Wanted, &Wanted),
    moves: &mut Moves,
) {
    let meters = member.and_then(|member| member.switch.meters(MeterId::ALL).ok());
    let meters = meters.unwrap_or_default();
    let numbered = Numbered {
        there: meters.iter().map(|meter| (meter.id.0, meter)).collect(),
        is_same: |found: &MeterConfig, meter: &MeterMod| {
            (found.flags, &found.bands) == (meter.flags, &meter.bands)
        },
        back_to: |found| MeterMod {
            command: MeterModCommand::Modify,
            flags: found.flags,
            id: found.id,
            bands: found.bands.clone(),
        },
        by: |meter, verb| MeterMod { command: verb.of_meters(), ..meter.clone() },
    };
    for found in numbered.moves(&wanted.meters, &before.meters) {
        moves.add(
            Declared::Meter,
            name,
            found,
            |parsed| &mut parsed.meters,
            |texts| &mut texts.meters,
        );
    }
}

/// A group or meter as it is printed, and what removes it.
fn numbered(switch: &SwitchName, kind: &str, key: &str, number: u32) -> (String, String) {
    (format!("{kind} {number}"), format!("suiro {kind} del {switch} {key}={number}"))
}

fn action(is_there: bool) -> Action {
    if is_there { Action::Change } else { Action::Add }
}

/// In the order of their text.
fn in_order(flows: &HashMap<FlowId, Flow>) -> Vec<(&FlowId, &Flow)> {
    let mut list: Vec<_> = flows.iter().collect();
    list.sort_by_key(|(_, flow)| flow.place);
    list
}

fn id_of(entry: &flow::FlowMod) -> FlowId {
    FlowId {
        table: entry.table.unwrap_or_default(),
        priority: entry.priority,
        key: entry.key.masked(&entry.mask),
        mask: entry.mask,
    }
}

fn is_same(found: &flow::FlowStats, wanted: &flow::FlowMod) -> bool {
    let times = (found.idle_timeout_s, found.hard_timeout_s);
    (found.cookie, found.flags, found.note) == (wanted.cookie, wanted.flags, wanted.note)
        && times == (wanted.idle_timeout_s, wanted.hard_timeout_s)
        && *found.instructions == wanted.instructions
}

/// The change that adds an entry as it was found.
pub(in crate::service) fn adding(found: &openflow::FlowStats) -> FlowMod {
    FlowMod {
        cookie: found.cookie,
        table: found.table,
        idle_timeout_s: found.idle_timeout_s,
        hard_timeout_s: found.hard_timeout_s,
        priority: found.priority,
        flags: found.flags,
        fields: found.fields.clone(),
        instructions: found.instructions.clone(),
        wording: found.wording,
        ..FlowMod::default()
    }
}

fn texts(located: &[Located<String>]) -> Vec<String> {
    located.iter().map(|text| text.value.clone()).collect()
}

/// Ports by name: those that the switch has, then those that it is going to have.
fn resolver(
    member: Option<&Arc<Member>>,
    declared: &SwitchConfig,
) -> impl Fn(&str) -> Option<PortNo> {
    let number = |port: &api::PortSpec| port.number.map_or(NOT_YET, |number| PortNo(number.get()));
    let mut numbers: BTreeMap<String, PortNo> = declared
        .ports
        .iter()
        .map(|port| (port.value.name.to_string(), number(&port.value)))
        .collect();
    if let Some(member) = member {
        let state = member.state();
        numbers
            .extend(state.ports.iter().map(|(name, port)| (name.to_string(), PortNo(port.number))));
    }
    move |name| numbers.get(name).copied()
}
