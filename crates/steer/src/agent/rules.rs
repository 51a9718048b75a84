//! Rules: added, deleted, shown, and what entries they become.

use super::Agent;
use super::claims::RuleId;
use crate::desired::Change;
use crate::error::SteerError;
use crate::rule::{Filter, Rule, parse_filter, parse_rule};
use crate::selector;
use api::steer::FlowView;
use api::steer::VmSpec;
use place::VmId;
use place::steering::{Entry, EntryKey, EntryStatus, Selector, Target};
use std::collections::HashMap;

/// Which rules a deletion means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strictness {
    /// Those at least as specific as the text.
    Loose,
    /// The one with exactly that match and priority.
    Strict,
}

impl Agent {
    /// Adds rules for one interface or (`None`) for all that are steered and will be. Returns how many.
    ///
    /// # Errors
    /// The first that is refused; none is in force then.
    pub fn add_rules(&mut self, on: Option<&str>, texts: &[String]) -> Result<usize, SteerError> {
        self.check_on(on)?;
        let read = |text: &String| {
            parse_rule(text).map_err(|source| SteerError::Text { text: text.clone(), source })
        };
        let rules: Vec<Rule> = texts.iter().map(read).collect::<Result<_, _>>()?;
        self.put_rules(on, rules)
    }

    /// Adds rules that were read already. Returns how many.
    ///
    /// # Errors
    /// As [`Agent::add_rules`].
    pub fn put_rules(&mut self, on: Option<&str>, rules: Vec<Rule>) -> Result<usize, SteerError> {
        let id = |rule: &Rule| RuleId { on: on.map(str::to_owned), key: rule.key() };
        let mut wanted = Vec::with_capacity(rules.len());
        for rule in &rules {
            self.check_cores(rule)?;
            wanted.push((id(rule), self.entries_of(rule)?));
        }
        let before = |(id, _): &(RuleId, Vec<Entry>)| {
            let old = self.rules.get(id).map(|old| self.entries_of(old));
            (id.clone(), old.and_then(Result::ok).unwrap_or_default())
        };
        let before: Vec<_> = wanted.iter().map(before).collect();
        if let Err(error) = self.put_entries(&wanted) {
            // What took them must be as it was; the interface that refused has a reason to refuse that too, which is no news.
            let _ = self.put_entries(&before);
            return Err(error);
        }
        let count = rules.len();
        for (rule, (id, _)) in rules.into_iter().zip(wanted) {
            self.journal.note(Change::Rule { on, rule: &rule, wanted: true });
            self.rules.insert(id, rule);
        }
        Ok(count)
    }

    fn check_cores(&self, rule: &Rule) -> Result<(), SteerError> {
        match rule.placing.target {
            Target::Core(core) if self.table.core(core).is_none() => Err(SteerError::Setting {
                thing: format!("rule {:?}", rule.to_string()),
                cause: format!("this host has no core {core}"),
                remedy: "see `suiro steer cores`".into(),
            }),
            _ => Ok(()),
        }
    }

    /// Deletes rules; `on` as they were added, or all when `None`. Returns how many.
    ///
    /// # Errors
    /// A text says nothing or selects every rule ([`Self::del_all_rules`] does that), or the kernel refuses.
    pub fn del_rules(
        &mut self,
        on: Option<&str>,
        texts: &[String],
        strictness: Strictness,
    ) -> Result<usize, SteerError> {
        let read = |text: &String| {
            parse_filter(text).map_err(|source| SteerError::Text { text: text.clone(), source })
        };
        let filters: Vec<Filter> = texts.iter().map(read).collect::<Result<_, _>>()?;
        if strictness == Strictness::Loose && filters.iter().any(Filter::is_everything) {
            return Err(SteerError::Setting {
                thing: "rules of steering".into(),
                cause: "a text selects every rule".into(),
                remedy: "write --all if that is meant".into(),
            });
        }
        let means = |rule: &Rule| {
            filters.iter().any(|filter| match strictness {
                Strictness::Loose => filter.selects(rule),
                Strictness::Strict => filter.is_exactly(rule),
            })
        };
        self.remove_rules(on, means)
    }

