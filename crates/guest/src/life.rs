//! When a command is started, and started again. Pure: time comes from outside.

use crate::End;
use api::{GuestCondition, Restart};
use std::time::Duration;

/// First and longest pause before a command is started again (chosen; the design's bounds).
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
/// A command that ran for so long has not failed at its start: the next pause is the first one again. Chosen.
const GOOD: Duration = Duration::from_secs(10);

/// What to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Start the command.
    Start,
    /// Look again then.
    Wait(Duration),
    /// Nothing, until something happens.
    Nothing,
}

/// A command's life. Times count from one beginning that the owner chooses.
#[derive(Clone, Debug)]
pub struct Life {
    condition: GuestCondition,
    /// Since when it is so.
    since: Duration,
    pause: Duration,
    /// How often it was started again.
    pub restarts: u64,
    /// How it ended last.
    pub last_end: Option<End>,
    began: bool,
}

impl Life {
    /// One that was never started.
    pub fn new(now: Duration) -> Self {
        let condition = GuestCondition::Waiting;
        Self { condition, since: now, pause: PAUSES[0], restarts: 0, last_end: None, began: false }
    }

    /// How it is.
    pub fn condition(&self) -> GuestCondition {
        self.condition
    }

    /// Since when.
    pub fn since(&self) -> Duration {
        self.since
    }

    fn enter(&mut self, condition: GuestCondition, now: Duration) {
        if self.condition != condition {
            (self.condition, self.since) = (condition, now);
        }
    }

    /// It runs.
    pub fn runs(&mut self, now: Duration) {
        self.restarts += u64::from(self.began && self.condition != GuestCondition::Running);
        self.began = true;
        self.enter(GuestCondition::Running, now);
    }

    /// It could not be started, or something that it needs is not there.
    pub fn waits(&mut self, now: Duration) {
        self.enter(GuestCondition::Waiting, now);
    }

    /// Its command ended.
    pub fn ended(&mut self, how: End, restart: Restart, now: Duration) {
        if self.condition == GuestCondition::Running && now.saturating_sub(self.since) >= GOOD {
            self.pause = PAUSES[0];
        } else if self.last_end.is_some() {
            self.pause = (self.pause * 2).min(PAUSES[1]);
        }
        self.last_end = Some(how);
        let again = match restart {
            Restart::Always => true,
            Restart::OnFailure => how != End::Status(0),
            Restart::Never => false,
        };
        // Another end of the same kind is another time.
        self.condition = GuestCondition::Waiting;
        self.enter(if again { GuestCondition::BackingOff } else { GuestCondition::Ended }, now);
    }

    /// What to do now, if all that it needs is there.
    pub fn next(&self, now: Duration) -> Next {
        match self.condition {
            GuestCondition::Waiting => Next::Start,
            GuestCondition::BackingOff => {
                match (self.since + self.pause).checked_sub(now).filter(|left| !left.is_zero()) {
                    Some(left) => Next::Wait(left),
                    None => Next::Start,
                }
            }
            GuestCondition::Running | GuestCondition::Ended => Next::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_command_that_fails_at_once_is_started_ever_more_rarely_and_one_that_ran_at_once() {
        let (mut life, mut now, mut pauses) = (Life::new(ms(0)), ms(0), Vec::new());
        for _ in 0..12 {
            assert_eq!(life.next(now), Next::Start);
            life.runs(now);
            life.ended(End::Status(1), Restart::OnFailure, now);
            let Next::Wait(pause) = life.next(now) else { panic!("{life:?}") };
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert_eq!(pauses[11], 30_000);
        life.runs(now);
        life.ended(End::Signal(9), Restart::Always, now + GOOD);
        assert_eq!(life.next(now + GOOD), Next::Wait(ms(100)));
        assert_eq!(life.restarts, 12);
    }

    proptest! {
        #[test]
        fn who_is_not_to_be_started_again_is_not(
            status in prop_oneof![Just(0u8), 1..=255u8], after in 0..100_000u64, later in 0..1_000_000u64,
        ) {
            for restart in [Restart::Always, Restart::OnFailure, Restart::Never] {
                let mut life = Life::new(ms(0));
                life.runs(ms(0));
                life.ended(End::Status(status), restart, ms(after));
                let comes_again = life.next(ms(after + later).max(ms(after))) != Next::Nothing;
                let wanted = match restart {
                    Restart::Always => true,
                    Restart::OnFailure => status != 0,
                    Restart::Never => false,
                };
                prop_assert_eq!(comes_again, wanted);
            }
        }
    }
}
