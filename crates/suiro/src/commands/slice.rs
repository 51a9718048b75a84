//! Slices: `suiro slice`, and `suiro diff` and `suiro apply` of slices' and domains' files.
//!
//! What a file is, its first key says: `suiro: slice/1`, `suiro: domain/1`. The controller reads it; this end knows no grammar, but sends the texts of the
//! files that it names.

use super::part::told;
use super::{Context, of_controller, out, slice_switch};
use crate::args::{ApplyArgs, DiffArgs, SliceCommand};
use crate::failure::Failure;
use crate::table::Table;
use crate::terminal;
use api::exec::ExecRequest;
use api::{
    CalendarEntry, CircuitState, Declaration, Declares, Fault, LogView, Method, Outputs, PlanView,
    SliceState, SliceView, quoted,
};
use std::collections::BTreeMap;
use std::io::{stderr, stdin, stdout};
use std::path::Path;
use std::time::Instant;

/// What the way to an external is called among links.
const OUTSIDE: &str = "_out.";

/// The best shell that a guest has.
const SHELL: [&str; 3] = ["sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"];

/// How long the controller waits at a time for what a command waits for.
const WAIT_S: u64 = 5;

/// Whether a file is the domain's or a slice's: its first key says so.
pub fn is_ours(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.find(|line| *line != "---").is_some_and(|line| line.starts_with("suiro:"))
}

/// `suiro diff` of such a file.
pub fn diff(context: &Context, args: &DiffArgs, text: String) -> Result<(), Failure> {
    let (declared, declares) = read(context, &args.part.file, text)?;
    let Declares::Slice { slice, .. } = declares else {
        return out("the domain's file is right; slices that are admitted stay as they are\n");
    };
    let found: PlanView =
        send(context, Method::POST, &format!("{}/plan", path(&slice)), &declared)?;
    context.print(&found, |found| match found.changes[..] {
        [] => shown(found),
        _ => format!(
            "{}suiro apply --plan {} does this and nothing else\n",
            shown(found),
            found.plan
        ),
    })?;
    if args.exit_code && !found.changes.is_empty() { Err(Failure::Differs) } else { Ok(()) }
}

/// `suiro apply` of such a file.
pub fn apply(context: &Context, args: &ApplyArgs, text: String) -> Result<(), Failure> {
    let (declared, declares) = read(context, &args.part.file, text)?;
    let Declares::Slice { slice, .. } = declares else {
        let revision: u64 = send(context, Method::PUT, "/v1/domain", &declared)?;
        return context.print(&revision, |revision| {
            format!("the domain is as the file says (revision {revision})\n")
        });
    };
    put(context, &slice, &declared, args.plan.as_deref())?;
    if args.wait { wait(context, &slice, "ready") } else { Ok(()) }
}

/// `suiro slice`.
pub fn run(context: &Context, command: SliceCommand) -> Result<(), Failure> {
    match command {
        SliceCommand::List => {
            let slices: Vec<SliceView> = get(context, "/v1/slices")?;
            context.print(&slices, |slices| listed(slices))
        }
        SliceCommand::Show { slice } => {
            let view: SliceView = get(context, &path(&slice))?;
            context.print(&view, told_whole)
        }
        SliceCommand::Del { slice, wait: false } => remove(context, &slice),
        SliceCommand::Del { slice, wait: true } => {
            remove(context, &slice)?;
            wait(context, &slice, "gone")
        }
        SliceCommand::History { slice } => {
            let found = history(context, &slice)?;
            context.print(&found, |found| {
                let lines = found.iter().map(|(generation, declared)| {
                    format!("generation {generation}, from {}\n", declared.file)
                });
                lines.collect()
            })
        }
        SliceCommand::Rollback { slice, generation } => rollback(context, &slice, generation),
        SliceCommand::Calendar { ical: true } => {
            let text = context.controller.text("/v1/calendar.ics").map_err(of_controller)?;
            out(&text)
        }
        SliceCommand::Calendar { ical: false } => {
            let entries: Vec<CalendarEntry> = get(context, "/v1/calendar")?;
            context.print(&entries, |entries| calendar(entries))
        }
        SliceCommand::Why { slice, of: Some(switch), packet: Some(packet) } => {
            slice_switch::why(context, (&slice, &switch), packet)
        }
        SliceCommand::Why { slice, of, .. } => why(context, &slice, of.as_deref()),
        SliceCommand::Switch { slice, switch } => slice_switch::show(context, (&slice, &switch)),
        SliceCommand::Flows { slice, switch, filter } => {
            slice_switch::flows(context, (&slice, &switch), &filter)
        }
        SliceCommand::Logs { slice, guest } => logs(context, &slice, &guest),
        SliceCommand::Exec { slice, guest, command } => exec(context, &slice, &guest, command),
        SliceCommand::Console { slice, guest, command } => {
            console(context, &slice, &guest, command)
        }
    }
}

