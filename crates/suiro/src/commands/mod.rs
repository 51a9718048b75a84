//! One module per noun.

#[cfg(feature = "node")]
mod background;
pub mod bugreport;
pub mod capture;
pub mod circuit;
#[cfg(feature = "control")]
pub mod control;
#[cfg(feature = "node")]
pub mod doctor;
pub mod domain;
pub mod events;
pub mod flow;
mod front_end;
pub mod guest;
#[cfg(feature = "node")]
pub mod node;
pub mod offload;
pub mod part;
pub mod port;
pub mod queue;
pub mod rules;
pub mod slice;
mod slice_switch;
pub mod status;
pub mod steer;
pub mod switch;
pub mod why;

use crate::failure::Failure;
use api::{Client, ClientError, Fault};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// What every command needs.
pub struct Context {
    /// The node.
    pub client: Client,
    /// Sockets of the nodes, if several were named: captures know what to do with them.
    pub nodes: Vec<PathBuf>,
    /// The controller of a domain.
    pub controller: Client,
    /// Whether to print JSON.
    pub json: bool,
}

impl Context {
    /// Prints an answer: as JSON, or as `human` says it.
    ///
    /// # Errors
    /// The output is closed.
    pub fn print<T: Serialize>(
        &self,
        answer: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let text = if self.json {
            serde_json::to_string_pretty(answer).expect("answers are plain data") + "\n"
        } else {
            human(answer)
        };
        out(&text)
    }

    /// Removes something, and says so; with `if_exists` it may be gone already.
    ///
    /// # Errors
    /// The node refuses, or the output is closed.
    pub fn remove(&self, path: &str, thing: &str, if_exists: bool) -> Result<(), Failure> {
        self.client.delete(&format!("{path}?if_exists={if_exists}"))?;
        let done = if if_exists { "is gone" } else { "removed" };
        if self.json { Ok(()) } else { out(&format!("{thing} {done}\n")) }
    }
}

/// An error of asking the controller. At a socket the client speaks of nodes: here it is the controller that does not answer.
pub fn of_controller(error: ClientError) -> Failure {
    let named = |fault: Fault| {
        match fault.thing.as_str() {
        "node" => Fault {
            thing: "controller".into(),
            remedy: "start one (suiro control --background, or suiro lab domain up), or name its socket or address with --control or SUIRO_CONTROL".into(),
            ..fault
        },
        _ => fault,
    }
    };
    match error {
        ClientError::NoNode(fault) => Failure::NoNode(named(fault)),
        ClientError::Silent(fault) => Failure::Silent(named(fault)),
        refused @ ClientError::Refused(_) => refused.into(),
    }
}

/// Writes to standard output.
///
/// # Errors
/// The output is closed.
pub fn out(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
