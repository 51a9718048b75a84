//! (essay to come)

pub mod agent;
pub mod api;
pub mod config;
pub mod spec;
pub mod journal;
pub mod fault;
pub mod store;
pub mod switch;
pub mod host;
pub mod ports;
pub mod run;
pub mod service;

/// Whether tests that need root may run: true as root, false when the user says so, and otherwise a failure with its remedy.
#[cfg(test)]
fn privileged_tests() -> bool {
    if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
        return false;
    }
    assert!(rustix::process::geteuid().is_root(), "run the tests as root, or set SUIRO_SKIP_PRIVILEGED=1 to leave this one out");
    true
}
