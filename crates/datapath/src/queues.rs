//! A worker's receive queues: which it polls, which it leaves to the kernel to watch, which are out of service.

use crate::id::{PortAt, PortIx, SwitchIx};
use crate::poller::Poller;
use crate::shared::PortShared;
use crate::touch::QueueIx;
use flow::Nanos;
use port::RxQueue;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Wake-ups in a row that brought no frame before a queue is suspected to be readable without having any.
const BARREN: u32 = 16;

/// How long such a queue is left alone: at ~10 µs a wake-up, a broken source costs a thousandth of the core.
const PENANCE: Duration = Duration::from_millis(10);

/// A queue is polled in vain for this part of the time for which it had frames before, where that is more than asked for: its frames will go on, and
/// were held up where they come from. What a worker may lose so is in proportion to its work (docs/decisions/0020).
const PATIENCE_PART: u64 = 8;

/// But no longer, in ns: longer than a host's pauses usually are, and than kernel threads keep a guest's core.
const PATIENCE_MAX: u64 = 1_000_000;

/// A reply that comes later than this, in ns, after what was sent to its port is not waited for: a look at the queues that are not polled finds it.
const REPLY_MAX: u64 = 100_000;

/// Less than this, in ns, is no time to wait: looks come as often.
const REPLY_MIN: u64 = 2_000;

/// Of the times of late replies, and of gaps, the last counts for this part.
const LEARNS: u64 = 4;

/// Gaps count as no longer than this, in ns, so that a pause is soon forgotten.
const GAP_MAX: u64 = 1_000_000;

/// How long, in ns, a queue is polled in vain whose frames usually come later than a wake-up costs.
const BRIEFLY: u64 = 3_000;

/// Panics that a queue may cause within [`STRIKE_WINDOW`] before it is taken out of service.
const STRIKES: u32 = 3;

/// Ten seconds: a fault that strikes less often costs its neighbours nothing worth stopping it for.
const STRIKE_WINDOW: u64 = 10_000_000_000;

/// How a queue is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watch {
    /// The worker polls it.
    Polled,
    /// The kernel watches it.
    Kernel,
    /// No one looks until then.
    Until(Nanos),
    /// Out of service.
    Parked,
}

/// A receive queue at its worker.
pub(crate) struct Queue {
    pub(crate) rx: Box<dyn RxQueue>,
    pub(crate) port: PortIx,
    pub(crate) switch: SwitchIx,
    pub(crate) shared: Arc<PortShared>,
    watch: Watch,
    /// Since when it is polled.
    since: Nanos,
    /// When it last had a frame, or was woken.
    last: Nanos,
    /// When something was sent to its port, if nothing came since.
    sent: Option<Nanos>,
    /// How long, in ns, a reply is waited for there; 0 where none usually comes soon.
    reply: u64,
    /// It is expected to have a frame until then.
    expected: Nanos,
    /// When it last had a frame.
    framed: Nanos,
    /// How long, in ns, its gaps are: times after which frames come that did not come at once.
    gap: u64,
    /// Wake-ups without a frame.
    barren: u32,
    strikes: u32,
    struck: Nanos,
}

impl Queue {
    /// How long, in ns, it may have no frame before it is left to the kernel.
    fn patience(&self, spin: u64, learns: bool) -> u64 {
        let earned = self.last.since(self.since) / PATIENCE_PART;
        let usual = if learns && self.gap > spin { BRIEFLY.min(spin) } else { spin };
        if spin == 0 { 0 } else { usual.max(earned.min(PATIENCE_MAX)) }
    }

    /// It had frames: how long they were waited for.
    fn learn(&mut self, now: Nanos) {
        let gap = now.since(self.framed).min(GAP_MAX);
        (self.framed, self.expected) = (now, now);
        if gap > REPLY_MIN {
            self.gap = (self.gap * (LEARNS - 1) + gap) / LEARNS;
        }
        let Some(sent) = self.sent.take() else { return };
        match now.since(sent) {
            // With a margin, and at once where they take longer: the first reply of a conversation is followed by others.
            took if took <= REPLY_MAX => {
                let fades = (self.reply * (LEARNS - 1) + 2 * took) / LEARNS;
                self.reply = fades.max(2 * took).clamp(REPLY_MIN, REPLY_MAX);
            }
            _ => self.doubt(),
        }
    }

