//! Two guests played by one thread: each sends to the other through the switch, as fast as one core can.
//!
//! The work is a DPDK guest's at its leanest: bursts of 32, a fresh header in each frame, the virtio header and the first line of
//! each received frame read, and, with [`Touch::Full`], the whole payload written and read. What it does not do is bookkeeping:
//! buffers never move. So one core of it loads a switch that testpmd on one core cannot ([`Totals::busy`] says how near to its own
//! limit it was).

use super::filling::{Choice, Filling, pieces_ahead, pieces_backwards};
use super::flows::Fields;
use super::frame::{self, Template};
use super::frontend::{Device, HEADER, tell};
use super::latency::{Pace, Times};
use super::sys::{self, LINE, Line, View};
use super::traffic::{Touch, Traffic};
use super::verify::Check;
use crate::sys::cycles;
use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Frames of a burst.
pub const BURST: u16 = 32;

/// Bytes of a burst: large segments come in fewer. Chosen: the bursts of four rings fit into a core's own cache of a MiB.
const BURST_BYTES: usize = 1 << 18;

/// Pauses after a turn in which nothing was to be done. Chosen: the driver's ceiling is the same within its spread with 0, 1 and 4 of them,
/// and a tenth lower with 16.
const PAUSES: usize = 4;

/// Cycles without a look at the rings that are an absence: about 10 us. Chosen: more than four bursts take from another cache, less than a tick of the kernel's timer in a
/// virtual machine.
const AWAY: u64 = 25_000;

/// What a guest makes of too few free buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Least {
    /// It uses those.
    One,
    /// It waits for a whole burst.
    All,
}

/// What happened in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Frames offered to the switch.
    pub sent: u64,
    /// Frames that came out of it.
    pub received: u64,
    /// Cycles of the window.
    pub cycles: u64,
    /// Cycles of turns in which there was something to do.
    pub busy_cycles: u64,
    /// Frames that were due by the pace, but the switch took none for too long.
    pub missed: u64,
    /// Cycles of the longest turn: if it is longer than the rings last, the driver was kept from its core, and what came then is lost by it.
    pub longest_turn: u64,
}

impl Totals {
    /// Share of the window in which the driver had something to do.
    pub fn busy(&self) -> f64 {
        self.busy_cycles as f64 / self.cycles.max(1) as f64
    }

    /// Frames that have not come out yet.
    fn outstanding(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.cycles += other.cycles;
        self.busy_cycles += other.busy_cycles;
        self.missed += other.missed;
        self.longest_turn = self.longest_turn.max(other.longest_turn);
    }
}

/// The two guests.
pub struct Lean {
    guests: [Guest; 2],
}

/// One guest of the two, or one alone: its device, what it sends, and what it makes of what it gets.
pub struct Guest {
    /// Its device.
    pub device: Device,
    /// All its memory, by lines.
    lines: View<Line>,
    traffic: Traffic,
    template: Template,
    side: u8,
    burst: u16,
    choice: Choice,
    /// Number of the next frame it sends.
    pub sequence: u64,
}

/// A frame that a guest received.
#[derive(Clone, Copy)]
pub struct Got<'l> {
    /// The line that ends with its virtio-net header.
    pub header: &'l Line,
    /// Its first line.
    pub line: &'l Line,
    /// All its lines.
    pub whole: &'l [Line],
    /// Its length; 0 says that its buffer was not the next one.
    pub len: usize,
    /// The cycle in which it was found in the ring: the same for all of a burst.
    pub now: u64,
}

/// What a guest does with what it receives.
pub trait Sink {
    /// The guest of this side received a frame.
    fn frame(&mut self, side: u8, got: Got<'_>);

    /// The driver was kept from its core until now; told only of a paced one.
    fn back(&mut self, _now: u64) {}
}

/// Reads and forgets.
struct Count;

impl Sink for Count {
    #[inline]
    fn frame(&mut self, _: u8, got: Got<'_>) {
        std::hint::black_box(got.line.0[0].load(Relaxed));
    }
}

impl Sink for Times {
    #[inline]
    fn frame(&mut self, _: u8, got: Got<'_>) {
        self.add(got.line.0[frame::STAMP].load(Relaxed), got.now);
    }

