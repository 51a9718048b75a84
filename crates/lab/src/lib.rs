//! # lab: our benchmarks and the papers' experiments as commands
//!
//! **Question answered**: how fast is suiro beside what people use today, on this machine, in this run?
//!
//! * [`mod@bench`]: the commands of `suiro bench`. Each starts the peers from their Debian packages, gives all contenders the same
//!   namespaces, cores and traffic, alternates them round by round, and prints medians, spread, ratio and placement class.
//! * [`mod@experiments`]: the commands of `suiro lab`: the papers' experiments, the papers' tables beside ours.
//! * [`mod@domain`]: the commands of `suiro lab domain`: sites and nodes on one machine, for slices.
//! * `scheduler`, `report`: how often the host switches threads, and what came out.
//!
//! Contenders, guests and traffic are [`testbed`]'s. Everything that a run makes (namespaces, processes, files) belongs to a value that
//! removes it when dropped. The lab talks to a node as a user does: through the binary, its API and OpenFlow. It links no crate of the
//! node, and [`xdp`] only to measure the steering program by itself.

pub mod bench;
pub mod domain;
pub mod experiments;
mod report;
mod scheduler;