    /// No reply came in the time in which one usually does.
    fn doubt(&mut self) {
        self.reply -= self.reply.div_ceil(LEARNS);
        if self.reply < REPLY_MIN {
            self.reply = 0;
        }
    }
}

/// All of a worker's.
#[derive(Default)]
pub(crate) struct Queues {
    table: Vec<Option<Queue>>,
    /// Those with [`Watch::Polled`].
    active: Vec<QueueIx>,
    /// Those with [`Watch::Until`].
    late: Vec<QueueIx>,
    /// Those of each port, by its place.
    of_port: Vec<Vec<QueueIx>>,
    /// Whether the time in vain follows from gaps.
    learns: bool,
}

impl Queues {
    /// None yet; whether their time in vain will follow from their gaps.
    pub(crate) fn new(learns: bool) -> Self {
        Self { learns, ..Self::default() }
    }

    /// Something was sent to a port: its queues are polled for as long as replies from there usually take.
    #[inline]
    pub(crate) fn expect(&mut self, port: PortIx, now: Nanos) {
        for place in 0..self.of_port.get(port.0 as usize).map_or(0, Vec::len) {
            let ix = self.of_port[port.0 as usize][place];
            let Some(queue) = self.table.get_mut(ix.0 as usize).and_then(Option::as_mut) else {
                continue;
            };
            queue.sent.get_or_insert(now);
            if queue.reply == 0 {
                continue;
            }
            queue.expected = Nanos(now.0 + queue.reply);
            if queue.watch == Watch::Kernel {
                queue.watch = Watch::Polled;
                queue.since = now;
                self.active.push(ix);
            }
        }
    }

    /// The queue, if it is there.
    pub(crate) fn get_mut(&mut self, ix: QueueIx) -> Option<&mut Queue> {
        self.table.get_mut(ix.0 as usize)?.as_mut()
    }

    /// Which port a queue belongs to.
    pub(crate) fn at(&self, ix: QueueIx) -> Option<PortAt> {
        Some(self.table.get(ix.0 as usize)?.as_ref()?.shared.at)
    }

    /// The polled queue at this place, if there are so many.
    pub(crate) fn active(&self, place: usize) -> Option<QueueIx> {
        self.active.get(place).copied()
    }

    /// Whether no queue is polled.
    pub(crate) fn is_quiet(&self) -> bool {
        self.active.is_empty()
    }

    /// Adds a queue and polls it at first.
    ///
    /// # Errors
    /// Its file descriptor cannot be watched; it comes back.
    pub(crate) fn add(
        &mut self,
        rx: Box<dyn RxQueue>,
        (port, switch): (PortIx, SwitchIx),
        shared: &Arc<PortShared>,
        now: Nanos,
        poller: &Poller,
    ) -> Result<(), (io::Error, Box<dyn RxQueue>)> {
        let ix = self.table.iter().position(Option::is_none).unwrap_or(self.table.len());
        let ix = QueueIx(ix as u32);
        if let Err(error) = poller.add(rx.readiness(), ix) {
            return Err((error, rx));
        }
        if ix.0 as usize == self.table.len() {
            self.table.push(None);
            // So that no list has to grow while frames flow.
            self.active.reserve(self.table.len() - self.active.len());
            self.late.reserve(self.table.len() - self.late.len());
        }
        let shared = Arc::clone(shared);
        let watch = Watch::Kernel;
        self.table[ix.0 as usize] = Some(Queue {
            rx,
            port,
            switch,
            shared,
            watch,
            since: now,
            last: now,
            sent: None,
            reply: 0,
            expected: now,
            framed: now,
            gap: 0,
            barren: 0,
            strikes: 0,
            struck: now,
        });
        let place = port.0 as usize;
        self.of_port.resize_with(self.of_port.len().max(place + 1), Vec::new);
        self.of_port[place].push(ix);
        Ok(())
    }

    /// Takes out the queues of a port.
    pub(crate) fn remove(&mut self, port: PortIx, poller: &Poller) -> Vec<Box<dyn RxQueue>> {
        let mut removed = Vec::new();
        self.of_port.get_mut(port.0 as usize).into_iter().for_each(Vec::clear);
        for (index, place) in self.table.iter_mut().enumerate() {
            let Some(queue) = place.take_if(|queue| queue.port == port) else { continue };
            poller.remove(queue.rx.readiness());
            self.active.retain(|ix| ix.0 as usize != index);
            self.late.retain(|ix| ix.0 as usize != index);
            removed.push(queue.rx);
        }
        removed
    }

