//! `suiro bugreport`: what whoever helps would ask for, in one text file.

use super::{Context, out};
use crate::failure::Failure;
use api::{Export, Fault};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is asked of the node. Rules can be a million: they are in the export, which is cut.
const ANSWERS: [&str; 9] = [
    "/v1/node",
    "/v1/workers",
    "/v1/switches",
    "/v1/ports",
    "/v1/parts",
    "/v1/guests",
    "/v1/offload",
    "/v1/steer",
    "/v1/events?since=oldest",
];
/// What the host says of itself.
const FILES: [&str; 4] = ["/etc/os-release", "/proc/version", "/proc/meminfo", "/proc/cmdline"];
/// Bytes of one section. Chosen: what a mail takes, with all sections.
const SECTION_MAX: usize = 256 << 10;
/// Lines of the log, the last ones.
const LOG_LINES: usize = 500;

/// Writes the report.
pub fn run(context: &Context, version: &str, to: Option<PathBuf>) -> Result<(), Failure> {
    let text = report(context, version);
    if to.as_deref() == Some(Path::new("-")) {
        return out(&text);
    }
    let file = to.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        format!("suiro-bugreport-{now}.txt").into()
    });
    std::fs::write(&file, text).map_err(|error| {
        let remedy = "name another file by --output, or - for standard output";
        Failure::Refused(Fault::new(
            file.display().to_string(),
            "write it",
            error.to_string(),
            remedy,
        ))
    })?;
    out(&format!(
        "{} is written. It names interfaces, addresses and rules of this host, and no keys: read it before you send it.\n",
        file.display()
    ))
}

fn report(context: &Context, version: &str) -> String {
    let mut text = format!("suiro {version}\n");
    for file in FILES {
        let said = std::fs::read_to_string(file).unwrap_or_else(|error| error.to_string());
        section(&mut text, file, &said);
    }
    #[cfg(feature = "node")]
    section(&mut text, "suiro doctor", &super::doctor::text());
    for path in ANSWERS {
        let said = match context.client.get::<Value>(path) {
            Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_default(),
            Err(failure) => Failure::from(failure).to_string(),
        };
        section(&mut text, path, &said);
    }
    let export = context.client.get::<Export>("/v1/export?all=true");
    section(
        &mut text,
        "suiro export --all",
        &export.map_or_else(|_| "none".into(), |found| found.text),
    );
    section(&mut text, "log", &log(context));
    text
}

fn section(text: &mut String, name: &str, said: &str) {
    let most = said.len().min(SECTION_MAX);
    let cut = (0..=most).rev().find(|&at| said.is_char_boundary(at)).unwrap_or(0);
    let _ = write!(text, "\n==== {name}\n{}\n", said[..cut].trim_end());
    if cut < said.len() {
        let _ = writeln!(text, "… {} bytes more", said.len() - cut);
    }
}

/// The service's journal, or the file of a node in the background.
fn log(context: &Context) -> String {
    let lines = LOG_LINES.to_string();
    let journal =
        Command::new("journalctl").args(["-u", "suiro", "--no-pager", "-n", &lines]).output();
    let journal = journal.ok().filter(|said| said.status.success() && said.stdout.len() > 64);
    if let Some(said) = journal {
        return String::from_utf8_lossy(&said.stdout).into_owned();
    }
    let Some(socket) = context.client.socket() else {
        return "no journal of the unit suiro, and the node is on another host".into();
    };
    let file = socket.with_file_name("node.log");
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            let skip = text.lines().count().saturating_sub(LOG_LINES);
            text.lines().skip(skip).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("no journal of the unit suiro, and {}: {error}", file.display()),
    }
}
