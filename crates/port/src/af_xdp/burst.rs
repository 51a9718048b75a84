//! Bursts past the socket: as XDP frames, in one system call.
//!
//! In copy mode the kernel sends a socket's frames one by one: a socket buffer each, and on a veth the other end's receiving for each.
//! The same frames as XDP frames ([`xdp::Transmitter`]) cost a third of that, but the call costs 14 us: it is for bursts.
//! A driver takes XDP frames or does not (a veth takes them while its other end has an XDP program or GRO), and the kernel tells
//! which only when it is tried. So it is tried; a burst that is refused leaves by the socket, in its place.
//!
//! **Order.** A veth receives XDP frames 16 at a time, and a socket's frame at once: it passes up to 15 XDP frames that came before it
//! (`veth_xdp_rcv` in drivers/net/veth.c, since Linux 5.13). So for a while after a burst, and after a flow by the rung xdp, whatever is sent
//! leaves as XDP frames, however few, and large ones in pieces.

use crate::drops::{Drops, Lost};
use crate::frame::{Sent, TxFrame};
use crate::plain::{self, Room};
use crate::queue::TxQueue;
use arrayvec::ArrayVec;
use rustix::io::Errno;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::{DropReason, Gso, Offload, checksum};
use xdp::offload::{RungPort as _, XdpPort};
use xdp::{AttachError, BURST_MAX, Exit, MapError, Outcome, SLOT_BYTES, Transmitter};

/// Fewest frames worth the call: 14 us and 0.2 us a frame against the socket's 1 us (docs/decisions/0007).
const WORTH: usize = 20;
/// XDP frames of a burst have been received so long after it. Chosen: thrice the longest wait for a core that was seen on a busy host.
const DRAINED: Duration = Duration::from_millis(100);
/// Refused bursts after which it is tried again: from here, doubled each time.
const PAUSE_MIN: u32 = 64;
/// … to here: some seconds under overload.
const PAUSE_MAX: u32 = 1 << 16;
/// A call that took so long may have waited for the kernel to make its program known again ([`Transmitter::new`]).
const SLOW: Duration = Duration::from_millis(5);
/// So many of them in a row did: other programs have pushed it out, so let them be. A few are waits for others whose programs come or
/// go, or a core that was taken away.
const SLOW_MAX: u32 = 16;

/// The transmitters of a node, one for each worker; shared by all its ports.
pub(crate) struct Transmitters {
    of_worker: Vec<Arc<Mutex<Transmitter>>>,
}

