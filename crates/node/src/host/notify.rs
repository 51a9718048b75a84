//! systemd's notification protocol (sd_notify(3)). Without systemd every call does nothing.

use sd_notify::NotifyState;
use std::time::Duration;

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("systemd was not told: {error}");
    }
}

/// The node serves.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The node ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The configuration is being read again; [`ready`] ends that. systemd wants the time with it (`Type=notify-reload`).
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The node is alive.
pub fn watchdog() {
    tell(&[NotifyState::Watchdog]);
}

/// How often [`watchdog`] must be called: half of what systemd allows; `None` without a watchdog.
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}