    fn back(&mut self, now: u64) {
        self.back(now);
    }
}

impl Sink for Check {
    fn frame(&mut self, side: u8, got: Got<'_>) {
        self.frame(side, got);
    }
}

impl Lean {
    /// Two guests on devices whose transmit buffers have exactly this traffic's length.
    pub fn new(devices: [Device; 2], traffic: Traffic) -> Self {
        assert!(traffic.frame >= frame::SHORTEST, "a frame is a line or more");
        let mut side = 0;
        let guests = devices.map(|device| {
            let guest = Guest::new(device, traffic.clone(), side);
            side += 1;
            guest
        });
        Self { guests }
    }

    /// Sends other flows from now on.
    pub fn change_flows(&mut self, order: &Arc<[u32]>) {
        self.guests.iter_mut().for_each(|guest| guest.traffic.order = Arc::clone(order));
    }

    /// Sends as fast as the switch takes it, for so many cycles.
    pub fn flood(&mut self, cycles: u64) -> Totals {
        self.run(cycles, &mut Count, None, u64::MAX)
    }

    /// Sends at a pace for as long as `warm_up`, and then measures how long each frame takes from the moment when it was due, the last ones included. There is no pause
    /// between the two, in which a switch could fall asleep.
    pub fn time(&mut self, warm_up: u64, cycles: u64, mut pace: Pace) -> (Totals, Times) {
        // What a flood left behind carries no time.
        self.drain(None, &mut Count);
        let left =
            self.run(warm_up, &mut Times::default(), Some(&mut pace), u64::MAX).outstanding();
        pace.forgive();
        let mut times = Times::default();
        let mut totals = self.run(cycles, &mut times, Some(&mut pace), u64::MAX);
        let awaited = (left + totals.sent).saturating_sub(totals.received);
        totals.received += self.drain(Some(awaited), &mut times);
        totals.received = totals.received.saturating_sub(left);
        (totals, times)
    }

    /// Sends at a pace and checks each frame, then waits for the last ones. Each guest has at most half a ring of frames on their way: there is
    /// always room for them at the other, whoever is kept from its core and catches up, so none may be lost.
    pub fn verify(&mut self, cycles: u64, mut pace: Pace, mut check: Check) -> (Totals, Check) {
        self.drain(None, &mut Count);
        let start = [0, 1].map(|side: usize| self.guests[side].sequence);
        check.begin(start);
        let most = u64::from(self.guests[0].device.slots) / 2;
        let mut totals = self.run(cycles, &mut check, Some(&mut pace), most);
        totals.received += self.drain(Some(totals.outstanding()), &mut check);
        check.end([0, 1].map(|side: usize| self.guests[side].sequence));
        (totals, check)
    }

    /// Each guest sends by the pace, or as fast as it can, while fewer than `most` of its frames are on their way.
    fn run(
        &mut self,
        window: u64,
        sink: &mut impl Sink,
        mut pace: Option<&mut Pace>,
        most: u64,
    ) -> Totals {
        let mut totals = Totals::default();
        let mut under_way = [0_u64; 2];
        let start = cycles();
        let (mut turn, mut there) = (start, start);
        loop {
            // In a flood whole bursts only: the rings are full of them anyway, and small bites make both sides slow.
            let least = if pace.is_some() { 1 } else { self.guests[0].burst };
            let mut worked = 0;
            self.guests.iter_mut().for_each(|guest| guest.prepare(least));
            for (side, guest) in self.guests.iter_mut().enumerate() {
                if pace.is_some() {
                    let now = cycles();
                    if now - there > AWAY {
                        sink.back(now);
                    }
                    there = now;
                }
                let received = guest.receive(least, sink);
                let due = pace.as_mut().map_or(u16::MAX, |pace| pace.due(turn));
                let room = most.saturating_sub(under_way[side]).min(guest.burst.into()) as u16;
                let allowed = due.min(room);
                let sent = match &pace {
                    _ if allowed == 0 => 0,
                    Some(pace) => guest.send(allowed, Least::One, |n| pace.time(n)),
                    None => guest.send(allowed, Least::All, |_| 0),
                };
                totals.received += u64::from(received);
                totals.sent += u64::from(sent);
                under_way[1 - side] = under_way[1 - side].saturating_sub(received.into());
                under_way[side] += u64::from(sent);
                if let Some(pace) = &mut pace {
                    pace.sent(sent);
                }
                worked |= received | sent;
                // How long it takes to kick is the switch's doing.
                if guest.tell() {
                    there = cycles();
                }
            }
            let now = cycles();
            totals.longest_turn = totals.longest_turn.max(now - turn);
            if worked > 0 {
                totals.busy_cycles += now - turn;
            } else {
                // The index that is looked at is about to be written: a look takes its line away from the switch.
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            }
            turn = now;
            if now - start >= window {
                totals.cycles = now - start;
                totals.missed = pace.map_or(0, |pace| pace.missed());
                return totals;
            }
        }
    }

