//! A VM in two threads, vhost and guest, and the buffers that they share.
//!
//! | here | there |
//! |---|---|
//! | a TAP, which the packet stage puts frames into | the same |
//! | [`relay`]: a thread that sleeps until the TAP has a frame, reads each one into the guest's next buffer and wakes the guest | vhost-net's thread in the kernel, which copies from the TAP into the guest's memory and raises an interrupt |
//! | two channels of 256 buffers, filled and empty | a ring of 256 descriptors |
//! | [`consume`]: a thread that sleeps until a buffer is filled, takes the datagram out, checks it, and works for each of its bytes | the guest's virtual CPU: driver, stack, application |
//!
//! The copy is one here as there, straight from the kernel's buffer. What a virtual machine has and this has not: the costs of entering and leaving it. No frame is dropped here: a guest without an
//! empty buffer makes vhost wait, and the TAP's queue overflows.

use super::super::frame::datagram;
use super::super::window::ARRIVED;
use crate::scheduler;
use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::sched_getcpu;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Buffers of a VM, as many as QEMU's rings have; and bytes of each: the largest frame of a tunnel with an MTU of 9000.
const BUFFERS: usize = 256;
const BYTES: usize = 9014;

/// How often vhost looks whether the window is over while nothing comes.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

struct Frame {
    bytes: Box<[u8]>,
    length: usize,
}

/// What one thread did in a window.
#[derive(Clone, Default, Debug)]
pub struct Done {
    /// Frames by the core that it was on when it was through with them.
    pub frames: Vec<u64>,
    /// Its processor time, in ns; the kernel's, in its name, as well.
    pub cpu_ns: u64,
    /// How often it gave up its core or was made to.
    pub switches: u64,
}

impl Done {
    /// Microseconds of processor time a frame.
    pub fn time_us(&self) -> f64 {
        self.cpu_ns as f64 / 1e3 / self.sum()
    }

    /// Switches a frame.
    pub fn switches(&self) -> f64 {
        self.switches as f64 / self.sum()
    }

    fn sum(&self) -> f64 {
        self.frames.iter().sum::<u64>().max(1) as f64
    }

    fn note_frame(&mut self) {
        let core = sched_getcpu();
        self.frames.resize(self.frames.len().max(core + 1), 0);
        self.frames[core] += 1;
    }
}

/// Both threads of a VM.
#[derive(Clone, Default, Debug)]
pub struct Served {
    /// vhost's.
    pub vhost: Done,
    /// The guest's.
    pub guest: Done,
}

/// Where they run.
pub struct Cores {
    /// vhost.
    pub vhost: Vec<usize>,
    /// The guest.
    pub guest: Vec<usize>,
}

/// Hands every datagram that comes to the TAP to `take`, until the window is over and all that came is done. The caller's thread is the guest.
///
/// # Errors
/// The TAP is gone.
pub fn serve(
    tap: BorrowedFd<'_>,
    cores: &Cores,
    over: &AtomicBool,
    take: impl FnMut(&[u8]),
) -> Result<Served> {
    let (fill, filled) = sync_channel(BUFFERS);
    let (give, empty) = sync_channel(BUFFERS);
    let frame = |_| Frame { bytes: vec![0; BYTES].into(), length: 0 };
    (0..BUFFERS).map(frame).try_for_each(|frame| give.send(frame)).context("a VM's buffers")?;
    std::thread::scope(|scope| {
        let vhost =
            scope.spawn(move || on(&cores.vhost, |done| relay(tap, &empty, &fill, over, done)));
        // Its ends of the channels go with it: vhost never waits for a guest that is no more.
        let guest = on(&cores.guest, move |done| {
            consume(&filled, &give, take, done);
            Ok(())
        });
        let vhost = vhost.join().expect("vhost does not panic")?;
        Ok(Served { vhost, guest: guest? })
    })
}

