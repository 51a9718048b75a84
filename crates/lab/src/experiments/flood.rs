//! Frames of the tunnel as fast as the interrupted core makes them, for what costs too little to show otherwise.
//!
//! Live XDP frames (`BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18) leave the wire's end, so that the host's interface is interrupted on the core that sends, as a network
//! card's core is. 64 flows. The VM counts and drops them in front of its stack.

use super::frame::tunnelled;
use super::hosts::Hosts;
use anyhow::Result;
use std::time::{Duration, Instant};
use testbed::sys::{GENERATOR, RECEIVER, XdpProgram, interface_index, pin};

/// Frames of the system call that tells how long the next one has to be.
const TRIAL: u32 = 50_000;

/// Smallest payload with a stamp's room.
const PAYLOAD: u16 = 24;

/// Frames still in a queue when the sender is done are gone by then.
const DRAIN: Duration = Duration::from_millis(20);

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Flooded {
    /// Thousands of frames a second that were sent.
    pub offered: f64,
    /// Thousands that arrived at the VM for each second of sending.
    pub delivered: f64,
}

/// Sends to VM 1 for about so long, from the interrupted core.
///
/// # Errors
/// The kernel takes no live frames.
pub fn flood(hosts: &Hosts, window: Duration) -> Result<Flooded> {
    let vm = &hosts.vms[0];
    // A veth pair takes an XDP program only if a frame fits into a page.
    hosts.host.ip(&["link", "set", "v1", "mtu", "1500"])?;
    vm.ip(&["link", "set", "eth0", "mtu", "1500"])?;
    let _receiver = vm.enter(|| XdpProgram::load(RECEIVER)?.attach(interface_index("eth0")?))?;
    let core = hosts.layout.rx;
    hosts.wire.enter(|| {
        pin(core);
        let (program, interface) = (XdpProgram::load(GENERATOR)?, interface_index("w1")?);
        let frame = tunnelled(1, PAYLOAD);
        let send = |count| {
            let start = Instant::now();
            program.send(interface, &frame, count)?;
            anyhow::Ok(start.elapsed().as_secs_f64())
        };
        let count = (f64::from(TRIAL) / send(TRIAL)? * window.as_secs_f64()) as u32;
        std::thread::sleep(DRAIN);
        let before = vm.received("eth0")?;
        let seconds = send(count)?;
        std::thread::sleep(DRAIN);
        let arrived = vm.received("eth0")? - before;
        let per_second = |frames: f64| frames / seconds / 1e3;
        Ok(Flooded { offered: per_second(count.into()), delivered: per_second(arrived as f64) })
    })
}
