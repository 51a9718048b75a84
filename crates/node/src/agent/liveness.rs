//! When to ask a silent peer for a sign of life, when to give it up, and when to call it again.
//!
//! Pure: time is handed in.

use std::time::Duration;
use tokio::time::Instant;

/// Timing of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Silence after which an echo request is sent.
    pub probe_after: Duration,
    /// Silence after which the peer is given up.
    pub dead_after: Duration,
    /// Time for the peer to say hello.
    pub hello_within: Duration,
    /// First wait before a controller is called again; it doubles up to `retry_max`.
    pub retry_min: Duration,
    /// Longest wait before a controller is called again.
    pub retry_max: Duration,
}

impl Timing {
    /// With an echo request after so long a silence. The peer is given up after three times that: Open vSwitch gives up after twice;
    /// a loaded controller gets one more.
    pub fn probing_after(probe_after: Duration) -> Self {
        Self { probe_after, dead_after: 3 * probe_after, ..Self::default() }
    }
}

impl Default for Timing {
    /// Chosen: Open vSwitch probes after 5 s, too.
    fn default() -> Self {
        Self {
            probe_after: Duration::from_secs(5),
            dead_after: Duration::from_secs(15),
            hello_within: Duration::from_secs(10),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(8),
        }
    }
}

/// What to do about a peer now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Look again at this time.
    WaitUntil(Instant),
    /// Send an echo request.
    Probe,
    /// Give the peer up.
    Dead,
}

/// How long a peer has been silent. Any received byte counts as life.
///
/// Who was never asked is not given up: a node that stood still for a while (a suspended host) asks first.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    heard: Instant,
    probed: Option<Instant>,
}

impl Liveness {
    /// A peer heard right now.
    pub fn new(now: Instant) -> Self {
        Self { heard: now, probed: None }
    }

    /// The peer sent something.
    pub fn heard(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// What to do now; [`Verdict::Probe`] is said once per silence.
    pub fn verdict(&mut self, now: Instant, timing: &Timing) -> Verdict {
        let look_at = match self.probed {
            Some(probed) => probed + timing.dead_after.saturating_sub(timing.probe_after),
            None => self.heard + timing.probe_after,
        };
        if now < look_at {
            return Verdict::WaitUntil(look_at);
        }
        if self.probed.is_some() {
            return Verdict::Dead;
        }
        self.probed = Some(now);
        Verdict::Probe
    }
}

/// The waits between calls to a controller: doubling, bounded, from the start again after a good connection.
///
/// Each is shortened by chance to between half of it and all, so that the switches of a node, or of a site after a power cut, do not all
/// call at the same moment. Chance is handed in, as time is.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    next: Duration,
    timing: Timing,
}

impl Backoff {
    /// Before the first call.
    pub fn new(timing: Timing) -> Self {
        Self { next: timing.retry_min, timing }
    }

    /// The wait after a session that ended well: it begins anew if the session `lasted` longer than the wait before it. A controller that
    /// takes every call and hangs up is called more and more rarely.
    pub fn after_session(&mut self, lasted: Duration, chance: u32) -> Duration {
        match lasted > self.next {
            true => self.after_success(chance),
            false => self.after_failure(chance),
        }
    }

    /// The wait after one more failure; `chance` is any number.
    pub fn after_failure(&mut self, chance: u32) -> Duration {
        let most = self.next;
        self.next = (most * 2).min(self.timing.retry_max);
        let half = most / 2;
        half + half * (chance / 65_537) / 65_535
    }

    /// The wait after a connection that had worked.
    fn after_success(&mut self, chance: u32) -> Duration {
        self.next = self.timing.retry_min;
        self.after_failure(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_silent_peer_is_probed_once_and_then_given_up() {
        let (start, timing) = (Instant::now(), Timing::default());
        let mut peer = Liveness::new(start);
        assert_eq!(peer.verdict(after(start, 4), &timing), Verdict::WaitUntil(after(start, 5)));
        assert_eq!(peer.verdict(after(start, 5), &timing), Verdict::Probe);
        assert_eq!(peer.verdict(after(start, 6), &timing), Verdict::WaitUntil(after(start, 15)));
        assert_eq!(peer.verdict(after(start, 15), &timing), Verdict::Dead);
    }

    #[test]
    fn who_was_not_asked_because_the_node_stood_still_is_asked_before_it_is_given_up() {
        let (start, timing) = (Instant::now(), Timing::default());
        let mut peer = Liveness::new(start);
        assert_eq!(peer.verdict(after(start, 60), &timing), Verdict::Probe);
        assert_eq!(peer.verdict(after(start, 69), &timing), Verdict::WaitUntil(after(start, 70)));
        assert_eq!(peer.verdict(after(start, 70), &timing), Verdict::Dead);
        assert_eq!(peer.verdict(after(start, 71), &timing), Verdict::Dead);
    }

    #[test]
    fn a_sign_of_life_starts_the_silence_anew() {
        let (start, timing) = (Instant::now(), Timing::default());
        let mut peer = Liveness::new(start);
        assert_eq!(peer.verdict(after(start, 5), &timing), Verdict::Probe);
        peer.heard(after(start, 6));
        assert_eq!(peer.verdict(after(start, 7), &timing), Verdict::WaitUntil(after(start, 11)));
    }

    #[test]
    fn back_off_doubles_to_its_bound_and_starts_again_after_success() {
        let mut backoff = Backoff::new(Timing::default());
        let waits: Vec<u64> = (0..5).map(|_| backoff.after_failure(u32::MAX).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 8]);
        assert_eq!(backoff.after_success(u32::MAX).as_secs(), 1);
        assert_eq!(backoff.after_failure(u32::MAX).as_secs(), 2);
    }

    #[test]
    fn chance_spreads_a_wait_over_its_upper_half() {
        let wait = |chance| Backoff::new(Timing::default()).after_failure(chance).as_millis();
        assert_eq!([0, 1 << 31, u32::MAX].map(wait), [500, 749, 1000]);
    }

    #[test]
    fn a_probe_comes_after_the_interval_and_the_end_after_three() {
        let (start, timing) = (Instant::now(), Timing::probing_after(Duration::from_secs(2)));
        let mut peer = Liveness::new(start);
        assert_eq!(peer.verdict(after(start, 1), &timing), Verdict::WaitUntil(after(start, 2)));
        assert_eq!(peer.verdict(after(start, 2), &timing), Verdict::Probe);
        assert_eq!(peer.verdict(after(start, 3), &timing), Verdict::WaitUntil(after(start, 6)));
        assert_eq!(peer.verdict(after(start, 6), &timing), Verdict::Dead);
    }

    #[test]
    fn only_a_session_that_lasted_longer_than_the_wait_starts_the_waits_anew() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(Timing { retry_min: second, ..Timing::default() });
        let most = u32::MAX; // no chance
        let waits: Vec<_> = (0..3).map(|_| backoff.after_session(second / 2, most)).collect();
        assert_eq!(waits, [second, 2 * second, 4 * second]);
        assert_eq!(backoff.after_session(7 * second, most), 8 * second);
        assert_eq!(backoff.after_session(60 * second, most), second);
    }
}
