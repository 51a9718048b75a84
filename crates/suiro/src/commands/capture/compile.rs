//! A filter in libpcap's words, made a program by the host's own tcpdump.
//!
//! libpcap stays out of node and command: its compiler takes seconds for hundreds of terms, and asks name servers. So it has a process of its own,
//! for a time.

use crate::failure::Failure;
use api::{CaptureFilter, Fault};
use std::process::Command;

/// Seconds. Chosen: hundreds of terms take as long, and a filter that takes longer costs too much for each frame.
const PATIENCE: &str = "2";
/// What `timeout` ends with when time was over, and when there is no such program.
const LATE: i32 = 124;
const MISSING: i32 = 127;

/// Compiles a filter for Ethernet frames.
pub fn compile(text: &str) -> Result<CaptureFilter, Failure> {
    let refused = |cause: &str, remedy: &str| {
        Failure::Usage(Fault::new(format!("filter {text:?}"), "compile it", cause, remedy))
    };
    let words = [PATIENCE, "tcpdump", "-ddd", "-y", "EN10MB", "--", text];
    let missing = "install tcpdump, whose library knows this syntax, or use --match";
    let ended = Command::new("timeout").args(words).output();
    let ended = ended.map_err(|error| refused(&error.to_string(), missing))?;
    match ended.status.code() {
        Some(0) => {}
        Some(LATE) => {
            return Err(refused("it takes more than 2 s", "say it shorter, or use --match"));
        }
        Some(MISSING) => return Err(refused("there is no tcpdump", missing)),
        _ => {
            let said = String::from_utf8_lossy(&ended.stderr);
            let cause = said.lines().last().unwrap_or("it is refused");
            let cause = cause.trim_start_matches("tcpdump: ");
            return Err(refused(cause, "see man pcap-filter, or use --match"));
        }
    }
    let told = String::from_utf8_lossy(&ended.stdout);
    // The first line says how many there are.
    let program = told.lines().skip(1).map(instruction).collect::<Option<Vec<_>>>();
    let program = program.ok_or_else(|| refused("tcpdump prints no program", "use --match"))?;
    Ok(CaptureFilter { text: text.into(), program })
}

fn instruction(line: &str) -> Option<[u32; 4]> {
    let numbers: Vec<u32> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}
