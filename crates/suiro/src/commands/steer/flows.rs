//! `suiro steer flow`.

use crate::args::{SteerFlowCommand, SteerRuleTexts};
use crate::commands::Context;
use crate::commands::rules::read;
use crate::failure::Failure;
use api::steer::{FlowView, SteerRules};
use api::{Applied, Fault, Method, SteerPoint, quoted};

const PATH: &str = "/v1/steer/flows";

/// Does what the command says.
pub fn run(context: &Context, command: SteerFlowCommand) -> Result<(), Failure> {
    match command {
        SteerFlowCommand::Add(texts) => {
            let rules = collect(texts, false)?;
            let applied: Applied = context.client.send(Method::POST, PATH, &rules)?;
            said(context, &applied, "added")
        }
        SteerFlowCommand::Del { texts, strict, all } => {
            let on = texts.on.as_ref().map(ToString::to_string);
            let rules = match all {
                true => SteerRules { on, all, ..SteerRules::default() },
                false => collect(texts, strict)?,
            };
            let applied: Applied = context.client.send(Method::DELETE, PATH, &rules)?;
            said(context, &applied, "deleted")
        }
        SteerFlowCommand::Dump { filter, on } => {
            let path = format!("{PATH}?filter={}{}", quoted(&filter), with_interface(on.as_ref()));
            let views: Vec<FlowView> = context.client.get(&path)?;
            context.print(&views, |views| views.iter().map(line).collect())
        }
        SteerFlowCommand::Why(args) => super::why::run(context, &args),
    }
}

/// The part of a query that names an interface.
pub fn with_interface(on: Option<&SteerPoint>) -> String {
    on.map_or_else(String::new, |on| format!("&on={}", quoted(on)))
}

fn said(context: &Context, applied: &Applied, done: &str) -> Result<(), Failure> {
    let plural = if applied.applied == 1 { "" } else { "s" };
    context.print(applied, |applied| format!("{} rule{plural} {done}\n", applied.applied))
}

fn collect(texts: SteerRuleTexts, strict: bool) -> Result<SteerRules, Failure> {
    let mut rules = texts.texts;
    if let Some(file) = &texts.file {
        rules.extend(read(file)?);
    }
    if rules.is_empty() {
        let remedy =
            "write them as arguments, name a file with --file, or (to delete all) add --all";
        return Err(Failure::Usage(Fault::new("rules", "read them", "none given", remedy)));
    }
    let on = texts.on.map(|on| on.to_string());
    Ok(SteerRules { rules, on, strict, all: false })
}

/// A leading space, as `suiro flow list` has it. What follows the rule in brackets is not read back.
fn line(view: &FlowView) -> String {
    let on = view.on.as_ref().map_or_else(String::new, |on| format!("on={on}, "));
    let now = match (&view.interface, view.core, &view.reason) {
        (None, ..) => "  [on no interface now]".to_owned(),
        (Some(name), Some(core), reason) => {
            let reason = reason.as_deref().unwrap_or("no reason is kept");
            format!("  [{name}: core {core}, {reason}]")
        }
        (Some(name), None, _) => format!("  [{name}: no frame yet]"),
    };
    format!(" {on}n_packets={}, n_bytes={}, {}{now}\n", view.frames, view.bytes, view.rule)
}
