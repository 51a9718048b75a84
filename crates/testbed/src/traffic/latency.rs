//! Round trips of small UDP datagrams at low load: what a sleeping switch costs.

use crate::netns::Guest;
use crate::unbroken;
use anyhow::{Context, Result};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two probes: 500 a second, so that the switch falls asleep in between.
const PACE: Duration = Duration::from_millis(2);
const PORT: u16 = 7777;

/// Percentiles of the round-trip time in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// Half are faster.
    pub p50: f64,
    /// 99 of 100 are faster.
    pub p99: f64,
}

/// Measures `count` round trips.
pub fn round_trips(from: &Guest, to: &Guest, count: usize) -> Result<RoundTrip> {
    let probe = from.namespace.enter(|| socket(&from.address))?;
    let echo = to.namespace.enter(|| socket(&to.address))?;
    probe.connect((to.address.as_str(), PORT))?;
    let done = AtomicBool::new(false);
    let mut times = std::thread::scope(|scope| {
        scope.spawn(|| answer(&echo, &done));
        let times = (0..count).map(|number| one(&probe, number)).collect::<Result<Vec<_>>>();
        done.store(true, Ordering::Relaxed);
        times
    })?;
    times.sort_by(f64::total_cmp);
    Ok(RoundTrip { p50: times[times.len() / 2], p99: times[times.len() * 99 / 100] })
}

fn socket(address: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((address, PORT))
        .with_context(|| format!("{address}: binding the latency probe failed"))?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    Ok(socket)
}

fn answer(echo: &UdpSocket, done: &AtomicBool) {
    let mut buffer = [0; 64];
    while !done.load(Ordering::Relaxed) {
        if let Ok((len, peer)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..len], peer);
        }
    }
}

/// One round trip in µs; a lost datagram is an error, since nothing may be lost at this load.
fn one(probe: &UdpSocket, number: usize) -> Result<f64> {
    std::thread::sleep(PACE);
    let start = Instant::now();
    probe.send(&(number as u64).to_be_bytes())?;
    let mut buffer = [0; 64];
    let len = unbroken(|| probe.recv(&mut buffer))
        .with_context(|| format!("latency probe {number} was lost"))?;
    anyhow::ensure!(
        buffer[..len] == (number as u64).to_be_bytes(),
        "latency probe {number}: another one came back"
    );
    Ok(start.elapsed().as_nanos() as f64 / 1000.0)
}