pub(super) fn path(slice: &str) -> String {
    format!("/v1/slices/{slice}")
}

/// The declaration, complete with the files that it names, and what it declares.
fn read(context: &Context, file: &Path, text: String) -> Result<(Declaration, Declares), Failure> {
    let mut declared =
        Declaration { file: file.display().to_string(), text, files: BTreeMap::new() };
    let declares: Declares = send(context, Method::POST, "/v1/read", &declared)?;
    if let Declares::Slice { files, .. } = &declares {
        for name in files {
            let beside = file.parent().unwrap_or(Path::new("")).join(name);
            let read = std::fs::read_to_string(&beside);
            let text = read.map_err(|error| {
                let remedy = format!(
                    "{} names it: put it beside that file, or correct its path",
                    file.display()
                );
                Failure::Usage(Fault::new(
                    beside.display().to_string(),
                    "read it",
                    error.to_string(),
                    remedy,
                ))
            })?;
            declared.files.insert(name.clone(), text);
        }
    }
    Ok((declared, declares))
}

fn put(
    context: &Context,
    slice: &str,
    declared: &Declaration,
    plan: Option<&str>,
) -> Result<(), Failure> {
    let query = plan.map(|plan| format!("?plan={}", api::quoted(plan))).unwrap_or_default();
    let done: PlanView = send(context, Method::PUT, &(path(slice) + &query), declared)?;
    context.print(&done, shown)
}

fn remove(context: &Context, slice: &str) -> Result<(), Failure> {
    let gone: PlanView = context.controller.take(&path(slice)).map_err(of_controller)?;
    context.print(&gone, shown)
}

fn history(context: &Context, slice: &str) -> Result<Vec<(u64, Declaration)>, Failure> {
    get(context, &format!("{}/history", path(slice)))
}

fn rollback(context: &Context, slice: &str, generation: Option<u64>) -> Result<(), Failure> {
    let view: SliceView = get(context, &path(slice))?;
    let wanted = generation.unwrap_or(view.generation.saturating_sub(1));
    let found = history(context, slice)?.into_iter().find(|(generation, _)| *generation == wanted);
    let (_, declared) = found.ok_or_else(|| {
        let remedy = format!("see which there are: suiro slice history {slice}");
        Failure::Refused(Fault::new(
            format!("generation {wanted} of slice {slice}"),
            "find it",
            "there is none",
            remedy,
        ))
    })?;
    put(context, slice, &declared, None)
}

/// A guest of a slice.
fn guest_path(slice: &str, guest: &str) -> String {
    format!("{}/guests/{}", path(slice), quoted(guest))
}

fn logs(context: &Context, slice: &str, guest: &str) -> Result<(), Failure> {
    let log: LogView = get(context, &(guest_path(slice, guest) + "/log"))?;
    context.print(&log, |log| log.text.clone())
}

