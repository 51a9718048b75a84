//! Why a flow is processed where it is.

use super::Agent;
use super::decisions::Decision;
use super::interfaces::Interface;
use crate::error::SteerError;
use crate::rule::{Rule, parse_rule};
use crate::selector;
use api::steer::{CandidateView, DecisionView, WhyView};
use place::steering::{EntryKey, EntryStatus, Field, FlowKey, Selector, UnitStatus};
use place::{Candidate, CoreId, UnitId, Verdict};

/// Decisions told beside the last one. Chosen: a screen.
const EARLIER: usize = 10;

impl Agent {
    /// Says where the frames of a flow go, and why. The flow is written as a rule's match with every field that its frames have.
    ///
    /// # Errors
    /// The flow leaves open what its core depends on, several interfaces are steered and none is named, or the kernel refuses.
    pub fn why(&mut self, flow: &str, on: Option<&str>) -> Result<WhyView, SteerError> {
        let name = self.one_interface(on)?;
        let text = format!("{},actions=place(core=auto)", flow.trim().trim_end_matches(','));
        let flow =
            parse_rule(&text).map_err(|source| SteerError::Text { text: flow.into(), source })?;
        let asked = self.asked(&flow);
        let now_ns = self.now_ns;
        let Some(interface) = self.interfaces.get_mut(&name) else {
            return Err(SteerError::NotSteered { interface: name });
        };
        let failed = |source| SteerError::Enforce { interface: name.clone(), source };
        let found = find(interface, &asked).map_err(failed)?;
        let found = found.map_err(|field| SteerError::Incomplete {
            flow: flow.key(),
            field: name_of(field, &asked.key),
        })?;
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

    /// A frame of the flow, as far as it is said. A machine is its first address, or else its flow control field.
    fn asked(&self, flow: &Rule) -> Asked {
        let plain = selector::of(flow);
        let as_vm = |vm| {
            let by_address =
                self.addresses_of(vm).iter().find_map(|&to| selector::to_address(plain, to));
            by_address.or_else(|| selector::to_fcf(plain, vm))
        };
        let Selector { key, mask: mut known } = flow.own.vm.and_then(as_vm).unwrap_or(plain);
        // What a flow is without, unless it is said. Whoever names a machine has said how its frames are marked.
        let marks = [Field::NwTos, Field::OuterTos];
        let marks = marks.into_iter().filter(|_| flow.own.vm.is_some());
        for field in [Field::DlVlan, Field::IpFrag, Field::TunId].into_iter().chain(marks) {
            known.set(field, field.full());
        }
        // Outside a tunnel the outermost header is the only one.
        let is_plain =
            [Field::TunId, Field::TunSrc, Field::TunDst].iter().all(|&field| key.get(field) == 0);
        if !is_plain {
            return Asked { key, known };
        }
        let outer_tos = key.get(Field::OuterTos) | key.get(Field::NwTos);
        let key = key.with(Field::TunSrc, key.get(Field::NwSrc)).with(Field::OuterTos, outer_tos);
        let key = key.with(Field::TunDst, key.get(Field::NwDst)).with(Field::NwTos, outer_tos);
        let tos = known.get(Field::OuterTos) | known.get(Field::NwTos);
        let known = known.with(Field::OuterTos, tos).with(Field::NwTos, tos);
        let known = known.with(Field::TunSrc, known.get(Field::NwSrc));
        Asked { key, known: known.with(Field::TunDst, known.get(Field::NwDst)) }
    }
}

/// A frame that is asked about.
struct Asked {
    key: FlowKey,
    /// Which of its bits were said.
    known: FlowKey,
}

impl Asked {
    /// A field that an entry looks at and that was not said, though what was said allows the entry.
    fn open(&self, entry: &Selector) -> Option<Field> {
        let known = Selector { key: entry.key.and(&self.known), mask: entry.mask.and(&self.known) };
        let is_open = |field: &Field| entry.mask.get(*field) & !self.known.get(*field) != 0;
        // What others are understood by comes first.
        let fields = [Field::DlType, Field::NwProto].into_iter().chain(Field::ALL);
        fields.into_iter().find(is_open).filter(|_| known.selects(&self.key))
    }

    /// A field that frames are spread by and that was not said.
    fn open_of_group(&self) -> Option<Field> {
        let is_open = |field: &Field| self.known.get(*field) != field.full();
        let has_ports = matches!(self.key.get(Field::NwProto), 6 | 17 | 132);
        let ports = [Field::TpSrc, Field::TpDst].into_iter().filter(|_| has_ports);
        let all = [Field::DlType, Field::NwProto, Field::NwSrc, Field::NwDst];
        all.into_iter().chain(ports).find(is_open)
    }
}

/// A field as flows have it, IPv6's under its own name.
fn name_of(field: Field, key: &FlowKey) -> &'static str {
    let is_ipv6 = key.get(Field::DlType) == 0x86dd;
    match field {
        Field::NwSrc if is_ipv6 => "ipv6_src",
        Field::NwDst if is_ipv6 => "ipv6_dst",
        Field::NwSrc => "nw_src",
        Field::NwDst => "nw_dst",
        Field::TunId => "tun_id",
        Field::TpSrc => "tp_src",
        Field::TpDst => "tp_dst",
        Field::DlType => "dl_type",
        Field::NwProto => "nw_proto",
        Field::NwTos | Field::OuterTos => "nw_tos",
        Field::DlVlan => "dl_vlan",
        Field::IpFrag => "ip_frag",
        Field::TunSrc => "tun_src",
        Field::TunDst => "tun_dst",
        Field::DlSrc => "dl_src",
        Field::DlDst => "dl_dst",
    }
}

/// What takes a frame.
struct Found {
    key: Option<EntryKey>,
    unit: Option<UnitId>,
    status: Option<UnitStatus>,
}

/// What takes the frame, or a field that this depends on and that was not said.
fn find(
    interface: &mut Interface,
    asked: &Asked,
) -> Result<Result<Found, Field>, place::steering::EnforceError> {
    let none = Found { key: None, unit: None, status: None };
    let groups = interface.spec.groups;
    let Some(enforcer) = &mut interface.enforcer else { return Ok(Ok(none)) };
    let entries = enforcer.entries()?;
    let key_of = |status: &EntryStatus| status.entry.key;
    let open = |status: &EntryStatus| asked.open(&key_of(status).selector);
    let best = entries
        .iter()
        .filter(|status| key_of(status).selector.selects(&asked.key) && open(status).is_none())
        .max_by_key(|status| key_of(status).priority);
    let before = |status: &&EntryStatus| {
        best.is_none_or(|best| key_of(status).priority > key_of(best).priority)
    };
    if let Some(field) = entries.iter().filter(before).find_map(open) {
        return Ok(Err(field));
    }
    let missed = || enforcer.missed_unit(&asked.key);
    let unit = best.map(|status| status.unit).or_else(missed);
    let is_of_group = best.is_none() && unit.is_some_and(|unit| unit.0 < groups.into());
    if let Some(field) = asked.open_of_group().filter(|_| is_of_group) {
        return Ok(Err(field));
    }
    let units = enforcer.units()?;
    let status = units.into_iter().find(|status| Some(status.unit) == unit);
    Ok(Ok(Found { key: best.map(|status| status.entry.key), unit, status }))
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
