//! The answer, as people read it.

use super::back::Back;
use api::{
    WhyAnswer, WhyCost, WhyDifference, WhyExit, WhyNear, WhyPlace, WhyRule, WhyStep, WhyVerdict,
    WhyWait,
};

/// Columns of a page. Chosen: what terminals have.
const WIDTH: usize = 100;

/// All of it.
pub fn page(answer: &WhyAnswer) -> String {
    let mut text = format!("{}, {} bytes\n", answer.packet, answer.bytes);
    if !answer.assumed.is_empty() {
        text += &format!("  not said, so taken as  {}\n", answer.assumed.join(", "));
    }
    let width = answer.steps.iter().map(|step| step.switch.len() + 1 + step.at.len()).max();
    let number = answer.steps.len().to_string().len();
    for (index, told) in answer.steps.iter().enumerate() {
        let at = format!("{} {}", told.switch, told.at);
        text += &format!("{:>number$} {at:<1$}  ", index + 1, width.unwrap_or_default());
        text += &step(told, number + width.unwrap_or_default() + 3);
    }
    text + &verdict(answer) + &processed(&answer.place)
}

/// The replies' ways.
pub fn back(ways: &[Back]) -> String {
    let way = |way: &Back| {
        let told = way.why.as_ref().map(page);
        let unknown = way.unknown.as_ref().map(|fault| format!("  {fault}\n"));
        format!("BACK from {}\n{}", way.from, told.or(unknown).unwrap_or_default())
    };
    match ways {
        [] => "BACK nothing: no copy leaves\n".into(),
        _ => ways.iter().map(way).collect(),
    }
}

fn step(told: &WhyStep, indent: usize) -> String {
    let mut text = match &told.rule {
        None => told.what.clone() + "\n",
        Some(found) => {
            rule(found, indent) + &format!("{:indent$}hit {} times\n", "", found.packets)
        }
    };
    for near in &told.nearly {
        text += &nearly(near, indent);
    }
    if let (None, Some(others), true) = (&told.rule, told.others, told.nearly.is_empty()) {
        text += &match others {
            0 => format!("{:indent$}the table has no rules\n", ""),
            others => format!("{:indent$}none of its {others} rules comes near\n", ""),
        };
    }
    text
}

/// A rule, in as many lines as it needs.
fn rule(rule: &WhyRule, indent: usize) -> String {
    let matching = if rule.matching.is_empty() { "everything" } else { &rule.matching };
    let cookie =
        if rule.cookie.get() == 0 { String::new() } else { format!(" cookie {}", rule.cookie) };
    let head = format!("priority {}{cookie}  {matching}", rule.priority);
    if indent + head.len() + rule.actions.len() + 4 > WIDTH {
        return format!("{head}\n{:indent$}→ {}\n", "", rule.actions);
    }
    format!("{head} → {}\n", rule.actions)
}

fn nearly(near: &WhyNear, indent: usize) -> String {
    let differs = |WhyDifference { field, packet, rule }: &WhyDifference| {
        format!("{field} is {packet}, the rule wants {rule}")
    };
    let differs: Vec<String> = near.differs.iter().map(differs).collect();
    let head = format!("{:indent$}nearly  ", "");
    head + &rule(&near.rule, indent + 8)
        + &format!("{:1$}but {2}\n", "", indent + 8, differs.join("; "))
}

fn verdict(answer: &WhyAnswer) -> String {
    let mut text = String::new();
    for exit in &answer.exits {
        let WhyExit { switch, port, queue, packet, .. } = exit;
        let queue = if *queue == 0 { String::new() } else { format!(" queue {queue}") };
        text += &format!("LEAVES by {switch}:{port}{queue} as {packet}\n");
        text += &exit.wait.as_ref().map_or_else(String::new, waits);
    }
    text += match answer.verdict {
        WhyVerdict::Controller => "CONTROLLER\n",
        WhyVerdict::Storm => "STORM: it goes round among switches; not followed further\n",
        WhyVerdict::Leaves | WhyVerdict::Dropped => "",
    };
    for drop in &answer.drops {
        let what = if answer.verdict == WhyVerdict::Dropped { "DROPPED" } else { "A COPY IS LOST" };
        text += &format!("{what} {} at {}\n", drop.reason, drop.at);
        text += &format!("  because  {}\n  remedy   {}\n", drop.cause, drop.remedy);
    }
    text
}

/// What a packet waits in.
fn waits(wait: &WhyWait) -> String {
    let rate = |name: &str, rate: Option<api::Rate>| rate.map(|rate| format!("{name} {rate}"));
    let parts = [
        rate("the port's rate", wait.rate),
        rate("at least", wait.min_rate),
        rate("at most", wait.max_rate),
        Some(format!("{} frames wait", wait.waiting)),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("  queue    {}\n", parts.join(", "))
}

/// Who processes it.
fn processed(place: &WhyPlace) -> String {
    let cores: Vec<_> = place.cores.iter().map(ToString::to_string).collect();
    let mut text = match &cores[..] {
        [] => String::new(),
        [core] => format!("PROCESSED on core {core}\n"),
        _ => format!("PROCESSED on cores {}\n", cores.join(", ")),
    };
    if let Some(steering) = &place.steering {
        text += &format!("  steering {steering}\n");
    }
    text += &format!("  rung     {}: {}\n", place.rung, place.rung_why);
    if let Some(remedy) = &place.remedy {
        text += &format!("  remedy   {remedy}\n");
    }
    if let Some(WhyCost { frames, cycles_rx, cycles_pipeline, cycles_tx, ns }) = &place.cost {
        text += &format!(
            "  cost     {ns} ns a frame: {cycles_rx} cycles rx, {cycles_pipeline} tables, {cycles_tx} tx; mean of {frames}\n"
        );
    }
    text
}
