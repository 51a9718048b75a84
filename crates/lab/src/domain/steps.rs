//! What a command is doing, and how long each step took.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// The steps of a command, from its beginning.
pub struct Steps {
    began: Instant,
}

impl Default for Steps {
    fn default() -> Self {
        Self { began: Instant::now() }
    }
}

impl Steps {
    /// Does a step, and says that it is done and how long it took. `work` says in a few words what it has made.
    pub fn done(&mut self, step: &str, work: impl FnOnce() -> Result<String>) -> Result<()> {
        let began = Instant::now();
        let made = work().context(step.to_owned())?;
        println!("{step:<20} {:>7} s  {made}", seconds(began.elapsed()));
        Ok(())
    }

    /// How long all took.
    pub fn total(&self) -> String {
        format!("{} s", seconds(self.began.elapsed()))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}
