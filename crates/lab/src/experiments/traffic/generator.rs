//! Sends all flows of a window from one core.
//!
//! A tick each half millisecond; whatever is due by then is sent. A generator that lost its core for a while catches up, but what is overdue by more
//! than [`PATIENCE`] is never sent: it counts as due and unsent.

use super::Flow;
use super::stamp::{Stamp, now_ns};
use anyhow::{Context, Result};
use rustix::net::sockopt::{set_ip_tos, set_socket_send_buffer_size_force};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const TICK: Duration = Duration::from_micros(500);

/// Chosen: longer than any softirq holds a core, shorter than what would come out as a burst.
const PATIENCE: Duration = Duration::from_millis(50);

/// Bytes under way that a flow may have: more than all queues hold.
const BUFFER: usize = 64 << 20;

/// When a window runs, in ns of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Its number.
    pub run: u32,
    /// The first datagram is due.
    pub start: u64,
    /// From here on is counted.
    pub begin: u64,
    /// No datagram is due any more.
    pub end: u64,
    /// From one flow's start to the next one's.
    pub step: u64,
}

/// How flows begin.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From one flow's first datagram to the next flow's.
    pub step: Duration,
    /// From the first datagram of all until datagrams count: queues fill, steering decides.
    pub warm_up: Duration,
}

impl Pace {
    /// All at once: the hardest for who looks at loads. The time before is chosen: a hundred of the agent's looks.
    pub const USUAL: Self = Self { step: Duration::ZERO, warm_up: Duration::from_millis(200) };
    /// Where cores are slow and datagrams rarer than the loads' smoothing sees: one after the other. Chosen: a few datagrams of 8192 bytes at 2 Mbit/s.
    pub const SLOW: Self =
        Self { step: Duration::from_millis(100), warm_up: Duration::from_millis(400) };
}

impl Times {
    /// For the flow at a place among the flows.
    pub fn of(self, place: usize) -> Self {
        Self { start: self.start + self.step * place as u64, ..self }
    }
}

/// What was sent of a flow in the counted time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sent {
    /// Datagrams that were due.
    pub due: u64,
    /// Of these, not sent.
    pub unsent: u64,
}

/// One flow on its socket.
pub struct Source {
    flow: Flow,
    socket: UdpSocket,
    to: SocketAddr,
    payload: Vec<u8>,
    /// Number of the next datagram.
    next: u64,
    sent: Sent,
    /// Among the sources that were given.
    place: usize,
}

impl Source {
    /// Opens the socket, in the calling thread's namespace. It stays unconnected: a connected one has a random hash of its own, which the tunnel would take for
    /// the flow's.
    ///
    /// # Errors
    /// The address is not there or the port is taken.
    pub fn open(flow: Flow, from: &str, to: &str) -> Result<Self> {
        let socket = UdpSocket::bind((from, flow.port)).with_context(|| {
            format!("{from}:{}: the sender's socket cannot be bound", flow.port)
        })?;
        let to = to.parse().with_context(|| format!("{to}: not an address"))?;
        set_ip_tos(&socket, flow.tos).context("type of service")?;
        // Datagrams count as the socket's until the receiving host takes them out of its queue: they must not hold the sender back.
        set_socket_send_buffer_size_force(&socket, BUFFER).context("the sender's buffer")?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            flow,
            socket,
            to,
            payload: vec![0; flow.size],
            next: 0,
            sent: Sent::default(),
            place: 0,
        })
    }

    /// Sends a few at once, which belong to no window.
    pub fn probe(mut self, datagrams: u64) {
        for number in 0..datagrams {
            self.next = number;
            self.send(0, 0);
        }
    }

    /// Datagrams that are due before a moment.
    fn due_by(&self, now: u64, times: &Times) -> u64 {
        due_by(self.flow.rate, now.min(times.end).saturating_sub(times.start))
    }

    /// Sends the next datagram if it is due; whether it was.
    fn send_next(&mut self, now: u64, times: &Times) -> bool {
        if self.next >= self.due_by(now, times) {
            return false;
        }
        let oldest = self.due_by(now.saturating_sub(PATIENCE.as_nanos() as u64), times);
        let due_ns = times.start + (self.next as f64 / self.flow.rate * 1e9) as u64;
        let is_sent = self.next >= oldest && self.send(due_ns, times.run);
        if self.next >= first_counted(&self.flow, times) {
            self.sent.due += 1;
            self.sent.unsent += u64::from(!is_sent);
        }
        self.next += 1;
        true
    }

    fn send(&mut self, due_ns: u64, run: u32) -> bool {
        let stamp = Stamp { run, vm: self.flow.vm.into(), number: self.next, due_ns };
        stamp.write(&mut self.payload);
        self.socket.send_to(&self.payload, self.to).is_ok()
    }
}

