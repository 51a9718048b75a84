//! Logging: to stderr, for people or as JSON, filtered by SUIRO_LOG, RUST_LOG, `--log` or the configuration file.

use crate::args::LogFormat;
use crate::failure::Failure;
use api::Fault;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

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
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Human => {
            builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).init()
        }
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