impl Transmitters {
    /// # Errors
    /// Why this kernel, or this process, cannot: then sockets send everything.
    pub(crate) fn new(workers: usize) -> Result<Self, AttachError> {
        let transmitter = || Transmitter::new().map(|made| Arc::new(Mutex::new(made)));
        Ok(Self {
            of_worker: std::iter::repeat_with(transmitter)
                .take(workers)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Each worker's way out of the interface of that index in the calling thread's namespace.
    ///
    /// # Errors
    /// Why there is none, in words: the interface takes no XDP frames, ever.
    pub(super) fn ways_out(&self, index: u32, seen: &Arc<Seen>) -> Result<Vec<WayOut>, String> {
        let way = |transmitter: &Arc<Mutex<Transmitter>>| {
            let exit = lock(transmitter).add_exit(index)?;
            Ok(WayOut { transmitter: Arc::clone(transmitter), exit, seen: Arc::clone(seen) })
        };
        let ways: Result<_, MapError> = self.of_worker.iter().map(way).collect();
        ways.map_err(|error| without(&error))
    }
}

/// One worker's way out of one interface.
pub(super) struct WayOut {
    transmitter: Arc<Mutex<Transmitter>>,
    exit: Exit,
    seen: Arc<Seen>,
}

impl Drop for WayOut {
    fn drop(&mut self) {
        lock(&self.transmitter).remove_exit(self.exit);
    }
}

/// Puts each worker's way out before its queue; `rung` takes flows of others to the port.
pub(super) fn before(
    ways: Vec<WayOut>,
    queues: Vec<Box<dyn TxQueue>>,
    longest: usize,
    rung: Option<&Arc<XdpPort>>,
) -> Vec<Box<dyn TxQueue>> {
    let bursts = ways.into_iter().zip(queues).map(|(way, queue)| BurstTx {
        way,
        queue,
        rung: rung.cloned(),
        pause: 0,
        next_pause: PAUSE_MIN,
        slow: 0,
        is_slow: false,
        longest: longest.min(SLOT_BYTES),
    });
    bursts.map(|burst| Box::new(burst) as Box<dyn TxQueue>).collect()
}

/// What came of a port's last burst, for those who ask how it sends.
pub(super) struct Seen {
    since: Instant,
    /// When any worker's XDP frames left last: nanoseconds since `since`; 0: none did.
    sent: AtomicU64,
    /// Not yet tried 0, taken 1, else 1 + `errno`.
    last: AtomicU32,
    /// It differs from the one before.
    changed: AtomicBool,
}

impl Seen {
    /// There was none yet.
    pub(super) fn new() -> Self {
        let (sent, last, changed) = Default::default();
        Self { since: Instant::now(), sent, last, changed }
    }

    /// XDP frames left just now.
    fn sent(&self) {
        self.sent.store((self.since.elapsed().as_nanos() as u64).max(1), Relaxed);
    }

    /// Whether some may lie at the other end.
    fn may_lie(&self) -> bool {
        let sent = self.sent.load(Relaxed);
        sent != 0 && self.since.elapsed() < Duration::from_nanos(sent) + DRAINED
    }

    fn tell(&self, outcome: Outcome) {
        let now = match outcome {
            Outcome::Sent(_) => 1,
            Outcome::Refused(error) => 1 + error.raw_os_error() as u32,
        };
        // Several workers may write: each of them tells what it saw.
        if self.last.load(Relaxed) != now {
            self.last.store(now, Relaxed);
            self.changed.store(true, Relaxed);
        }
    }

    /// Whether there is another note than at the last question.
    pub(super) fn changed(&self) -> bool {
        self.changed.swap(false, Relaxed)
    }

    /// In words, once there was a burst.
    pub(super) fn note(&self) -> Option<String> {
        match self.last.load(Relaxed) {
            0 => None,
            1 => Some(format!(
                "bursts of {WORTH} frames and more leave as XDP frames, and what follows within {} ms",
                DRAINED.as_millis()
            )),
            errno => Some(format!(
                "bursts leave by the socket: the driver takes no XDP frames now ({}); a veth takes them while its other end has an \
                 XDP program or GRO (`ethtool -K <interface> gro on` there)",
                Errno::from_raw_os_error(errno as i32 - 1)
            )),
        }
    }
}

/// Sends bursts by its worker's transmitter, and everything else by a socket.
struct BurstTx {
    way: WayOut,
    queue: Box<dyn TxQueue>,
    rung: Option<Arc<XdpPort>>,
    /// Bursts until it is tried again.
    pause: u32,
    next_pause: u32,
    /// Slow calls in a row.
    slow: u32,
    /// They are why it pauses.
    is_slow: bool,
    /// Bytes of the longest frame that fits a slot and the driver takes.
    longest: usize,
}

impl TxQueue for BurstTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        let mut sent = Sent::default();
        for mut rest in frames.chunks(BURST_MAX) {
            let follows = self.follows();
            let mut is_burst = self.is_burst(rest, follows);
            while is_burst && !rest.is_empty() {
                match self.burst(rest, follows, (&mut sent, drops)) {
                    Some(count) => rest = &rest[count..],
                    None => is_burst = false,
                }
            }
            if !rest.is_empty() {
                sent.add(self.queue.tx(rest, drops));
            }
        }
        sent
    }
}

impl BurstTx {
    /// Whether frames leave as XDP frames: many do, and all that may pass such.
    fn is_burst(&mut self, frames: &[TxFrame<'_>], follows: bool) -> bool {
        let is_worth = frames.len() >= WORTH && !frames.iter().any(|frame| self.is_large(frame));
        if !follows && !is_worth {
            return false;
        }
        let is_paused = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        // Slow calls are no reason for frames of flows on a rung to be passed: on a busy host others' programs come and go.
        let keeps_order = follows && self.rung.is_some() && self.is_slow;
        !is_paused || keeps_order
    }

    /// Sends the first of these frames, as many as there are slots for; how many that is. `None` when nothing was done: the socket's turn.
    fn burst(
        &mut self,
        frames: &[TxFrame<'_>],
        follows: bool,
        (sent, drops): (&mut Sent, &mut Drops),
    ) -> Option<usize> {
        // Another thread has it only while it opens or closes a port.
        let mut transmitter = match follows {
            true => lock(&self.way.transmitter),
            false => self.way.transmitter.try_lock().ok()?,
        };
        let laid = Laid::lay(frames, self.longest, (&mut transmitter, self.way.exit));
        if laid.count == 0 {
            // It has more segments than there are slots, or longer ones.
            drop(transmitter);
            sent.add(self.queue.tx(&frames[..1], drops));
            return Some(1);
        }
        let began = Instant::now();
        let outcome = transmitter.send();
        drop(transmitter);
        self.slow = if began.elapsed() > SLOW { self.slow + 1 } else { 0 };
        if self.slow >= SLOW_MAX {
            (self.pause, self.slow, self.is_slow) = (PAUSE_MAX, 0, true);
        }
        self.way.seen.tell(outcome);
        match outcome {
            Outcome::Sent(taken) => {
                self.next_pause = PAUSE_MIN;
                self.way.seen.sent();
                laid.count_sent(taken, (sent, drops));
                Some(laid.count)
            }
            Outcome::Refused(_) => {
                self.pause = self.pause.max(self.next_pause);
                self.next_pause = (2 * self.next_pause).min(PAUSE_MAX);
                self.is_slow = false;
                None
            }
        }
    }

    /// Whether XDP frames may lie at the other end, which the socket's would pass.
    fn follows(&self) -> bool {
        self.way.seen.may_lie() || self.rung.as_ref().is_some_and(|rung| rung.may_lie())
    }

    /// Whether it takes more than one slot, or one too long: where nothing lies before them, such frames are the socket's.
    fn is_large(&self, frame: &TxFrame<'_>) -> bool {
        frame.offload.gso != Gso::None || frame.len() > self.longest
    }
}

/// Frames in a transmitter's slots.
struct Laid<'f> {
    /// Those whose segments all are, and the number of slots up to and including the last of each.
    put: ArrayVec<(&'f TxFrame<'f>, u32), BURST_MAX>,
    /// Those that nobody can send.
    unfit: ArrayVec<&'f TxFrame<'f>, BURST_MAX>,
    /// How many of the frames these are.
    count: usize,
}

impl<'f> Laid<'f> {
    /// Lays the first of these frames, as many as there is room for, each segment no longer than `longest`.
    fn lay(
        frames: &'f [TxFrame<'f>],
        longest: usize,
        (transmitter, exit): (&mut Transmitter, Exit),
    ) -> Self {
        transmitter.clear();
        let mut laid = Self { put: ArrayVec::new(), unfit: ArrayVec::new(), count: 0 };
        let mut burst = Burst { transmitter, exit };
        for frame in frames {
            match plain::send(frame, longest, &mut burst) {
                Ok(()) => {
                    laid.put.push((frame, (BURST_MAX - burst.transmitter.room()) as u32));
                }
                Err(DropReason::TxFull | DropReason::TooBig) => break,
                Err(_) => laid.unfit.push(frame),
            }
            laid.count += 1;
        }
        laid
    }

