//! Looks after the node's own threads: systemd's watchdog is fed while all answer, and the node ends when one has failed.

use crate::host::notify;
use crate::roll::{Absence, Roll};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How often the roll is called, if the watchdog is not to be fed more often.
const EVERY: Duration = Duration::from_secs(1);
/// Whoever is at one thing for longer does not answer. Chosen: what the unit allows the node as a whole (`WatchdogSec`).
const STUCK: Duration = Duration::from_secs(10);
/// The threads of the runtime that serves API and controllers.
const CONTROL: &str = "suiro-control";

/// Who looks.
pub(super) struct Watchman {
    roll: Roll,
    /// The task of all timeouts.
    timekeeper: AbortHandle,
    /// Whether the state file's thread has failed.
    has_no_store: Box<dyn Fn() -> bool + Send>,
    /// Questions to the control threads: those that were asked, and those that were answered.
    asked: u64,
    answered: Arc<AtomicU64>,
    asked_at: Instant,
    /// Who does not answer, and was told of.
    silent: Option<&'static str>,
}

impl Watchman {
    pub fn new(
        roll: Roll,
        timekeeper: AbortHandle,
        has_no_store: impl Fn() -> bool + Send + 'static,
    ) -> Self {
        let has_no_store = Box::new(has_no_store);
        let (answered, asked_at) = (Arc::default(), Instant::now());
        Self { roll, timekeeper, has_no_store, asked: 0, answered, asked_at, silent: None }
    }

    /// The threads that are looked after.
    pub fn roll(&self) -> &Roll {
        &self.roll
    }

    /// Ready when a thread has failed, with its name.
    pub async fn watch(mut self) -> &'static str {
        let feeds = notify::watchdog_interval();
        let mut ticks = tokio::time::interval(feeds.map_or(EVERY, |feeds| feeds.min(EVERY)));
        let mut fed = None;
        loop {
            let now = ticks.tick().await;
            if let Some(failed) = self.look(self.roll.call(STUCK)) {
                return failed;
            }
            let is_due = |every| fed.is_none_or(|fed| now.duration_since(fed) >= every);
            if self.silent.is_none() && feeds.is_some_and(is_due) {
                notify::watchdog();
                fed = Some(now);
            }
        }
    }

    /// Who has failed, if anybody has; says who does not answer any more, or again.
    fn look(&mut self, roll: Result<(), Absence>) -> Option<&'static str> {
        let control = self.ask_control();
        let silent = match roll {
            Err(Absence::Failed(name)) => return Some(name),
            _ if self.timekeeper.is_finished() => return Some("of timeouts"),
            _ if (self.has_no_store)() => return Some("suiro-store"),
            Err(Absence::Stuck(name, time)) => Some((name, time)),
            Ok(()) => control.map(|time| (CONTROL, time)),
        };
        let before = std::mem::replace(&mut self.silent, silent.map(|(name, _)| name));
        match (before, silent) {
            (before, Some((name, time))) if before != Some(name) => {
                let seconds = time.as_secs();
                tracing::error!(
                    "thread {name} has been at one thing for {seconds} s; systemd's watchdog is not fed until it answers"
                );
            }
            (Some(name), None) => tracing::warn!("thread {name} answers again"),
            _ => {}
        }
        None
    }

    /// Asks the control threads, if they have answered; for how long they have not, if that is too long.
    fn ask_control(&mut self) -> Option<Duration> {
        if self.answered.load(Relaxed) == self.asked {
            self.asked += 1;
            self.asked_at = Instant::now();
            let (answered, number) = (self.answered.clone(), self.asked);
            tokio::spawn(async move { answered.store(number, Relaxed) });
            return None;
        }
        Some(self.asked_at.elapsed()).filter(|waited| *waited > STUCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watchman() -> Watchman {
        let timekeeper = tokio::spawn(std::future::pending::<()>());
        Watchman::new(Roll::default(), timekeeper.abort_handle(), || false)
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_stuck_keeps_the_watchdog_hungry_until_it_answers_and_who_fails_ends_the_node() {
        let mut watchman = watchman();
        assert_eq!((watchman.look(Ok(())), watchman.silent), (None, None));
        let stuck = Err(Absence::Stuck("suiro-ports", STUCK));
        assert_eq!((watchman.look(stuck), watchman.silent), (None, Some("suiro-ports")));
        tokio::task::yield_now().await;
        assert_eq!((watchman.look(Ok(())), watchman.silent), (None, None));
        let failed = Err(Absence::Failed("suiro-ports"));
        assert_eq!(watchman.look(failed), Some("suiro-ports"));
    }

    #[tokio::test(start_paused = true)]
    async fn control_threads_that_do_not_answer_are_seen() {
        let mut watchman = watchman();
        watchman.look(Ok(()));
        // The task that would answer has had no turn.
        watchman.asked_at -= STUCK * 2;
        watchman.look(Ok(()));
        assert_eq!(watchman.silent, Some(CONTROL));
        tokio::task::yield_now().await;
        watchman.look(Ok(()));
        assert_eq!(watchman.silent, None);
    }

    #[tokio::test]
    async fn a_node_without_its_timekeeper_or_its_store_ends() {
        let done = tokio::spawn(async {});
        let mut watchman = Watchman::new(Roll::default(), done.abort_handle(), || false);
        done.await.unwrap();
        assert_eq!(watchman.look(Ok(())), Some("of timeouts"));
        watchman = self::watchman();
        watchman.has_no_store = Box::new(|| true);
        assert_eq!(watchman.look(Ok(())), Some("suiro-store"));
    }
}
