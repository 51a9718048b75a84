//! Two guests that talk all the time, and for how long they could not.
//!
//! One sends a numbered datagram at a steady pace, the other returns it. The gap is the longest time between two answers, the beginning and the end counted as such.

use anyhow::{Context, Result};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testbed::{netns, unbroken};

const PORT: u16 = 7777;
/// How long answers of the last datagrams are waited for. Chosen: many round trips.
const REST: Duration = Duration::from_millis(500);
/// Between two looks whether it is over.
const LOOK: Duration = Duration::from_millis(10);

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Datagrams that left.
    pub sent: u64,
    /// Those that came back.
    pub answered: u64,
    /// Those of them that came behind a later one.
    pub late: u64,
    /// The longest time without one.
    pub gap: Duration,
    /// What the 99th of 100 round trips took.
    pub p99: Duration,
}

/// A conversation that goes on.
pub struct Talk {
    over: &'static AtomicBool,
    /// Whether datagrams are still returned.
    echoes: &'static AtomicBool,
    echo: JoinHandle<()>,
    asks: JoinHandle<Heard>,
}

impl Talk {
    /// Begins one between two namespaces, of which the second has that address; so long between two datagrams.
    pub fn begin(from: &str, to: &str, address: &str, pace: Duration) -> Result<Self> {
        // They end with the conversation; two bytes a conversation are not missed.
        let over: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let echoes: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
        let own = netns::enter(from, || socket(0))?;
        let other = netns::enter(to, || socket(PORT))?;
        let peer = (address.to_owned(), PORT);
        let echo = thread::spawn(move || answer(&other, echoes));
        own.set_read_timeout(Some(pace.min(LOOK)))?;
        let asks = thread::spawn(move || ask(&own, &peer, over, pace));
        Ok(Self { over, echoes, echo, asks })
    }

    /// Ends it.
    pub fn end(self) -> Heard {
        self.over.store(true, Ordering::Relaxed);
        let heard = self.asks.join().expect("who asks does not panic");
        self.echoes.store(false, Ordering::Relaxed);
        self.echo.join().expect("the echo does not panic");
        heard
    }
}

fn socket(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", port)).context("a socket of a guest")?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

fn answer(socket: &UdpSocket, echoes: &AtomicBool) {
    let mut buffer = [0; 64];
    while echoes.load(Ordering::Relaxed) {
        if let Ok((len, peer)) = unbroken(|| socket.recv_from(&mut buffer)) {
            // While its interface is gone it cannot answer: that is a gap.
            let _ = socket.send_to(&buffer[..len], peer);
        }
    }
}

fn ask(socket: &UdpSocket, peer: &(String, u16), over: &AtomicBool, pace: Duration) -> Heard {
    let mut heard =
        Heard { sent: 0, answered: 0, late: 0, gap: Duration::ZERO, p99: Duration::ZERO };
    let (mut left, mut took): (Vec<Instant>, Vec<Duration>) = (Vec::new(), Vec::new());
    let (mut last, mut next, mut newest) = (Instant::now(), Instant::now(), None);
    let mut hear = |heard: &mut Heard, last: &mut Instant, left: &[Instant]| {
        let mut number = [0; 8];
        if unbroken(|| socket.recv_from(&mut number)).is_ok() {
            let number = Some(u64::from_be_bytes(number));
            let sent = number.and_then(|number| left.get(usize::try_from(number).ok()?));
            took.extend(sent.map(Instant::elapsed));
            heard.answered += 1;
            heard.late += u64::from(number < newest);
            newest = newest.max(number);
            heard.gap = heard.gap.max(last.elapsed());
            *last = Instant::now();
        }
    };
    while !over.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            next += pace;
            left.truncate(heard.sent as usize);
            left.push(Instant::now());
            heard.sent += u64::from(socket.send_to(&heard.sent.to_be_bytes(), peer).is_ok());
        }
        hear(&mut heard, &mut last, &left);
    }
    heard.gap = heard.gap.max(last.elapsed());
    let end = Instant::now() + REST;
    while heard.answered < heard.sent && Instant::now() < end {
        hear(&mut heard, &mut last, &left);
    }
    took.sort();
    heard.p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
    heard
}