    /// Looks into the memory of those that the kernel watches; whether the kernel has to be asked of some.
    pub(crate) fn look(&mut self, now: Nanos) -> bool {
        let mut asks_kernel = false;
        for index in 0..self.table.len() {
            let ix = QueueIx(index as u32);
            let watched = self.get_mut(ix).filter(|queue| queue.watch == Watch::Kernel);
            match watched.map(|queue| queue.rx.has_frames()) {
                Some(Some(true)) => self.woken(ix, now),
                Some(None) => asks_kernel = true,
                Some(Some(false)) | None => {}
            }
        }
        asks_kernel
    }

    /// A frame waits, so the kernel says, or the source's memory.
    pub(crate) fn woken(&mut self, ix: QueueIx, now: Nanos) {
        let Some(queue) = self.get_mut(ix) else { return };
        if queue.watch != Watch::Kernel {
            return;
        }
        queue.watch = Watch::Polled;
        (queue.since, queue.last) = (now, now);
        queue.barren += 1;
        self.active.push(ix);
    }

    /// The polled queue at `place` had frames.
    pub(crate) fn fruitful(&mut self, place: usize, now: Nanos) {
        let ix = self.active[place];
        if let Some(queue) = self.get_mut(ix) {
            queue.learn(now);
            queue.last = now;
            queue.barren = 0;
        }
    }

    /// The polled queue at `place` had none; true when it has now left the active set, for it had none for `spin` ns, and for longer if it had some
    /// for long. With a `spin` of 0 it leaves at once: somebody waits for the core.
    pub(crate) fn fruitless(
        &mut self,
        place: usize,
        (now, spin): (Nanos, u64),
        poller: &Poller,
    ) -> bool {
        let (ix, learns) = (self.active[place], self.learns);
        let Some(queue) = self.get_mut(ix) else { return false };
        let is_expected = spin > 0 && now < queue.expected;
        if is_expected || now.since(queue.last) < queue.patience(spin, learns) {
            return false;
        }
        if queue.sent.is_some_and(|sent| now.since(sent) >= queue.reply) {
            queue.doubt();
        }
        self.active.swap_remove(place);
        self.leave(ix, now, poller);
        true
    }

    /// Leaves a queue to the kernel, or alone for a while if it cried wolf. One whose source cannot notify now stays polled.
    fn leave(&mut self, ix: QueueIx, now: Nanos, poller: &Poller) {
        let Some(queue) = self.get_mut(ix) else { return };
        if queue.barren < BARREN && !queue.rx.arm() {
            queue.watch = Watch::Polled;
            (queue.since, queue.last) = (now, now);
            self.active.push(ix);
            return;
        }
        // Watching is refused only if the source is broken.
        if queue.barren >= BARREN || poller.watch(queue.rx.readiness(), ix).is_err() {
            queue.watch = Watch::Until(Nanos(now.0 + PENANCE.as_nanos() as u64));
            self.late.push(ix);
            return;
        }
        queue.watch = Watch::Kernel;
    }

    /// Watches those again whose time alone is over; returns how long until the next one's is.
    pub(crate) fn forgive(&mut self, now: Nanos, poller: &Poller) -> Option<Duration> {
        let mut next: Option<u64> = None;
        let mut place = 0;
        while let Some(&ix) = self.late.get(place) {
            let until = match self.table.get(ix.0 as usize) {
                Some(Some(Queue { watch: Watch::Until(until), .. })) => *until,
                _ => now,
            };
            if until > now {
                next = Some(next.unwrap_or(u64::MAX).min(until.since(now)));
                place += 1;
                continue;
            }
            self.late.swap_remove(place);
            if let Some(queue) = self.get_mut(ix) {
                queue.barren = BARREN - 1; // one more wake-up without a frame, and it is left alone again
                self.leave(ix, now, poller);
            }
        }
        next.map(Duration::from_nanos)
    }

    /// Takes a queue out of service; only detaching it follows.
    pub(crate) fn park(&mut self, ix: QueueIx, poller: &Poller) {
        self.active.retain(|&other| other != ix);
        self.late.retain(|&other| other != ix);
        if let Some(queue) = self.get_mut(ix) {
            queue.watch = Watch::Parked;
            poller.remove(queue.rx.readiness());
        }
    }

