//! Logging: to stderr, for people or as JSON, filtered by SUIRO_LOG, RUST_LOG, `--log` or the configuration file.
//!
//! Under systemd the same goes to the journal by its own protocol, so that lines have priorities and fields (`journalctl -p err`, `REMEDY=`).

use crate::args::LogFormat;
use crate::failure::Failure;
use api::Fault;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged unless told otherwise.
const DEFAULT: &str = "info";

/// Begins logging. The first of `SUIRO_LOG`, `RUST_LOG`, the command line and the configuration that says something wins.
///
/// # Errors
/// The filter is none.
pub fn start(
    format: LogFormat,
    asked: Option<&str>,
    configured: Option<&str>,
) -> Result<(), Failure> {
    let from_env = ["SUIRO_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    let text = from_env.as_deref().or(asked).or(configured).unwrap_or(DEFAULT);
    let filter = EnvFilter::try_new(text).map_err(|error| {
        let remedy = "write LEVEL or TARGET=LEVEL,..., such as info,node::agent=debug";
        Failure::Usage(Fault::new("log filter", "read it", format!("{text:?}: {error}"), remedy))
    })?;
    match format {
        LogFormat::Human if goes_to_the_journal() => {
            match tracing_journald::layer() {
                Ok(journal) => {
                    let journal = journal.with_field_prefix(None);
                    tracing_subscriber::registry().with(filter).with(journal).init();
                }
                // It is full, or not to be reached: its pipe still takes lines.
                Err(_) => for_people(filter),
            }
        }
        LogFormat::Human => for_people(filter),
        LogFormat::Json => {
            let builder = tracing_subscriber::fmt().with_env_filter(filter);
            builder.with_writer(std::io::stderr).json().flatten_event(true).init();
        }
    }
    Ok(())
}

fn for_people(filter: EnvFilter) {
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).init();
}

/// Whether systemd's journal is what reads our standard error (systemd.exec(5), `JOURNAL_STREAM`).
fn goes_to_the_journal() -> bool {
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(fd) = std::io::stderr().as_fd().try_clone_to_owned() else { return false };
    std::fs::File::from(fd)
        .metadata()
        .is_ok_and(|ours| named == format!("{}:{}", ours.dev(), ours.ino()))
}
