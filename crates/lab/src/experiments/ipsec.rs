//! `vse-ipsec`: the papers' setting to the letter, a tunnel that the kernel encrypts.
//!
//! `vse-collision`, `vse-two-flows` and `vse-priority` once more, with ESP beside the program that stands for it in the others. Nothing of the inner packet can be seen where a core is
//! chosen, and fragments are those of the encrypted packet: a hash finds one flow, suiro reads the flow control field.

use super::cipher::Cipher;
use super::findings::Findings;
use super::{Experiment, Settings, collision, priority, two_flows};
use anyhow::Result;

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(experiment: &Experiment, settings: &Settings) -> Result<Findings> {
    let settings = Settings { cipher: Cipher::Esp, ..settings.clone() };
    let collision = collision::run(experiment, &settings)?;
    let flows = collision.and(two_flows::run(experiment, &settings)?);
    Ok(flows.and(priority::run(experiment, &settings)?))
}
