//! `samples = { … }`: collectors of sFlow and IPFIX.

use super::read::Scope;
use super::read_address;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Who is told, and how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SamplesSpec {
    /// Where sFlow goes.
    pub sflow: Option<SocketAddr>,
    /// Where IPFIX goes.
    pub ipfix: Option<SocketAddr>,
    /// Frames that one sample shall stand for, at least.
    pub every: u32,
    /// Between two tellings of flows and of ports' counters.
    pub interval: Duration,
    /// What sFlow collectors know this node by; the address that it sends from when left out.
    pub agent: Option<IpAddr>,
    /// The operator's own enterprise number, under which core and rung are told; 0 for none.
    pub enterprise: u32,
}

/// Frames that one sample stands for when nothing is said: sFlow's rule of thumb for 10 Gbit/s.
const EVERY: u64 = 1024;
/// Seconds between two tellings of counters and flows when nothing is said.
const INTERVAL_S: u64 = 20;
/// Largest enterprise number that sFlow has room for: 20 bits.
const ENTERPRISE_MAX: u64 = 0xf_ffff;

/// Reads it, if it is there.
pub(super) fn read(node: &Scope<'_>) -> Option<SamplesSpec> {
    let scope = node.table("samples", "node.samples")?;
    let (sflow, ipfix) = (read_address(&scope, "sflow"), read_address(&scope, "ipfix"));
    let seconds = scope.number("interval_s", 1..=3600).unwrap_or(INTERVAL_S);
    let spec = SamplesSpec {
        sflow,
        ipfix,
        every: scope.number("every", 32..=1 << 24).unwrap_or(EVERY) as u32,
        interval: Duration::from_secs(seconds),
        agent: read_agent(&scope),
        enterprise: scope.number("enterprise", 0..=ENTERPRISE_MAX).unwrap_or(0) as u32,
    };
    if sflow.is_none() && ipfix.is_none() {
        scope.missing(
            "sflow",
            "no collector is named",
            "add sflow = \"ADDRESS:6343\" or ipfix = \"ADDRESS:4739\"",
        );
    }
    scope.close();
    Some(spec)
}

fn read_agent(scope: &Scope<'_>) -> Option<IpAddr> {
    let found = scope.string("agent")?;
    let read = found.value.parse().map_err(|_| {
        let cause = format!("agent = {:?} is not an address", found.value);
        scope.problem("agent", cause, "write it like 192.0.2.1");
    });
    read.ok()
}
