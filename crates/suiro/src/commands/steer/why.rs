//! `suiro steer why`.

use super::flows::with_interface;
use crate::args::WhyArgs;
use crate::commands::Context;
use crate::failure::Failure;
use crate::table::{Table, dash};
use api::quoted;
use api::steer::{DecisionView, WhyView};

/// Asks and says.
pub fn run(context: &Context, args: &WhyArgs) -> Result<(), Failure> {
    let path =
        format!("/v1/steer/why?flow={}{}", quoted(&args.flow), with_interface(args.on.as_ref()));
    let view: WhyView = context.client.get(&path)?;
    context.print(&view, page)
}

fn page(view: &WhyView) -> String {
    let mut text =
        format!("{} on {}\n", if view.flow.is_empty() { "any flow" } else { &view.flow }, view.on);
    text += &format!("  rule      {}\n", view.rule.as_deref().unwrap_or("none matches"));
    let Some(unit) = &view.unit else {
        text += "  core      the one that it arrives on: it is not steered\n";
        return text;
    };
    text += &format!("  unit      {unit}, {} frames\n", view.frames);
    let core =
        view.core.map_or_else(|| "none yet: no frame came".to_owned(), |core| core.to_string());
    let moving = view.wanted.map_or_else(String::new, |to| format!(", on its way to {to}"));
    text += &format!("  core      {core}{moving}\n");
    if let Some(decision) = &view.decision {
        text += &format!("  because   {}{}\n", decision.reason, ago(decision.age_ms));
        text += &candidates(decision);
    }
    if !view.earlier.is_empty() {
        text += "  before\n";
    }
    let earlier = view.earlier.iter().map(|decision| {
        let core = decision.core;
        format!("    core {core}: {}{}\n", decision.reason, ago(decision.age_ms))
    });
    text + &earlier.collect::<String>()
}

fn candidates(decision: &DecisionView) -> String {
    if decision.candidates.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["    CORE", ">SCORE", "VERDICT"]);
    for candidate in &decision.candidates {
        table.row(vec![
            format!("    {}", candidate.core),
            dash(candidate.score),
            candidate.verdict.clone(),
        ]);
    }
    table.to_string()
}

/// `, 12 s ago`, or nothing when that is not known.
fn ago(ms: Option<u64>) -> String {
    match ms {
        None => String::new(),
        Some(ms @ 0..=9_999) => format!(", {ms} ms ago"),
        Some(ms @ 10_000..=599_999) => format!(", {} s ago", ms / 1000),
        Some(ms) => format!(", {} min ago", ms / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::steer::CandidateView;

    #[test]
    fn the_page_names_rule_core_reason_and_every_core() {
        let candidate =
            |core, score, verdict: &str| CandidateView { core, score, verdict: verdict.into() };
        let decision = DecisionView {
            at_ns: 0,
            age_ms: Some(12_000),
            from: None,
            core: 2,
            reason: "least loaded core".into(),
            candidates: vec![
                candidate(1, None, "a guest is pinned to it"),
                candidate(2, Some(7), "chosen: free"),
            ],
        };
        let earlier =
            DecisionView { core: 3, age_ms: Some(20), candidates: Vec::new(), ..decision.clone() };
        let view = WhyView {
            on: "eth0".into(),
            flow: "udp,tp_dst=9".into(),
            rule: Some("udp,actions=place(core=auto)".into()),
            unit: Some("the rule's".into()),
            core: Some(2),
            wanted: None,
            frames: 5,
            decision: Some(decision),
            earlier: vec![earlier],
        };
        let expected = "\
udp,tp_dst=9 on eth0
  rule      udp,actions=place(core=auto)
  unit      the rule's, 5 frames
  core      2
  because   least loaded core, 12 s ago
    CORE  SCORE  VERDICT
    1         -  a guest is pinned to it
    2         7  chosen: free
  before
    core 3: least loaded core, 20 ms ago
";
        assert_eq!(page(&view), expected);
    }
}