    /// Whether it was taken out of service.
    pub(crate) fn is_parked(&mut self, ix: QueueIx) -> bool {
        self.get_mut(ix).is_some_and(|queue| queue.watch == Watch::Parked)
    }

    /// Counts a panic against a queue; true when it has to be parked.
    pub(crate) fn strike(&mut self, ix: QueueIx, now: Nanos) -> bool {
        let Some(queue) = self.get_mut(ix) else { return false };
        if now.since(queue.struck) > STRIKE_WINDOW {
            queue.strikes = 0;
        }
        queue.struck = now;
        queue.strikes += 1;
        queue.strikes >= STRIKES
    }

    /// Gives up all, for the thread that drops them.
    pub(crate) fn into_all(self) -> impl Iterator<Item = Queue> {
        self.table.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SwitchId;
    use port::{Drops, RxBatch};
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// A source without frames, which can notify or cannot, and says whether it has some or does not.
    struct Source {
        ready: OwnedFd,
        notifies: Arc<AtomicBool>,
        shows: Option<bool>,
    }

    impl RxQueue for Source {
        fn rx(&mut self, _: &mut RxBatch, _: &mut Drops) -> io::Result<usize> {
            Ok(0)
        }

        fn arm(&mut self) -> bool {
            self.notifies.load(Relaxed)
        }

        fn has_frames(&mut self) -> Option<bool> {
            self.shows
        }

        fn readiness(&self) -> BorrowedFd<'_> {
            self.ready.as_fd()
        }
    }

    fn source(shows: Option<bool>) -> (Box<Source>, Arc<AtomicBool>) {
        let ready = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let notifies = Arc::new(AtomicBool::new(true));
        (Box::new(Source { ready, notifies: notifies.clone(), shows }), notifies)
    }

    impl Queues {
        fn leave_all(&mut self, poller: &Poller, now: u64) {
            while let Some(ix) = self.active.pop() {
                self.leave(ix, Nanos(now), poller);
            }
        }
    }

    fn worker_with(sources: impl IntoIterator<Item = Box<Source>>) -> (Queues, Poller) {
        let mailbox = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let (poller, mut queues) = (Poller::new(mailbox.as_fd()).unwrap(), Queues::default());
        let shared = PortShared::new(
            PortAt { switch: SwitchId(1), port: 1 },
            1500,
            crate::counters::blocks(1).into(),
        );
        for source in sources {
            let place = (PortIx(0), SwitchIx(0));
            assert!(queues.add(source, place, &shared, Nanos(0), &poller).is_ok());
        }
        (queues, poller)
    }

    const WAKE_UP: u64 = 40_000;

    /// Whether a queue that has none is polled on, so long after something.
    fn is_polled(queues: &mut Queues, at: u64, poller: &Poller) -> bool {
        queues.active(0).is_some() && !queues.fruitless(0, (Nanos(at), WAKE_UP), poller)
    }

    /// Rounds of a conversation: something is sent to the port, and so much later a frame comes from it, found by a look.
    fn converse(queues: &mut Queues, poller: &Poller, rounds: u64, took: u64) -> u64 {
        let from = 10_000_000;
        let each = 1_000_000;
        for at in (0..rounds).map(|round| from + round * each) {
            queues.expect(PortIx(0), Nanos(at));
            queues.woken(QueueIx(0), Nanos(at + took));
            queues.fruitful(0, Nanos(at + took));
            queues.leave_all(poller, at + took);
        }
        from + rounds * each
    }

    #[test]
    fn a_port_that_replies_soon_is_polled_when_something_is_sent_there() {
        let (mut queues, poller) = worker_with([source(None).0]);
        queues.expect(PortIx(0), Nanos(0));
        assert!(queues.is_quiet(), "nothing is known yet");
        let now = converse(&mut queues, &poller, 4, 15_000);
        assert!(!is_polled(&mut queues, now, &poller));
        queues.expect(PortIx(0), Nanos(now));
        assert!(is_polled(&mut queues, now + 29_000, &poller), "twice as long as it took");
        assert!(!is_polled(&mut queues, now + 31_000, &poller));
    }