fn exec(context: &Context, slice: &str, guest: &str, command: Vec<String>) -> Result<(), Failure> {
    let request = ExecRequest { command, terminal: None };
    let path = guest_path(slice, guest) + "/exec";
    let to: Outputs<'_> = (&mut stdout(), &mut stderr());
    match context.controller.exec(&path, &request, stdin(), to, || None).map_err(of_controller)? {
        0 => out(""),
        status => Err(Failure::Ended(status)),
    }
}

/// A shell in a guest, or another program, at this terminal.
fn console(
    context: &Context,
    slice: &str,
    guest: &str,
    command: Vec<String>,
) -> Result<(), Failure> {
    let command = match command.is_empty() {
        true => SHELL.map(String::from).to_vec(),
        false => command,
    };
    let path = guest_path(slice, guest) + "/exec";
    terminal::attach(|input, window| {
        let request = ExecRequest { command, terminal: Some(window) };
        let to: Outputs<'_> = (&mut stdout(), &mut stderr());
        context.controller.exec(&path, &request, input, to, terminal::size).map_err(of_controller)
    })
}

/// Waits until a slice is ready, or gone.
fn wait(context: &Context, slice: &str, until: &str) -> Result<(), Failure> {
    let (began, patience) = (Instant::now(), context.controller.patience());
    loop {
        let left = patience.saturating_sub(began.elapsed()).as_secs().min(WAIT_S);
        let view: Option<SliceView> =
            get(context, &format!("{}/status?until={until}&timeout={left}", path(slice)))?;
        let is_done =
            view.as_ref().is_none_or(|view| until == "ready" && view.state == SliceState::Ready);
        if is_done {
            let seconds = began.elapsed().as_secs_f64();
            return if context.json {
                Ok(())
            } else {
                out(&format!("slice {slice} is {until} after {seconds:.1} s\n"))
            };
        }
        if began.elapsed() >= patience {
            let view = view.into_iter().flat_map(|view| view.waits_for).next();
            let fault = view.unwrap_or_else(|| {
                Fault::new(
                    format!("slice {slice}"),
                    "wait for it",
                    format!("it is not {until} yet"),
                    "give it longer with --timeout",
                )
            });
            return Err(Failure::Refused(fault));
        }
    }
}

fn get<T: serde::de::DeserializeOwned>(context: &Context, path: &str) -> Result<T, Failure> {
    context.controller.get(path).map_err(of_controller)
}

fn send<T: serde::de::DeserializeOwned>(
    context: &Context,
    method: Method,
    path: &str,
    body: &Declaration,
) -> Result<T, Failure> {
    context.controller.send(method, path, body).map_err(of_controller)
}

fn shown(plan: &PlanView) -> String {
    let changes: Vec<_> =
        plan.changes.iter().map(|change| (change.action, change.to_string())).collect();
    format!("slice {}: {}", plan.slice, told(plan.generation, &changes))
}

fn listed(slices: &[SliceView]) -> String {
    let mut table =
        Table::new(&["SLICE", "STATE", ">GENERATION", ">SWITCHES", ">GUESTS", ">WAITS FOR"]);
    for slice in slices {
        table.row(vec![
            slice.slice.clone(),
            slice.state.word().into(),
            slice.generation.to_string(),
            (slice.nodes.len() - slice.guests.len()).to_string(),
            slice.guests.len().to_string(),
            slice.waits_for.len().to_string(),
        ]);
    }
    table.to_string()
}

fn calendar(entries: &[CalendarEntry]) -> String {
    let mut table = Table::new(&["SLICE", "FROM", "UNTIL", ">CORES", ">MEMORY", ">RATE"]);
    for entry in entries {
        let rate = entry.rate.to_string().parse::<api::Rate>();
        table.row(vec![
            entry.slice.clone().unwrap_or_else(|| "another tenant's".into()),
            entry.from.clone().unwrap_or_else(|| "-".into()),
            entry.until.clone().unwrap_or_else(|| "-".into()),
            format!("{}.{:03}", entry.cpu_milli / 1000, entry.cpu_milli % 1000),
            format!("{} MiB", entry.memory >> 20),
            rate.map_or_else(|_| "-".into(), |rate| format!("{rate}bit/s")),
        ]);
    }
    table.to_string()
}

