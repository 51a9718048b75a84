//! `suiro group` and `suiro meter`, and what they share with `suiro flow`.

use super::{Context, out};
use crate::args::{RuleTexts, RulesCommand};
use crate::failure::Failure;
use api::{Applied, Fault, GroupView, MeterView, Method, RuleChange, RuleKind, SwitchName};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

/// Rules sent in one request. Chosen: far below the node's limit of 64 MiB, and few enough that an error comes soon.
const PORTION: usize = 50_000;

/// Absent ports that are named one by one.
const NAMED: usize = 5;

/// What is particular about a kind of rules.
pub struct Kind {
    /// In messages.
    word: &'static str,
    /// In paths.
    path: &'static str,
    /// In a request that deletes all.
    all: RuleKind,
    /// Where the texts go in a request.
    change: fn(Vec<String>, bool) -> RuleChange,
    /// Lists them, with counters or without.
    list: fn(&Context, &SwitchName, bool) -> Result<(), Failure>,
}

/// Flows; they are listed by their own command.
pub const FLOWS: Kind = Kind {
    word: "flow",
    path: "flows",
    all: RuleKind::Flows,
    change: |flows, strict| RuleChange { flows, strict, ..RuleChange::default() },
    list: |_, _, _| Ok(()),
};

/// Groups.
pub const GROUPS: Kind = Kind {
    word: "group",
    path: "groups",
    all: RuleKind::Groups,
    change: |groups, strict| RuleChange { groups, strict, ..RuleChange::default() },
    list: |context, switch, stats| {
        let views: Vec<GroupView> = context.client.get(&format!("/v1/switches/{switch}/groups"))?;
        context.print(&views, |views| {
            views.iter().map(|view| lines(&view.text, &view.stats, stats)).collect()
        })
    },
};

/// Meters.
pub const METERS: Kind = Kind {
    word: "meter",
    path: "meters",
    all: RuleKind::Meters,
    change: |meters, strict| RuleChange { meters, strict, ..RuleChange::default() },
    list: |context, switch, stats| {
        let views: Vec<MeterView> = context.client.get(&format!("/v1/switches/{switch}/meters"))?;
        context.print(&views, |views| {
            views.iter().map(|view| lines(&view.text, &view.stats, stats)).collect()
        })
    },
};

/// A definition in one line, as it can be added; then its counters, if they are wanted.
fn lines(definition: &str, counters: &str, stats: bool) -> String {
    let mut lines = definition.trim_end().replace('\n', " ") + "\n";
    if stats {
        lines += &format!("{}\n", counters.trim_end());
    }
    lines
}

/// Does what the command says.
pub fn run(context: &Context, kind: &Kind, command: RulesCommand) -> Result<(), Failure> {
    match command {
        RulesCommand::Add(texts) => send(context, kind, Method::POST, texts, false).map(drop),
        RulesCommand::Mod(texts) => send(context, kind, Method::PATCH, texts, false).map(drop),
        RulesCommand::Del { texts, all } => {
            delete(context, kind, texts, Deletion { strict: false, all })
        }
        RulesCommand::List { switch, stats } => (kind.list)(context, &switch, stats),
    }
}

/// How much to delete.
pub struct Deletion {
    /// Only exact matches.
    pub strict: bool,
    /// Everything.
    pub all: bool,
}

/// Deletes rules. All of them only when that is said.
pub fn delete(
    context: &Context,
    kind: &Kind,
    texts: RuleTexts,
    how: Deletion,
) -> Result<(), Failure> {
    if !how.all {
        return send(context, kind, Method::DELETE, texts, how.strict).map(drop);
    }
    let path = format!("/v1/switches/{}/{}", texts.switch, kind.path);
    let change = RuleChange { all: vec![kind.all], ..RuleChange::default() };
    let applied: Applied = context.client.send(Method::DELETE, &path, &change)?;
    said(context, kind, &applied, "deleted")
}

/// Sends rules with a method, and says what came of it. Returns how many were applied.
pub fn send(
    context: &Context,
    kind: &Kind,
    method: Method,
    texts: RuleTexts,
    strict: bool,
) -> Result<usize, Failure> {
    let path = format!("/v1/switches/{}/{}", texts.switch, kind.path);
    let done = match method.as_str() {
        "POST" => "added",
        "PATCH" => "changed",
        _ => "deleted",
    };
    let all = collect(kind, texts)?;
    let mut sum = Applied::default();
    for portion in all.chunks(PORTION) {
        let change = (kind.change)(portion.to_vec(), strict);
        let Applied { applied, absent_ports } =
            context.client.send(method.clone(), &path, &change)?;
        sum.applied += applied;
        sum.absent_ports.extend(absent_ports);
    }
    said(context, kind, &sum, done)?;
    if !context.json {
        say_absent(&sum.absent_ports)?;
    }
    Ok(sum.applied)
}

fn said(context: &Context, kind: &Kind, sum: &Applied, done: &str) -> Result<(), Failure> {
    if context.json {
        return context.print(sum, |_| String::new());
    }
    let applied = sum.applied;
    let plural = if applied == 1 { "" } else { "s" };
    // How many rules a deletion found is not what it was asked.
    match done {
        "deleted" => out(&format!("{}s deleted\n", kind.word)),
        done => out(&format!("{applied} {}{plural} {done}\n", kind.word)),
    }
}

/// A rule may be there before its ports, and it may be a slip.
fn say_absent(ports: &BTreeSet<u32>) -> Result<(), Failure> {
    let numbers: Vec<_> = ports.iter().take(NAMED).map(ToString::to_string).collect();
    match ports.len() {
        0 => Ok(()),
        1 => out(&format!("note: there is no port {} yet\n", numbers[0])),
        all => {
            let more =
                if all > NAMED { format!(" and {} more", all - NAMED) } else { String::new() };
            out(&format!("note: there are no ports {}{more} yet\n", numbers.join(", ")))
        }
    }
}

fn collect(kind: &Kind, texts: RuleTexts) -> Result<Vec<String>, Failure> {
    let mut all = texts.texts;
    if let Some(file) = &texts.file {
        all.extend(read(file)?);
    }
    if all.is_empty() {
        let remedy =
            "write them as arguments, name a file with --file, or (to delete all) add --all";
        let thing = format!("{}s of switch {}", kind.word, texts.switch);
        return Err(Failure::Usage(Fault::new(thing, "read them", "none given", remedy)));
    }
    Ok(all)
}

/// Rules of a file, one a line; empty lines and those that begin with # are left out, as ovs-ofctl does.
pub fn read(file: &Path) -> Result<Vec<String>, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text))
    };
    let thing = || format!("file {}", file.display());
    read.map_err(|error| {
        Failure::Refused(Fault::new(
            thing(),
            "read it",
            error.to_string(),
            "check its name and rights",
        ))
    })?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
