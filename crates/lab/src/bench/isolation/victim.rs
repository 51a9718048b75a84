//! The two guests that are attacked: numbered datagrams and TCP from one to the other.

use anyhow::{Context, Result};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testbed::netns::Guest;
use testbed::peer::GENERATORS_CORE;
use testbed::sys::pin;
use testbed::traffic::tcp;

const PORT: u16 = 7779;
const PER_S: u32 = 10_000;
const STEP: Duration = Duration::from_millis(2);
const TCP_SECONDS: u32 = 3;
/// What TCP sends: far below what either switch carries.
const TCP_PACE: &str = "500M";

/// What came.
pub struct Seen {
    pub datagrams_per_s: f64,
    /// 0 if the connection did not live.
    pub gbits: f64,
    /// Longest time without a datagram.
    pub silence: Duration,
}

/// Looks for some four seconds.
pub fn see([from, to]: &[Guest; 2]) -> Result<Seen> {
    let socket = |guest: &Guest| {
        guest.namespace.enter(|| {
            UdpSocket::bind((guest.address.as_str(), PORT)).context("a socket for datagrams")
        })
    };
    let (out, inward) = (socket(from)?, socket(to)?);
    out.connect((to.address.as_str(), PORT))?;
    inward.set_read_timeout(Some(Duration::from_millis(100)))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&inward, &over));
        let sender = scope.spawn(|| send(&out, &over));
        let gbits = tcp::paced(from, to, TCP_PACE, TCP_SECONDS);
        over.store(true, Ordering::Relaxed);
        let took = sender.join().expect("who sends does not panic");
        let (received, silence) = receiver.join().expect("who receives does not panic");
        let datagrams_per_s = received as f64 / took.as_secs_f64();
        let gbits = gbits.unwrap_or_else(|error| {
            eprintln!("  no TCP: {error:#}");
            0.0
        });
        Ok(Seen { datagrams_per_s, gbits, silence })
    })
}

/// Sends at the pace; how long it did.
fn send(out: &UdpSocket, over: &AtomicBool) -> Duration {
    pin(GENERATORS_CORE);
    let (start, mut sent) = (Instant::now(), 0);
    while !over.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * f64::from(PER_S)) as u32;
        for _ in sent..due {
            // A full interface is a loss like any other.
            let _ = out.send(&[0; 18]);
        }
        sent = due;
        std::thread::sleep(STEP);
    }
    start.elapsed()
}

/// How many come, and the longest time without one.
fn receive(inward: &UdpSocket, over: &AtomicBool) -> (u64, Duration) {
    pin(GENERATORS_CORE);
    let (mut received, mut silence, mut last) = (0, Duration::ZERO, Instant::now());
    loop {
        let came = inward.recv(&mut [0; 64]).is_ok();
        if over.load(Ordering::Relaxed) {
            return (received, silence);
        }
        silence = silence.max(last.elapsed());
        if came {
            received += 1;
            last = Instant::now();
        }
    }
}