fn told_whole(view: &SliceView) -> String {
    let mut text = format!(
        "slice {}: {}, generation {}, uid {}\n",
        view.slice,
        view.state.word(),
        view.generation,
        view.uid
    );
    let mut table = Table::new(&["OBJECT", "NAME", "NODE", "NAMESPACE"]);
    for (name, node) in &view.nodes {
        let guest = view.guests.get(name);
        let kind = match view.externals.contains_key(name) {
            true => "external",
            false if guest.is_some() => "guest",
            false => "switch",
        };
        table.row(vec![
            kind.into(),
            name.clone(),
            node.clone(),
            guest.map(|guest| guest.netns.clone()).unwrap_or_default(),
        ]);
    }
    let times = [("from", &view.from), ("until", &view.until)];
    for (word, moment) in times {
        text += &moment.as_ref().map(|moment| format!("{word} {moment}\n")).unwrap_or_default();
    }
    text += &table.to_string();
    if !view.links.is_empty() {
        text += &links(view);
    }
    view.waits_for.iter().for_each(|fault| text += &format!("waits for: {fault}\n"));
    text
}

/// Each link, as its probes find it.
fn links(view: &SliceView) -> String {
    let mut table =
        Table::new(&["LINK", "WAY", "STATE", ">ROUND TRIP ms", ">LOST THERE", ">LOST BACK"]);
    for (name, link) in &view.links {
        let lost = |at: usize| {
            link.ways.get(at).map_or("-".into(), |way| format!("{} of {}", way.lost, way.probes))
        };
        table.row(vec![
            name.strip_prefix(OUTSIDE).unwrap_or(name).into(),
            link.nodes.join("–"),
            link.state.map_or("local", CircuitState::word).into(),
            link.round_trip_us.map_or("-".into(), |us| format!("{:.2}", us as f64 / 1000.0)),
            lost(0),
            lost(1),
        ]);
    }
    table.to_string()
}

/// Why links are not up: way, cause, remedy.
fn why(context: &Context, slice: &str, link: Option<&str>) -> Result<(), Failure> {
    let view: SliceView = get(context, &path(slice))?;
    let plain = |name: &'_ String| name.strip_prefix(OUTSIDE).unwrap_or(name).to_owned();
    let all: Vec<_> = view.links.keys().map(plain).collect();
    if let Some(link) = link.filter(|link| !all.iter().any(|name| name == link)) {
        let remedy = format!("it has: {}", all.join(", "));
        let thing = format!("link {link} of slice {slice}");
        return Err(Failure::Refused(Fault::new(thing, "find it", "there is none", remedy)));
    }
    let is_asked = |fault: &&Fault| {
        link.is_none_or(|link| {
            let rest = |kind| fault.thing.strip_prefix(&format!("{kind} {link}"));
            let rest = rest("link").or_else(|| rest("external"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ' ']))
        })
    };
    let faults: Vec<&Fault> = view.waits_for.iter().filter(is_asked).collect();
    context.print(&faults, |faults| match faults[..] {
        [] => match link {
            Some(link) => format!("link {link} of slice {slice} is proved, both ways\n"),
            None => format!("slice {slice} is {}: nothing is waited for\n", view.state.word()),
        },
        _ => faults.iter().map(|fault| format!("{fault}\n")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn the_first_key_says_what_a_file_is() {
        assert!(is_ours("# a slice\n---\nsuiro: slice/1\nname: demo\n"));
        assert!(is_ours("suiro: domain/1\n"));
        assert!(!is_ours("[[switch]]\nname = \"sw0\"\n"));
        assert!(!is_ours("# suiro: slice/1\n[[switch]]\n"));
    }
}
