//! Why a flow is processed where it is.

use super::Agent;
use super::decisions::Decision;
use super::interfaces::Interface;
use crate::error::SteerError;
use crate::rule::{Rule, parse_rule};
use crate::selector;
use api::steer::{CandidateView, DecisionView, WhyView};
use place::steering::{EntryKey, EntryStatus, UnitStatus};
use place::steering::{Field, FlowKey};
use place::{Candidate, CoreId, UnitId, Verdict};

/// Decisions told beside the last one. Chosen: a screen.
const EARLIER: usize = 10;

impl Agent {
    /// Says where the frames of a flow go, and why. The flow is written as a rule's match with every field that its frames have.
    ///
    /// # Errors
    /// The flow says nothing, several interfaces are steered and none is named, or the kernel refuses.
    pub fn why(&mut self, flow: &str, on: Option<&str>) -> Result<WhyView, SteerError> {
        let name = self.one_interface(on)?;
        let text = format!("{},actions=place(core=auto)", flow.trim().trim_end_matches(','));
        let flow =
            parse_rule(&text).map_err(|source| SteerError::Text { text: flow.into(), source })?;
        let key = self.key_of(&flow);
        let now_ns = self.now_ns;
        let Some(interface) = self.interfaces.get_mut(&name) else {
            return Err(SteerError::NotSteered { interface: name });
        };
        let failed = |source| SteerError::Enforce { interface: name.clone(), source };
        let found = find(interface, &key).map_err(failed)?;
        let rule = found.key.and_then(|key| self.rules.get(interface.claims.rule_of(&key)?));
        let about = found.unit.map(|unit| interface.decisions.about(unit));
        let view = |decision: &Decision| decision_view(decision, now_ns);
        let mut decisions: Vec<DecisionView> =
            about.into_iter().flatten().take(EARLIER + 1).map(view).collect();
        let last = (!decisions.is_empty()).then(|| decisions.remove(0));
        Ok(WhyView {
            flow: flow.key(),
            rule: rule.map(Rule::to_string),
            unit: found.unit.map(|unit| match found.key {
                Some(_) => "the rule's".to_owned(),
                None if unit.0 < interface.spec.groups.into() => {
                    format!("flow group {} of {}", unit.0, interface.spec.groups)
                }
                None => "its flow control field's".to_owned(),
            }),
            core: found.status.and_then(|unit| unit.core).map(|core| core.0),
            wanted: found.status.and_then(|unit| unit.wanted).map(|core| core.0),
            frames: found.status.map_or(0, |unit| unit.frames),
            decision: last.or_else(|| found.status.and_then(|unit| standing(&unit, now_ns))),
            earlier: decisions,
            on: name,
        })
    }

    fn one_interface(&self, on: Option<&str>) -> Result<String, SteerError> {
        self.check_on(on)?;
        let mut names = self.interfaces.keys();
        match (on, names.next(), names.next()) {
            (Some(on), ..) => Ok(on.into()),
            (None, Some(only), None) => Ok(only.clone()),
            (None, None, _) => Err(SteerError::Which { cause: "no interface is steered" }),
            _ => Err(SteerError::Which { cause: "several interfaces are steered" }),
        }
    }

    /// The key of a frame of the flow. A machine is its first address, or else its flow control field.
    fn key_of(&self, flow: &Rule) -> FlowKey {
        let plain = selector::of(flow);
        let as_vm = |vm| {
            let by_address =
                self.addresses_of(vm).iter().find_map(|&to| selector::to_address(plain, to));
            by_address.or_else(|| selector::to_fcf(plain, vm))
        };
        let key = flow.own.vm.and_then(as_vm).unwrap_or(plain).key;
        // Outside a tunnel the outermost header is the only one.
        let is_plain =
            [Field::TunId, Field::TunSrc, Field::TunDst].iter().all(|&field| key.get(field) == 0);
        if !is_plain {
            return key;
        }
        let outer_tos = key.get(Field::OuterTos) | key.get(Field::NwTos);
        let key = key.with(Field::TunSrc, key.get(Field::NwSrc)).with(Field::OuterTos, outer_tos);
        key.with(Field::TunDst, key.get(Field::NwDst)).with(Field::NwTos, outer_tos)
    }
}

/// What takes a frame.
struct Found {
    key: Option<EntryKey>,
    unit: Option<UnitId>,
    status: Option<UnitStatus>,
}

fn find(interface: &mut Interface, key: &FlowKey) -> Result<Found, place::steering::EnforceError> {
    let none = Found { key: None, unit: None, status: None };
    let Some(enforcer) = &mut interface.enforcer else { return Ok(none) };
    let takes = |status: &EntryStatus| status.entry.key.selector.selects(key);
    let entries = enforcer.entries()?;
    let best = entries
        .iter()
        .filter(|status| takes(status))
        .max_by_key(|status| status.entry.key.priority);
    let unit = best.map(|status| status.unit).or_else(|| enforcer.missed_unit(key));
    let units = enforcer.units()?;
    let status = units.into_iter().find(|status| Some(status.unit) == unit);
    Ok(Found { key: best.map(|status| status.entry.key), unit, status })
}

fn decision_view(decision: &Decision, now_ns: u64) -> DecisionView {
    let event = &decision.event;
    let candidates = decision.candidates.iter();
    DecisionView {
        at_ns: event.at_ns,
        age_ms: age(event.at_ns, now_ns),
        from: event.from.map(|core| core.0),
        core: event.core.0,
        reason: event.reason.to_string(),
        candidates: candidates.map(|candidate| candidate_view(candidate, event.core)).collect(),
    }
}

/// Milliseconds since then; a unit that a rule put where it is from the beginning has no such time.
fn age(at_ns: u64, now_ns: u64) -> Option<u64> {
    (at_ns > 0).then(|| now_ns.saturating_sub(at_ns) / 1_000_000)
}

/// A decision that is no longer remembered, as far as the unit itself tells.
fn standing(unit: &UnitStatus, now_ns: u64) -> Option<DecisionView> {
    Some(DecisionView {
        at_ns: unit.decided_at_ns,
        age_ms: age(unit.decided_at_ns, now_ns),
        from: None,
        core: unit.core?.0,
        reason: unit.reason?.to_string(),
        candidates: Vec::new(),
    })
}

fn candidate_view(candidate: &Candidate, chosen: CoreId) -> CandidateView {
    let (score, verdict) = match candidate.verdict {
        Verdict::Free(score) => (Some(score), "free".to_owned()),
        Verdict::Own(score) => (Some(score), "its machine's own".to_owned()),
        Verdict::No(why) => (None, why.to_string()),
    };
    let verdict = if candidate.core == chosen { format!("chosen: {verdict}") } else { verdict };
    CandidateView { core: candidate.core.0, score, verdict }
}
