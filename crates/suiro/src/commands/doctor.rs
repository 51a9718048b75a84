//! `suiro doctor`.

use super::{Context, out};
use crate::failure::Failure;
use api::{Fault, IfName};
use node::doctor::{Finding, State, examine};

/// Checks the host. What is missing makes the command fail.
pub fn run(context: &Context, interfaces: &[IfName]) -> Result<(), Failure> {
    let names: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
    let findings = examine(&names);
    context.print(&findings, |findings| page(findings))?;
    let missing: Vec<_> =
        of(&findings, State::Missing).map(|finding| finding.thing.as_str()).collect();
    if missing.is_empty() {
        if !context.json {
            out(&verdict(of(&findings, State::Limited).count()))?;
        }
        return Ok(());
    }
    Err(Failure::Refused(Fault::new(
        "this host",
        "check it",
        format!("missing: {}", missing.join(", ")),
        "see the lines above that begin with `fix`",
    )))
}

/// The findings as a page, for a report.
pub fn text() -> String {
    page(&examine(&[]))
}

fn of(findings: &[Finding], state: State) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |finding| finding.state == state)
}

fn verdict(limited: usize) -> String {
    match limited {
        0 => "\nnothing to mend\n".into(),
        1 => "\neverything works; one thing could be better\n".into(),
        some => format!("\neverything works; {some} things could be better\n"),
    }
}

fn page(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.thing.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "MISSING",
        };
        text += &format!("{state:<8} {:<width$}  {}\n", finding.thing, finding.found);
        if !finding.means.is_empty() {
            text += &format!("{:9}means  {}\n", "", finding.means);
        }
        if !finding.remedy.is_empty() {
            text += &format!("{:9}fix    {}\n", "", finding.remedy);
        }
    }
    text
}
