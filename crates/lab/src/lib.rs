//! # lab: our benchmarks and the papers' experiments as commands
//!
//! **Question answered**: how fast is suiro beside what people use today, on this machine, in this run?
//!
//! * [`mod@bench`]: the commands of `suiro bench`. Each starts the peers from their Debian packages, gives all contenders the same
//!   namespaces, cores and traffic, alternates them round by round, and prints medians, spread, ratio and placement class.
//! * [`mod@experiments`]: the commands of `suiro lab`: the papers' experiments, the papers' tables beside ours.
//! * `peer`: the contenders (suiro, Open vSwitch, Linux bridge) behind one trait.
//! * [`driver`]: guests on vhost-user ports, played in this process.
//! * `traffic`: what loads them: live XDP frames, iperf3, a latency probe, an OpenFlow client.
//! * [`guest`]: a virtual machine with Debian's kernel; [`testpmd`]: DPDK's driver. Both are what no one here wrote, for benchmarks and tests.
//! * `keeper`: clears up after a run that was interrupted.
//! * [`unbroken()`]: waits that go on after the machine was stopped for a moment.
//! * `netns`, `programs`, `machine`, `scheduler`, `report`: where it runs, with and on what, how often the host switches threads, and what came out.
//!
//! Everything that a run makes (namespaces, processes, files) belongs to a value that removes it when dropped. The lab talks to
//! a node as a user does: through the binary, its API and OpenFlow; it links only pure crates.

pub mod bench;
mod conversation;
pub mod driver;
pub mod experiments;
pub mod guest;
mod hugepages;
mod keeper;
mod machine;
mod netns;
mod peer;
mod programs;
mod report;
mod scheduler;
mod sys;
pub mod testpmd;
mod traffic;
mod unbroken;

pub use unbroken::unbroken;
