//! Is the machine ours alone?
//!
//! Before each window the testbed rests. What the cores do then is others' work: other programs, and other machines of the host (`steal`).
//! A rate that others have spoiled says nothing of who chose the cores. Source: the first line of `/proc/stat`, proc_stat(5).

use anyhow::{Context, Result};
use std::time::Duration;

/// How long a look takes. Chosen: some ticks of each core, and little beside a window. It is the sum of all looks that is judged.
const LOOK: Duration = Duration::from_millis(100);

/// Percent of the cores that others may have. Chosen: a flow that offers 0.79 of a core still fits on one beside that.
const BEARABLE: f64 = 10.0;

/// What others took of the cores, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Others {
    theirs: u64,
    all: u64,
}

impl Others {
    /// Looks for a moment.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn look(&mut self) -> Result<()> {
        let before = Self::now()?;
        std::thread::sleep(LOOK);
        let after = Self::now()?;
        self.theirs += after.theirs.saturating_sub(before.theirs);
        self.all += after.all.saturating_sub(before.all);
        Ok(())
    }

    /// Percent of all cores' time.
    pub fn percent(&self) -> f64 {
        100.0 * self.theirs as f64 / self.all.max(1) as f64
    }

    fn now() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("/proc/stat: cannot be read")?;
        Self::read(&text).context("/proc/stat: its first line does not tell the cores' time")
    }

    /// Since the start: user, nice, system, idle, iowait, irq, softirq, steal. What follows is in the first two already.
    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks = line.split_whitespace().take(8).map(|word| word.parse().ok());
        let ticks: Vec<u64> = ticks.collect::<Option<_>>()?;
        let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
        let all: u64 = ticks.iter().sum();
        Some(Self { theirs: all - idle - waiting, all })
    }
}

/// Whether a rate means nothing beside others who have so much of the cores.
pub fn is_spoiled(percent: f64) -> bool {
    percent > BEARABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_not_idle_is_others_work_and_guests_time_counts_once() {
        let text = "cpu  100 10 20 700 50 5 15 100 90 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let others = Others::read(text).unwrap();
        assert_eq!(others, Others { theirs: 250, all: 1000 });
        assert!((others.percent() - 25.0).abs() < 1e-9 && is_spoiled(others.percent()));
        assert!(!is_spoiled(Others::default().percent()));
        for text in ["", "cpu  1 2 3", "cpu  1 2 3 x 5 6 7 8", "intr 5"] {
            assert_eq!(Others::read(text), None, "{text:?}");
        }
    }
}