    /// Takes what is still under way, until nothing has come for a while. Who waits for known frames has more patience: the host may
    /// take the switch's core away for longer than any frame needs, and such frames are late, not lost.
    fn drain(&mut self, awaited: Option<u64>, sink: &mut impl Sink) -> u64 {
        const SILENCE: u64 = 50_000_000; // cycles: about 20 ms
        const PATIENCE: u64 = 2_500_000_000; // about a second
        let silence = if awaited.is_some() { PATIENCE } else { SILENCE };
        let (mut received, mut last) = (0, cycles());
        while awaited.is_none_or(|frames| received < frames) && cycles() - last < silence {
            let mut now = 0;
            for guest in &mut self.guests {
                now += guest.receive(1, sink);
                guest.tell();
            }
            if now > 0 {
                last = cycles();
            }
            received += u64::from(now);
        }
        received
    }
}

impl Guest {
    /// A guest on a device whose transmit buffers have exactly this traffic's length.
    pub fn new(device: Device, traffic: Traffic, side: u8) -> Self {
        assert_eq!(device.frame, traffic.frame, "transmit buffers are described once and for all");
        let lines = device.memory.view(0, device.memory.bytes() / LINE);
        let template = Template::new(side, traffic.frame, traffic.protocol());
        let header = traffic.header();
        let slots = 0..device.slots;
        slots.for_each(|slot| {
            device.memory.copy_in(device.transmit.buffers.header(slot), &header);
        });
        let burst = (BURST_BYTES / traffic.frame).clamp(4, BURST.into()) as u16;
        Self {
            device,
            lines,
            traffic,
            template,
            side,
            burst,
            choice: Choice::default(),
            sequence: 0,
        }
    }

    /// Tells the switch what was sent, and what was received and given back, if it wants to know; whether it wanted to.
    #[inline]
    pub fn tell(&mut self) -> bool {
        let Device { receive, transmit, .. } = &mut self.device;
        tell([receive, transmit])
    }

    /// Whether there is a payload, and it is written.
    #[inline]
    fn fills(&self) -> bool {
        self.traffic.touch == Touch::Full && self.traffic.frame > LINE
    }

    /// Asks for the lines that this turn is going to read and write. Both guests do so before either of them works: what the switch has
    /// touched last comes from its cache, and one wait is shorter than four.
    #[inline]
    fn prepare(&mut self, least: u16) {
        let filling = self.fills().then(|| self.choice.filling());
        let Self { device, lines, burst, traffic, .. } = self;
        let (lines, slots): (&[Line], u16) = (lines, device.slots - 1);
        let received = device.receive.ring.returned(*burst);
        if received >= least {
            let first = device.receive.ring.next_to_return();
            for n in 0..received {
                let at = device.receive.buffers.frame((first + n) & slots) / LINE;
                sys::fetch(&lines[at - 1]);
                sys::fetch(&lines[at]);
            }
        }
        let queue = &mut device.transmit;
        queue.reclaim_for(least);
        if queue.ring.free() >= least && filling.is_none_or(|way| way.wants_first(traffic.frame)) {
            let first = queue.ring.next_to_offer();
            for n in 0..queue.ring.free().min(*burst) {
                sys::own(&lines[queue.buffers.frame((first + n) & slots) / LINE]);
            }
        }
    }

