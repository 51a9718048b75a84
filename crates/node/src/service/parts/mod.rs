//! # Parts: what one owner declares, applied whole or not at all
//!
//! **Question answered**: how does a node get from what an owner declared before to what it declares now?
//!
//! *Plan* ([`mod@steps`], [`mod@rules`]): the wish against what the owner has; every conflict at once, and nothing is touched. *Put* ([`carry`]): what
//! comes and changes, with a way back. *Commit*: the store gets the new version. *Leave*: what the owner no longer declares goes.
//!
//! ## Invariants
//!
//! * An object has one owner. Two that declare the same one are told of each other, and the later is refused. What commands made just so
//!   has no declarer yet, and gets one ([`takeover`]).
//! * While a change is under way the store has both versions ([`Record::other`]), the one in force first. A node that is killed meanwhile has,
//!   when it starts again, all of that one and nothing of the other ([`settle`]).
//! * The configuration file is the part `file`: its reload goes the same way. What it declares is kept nowhere else, and rules that it no
//!   longer declares stay, for a controller may rely on them.

mod audit;
mod carry;
mod rules;
mod settle;
mod show;
mod steps;
mod takeover;

pub(super) use rules::adding;
pub(super) use settle::KeptPart;
pub use settle::ports_of_parts;
pub(super) use takeover::TakenOver;

use super::Node;
use super::directory::{Member, MemberPort};
use super::owner::{API, FILE, Owner};
use super::things;
use crate::config::{Config, Declaration, SwitchConfig, Things};
use crate::refusal::{Refusal, Why};
use api::{
    Difference, Fault, Happening, News, Noun, ObjectChange, PartName, PartText, PortName,
    SwitchName,
};
use carry::Carrying;
use rules::Mods;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steps::{Have, Possessions, settled, steps};

/// Whether to apply a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HowToApply {
    /// Only tell what would change.
    DryRun,
    /// Apply it.
    Apply,
}

/// A part as the store keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// How often it has changed.
    pub generation: u64,
    /// What is in force.
    pub text: Option<PartText>,
    /// The version that a change under way comes from, or goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<PartText>,
}

