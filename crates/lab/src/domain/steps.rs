//! What a command is doing: how long each step took, and what the lab used for it.

use super::layout::Layout;
use super::used::Used;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// The steps of a command, from its beginning.
pub struct Steps<'a> {
    began: Instant,
    /// The lab whose processor time and memory are told, too.
    lab: Option<&'a Layout>,
}

impl Default for Steps<'_> {
    fn default() -> Self {
        Self { began: Instant::now(), lab: None }
    }
}

impl<'a> Steps<'a> {
    /// Steps of which is told what the lab and the commands typed at it use.
    pub fn at(lab: &'a Layout) -> Self {
        Self { lab: Some(lab), ..Self::default() }
    }

    /// Does a step, and says that it is done, what it cost, and in a few words what `work` has made.
    pub fn done(&mut self, step: &str, work: impl FnOnce() -> Result<String>) -> Result<()> {
        let (began, before) = (Instant::now(), self.lab.map(Used::of));
        let made = work().context(step.to_owned())?;
        let took = seconds(began.elapsed());
        let used = match (self.lab.map(Used::of), before) {
            (Some(after), Some(before)) => format!(
                "  {:>6} s of a core  {:>4} MiB",
                seconds(after.processor.saturating_sub(before.processor)),
                after.memory_kib >> 10
            ),
            _ => String::new(),
        };
        println!("{step:<20} {took:>7} s{used}  {made}");
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