    /// Deletes every rule; `on` as it was added, or all when `None`. Returns how many.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn del_all_rules(&mut self, on: Option<&str>) -> Result<usize, SteerError> {
        self.remove_rules(on, |_| true)
    }

    fn remove_rules(
        &mut self,
        on: Option<&str>,
        means: impl Fn(&Rule) -> bool,
    ) -> Result<usize, SteerError> {
        let here = |id: &RuleId| on.is_none() || id.on.as_deref() == on;
        let found = self.rules.iter().filter(|(id, rule)| here(id) && means(rule));
        let ids: Vec<RuleId> = found.map(|(id, _)| id.clone()).collect();
        let none: Vec<_> = ids.iter().map(|id| (id.clone(), Vec::new())).collect();
        self.put_entries(&none)?;
        for id in &ids {
            if let Some(rule) = self.rules.remove(id) {
                self.journal.note(Change::Rule {
                    on: id.on.as_deref(),
                    rule: &rule,
                    wanted: false,
                });
            }
        }
        Ok(ids.len())
    }

    /// Rules with counters, one line for each interface that has it.
    ///
    /// # Errors
    /// The filter says nothing, or the kernel refuses.
    pub fn flows(&mut self, on: Option<&str>, filter: &str) -> Result<Vec<FlowView>, SteerError> {
        self.check_on(on)?;
        let read = parse_filter(filter);
        let filter = read.map_err(|source| SteerError::Text { text: filter.into(), source })?;
        let mut views = Vec::new();
        let mut unplaced: HashMap<RuleId, bool> =
            self.rules.keys().map(|id| (id.clone(), true)).collect();
        for (name, interface) in &mut self.interfaces {
            if on.is_some_and(|on| on != name) {
                continue;
            }
            let Some(enforcer) = &mut interface.enforcer else { continue };
            let failed = |source| SteerError::Enforce { interface: name.clone(), source };
            let units = enforcer.units().map_err(failed)?;
            let units: HashMap<_, _> = units.into_iter().map(|unit| (unit.unit, unit)).collect();
            let mut by_rule: HashMap<&RuleId, Vec<EntryStatus>> = HashMap::new();
            for status in enforcer.entries().map_err(failed)? {
                if let Some(id) = interface.claims.rule_of(&status.entry.key) {
                    by_rule.entry(id).or_default().push(status);
                }
            }
            for (id, entries) in by_rule {
                unplaced.remove(id);
                let Some(rule) = self.rules.get(id).filter(|rule| filter.selects(rule)) else {
                    continue;
                };
                let unit = entries.first().and_then(|status| units.get(&status.unit));
                views.push(FlowView {
                    on: id.on.clone(),
                    rule: rule.to_string(),
                    interface: Some(name.clone()),
                    frames: entries.iter().map(|status| status.frames).sum(),
                    bytes: entries.iter().map(|status| status.bytes).sum(),
                    core: unit.and_then(|unit| unit.core).map(|core| core.0),
                    reason: unit.and_then(|unit| unit.reason).map(|reason| reason.to_string()),
                });
            }
        }
        let of_no_interface =
            unplaced.into_keys().filter(|id| on.is_none() || id.on.as_deref() == on);
        let of_no_interface = of_no_interface.filter_map(|id| {
            let rule = self.rules.get(&id).filter(|rule| filter.selects(rule))?;
            Some(FlowView {
                rule: rule.to_string(),
                on: id.on,
                interface: None,
                frames: 0,
                bytes: 0,
                core: None,
                reason: None,
            })
        });
        views.extend(of_no_interface);
        views.sort_by(|a, b| (&a.rule, &a.interface).cmp(&(&b.rule, &b.interface)));
        Ok(views)
    }

    /// Every rule, with its interface.
    pub fn rules(&self) -> impl Iterator<Item = (Option<&str>, &Rule)> {
        self.rules.iter().map(|(id, rule)| (id.on.as_deref(), rule))
    }

    /// What a rule becomes: one entry, or one for each address of its machine.
    pub(super) fn entries_of(&self, rule: &Rule) -> Result<Vec<Entry>, SteerError> {
        let plain = selector::of(rule);
        let entry = |selector: Selector, vm: Option<VmId>| Entry {
            key: EntryKey { priority: rule.priority, selector },
            target: rule.placing.target,
            is_priority: rule.placing.priority,
            wants_own_core: rule.placing.own,
            vm,
        };
        let Some(vm) = rule.own.vm else {
            let vm = selector::destination(&plain).and_then(|address| self.vm_of(address));
            return Ok(vec![entry(plain, vm)]);
        };
        let addresses = self.addresses_of(vm);
        let selectors: Vec<Selector> = match addresses {
            [] => selector::to_fcf(plain, vm).into_iter().collect(),
            some => {
                some.iter().filter_map(|&address| selector::to_address(plain, address)).collect()
            }
        };
        if !selectors.is_empty() {
            return Ok(selectors.into_iter().map(|selector| entry(selector, Some(vm))).collect());
        }
        let (cause, remedy) = match addresses {
            [] => (
                format!(
                    "machine {} has no addresses, and the flow control field has no room for its id",
                    vm.get()
                ),
                format!(
                    "declare its addresses: suiro steer vm add NAME --id {} --address ADDRESS",
                    vm.get()
                ),
            ),
            _ => (
                format!(
                    "none of the addresses of machine {} is among the destinations that the rule names",
                    vm.get()
                ),
                "leave nw_dst out, or see `suiro steer vm list` for the addresses".into(),
            ),
        };
        Err(SteerError::Machine { rule: rule.to_string(), cause, remedy })
    }

    /// Gives each rule its entries, and no others, on every interface that it is for.
    fn put_entries(&mut self, rules: &[(RuleId, Vec<Entry>)]) -> Result<(), SteerError> {
        for (name, interface) in &mut self.interfaces {
            let here = rules.iter().filter(|(id, _)| id.on.as_deref().is_none_or(|on| on == name));
            let steps: Vec<_> =
                here.flat_map(|(id, entries)| interface.claims.claim(id, entries)).collect();
            let done = interface.carry_out(&steps);
            done.map_err(|source| SteerError::Enforce { interface: name.clone(), source })?;
        }
        Ok(())
    }

    /// A machine changed: rules that name it, or its addresses, become other entries.
    pub(super) fn follow_vm(&mut self, specs: [Option<&VmSpec>; 2]) -> Result<(), SteerError> {
        let concerns = |rule: &Rule| {
            let address = selector::destination(&selector::of(rule));
            specs.iter().flatten().any(|spec| {
                rule.own.vm.is_some_and(|vm| vm.get() == spec.id)
                    || address.is_some_and(|address| spec.addresses.contains(&address))
            })
        };
        let ids: Vec<RuleId> = self
            .rules
            .iter()
            .filter(|(_, rule)| concerns(rule))
            .map(|(id, _)| id.clone())
            .collect();
        let entries = |id: RuleId| {
            let entries = self.entries_of(&self.rules[&id])?;
            Ok((id, entries))
        };
        let rules: Vec<_> = ids.into_iter().map(entries).collect::<Result<_, SteerError>>()?;
        self.put_entries(&rules)
    }

    /// An interface that a rule is for must be wanted: a typing error would wait for ever.
    pub(super) fn check_on(&self, on: Option<&str>) -> Result<(), SteerError> {
        match on.filter(|on| !self.interfaces.contains_key(*on)) {
            Some(on) => Err(SteerError::NotSteered { interface: on.into() }),
            None => Ok(()),
        }
    }
}