    #[test]
    fn a_reply_ends_the_expectation_and_none_for_some_time_ends_it_for_good() {
        let (mut queues, poller) = worker_with([source(None).0]);
        queues.learns = true;
        let mut now = converse(&mut queues, &poller, 30, 15_000);
        queues.expect(PortIx(0), Nanos(now));
        queues.fruitful(0, Nanos(now + 1000));
        assert!(!is_polled(&mut queues, now + 1000 + BRIEFLY, &poller), "it has replied");
        let in_vain = (0..100).take_while(|_| {
            now += 1_000_000;
            queues.expect(PortIx(0), Nanos(now));
            let is_expected = queues.active(0).is_some();
            while is_polled(&mut queues, now, &poller) {
                now += 1000;
            }
            is_expected
        });
        assert!((3..20).contains(&in_vain.count()));
    }

    #[test]
    fn a_worker_that_is_not_to_spin_expects_nothing() {
        let (mut queues, poller) = worker_with([source(None).0]);
        let now = converse(&mut queues, &poller, 4, 15_000);
        queues.expect(PortIx(0), Nanos(now));
        assert!(queues.fruitless(0, (Nanos(now + 1), 0), &poller));
    }

    #[test]
    fn who_learns_waits_for_short_gaps_and_not_for_long_ones() {
        for (gap, waits) in [(20_000, WAKE_UP), (500_000, BRIEFLY)] {
            let (mut queues, poller) = worker_with([source(None).0]);
            queues.learns = true;
            let mut now = 0;
            for _ in 0..50 {
                now += gap;
                queues.woken(QueueIx(0), Nanos(now));
                queues.fruitful(0, Nanos(now));
            }
            // Since it was woken, for nothing is earned then.
            queues.leave_all(&poller, now);
            queues.woken(QueueIx(0), Nanos(now));
            assert!(is_polled(&mut queues, now + waits - 1, &poller), "{gap}");
            assert!(!is_polled(&mut queues, now + waits, &poller), "{gap}");
        }
    }

    #[test]
    fn a_source_that_shows_its_frames_is_found_without_the_kernel() {
        let [some, none, unknown] = [Some(true), Some(false), None].map(|shows| source(shows).0);
        let (mut queues, _poller) = worker_with([none, some]);
        assert!(!queues.look(Nanos(5)), "both show what they have");
        assert_eq!((queues.active(0), queues.active(1)), (Some(QueueIx(1)), None));
        let (mut queues, _poller) = worker_with([unknown]);
        assert!(queues.look(Nanos(5)) && queues.is_quiet(), "the kernel knows");
    }

    /// How long the queue is polled in vain that had frames for so many ns.
    fn polled_after(had_frames: u64, spin: u64) -> u64 {
        let (mut queues, poller) = worker_with([source(None).0]);
        queues.woken(QueueIx(0), Nanos(1000));
        queues.fruitful(0, Nanos(1000 + had_frames));
        let mut leaves =
            |after: u64| queues.fruitless(0, (Nanos(1000 + had_frames + after), spin), &poller);
        (0..=PATIENCE_MAX).step_by(1000).find(|&after| leaves(after)).unwrap()
    }

    #[test]
    fn who_had_frames_for_long_is_polled_for_longer_and_nobody_while_the_core_is_wanted() {
        const SPIN: u64 = 50_000;
        let cases = [(0, 50), (400, 50), (800, 100), (4000, 500), (8000, 1000), (90_000, 1000)];
        for (had_us, us) in cases {
            assert_eq!(polled_after(had_us * 1000, SPIN), us * 1000, "after {had_us} us of frames");
        }
        assert_eq!(polled_after(90_000_000, 0), 0);
    }

    #[test]
    fn a_source_that_cannot_notify_now_stays_polled() {
        let (source, notifies) = source(None);
        notifies.store(false, Relaxed);
        let (mut queues, poller) = worker_with([source]);
        queues.woken(QueueIx(0), Nanos(0));
        queues.fruitless(0, (Nanos(20), 10), &poller);
        assert_eq!(queues.active(0), Some(QueueIx(0)), "frames came, or there is no way to notify");
        notifies.store(true, Relaxed);
        queues.fruitless(0, (Nanos(25), 10), &poller);
        assert_eq!(queues.active(0), Some(QueueIx(0)), "for a while, as if a frame had come");
        queues.fruitless(0, (Nanos(30), 10), &poller);
        assert!(queues.is_quiet());
    }
}