/// What owners declare, by part.
#[derive(Default)]
pub struct Shelf(Mutex<BTreeMap<PartName, Record>>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PartName, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be done.
struct Plan {
    /// What commands made just so.
    taken_over: TakenOver,
    wish: Vec<SwitchConfig>,
    /// Guests and circuits.
    things: Things,
    /// Of switches and ports.
    steps: Vec<ObjectChange>,
    /// Rules that leave switches that stay.
    leaving: Vec<(Arc<Member>, Mods)>,
    /// All that changes, as it is told.
    changes: Vec<ObjectChange>,
}

impl Node {
    /// Makes what an owner has what it declares; with [`HowToApply::DryRun`] only tells what that changes.
    ///
    /// # Errors
    /// The text is wrong, names what another owner has, or the host refuses; nothing has changed then. Or it is in force but not saved.
    pub async fn put_part(
        &self,
        name: &PartName,
        text: PartText,
        how: HowToApply,
    ) -> Result<Difference, Refusal> {
        self.replace_part(name, Some(text), how).await
    }

    /// Removes a part with all that it declares.
    ///
    /// # Errors
    /// There is none of that name, or it is gone but that is not saved.
    pub async fn remove_part(
        &self,
        name: &PartName,
        how: HowToApply,
    ) -> Result<Difference, Refusal> {
        self.replace_part(name, None, how).await
    }

    async fn replace_part(
        &self,
        name: &PartName,
        text: Option<PartText>,
        how: HowToApply,
    ) -> Result<Difference, Refusal> {
        must_be_a_part(name)?;
        let change = self.change.of_all().await;
        let known = self.parts.lock().get(name).cloned();
        if known.is_none() && text.is_none() {
            return Err(no_part(name));
        }
        let was = known.clone().unwrap_or_default();
        let owner = Owner::Part(name.clone());
        let read = |text: &Option<PartText>| text.as_ref().map(|text| self.read_part(name, text));
        let wish = read(&text).transpose()?.unwrap_or_default();
        // What is not understood any more is not in force either.
        let before = read(&was.text).and_then(Result::ok).unwrap_or_default();
        let file = text.as_ref().map_or_else(|| name.to_string(), |text| file_of(name, text));
        let plan = self.plan_part(&owner, &file, wish, &before.switches)?;
        let generation = was.generation + u64::from(!plan.changes.is_empty() || known.is_none());
        let changes = plan.changes.clone();
        let told = Difference { part: name.clone(), generation, changes };
        if how == HowToApply::DryRun {
            return Ok(told);
        }
        let is_there = text.is_some();
        let new = Record { generation, text, other: None };
        self.carry_part(name, (was, known.is_some()), new, plan).await?;
        self.tell_part(name, known.is_some(), is_there, &told);
        drop(change);
        self.saved(&format!("part {name}")).await?;
        Ok(told)
    }

    /// Carries a plan out, with a record of how far it is.
    async fn carry_part(
        &self,
        name: &PartName,
        (was, was_there): (Record, bool),
        new: Record,
        plan: Plan,
    ) -> Result<(), Refusal> {
        if !plan.changes.is_empty() {
            let under_way =
                Record { other: Some(new.text.clone().unwrap_or_default()), ..was.clone() };
            self.keep_part(name, Some(&under_way));
            // TAPs outlive a process: the next one must know of all that this one may make.
            self.store.flushed().await;
        }
        let owner = Owner::Part(name.clone());
        let mut carrying = Carrying::new(self, &owner, &plan.wish, &plan.steps);
        let done = match self.begin_things(&owner, &plan.things).await {
            Ok(()) => carrying.put().await,
            refused => refused,
        };
        if let Err(refusal) = done {
            let had = self.things.of(&owner);
            self.set_things(&owner, &had).await;
            self.keep_part(name, Some(&was).filter(|_| was_there));
            return Err(refusal);
        }
        self.keep_part(name, Some(&Record { other: was.text, ..new.clone() }));
        self.store.flushed().await;
        self.take_over(&plan.taken_over, &owner);
        carrying.leave(plan.leaving).await;
        self.set_things(&owner, &plan.things).await;
        self.keep_part(name, Some(&new).filter(|new| new.text.is_some()));
        Ok(())
    }

    /// What the configuration file declares becomes what it has.
    ///
    /// # Errors
    /// It names what another owner has, or the host refuses; nothing has changed then.
    pub(super) async fn apply_file(&self, config: &Config) -> Result<(), Refusal> {
        let file = self.facts.config_file.path.as_ref().map(|path| path.display().to_string());
        let file = file.as_deref().unwrap_or(FILE);
        let (switches, things) = (config.switches.clone(), config.things.clone());
        let plan = self.plan_part(&Owner::File, file, Declaration { switches, things }, &[])?;
        plan.changes.iter().for_each(|change| tracing::info!("{file}: {change}"));
        self.begin_things(&Owner::File, &plan.things).await?;
        let mut carrying = Carrying::new(self, &Owner::File, &plan.wish, &plan.steps);
        if let Err(refusal) = carrying.put().await {
            let had = self.things.of(&Owner::File);
            self.set_things(&Owner::File, &had).await;
            return Err(refusal);
        }
        self.take_over(&plan.taken_over, &Owner::File);
        carrying.leave(plan.leaving).await;
        self.set_things(&Owner::File, &plan.things).await;
        Ok(())
    }

    /// Keeps a part, or forgets it.
    fn keep_part(&self, name: &PartName, record: Option<&Record>) {
        self.store.put_part(name, record);
        match record {
            Some(record) => drop(self.parts.lock().insert(name.clone(), record.clone())),
            None => drop(self.parts.lock().remove(name)),
        }
    }

    fn tell_part(&self, name: &PartName, was_there: bool, is_there: bool, told: &Difference) {
        let change = match (was_there, is_there) {
            (false, _) => Happening::Added,
            (true, false) => Happening::Removed,
            (true, true) if told.changes.is_empty() => return,
            (true, true) => Happening::Changed,
        };
        let text = format!("generation {}, {} changes", told.generation, told.changes.len());
        self.feed.tell(News::of_node(Noun::Part, name, change, text));
    }

    fn read_part(&self, name: &PartName, text: &PartText) -> Result<Declaration, Refusal> {
        let file = file_of(name, text);
        Config::parse_part(&text.text, &file, self.facts.host(), self.tls()).map_err(|problems| {
            let refusal = Refusal::of_all(Why::Invalid, problems.faults());
            refusal.err().unwrap_or_else(|| no_part(name))
        })
    }

    fn plan_part(
        &self,
        owner: &Owner,
        file: &str,
        Declaration { switches, things }: Declaration,
        before: &[SwitchConfig],
    ) -> Result<Plan, Refusal> {
        let taken_over = self.made_just_so(&switches);
        let have = self.possessions(owner, &taken_over);
        let wish = settled(&have, &switches);
        let mut conflicts = self.conflicts(owner, file, &wish, &taken_over);
        conflicts.extend(self.things.conflicts(owner, file, &things));
        Refusal::of_all(Why::Conflict, conflicts)?;
        let steps = steps(&have, &wish);
        let mut changes = taken_over.told(owner);
        changes.extend(steps.iter().cloned());
        changes.extend(things::steps(&self.things.of(owner), &things));
        let mut plan = Plan { changes, taken_over, wish, things, steps, leaving: Vec::new() };
        for switch in &plan.wish {
            if *owner != Owner::File && switch.declared_by.is_none() {
                self.check_connections(&switch.spec).map_err(|mut refusal| {
                    refusal.fault = refusal.fault.at(file, switch.line).into();
                    refusal
                })?;
            }
            let name = &switch.spec.name;
            let before = before.iter().find(|before| before.spec.name == *name);
            // One that is made anew begins without rules.
            let stays = have.get(name).is_some_and(|had| {
                (&had.spec.dpid, had.spec.miss_send_len)
                    == (&switch.spec.dpid, switch.spec.miss_send_len)
            });
            let stays = stays || switch.declared_by.is_some();
            let member = self.directory.by_name(name).filter(|_| stays);
            let moves = self.moves(member.as_ref(), switch, before)?;
            plan.changes.extend(moves.told);
            plan.leaving.extend(member.map(|member| (member, moves.take)));
        }
        let is_left = |before: &&SwitchConfig| {
            let is_it = |switch: &SwitchConfig| switch.spec.name == before.spec.name;
            before.declared_by.is_some() && !plan.wish.iter().any(is_it)
        };
        for before in before.iter().filter(is_left) {
            let Some(member) = self.directory.by_name(&before.spec.name) else { continue };
            let nothing = SwitchConfig {
                ports: Vec::new(),
                flows: Vec::new(),
                groups: Vec::new(),
                meters: Vec::new(),
                ..before.clone()
            };
            let moves = self.moves(Some(&member), &nothing, Some(before))?;
            plan.changes.extend(moves.told);
            plan.leaving.push((member, moves.take));
        }
        Ok(plan)
    }

    /// What an owner has, and what it takes over.
    fn possessions(&self, owner: &Owner, taken_over: &TakenOver) -> Possessions {
        let members = self.directory.all();
        let have = |member: &Arc<Member>| {
            let (state, is_own) = (member.state(), member.owner() == *owner);
            let is_own = is_own || taken_over.has(&state.spec.name);
            let is_own_port = |(name, port): &(&PortName, &MemberPort)| {
                port.owner == *owner || taken_over.has_port(&state.spec.name, name)
            };
            let ports = state.ports.iter().filter(is_own_port);
            let ports: BTreeMap<_, _> =
                ports.map(|(name, port)| (name.clone(), port.spec.clone())).collect();
            let has_any = is_own || !ports.is_empty();
            let have = || Have { spec: state.spec.clone(), ports, is_own };
            has_any.then(|| (state.spec.name.clone(), have()))
        };
        members.iter().filter_map(have).collect()
    }

    /// Everything that the wish names and another owner has.
    fn conflicts(
        &self,
        owner: &Owner,
        file: &str,
        wish: &[SwitchConfig],
        taken_over: &TakenOver,
    ) -> Vec<Fault> {
        let taken = self.taken_from(owner, taken_over);
        let fault = |refusal: Refusal, line: usize| {
            let mut fault = refusal.fault.at(file, line);
            fault.thing = format!("{} ({})", fault.thing, owner.place());
            fault
        };
        let mut found = Vec::new();
        for switch in wish {
            let name = &switch.spec.name;
            let refused = match &switch.declared_by {
                None => taken.check_switch(&switch.spec, owner.slice()).err(),
                Some(declarer) => self.check_declarer(name, declarer).err(),
            };
            found.extend(refused.map(|refused| fault(refused, switch.line)));
            let refused = switch.ports.iter().filter_map(|port| {
                let checked = taken.check_port(name, &port.value.name, &port.value);
                Some(fault(checked.err()?, port.line))
            });
            found.extend(refused);
        }
        found
    }
}

impl Node {
    /// Whether a switch is there that another part adds to.
    fn check_declarer(&self, switch: &SwitchName, declarer: &PartName) -> Result<(), Refusal> {
        let member = self.directory.by_name(switch);
        let cause = match member.map(|member| member.owner()) {
            Some(owner) if owner.to_string() == **declarer => return Ok(()),
            Some(owner) => format!("it is not declared by part {declarer} ({})", owner.place()),
            None => format!("it is not there: part {declarer} does not declare it yet"),
        };
        let remedy = format!("apply part {declarer} first, or correct declared_by");
        let fault = Fault::new(format!("switch {switch}"), "add to it", cause, remedy);
        Err(Refusal::new(Why::Conflict, fault))
    }
}

fn file_of(name: &PartName, text: &PartText) -> String {
    text.file.clone().unwrap_or_else(|| format!("part {name}"))
}

fn must_be_a_part(name: &PartName) -> Result<(), Refusal> {
    let (cause, remedy) = match &**name {
        FILE => (
            "this name is the configuration file's",
            "change that file, then: systemctl reload suiro (or send SIGHUP); or choose another name with --part",
        ),
        API => (
            "this name stands for what is made object by object",
            "choose another name with --part",
        ),
        _ => return Ok(()),
    };
    Err(Refusal::new(Why::Conflict, Fault::new(format!("part {name}"), "change it", cause, remedy)))
}

fn no_part(name: &PartName) -> Refusal {
    let remedy = "list the parts with: suiro part list";
    let cause = "there is no part of that name";
    Refusal::new(Why::NotFound, Fault::new(format!("part {name}"), "find it", cause, remedy))
}