/// Takes one frame off the TAP, in nobody's name.
///
/// # Errors
/// None comes.
pub fn discard(tap: BorrowedFd<'_>) -> Result<()> {
    let patience = Timespec { tv_sec: ARRIVED.as_secs() as i64, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&tap, PollFlags::IN)], Some(&patience));
    ensure!(ready.context("a VM's TAP")? > 0, "no datagram has reached the VM within {ARRIVED:?}");
    rustix::io::read(tap, &mut vec![0; BYTES]).context("reading a VM's TAP")?;
    Ok(())
}

/// Does a thread's work on these cores.
fn on(cores: &[usize], work: impl FnOnce(&mut Done) -> Result<()>) -> Result<Done> {
    testbed::sys::keep_to(cores.iter().copied());
    let before = (cpu_ns(), scheduler::of_this_thread()?);
    let mut done = Done::default();
    work(&mut done)?;
    done.cpu_ns = cpu_ns() - before.0;
    done.switches = scheduler::of_this_thread()? - before.1;
    Ok(done)
}

/// vhost.
fn relay(
    tap: BorrowedFd<'_>,
    empty: &Receiver<Frame>,
    fill: &SyncSender<Frame>,
    over: &AtomicBool,
    done: &mut Done,
) -> Result<()> {
    // Neither channel ends before this thread does: the guest reads until then.
    while let Ok(mut frame) = empty.recv() {
        let Some(length) = read(tap, &mut frame.bytes, over)? else { break };
        frame.length = length;
        done.note_frame();
        if fill.send(frame).is_err() {
            break;
        }
    }
    Ok(())
}

/// The next frame's length; `None` when there is none and the window is over.
fn read(tap: BorrowedFd<'_>, buffer: &mut [u8], over: &AtomicBool) -> Result<Option<usize>> {
    loop {
        match rustix::io::read(tap, &mut *buffer) {
            Ok(length) => return Ok(Some(length)),
            Err(Errno::AGAIN) if over.load(Ordering::Relaxed) => return Ok(None),
            // Whatever ends the sleep, the next read tells.
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(&tap, PollFlags::IN)], Some(&LOOK))),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("reading a VM's TAP"),
        }
    }
}

/// The guest. What is damaged or no datagram to a VM is left out, and so lost.
fn consume(
    filled: &Receiver<Frame>,
    give: &SyncSender<Frame>,
    mut take: impl FnMut(&[u8]),
    done: &mut Done,
) {
    for frame in filled {
        if let Some(payload) = datagram(&frame.bytes[..frame.length]) {
            take(payload);
        }
        done.note_frame();
        // vhost ends first, and needs no buffers then.
        let _ = give.send(frame);
    }
}

/// Processor time of the calling thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::super::super::frame::tunnelled;
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::AsFd;

    #[test]
    fn each_frame_is_handed_on_once_in_its_order_and_counted_by_both_also_beyond_the_ring() {
        // Keeps frames apart as a TAP does.
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::NONBLOCK);
        let (tap, host) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        const FRAMES: u16 = 3 * BUFFERS as u16;
        let frame = |size| tunnelled(1, size).split_off(50);
        let (cores, over) = (Cores { vhost: vec![0], guest: vec![0] }, AtomicBool::new(false));
        let mut sizes = Vec::new();
        let served = std::thread::scope(|scope| {
            let take = |payload: &[u8]| sizes.push(payload.len() as u16);
            let served = scope.spawn(|| serve(tap.as_fd(), &cores, &over, take));
            rustix::io::write(&host, b"no datagram").unwrap();
            for size in 1..=FRAMES {
                while rustix::io::write(&host, &frame(size)).is_err() {
                    std::thread::yield_now();
                }
            }
            over.store(true, Ordering::Relaxed);
            served.join().unwrap().unwrap()
        });
        assert_eq!(sizes, (1..=FRAMES).collect::<Vec<_>>());
        let frames = u64::from(FRAMES) + 1;
        assert_eq!((served.vhost.frames, served.guest.frames), (vec![frames], vec![frames]));
    }
}