    /// Sends up to `count` frames, or with `All` that many or none; each with a stamp by its place among them. Returns how many. [`Guest::tell`] comes afterwards.
    #[inline]
    pub fn send(&mut self, count: u16, least: Least, stamp: impl Fn(u16) -> u64) -> u16 {
        let fills = self.fills();
        let Self { device, lines, traffic, template, side, sequence, burst, choice, .. } = self;
        let queue = &mut device.transmit;
        queue.reclaim_for(count);
        let count = match queue.ring.free() {
            free if free >= count => count,
            free if least == Least::One => free,
            _ => return 0,
        };
        let mask = traffic.order.len() - 1;
        let offset = usize::from(*side) * traffic.order.len() / 2;
        let lines: &[Line] = lines;
        let first = queue.ring.next_to_offer();
        let slots = device.slots - 1;
        let buffers = queue.buffers;
        let at = |n: u16| buffers.frame((first + n) & slots);
        let write_head = |n: u16| {
            let sequence = *sequence + u64::from(n);
            let flow = traffic.order[(sequence as usize + offset) & mask];
            let fields = Fields::of(&traffic.pattern, *side, flow);
            let rest = template.rest(fields, sequence, stamp(n));
            frame::write(&lines[at(n) / LINE], template.head(fields), rest);
        };
        let fill = |n: u16, payload: Range<usize>| {
            let byte = (*sequence + u64::from(n)) as u8;
            device.memory.fill(at(n) + payload.start, payload.len(), byte);
        };
        let start = fills.then(cycles);
        match choice.filling() {
            _ if !fills => (0..count).for_each(write_head),
            Filling::Straight => (0..count).for_each(|n| {
                write_head(n);
                fill(n, LINE..traffic.frame);
            }),
            Filling::Asking => {
                let ask = |(n, piece): (u16, Range<usize>)| {
                    let line = at(n) / LINE;
                    lines[line..][piece.start / LINE..piece.end.div_ceil(LINE)]
                        .iter()
                        .for_each(sys::own);
                };
                let pieces = pieces_backwards(count, traffic.frame);
                let mut asked = pieces.clone();
                asked.by_ref().take(pieces_ahead(traffic.frame)).for_each(ask);
                for (n, piece) in pieces {
                    asked.next().map(ask);
                    if piece.start == 0 {
                        write_head(n);
                    }
                    fill(n, piece.start.max(LINE)..piece.end);
                }
            }
        }
        if let Some(start) = start.filter(|_| count == *burst) {
            choice.took(cycles() - start);
        }
        *sequence += u64::from(count);
        queue.offer(count);
        count
    }

    /// Receives a burst if at least `least` frames are there. Returns how many. [`Guest::tell`] comes afterwards.
    #[inline]
    pub fn receive(&mut self, least: u16, sink: &mut impl Sink) -> u16 {
        let Self { device, lines, traffic, side, burst, .. } = self;
        let queue = &mut device.receive;
        let count = queue.ring.returned(*burst);
        if count < least || count == 0 {
            return 0;
        }
        let now = cycles();
        let lines: &[Line] = lines;
        let first = queue.ring.next_to_return();
        let slots = device.slots - 1;
        for n in 0..count {
            let slot = (first + n) & slots;
            let entry = queue.ring.entry(n);
            let at = queue.buffers.frame(slot) / LINE;
            let header = &lines[at - 1];
            // The number of buffers, and the length: both must be read by any guest.
            std::hint::black_box(header.0[7].load(Relaxed));
            let len = (entry.len as usize).saturating_sub(HEADER);
            let last = at + len.clamp(1, queue.buffers.stride - LINE).div_ceil(LINE);
            let whole = &lines[at..last];
            if traffic.touch == Touch::Full {
                std::hint::black_box(sys::touch(whole));
            }
            let len = if entry.id == slot { len } else { 0 };
            sink.frame(*side, Got { header, line: &lines[at], whole, len, now });
        }
        queue.ring.reclaim(count);
        queue.offer(count);
        count
    }
}