/// Sends all that is due, one datagram of each flow in turn.
fn send_due(sources: &mut [Source], now: u64, times: &Times) {
    let mut sent = 1_u32;
    while sent > 0 {
        let send = |source: &mut Source| u32::from(source.send_next(now, &times.of(source.place)));
        sent = sources.iter_mut().map(send).sum();
    }
}

/// Number of the first datagram that counts.
pub fn first_counted(flow: &Flow, times: &Times) -> u64 {
    due_by(flow.rate, times.begin - times.start)
}

/// Datagrams at `rate` a second that are due within so many ns, the first one at once.
fn due_by(rate: f64, ns: u64) -> u64 {
    (ns as f64 * rate / 1e9).ceil() as u64
}

/// Sends until the end; the caller's thread is on the senders' core. What was sent, by flow.
pub fn send(mut sources: Vec<Source>, times: &Times) -> Vec<Sent> {
    // Before all others, but not at real-time priority: what a softirq does in this thread's name would be taken for its own, and held back.
    // Without the privilege the thread stays as it is.
    let _ = rustix::process::nice(-20);
    (0..).zip(&mut sources).for_each(|(place, source)| source.place = place);
    loop {
        let now = now_ns();
        send_due(&mut sources, now, times);
        // Another flow is first each time: whoever comes last finds the queues fullest.
        sources.rotate_left(1);
        if now >= times.end {
            sources.sort_by_key(|source| source.place);
            return sources.iter().map(|source| source.sent).collect();
        }
        std::thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_due_evenly_and_the_first_at_once() {
        assert_eq!(due_by(1000.0, 0), 0);
        assert_eq!(due_by(1000.0, 1), 1);
        assert_eq!(due_by(1000.0, 1_000_000), 1);
        assert_eq!(due_by(1000.0, 1_000_001), 2);
        let flow = Flow { vm: 1, port: 0, size: 64, rate: 1000.0, tos: 0 };
        let times = Times { run: 0, start: 5, begin: 1_000_000_005, end: 2_000_000_005, step: 0 };
        assert_eq!(first_counted(&flow, &times), 1000);
    }

    #[test]
    fn flows_begin_one_after_the_other_and_end_together() {
        let (begin, end) = (1_000_000_000, 2_000_000_000);
        let times = Times { run: 0, start: 0, begin, end, step: 100_000_000 };
        let flow = Flow { vm: 1, port: 0, size: 64, rate: 100.0, tos: 0 };
        let first = |place| first_counted(&flow, &times.of(place));
        assert_eq!((first(0), first(1), first(2)), (100, 90, 80));
        assert_eq!(times.of(2).end, times.end);
    }

    #[test]
    fn what_is_overdue_for_too_long_counts_as_due_but_is_not_sent() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap().to_string();
        let flow = Flow { vm: 1, port: 0, size: 64, rate: 1000.0, tos: 0 };
        let mut source = Source::open(flow, "127.0.0.1", &to).unwrap();
        let times = Times { run: 1, start: 0, begin: 0, end: 1_000_000_000, step: 0 };
        send_due(std::slice::from_mut(&mut source), 100_000_000, &times);
        assert_eq!(source.sent, Sent { due: 100, unsent: 50 });
        let mut payload = [0; 64];
        receiver.recv(&mut payload).unwrap();
        assert_eq!(Stamp::read(&payload).unwrap().number, 50);
    }
}