    /// The driver took so many slots.
    fn count_sent(&self, taken: u32, (sent, drops): (&mut Sent, &mut Drops)) {
        let is_taken = |&(_, end): &(&TxFrame<'_>, u32)| end <= taken;
        let went = self.put.iter().take_while(|put| is_taken(put)).count();
        self.put[..went].iter().for_each(|(frame, _)| sent.count(frame.len()));
        drops.lose(DropReason::TxError, Lost::Elsewhere((self.put.len() - went) as u64));
        self.unfit.iter().for_each(|&frame| drops.lose(DropReason::BadOffload, frame));
    }
}

/// A panic in between leaves frames put and not sent, nothing broken.
fn lock(transmitter: &Mutex<Transmitter>) -> std::sync::MutexGuard<'_, Transmitter> {
    transmitter.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Burst<'a> {
    transmitter: &'a mut Transmitter,
    exit: Exit,
}

impl Room for Burst<'_> {
    fn fits(&mut self, count: usize) -> bool {
        self.transmitter.room() >= count
    }

    /// An XDP frame has no unfinished checksum.
    fn put(
        &mut self,
        len: usize,
        Offload { checksum, .. }: Offload,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        let put = self.transmitter.put(self.exit, len, |out| {
            fill(out);
            checksum.map_or(Some(()), |partial| checksum::complete(out, partial).ok())
        });
        put.ok_or(DropReason::BadOffload)
    }
}

/// Why there are no bursts, for a port's note: in one line, of a verifier's many.
pub(crate) fn without(error: &dyn Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let why = format!("{error}{cause}");
    format!("bursts leave by the socket: {}", why.lines().next().unwrap_or_default())
}
