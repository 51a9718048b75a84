//! # node: the daemon
//!
//! **Question answered**: how do configuration, state, controllers and users become switches at work, and how does that end?
//!
//! The node holds no packet logic: workers (`datapath`) forward, tables (`flow`) decide, doors (`port`) send and receive.
//! It reads what is wanted, builds the parts, joins their threads, and tells what is true.
//!
//! ## Parts
//!
//! * [`run`]: a node from start to end, in order; [`host`]: one instance, few privileges, systemd.
//! * [`service`]: switches and ports in service, and how they come and go; [`ports`]: the thread that holds their interfaces.
//! * [`steer`]: the thread of the steering agent (crate `steer`); [`offload`]: that of flows past the workers (crate `offload`).
//! * [`circuits`]: the thread that proves links to other nodes.
//! * [`guests`]: the thread of guests (crate `guest`), and what runs between it and them ([`hold_a_guest`]).
//! * [`switch`]: one switch's control state; [`agent`]: its OpenFlow connections; [`tls`]: their certificates.
//! * [`http`]: the local API, of which the command line is a client; its values are the crate `api`'s.
//! * [`member`]: the node as a member of a domain: how it gets its parts of slices.
//! * [`doctor`]: what the host has, and the fix for what it lacks.
//! * [`config`]: the file, with all its errors at once.
//! * [`feed`]: what happened, in one order, for whoever listens; it is the crate [`mod@serve`]'s.
//! * `roll`: do the control threads still work?
//! * [`room`]: memory for what waits for somebody.
//! * [`hits`]: who hit which bound of the node, and since when.
//! * [`store`]: what survives a restart; `durable`: single files that do; [`journal`]: how switches tell it; [`refusal`]: why a request is not carried out.
//!
//! ## Threads
//!
//! | thread | does | privileges |
//! |---|---|---|
//! | `suiro` (main) and `suiro-control` | tokio: API, OpenFlow sessions, timers, signals | none |
//! | `suiro-ports` | opens, watches and closes interfaces | those that interfaces need |
//! | `suiro-steer` | steers what interfaces receive to cores | those that eBPF needs |
//! | `suiro-offload`, and once `suiro-prices` | moves flows past the workers and back, counts them; asks what a frame costs there | those that eBPF needs |
//! | `suiro-guests` | makes, starts, watches and ends guests | those that guests need |
//! | `suiro-circuits` | sends and judges probes | none |
//! | `suiro-scout` | looks for virtual machines | none |
//! | `suiro-events` | carries packet-ins and faults from workers to switches | none |
//! | `suiro-member` | asks the domain's controller what the node shall have | none |
//! | `suiro-store` | commits state | none |
//! | `suiro-worker-N` | forwards, on core N (`datapath`) | none |
//!
//! ## Locks, outermost first
//!
//! The node's change lock, a member's agent, a member's state, a switch's control lock, then leaves (the ports' board, the store's queue,
//! a connection's outbox, the datapath's registry, hits, the feed). Nothing waits for a thread under any but the first two.

pub mod agent;
pub mod bounds;
pub mod captures;
mod circuits;
pub mod config;
pub mod doctor;
mod durable;
pub mod guests;
pub mod hits;
pub mod host;
pub mod http;
pub mod journal;
pub mod member;
pub mod offload;
pub mod ports;
pub mod refusal;
mod roll;
pub mod room;
pub mod run;
mod samples;
pub mod service;
pub mod steer;
pub mod store;
pub mod switch;
pub mod tls;
mod why;

pub use serve::feed;

/// What a program that runs nodes does first: if it was started as the holder of a guest, it is one; the status to end with then.
pub fn hold_a_guest() -> Option<u8> {
    guest::holder::run(std::env::args().skip(1))
}

/// Whether tests that need root may run: true as root, false when the user says so, and otherwise a failure with its remedy.
#[cfg(test)]
fn privileged_tests() -> bool {
    if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
        return false;
    }
    assert!(
        rustix::process::geteuid().is_root(),
        "run the tests as root, or set SUIRO_SKIP_PRIVILEGED=1 to leave this one out"
    );
    true
}
