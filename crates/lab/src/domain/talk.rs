//! Two guests that talk all the time, and for how long they could not.
//!
//! One sends a numbered datagram each [`PACE`], the other returns it. The gap is the longest time between two answers, the beginning and the end counted as such.

use anyhow::{Context, Result};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testbed::{netns, unbroken};

const PORT: u16 = 7777;
/// Between two datagrams. Chosen: fine enough for gaps of tenths of a second.
const PACE: Duration = Duration::from_millis(10);

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Datagrams that left.
    pub sent: u64,
    /// Those that came back.
    pub answered: u64,
    /// The longest time without one.
    pub gap: Duration,
}

/// A conversation that goes on.
pub struct Talk {
    over: &'static AtomicBool,
    echo: JoinHandle<()>,
    asks: JoinHandle<Heard>,
}

impl Talk {
    /// Begins one between two namespaces, of which the second has that address.
    pub fn begin(from: &str, to: &str, address: &str) -> Result<Self> {
        // It ends with the conversation; one byte a conversation is not missed.
        let over: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let own = netns::enter(from, || socket(0))?;
        let other = netns::enter(to, || socket(PORT))?;
        let peer = (address.to_owned(), PORT);
        let echo = thread::spawn(move || answer(&other, over));
        let asks = thread::spawn(move || ask(&own, &peer, over));
        Ok(Self { over, echo, asks })
    }

    /// Ends it.
    pub fn end(self) -> Heard {
        self.over.store(true, Ordering::Relaxed);
        self.echo.join().expect("the echo does not panic");
        self.asks.join().expect("who asks does not panic")
    }
}

fn socket(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", port)).context("a socket of a guest")?;
    socket.set_read_timeout(Some(PACE))?;
    Ok(socket)
}

fn answer(socket: &UdpSocket, over: &AtomicBool) {
    let mut buffer = [0; 64];
    while !over.load(Ordering::Relaxed) {
        if let Ok((len, peer)) = unbroken(|| socket.recv_from(&mut buffer)) {
            // While its interface is gone it cannot answer: that is a gap.
            let _ = socket.send_to(&buffer[..len], peer);
        }
    }
}

fn ask(socket: &UdpSocket, peer: &(String, u16), over: &AtomicBool) -> Heard {
    let mut heard = Heard { sent: 0, answered: 0, gap: Duration::ZERO };
    let (mut last, mut next) = (Instant::now(), Instant::now());
    let mut buffer = [0; 64];
    while !over.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            next += PACE;
            heard.sent += u64::from(socket.send_to(&heard.sent.to_be_bytes(), peer).is_ok());
        }
        if unbroken(|| socket.recv_from(&mut buffer)).is_ok() {
            heard.answered += 1;
            heard.gap = heard.gap.max(last.elapsed());
            last = Instant::now();
        }
    }
    heard.gap = heard.gap.max(last.elapsed());
    heard
}
