//! A VM: takes datagrams and works for each of their bytes, on its core if it has one.

use super::stamp::{Stamp, now_ns};
use super::{Tally, Work};
use anyhow::{Context, Result};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The VMs' UDP port.
pub const PORT: u16 = 7000;

/// Bytes of a VM's socket buffer: some tens of milliseconds of a flow, so that a VM that is too slow shows within a window.
const BUFFER: usize = 1 << 20;

/// How often a VM that receives nothing looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// A VM's habits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Vm {
    /// Its number, from 1.
    pub number: u8,
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// Work for each byte of payload, in ns of an undisturbed core.
    pub work_ns_per_byte: f64,
}

/// Its socket, in the calling thread's namespace.
///
/// # Errors
/// The address is not there or the port is taken.
pub fn open(address: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((address, PORT))
        .with_context(|| format!("{address}:{PORT}: the VM's socket cannot be bound"))?;
    set_socket_recv_buffer_size_force(&socket, BUFFER).context("the VM's socket buffer")?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// Takes datagrams of a window until it is over.
pub fn receive(
    vm: Vm,
    socket: &UdpSocket,
    run: u32,
    work: Work,
    mut tally: Tally,
    over: &AtomicBool,
) -> Tally {
    match vm.core {
        Some(core) => testbed::sys::pin(core),
        // It stands for a VM on a core that this machine lacks: it takes what is there before others are served.
        None => {
            testbed::sys::unpin();
            let _ = rustix::process::nice(-20);
        }
    }
    let mut payload = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut payload) else { continue };
        take(vm, &payload[..length], run, work, &mut tally);
    }
    tally
}

/// Works for a datagram and notes it, if it is one of this window for this VM.
pub fn take(vm: Vm, payload: &[u8], run: u32, work: Work, tally: &mut Tally) {
    let is_ours = |stamp: &Stamp| stamp.run == run && stamp.vm == u32::from(vm.number);
    if let Some(stamp) = Stamp::read(payload).filter(is_ours) {
        work.of_ns(vm.work_ns_per_byte * payload.len() as f64);
        tally.take(stamp.number, stamp.due_ns, now_ns());
    }
}
