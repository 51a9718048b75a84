//! TCP throughput by iperf3, the tool whose figures people compare.

use crate::netns::{Guest, run};
use crate::peer::GENERATORS_CORE;
use anyhow::{Context, Result};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How much longer than it should a connection may take.
const PATIENCE_S: u32 = 15;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the two guests' processes run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cores {
    /// Both on the generators' core, so that the switch has its core for itself.
    Generators,
    /// Wherever the kernel puts them, the switch's core too.
    Any,
}

/// Gbit/s received, one connection, `seconds` after a second of warming up; the machine's default congestion control.
pub fn throughput(from: &Guest, to: &Guest, cores: Cores, seconds: u32) -> Result<f64> {
    throughput_at(from, (to, &to.address), cores, seconds)
}

/// Gbit/s received, one connection that sends at most so much (`500M`), both ends on the generators' core.
pub fn paced(from: &Guest, to: &Guest, pace: &str, seconds: u32) -> Result<f64> {
    let both = format!("{GENERATORS_CORE},{GENERATORS_CORE}");
    measured(from, (to, &to.address), seconds, &["-b", pace, "-A", &both])
}

/// The same as [`throughput`] to another address of the guest.
pub fn throughput_at(
    from: &Guest,
    (to, address): (&Guest, &str),
    cores: Cores,
    seconds: u32,
) -> Result<f64> {
    let both = format!("{GENERATORS_CORE},{GENERATORS_CORE}");
    let pinned = ["-A", &both];
    let more: &[&str] = if cores == Cores::Generators { &pinned } else { &[] };
    measured(from, (to, address), seconds, more)
}

fn measured(
    from: &Guest,
    (to, address): (&Guest, &str),
    seconds: u32,
    more: &[&str],
) -> Result<f64> {
    let server = to
        .namespace
        .command("iperf3")
        .args(["-s", "-1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = Server(server.context("iperf3: cannot be started; run 'make setup'")?);
    wait_for_listener(to)?;
    let time = seconds.to_string();
    let mut client = from.namespace.command("timeout");
    let patience = (seconds + PATIENCE_S).to_string();
    client
        .args([&patience, "iperf3"])
        .args(["-c", address, "-J", "-O", "1", "-t", &time])
        .args(more);
    let text = run(&mut client)?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let bits =
        value["end"]["sum_received"]["bits_per_second"].as_f64().context("iperf3: no result")?;
    Ok(bits / 1e9)
}

fn wait_for_listener(to: &Guest) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        if run(to.namespace.command("ss").args(["-Hltn", "sport = 5201"]))?.contains("5201") {
            return Ok(());
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "iperf3: the server did not begin to listen within 5 s"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
