//! `suiro diff`, `suiro apply` and `suiro part`.

use super::{Context, slice};
use crate::args::{ApplyArgs, DiffArgs, ExportArgs, PartCommand, PartFile};
use crate::failure::Failure;
use crate::table::Table;
use api::{Action, Difference, Export, Fault, Method, PartName, PartText, PartView};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a command that waits looks.
const LOOK: Duration = Duration::from_millis(200);

/// `suiro part`.
pub fn run(context: &Context, command: PartCommand) -> Result<(), Failure> {
    match command {
        PartCommand::List => {
            let parts: Vec<PartView> = context.client.get("/v1/parts")?;
            context.print(&parts, |parts| listed(parts))
        }
        PartCommand::Show { name } => {
            let part: PartView = context.client.get(&path(&name))?;
            context.print(&part, shown)
        }
        PartCommand::Del { name, if_exists } => {
            let path = format!("{}?if_exists={if_exists}", path(&name));
            let gone: Difference = context.client.take(&path)?;
            context.print(&gone, |gone| format!("part {name} removed: {}", shown_difference(gone)))
        }
    }
}

/// Shows what a file would change.
pub fn diff(context: &Context, args: &DiffArgs) -> Result<(), Failure> {
    let text = text(&args.part)?;
    if slice::is_ours(&text) {
        return slice::diff(context, args, text);
    }
    let (name, text) = named(&args.part, text)?;
    let path = format!("{}?dry_run=true", path(&name));
    let found: Difference = context.client.send(Method::PUT, &path, &text)?;
    context.print(&found, |found| format!("part {name}: {}", shown_difference(found)))?;
    if args.exit_code && !found.changes.is_empty() { Err(Failure::Differs) } else { Ok(()) }
}

/// Makes a node have what a file declares.
pub fn apply(context: &Context, args: &ApplyArgs) -> Result<(), Failure> {
    let text = text(&args.part)?;
    if slice::is_ours(&text) {
        return slice::apply(context, args, text);
    }
    let (name, text) = named(&args.part, text)?;
    let done: Difference = context.client.send(Method::PUT, &path(&name), &text)?;
    context.print(&done, |done| format!("part {name}: {}", shown_difference(done)))?;
    if args.wait { wait(context, &name) } else { Ok(()) }
}

/// Prints what a node has, as a file.
pub fn export(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let found: Export = context.client.get(&format!("/v1/export?all={}", args.all))?;
    context.print(&found, |found| found.text.clone())
}

fn path(name: &PartName) -> String {
    format!("/v1/parts/{name}")
}

/// The text of a file.
fn text(PartFile { file, .. }: &PartFile) -> Result<String, Failure> {
    let shown = file.display().to_string();
    let text = match &*shown {
        "-" => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(file),
    };
    let unread = |error: std::io::Error| {
        let remedy = "name the file that declares the part, or - for standard input";
        Failure::Usage(Fault::new(&shown, "read it", error.to_string(), remedy))
    };
    text.map_err(unread)
}

/// The part's name and text.
fn named(
    PartFile { file, part }: &PartFile,
    text: String,
) -> Result<(PartName, PartText), Failure> {
    let shown = file.display().to_string();
    let text = PartText { text, file: Some(shown.clone()) };
    let name = part.clone().or_else(|| named_after(file)).ok_or_else(|| {
        let cause = "no part can be named after it";
        Failure::Usage(Fault::new(&shown, "name the part", cause, "name it with --part NAME"))
    })?;
    Ok((name, text))
}

fn named_after(file: &Path) -> Option<PartName> {
    file.file_stem()?.to_str()?.parse().ok()
}

/// Waits until everything of a part works.
fn wait(context: &Context, name: &PartName) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        let part: PartView = context.client.get(&path(name))?;
        let Some(first) = part.waits_for.first() else { return Ok(()) };
        if begin.elapsed() >= context.client.patience() {
            let cause = format!("{} (and {} more)", first.cause, part.waits_for.len() - 1);
            let fault = Fault::new(&first.thing, &first.step, cause, &first.remedy);
            return Err(Failure::Refused(fault));
        }
        std::thread::sleep(LOOK);
    }
}

fn shown_difference(difference: &Difference) -> String {
    let changes: Vec<_> =
        difference.changes.iter().map(|change| (change.action, change.to_string())).collect();
    told(difference.generation, &changes)
}

/// A difference: a line of numbers, and one for each object.
pub fn told(generation: u64, changes: &[(Action, String)]) -> String {
    if changes.is_empty() {
        return format!("nothing to do (generation {generation})\n");
    }
    let actions = [Action::Add, Action::Change, Action::Remake, Action::Remove];
    let count = |(action, sign)| {
        let count = changes.iter().filter(|change| change.0 == action).count();
        (count > 0).then(|| format!("{count} {sign}"))
    };
    let signs = ["come", "change", "are made anew", "go"];
    let counts: Vec<_> = actions.into_iter().zip(signs).filter_map(count).collect();
    let lines: String = changes.iter().map(|change| format!("{}\n", change.1)).collect();
    format!("{} (generation {generation})\n{lines}", counts.join(", "))
}

fn listed(parts: &[PartView]) -> String {
    let mut table = Table::new(&["PART", ">GENERATION", ">SWITCHES", ">PORTS", ">WAITS FOR"]);
    for part in parts {
        table.row(vec![
            part.name.to_string(),
            part.generation.to_string(),
            part.switches.len().to_string(),
            part.ports.to_string(),
            part.waits_for.len().to_string(),
        ]);
    }
    table.to_string()
}

fn shown(part: &PartView) -> String {
    let switches: Vec<_> = part.switches.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "part {}, generation {}\nswitches {}; {} ports\n",
        part.name,
        part.generation,
        if switches.is_empty() { "none".into() } else { switches.join(", ") },
        part.ports
    );
    part.waits_for.iter().for_each(|fault| text += &format!("waits for: {fault}\n"));
    if let Some(declared) = &part.declared {
        let file = declared.file.as_deref().unwrap_or("no file");
        text += &format!("declared in {file}:\n\n{}", declared.text);
    }
    text
}
