//! Between what users write and read, and what the engine has.

use crate::switch::translate::{self, KeyMask};
use api::{Fault, OffloadPolicy, OffloadedFlow};
use datapath::{PortAt, SwitchId};
use flow::Nanos;
use offload::{Condition, FlowLine, Policy, ProviderName, RESIDENCE, Rule, Stage, told_apart};
use openflow::text;
use port::Ends;
use std::time::Duration;
use wire::{Field, Key};

/// Whether a specification describes a policy.
///
/// # Errors
/// Why it describes none.
pub fn check(spec: &OffloadPolicy, ends: &Ends) -> Result<(), Fault> {
    policy(spec, None, ends).map(drop)
}

/// The policy that a specification describes, for the flows of one switch or of all.
///
/// # Errors
/// It describes none.
pub fn policy(
    spec: &OffloadPolicy,
    switch: Option<SwitchId>,
    ends: &Ends,
) -> Result<Policy, Fault> {
    let thing = format!("offload policy {}", spec.name);
    let (key, mask) = matched(&thing, &spec.matching, &text::no_ports, ends)?;
    let residence = spec.residence_ms.map_or(RESIDENCE, Duration::from_millis);
    let rungs: Result<_, _> = spec.rungs.iter().map(|name| rung(&thing, name)).collect();
    let rule = rule(&thing, spec)?;
    let (name, priority) = (spec.name.clone(), spec.priority);
    Ok(Policy { name, priority, switch, key, mask, rule, rungs: rungs?, residence })
}

/// The bits that a match looks at, and their values.
///
/// # Errors
/// The text is no match.
pub fn matched(
    thing: &str,
    words: &str,
    ports: text::Resolve<'_>,
    ends: &Ends,
) -> Result<(Key, Key), Fault> {
    if words.trim().is_empty() {
        return Ok((Key::default(), Key::default()));
    }
    let request = text::parse_filter(words, ports).map_err(|error| {
        let cause =
            format!("{words:?}, column {}: {:?}: {}", error.at + 1, error.word, error.problem);
        Fault::new(thing, "read its match", cause, &*error.remedy)
    })?;
    let filter = translate::filter(&request, ends);
    Ok((filter.key, filter.mask))
}

fn rung(thing: &str, name: &str) -> Result<ProviderName, Fault> {
    let all = [ProviderName::Tc, ProviderName::Xdp, ProviderName::Nic];
    all.into_iter().find(|rung| rung.to_string() == name).ok_or_else(|| {
        let cause = format!("{name:?} is no rung past the worker");
        Fault::new(thing, "read its rungs", cause, "name tc, xdp or nic, or leave them out for any")
    })
}

fn rule(thing: &str, spec: &OffloadPolicy) -> Result<Rule, Fault> {
    let refused = |step: &'static str| {
        move |error: offload::BadCondition| {
            let remedy = "for example: --when 'rate>=50M and packets>=100' --until 'rate<5M'";
            Fault::new(thing, step, error.to_string(), remedy)
        }
    };
    let contradiction = |cause: &str| {
        Err(Fault::new(
            thing,
            "read it",
            cause,
            "say one of: never; when, with until if it names rates; none, for cost",
        ))
    };
    match (spec.never, spec.when.as_deref(), spec.until.as_deref()) {
        (true, None, None) => Ok(Rule::Never),
        (true, ..) => contradiction("it says never, and when"),
        (false, None, None) => Ok(Rule::Cost),
        (false, Some("first"), None) => Ok(Rule::First),
        (false, Some("first") | None, Some(_)) => {
            contradiction("it says until without a condition in when")
        }
        (false, Some(when), until) => {
            let when = Condition::when(when).map_err(refused("read its when"))?;
            let until = Condition::until(until, &when).map_err(refused("read its until"))?;
            Ok(Rule::When { when, until })
        }
    }
}

/// A flow as the API shows it; `name` knows the ports' names.
pub fn shown(
    line: &FlowLine,
    now: Nanos,
    (switch, ends): (&str, &Ends),
    name: impl Fn(PortAt) -> Option<String>,
) -> OffloadedFlow {
    let (from, key) = line.name;
    let named = |port: u32| name(PortAt { port, ..from }).unwrap_or_else(|| port.to_string());
    OffloadedFlow {
        switch: switch.into(),
        in_port: named(from.port),
        flow: words(&key, ends),
        rung: line.rung.map_or_else(|| "worker".into(), |rung| rung.to_string()),
        since_s: now.since(line.since) as f64 / 1e9,
        why: why(line),
        policy: line.policy.clone(),
        packets: line.frames,
        bytes: line.bytes,
        offloaded_packets: line.offloaded.frames,
        offloaded_bytes: line.offloaded.bytes,
        limits: line.limits as u32,
        limited_packets: line.offloaded.limited,
        bits_per_s: line.rate,
        packets_per_s: line.pps,
        out_port: line.exit.map(named),
        moves: line.moves,
        next_try_s: line.next.map(|next| next.since(now) as f64 / 1e9),
    }
}

/// Why a flow is where it is, in a clause.
fn why(line: &FlowLine) -> String {
    match (&line.declined, &line.stage) {
        (Some(declined), _) => declined.to_string(),
        (None, Some(Stage::Up)) if line.policy.is_empty() => "taken up from an earlier node".into(),
        (None, Some(Stage::Up)) => format!("policy {}", line.policy),
        (None, Some(Stage::Installed)) => "about to leave: its program is in place".into(),
        (None, Some(Stage::Rising)) => {
            "about to leave: waits until none of its frames is under way".into()
        }
        (None, Some(Stage::Falling { why })) => format!("comes back: {why}"),
        (None, None) => String::new(),
    }
}

/// A flow as a match, without its Ethernet addresses and what is 0 anyway.
pub fn words(key: &Key, ends: &Ends) -> String {
    let mut mask = told_apart(key);
    for field in [Field::InPort, Field::EthDst, Field::EthSrc, Field::IpFrag] {
        mask.set(field, 0);
    }
    for field in [Field::VlanVid, Field::VlanPcp, Field::IpDscp] {
        if key.get(field) == 0 {
            mask.set(field, 0);
        }
    }
    let matched = KeyMask { key: key.masked(&mask), mask, in_phy_port: 0 };
    text::print_match(&translate::oxm_match(&matched, ends), &text::no_names)
}
