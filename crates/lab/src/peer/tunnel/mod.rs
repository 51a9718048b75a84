//! Two hosts joined by VXLAN: each contender carries a guest's frames to a guest on the other host.
//!
//! A host is a namespace; a veth pair `u0` with an MTU of 1500 is the wire between them. Whatever has a core of its own gets the same one on
//! both hosts, for there are two cores.

mod bridge;
mod ovs;
mod suiro;

use super::{Contend, Contender, State, Switch, accept_live_frames, wait_until_joined};
use crate::netns::{Guest, Namespace};
use anyhow::{Context, Result};

/// The tenant's key.
const VNI: u32 = 7;
/// Bytes of a packet on the wire.
const WIRE: u32 = 1500;
/// The wire's end in each host.
const UPLINK: &str = "u0";

/// Addresses of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Underlay {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A switch on each host, how guests are attached, and the wire's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnelled {
    /// Which switch. The Linux bridge has the kernel's own `vxlan` interface as a port.
    pub by: Contender,
    /// The wire's addresses.
    pub underlay: Underlay,
}

/// A contender at work on both hosts; what it started goes before the namespaces.
pub struct Joined {
    _states: [State; 2],
    /// The two guests.
    pub guests: [Guest; 2],
    hosts: [Namespace; 2],
}

/// One host's side of the tunnel.
struct Side<'a> {
    host: &'a Namespace,
    guest: &'a Guest,
    local: &'static str,
    remote: &'static str,
}

impl Contend for Tunnelled {
    type Running = Joined;

    fn name(self) -> String {
        let switch = match self.by.switch {
            Switch::Bridge { .. } => "linux vxlan + bridge".into(),
            _ => self.by.name(),
        };
        match self.underlay {
            Underlay::V4 => switch,
            Underlay::V6 => format!("{switch}, IPv6"),
        }
    }

    fn start(self) -> Result<Joined> {
        let hosts = [Namespace::create("h1")?, Namespace::create("h2")?];
        join(&hosts)?;
        let guests = [Guest::on_veth(&hosts[0], 1)?, Guest::on_veth(&hosts[1], 2)?];
        let mtu = (WIRE - self.underlay.overhead()).to_string();
        for guest in &guests {
            guest.namespace.ip(&["link", "set", "eth0", "mtu", &mtu])?;
        }
        let side = |here: usize| {
            let [local, remote] = [here, 1 - here].map(|host| self.underlay.address(host));
            let side = Side { host: &hosts[here], guest: &guests[here], local, remote };
            let started = match self.by.switch {
                Switch::Suiro => suiro::start(&side, self.by.attach),
                Switch::Ovs { tso } => ovs::start(&side, self.by.attach, tso),
                Switch::Bridge { .. } => bridge::start(&side),
            };
            started.with_context(|| format!("{}: starting host {} failed", self.name(), here + 1))
        };
        let joined = Joined { _states: [side(0)?, side(1)?], guests, hosts };
        wait_until_joined(&joined.guests).with_context(|| self.name())?;
        Ok(joined)
    }
}

impl Joined {
    /// Turns NAPI on at the switches' ends of the guests' veth pairs.
    pub fn accept_live_frames(&self) -> Result<()> {
        let mut pairs = self.hosts.iter().zip(&self.guests);
        pairs.try_for_each(|(host, guest)| accept_live_frames(host, guest))
    }
}

impl Underlay {
    /// Of a host.
    const fn address(self, host: usize) -> &'static str {
        match (self, host) {
            (Self::V4, 0) => "192.0.2.1",
            (Self::V4, _) => "192.0.2.2",
            (Self::V6, 0) => "2001:db8::1",
            (Self::V6, _) => "2001:db8::2",
        }
    }

    /// Bytes around a guest's packet: Ethernet, VXLAN, UDP, IP.
    const fn overhead(self) -> u32 {
        match self {
            Self::V4 => 14 + 8 + 8 + 20,
            Self::V6 => 14 + 8 + 8 + 40,
        }
    }
}

/// Lays the wire.
fn join(hosts: &[Namespace; 2]) -> Result<()> {
    let [a, b] = hosts;
    a.ip(&["link", "add", UPLINK, "type", "veth", "peer", "name", UPLINK, "netns", b.name()])?;
    for (number, host) in hosts.iter().enumerate() {
        let [v4, v6] = [Underlay::V4, Underlay::V6].map(|family| family.address(number));
        host.ip(&["addr", "add", &format!("{v4}/24"), "dev", UPLINK])?;
        host.ip(&["addr", "add", &format!("{v6}/64"), "dev", UPLINK, "nodad"])?;
        host.ip(&["link", "set", UPLINK, "up"])?;
    }
    Ok(())
}
