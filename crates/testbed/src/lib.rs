//! # testbed: what tests and benchmarks run on
//!
//! **Question answered**: where do frames come from and go to, when suiro is tried on one machine?
//!
//! * [`netns`], [`process`]: namespaces with guests on veth pairs, and child processes.
//! * [`peer`]: contenders (suiro, Open vSwitch, the Linux bridge) behind one trait.
//! * [`driver`]: guests on vhost-user ports, played in this process.
//! * [`guest`]: a virtual machine with Debian's kernel. [`testpmd`]: DPDK's driver. Nobody here wrote either.
//! * [`traffic`]: live XDP frames, iperf3, a latency probe, an OpenFlow client.
//! * [`keeper`]: clears up after a run that was interrupted.
//! * [`machine`], [`hugepages`], [`programs`]: what the host offers.
//! * [`unbroken()`]: waits that go on after the machine was stopped for a moment.
//! * [`sys`]: pinning, TAPs, and XDP programs of a few instructions.
//!
//! Whatever is made here (namespaces, processes, files) belongs to a value that removes it when dropped. Links pure crates only:
//! a node is met through the binary, its API and its sockets.

mod conversation;
pub mod driver;
pub mod guest;
pub mod hugepages;
pub mod keeper;
pub mod machine;
pub mod netns;
pub mod peer;
pub mod process;
pub mod programs;
pub mod sys;
pub mod testpmd;
pub mod traffic;
mod unbroken;

pub use unbroken::unbroken;
