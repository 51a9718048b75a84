//! Two hosts joined by VXLAN: each contender carries a guest's frames to a guest on the other host.
//!
//! A host is a namespace; a veth pair `u0` with an MTU of 1500 is the wire between them. Whatever has a core of its own gets the same one on
//! both hosts, for there are two cores.

mod bridge;
mod ovs;
mod suiro;

use super::{Contend, Contender, State, Switch, accept_live_frames, wait_until_joined};
use crate::netns::{Guest, Namespace};
use crate::process::Process;
use anyhow::{Context, Result};
use std::io::Read;

/// The tenant's key.
const VNI: u32 = 7;
/// Bytes of a packet on the wire.
const WIRE: u32 = 1500;
/// Bytes that ESP adds: its header, the UDP header inside, padding and trailer, and the integrity check value.
const SEALED: u32 = 16 + 8 + 5 + 16;
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
    /// Whether suiro encrypts what it sends.
    pub is_encrypted: bool,
    /// Who has suiro's wire. Open vSwitch always has its own.
    pub wire: Wire,
}

/// Who has the wire on a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// The kernel.
    Kernels,
    /// A switch, with the host's address on a TAP; the tunnel's packets go through the kernel between.
    Switchs,
    /// The same, and the tunnel's packets go past the kernel.
    SwitchsPastKernel,
}

/// A contender at work on both hosts; what it started goes before the namespaces.
pub struct Joined {
    states: [State; 2],
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
    /// Its file of keys, if any.
    keys: Option<&'a str>,
}

impl Contend for Tunnelled {
    type Running = Joined;

    fn name(self) -> String {
        let switch = match self.by.switch {
            Switch::Bridge { .. } => "linux vxlan + bridge".into(),
            _ => self.by.name(),
        };
        let v6 = if self.underlay == Underlay::V6 { ", IPv6" } else { "" };
        let encrypted = if self.is_encrypted { ", encrypted" } else { "" };
        let wire = match self.wire {
            Wire::Kernels => "",
            Wire::Switchs => ", through the kernel",
            Wire::SwitchsPastKernel => ", past the kernel",
        };
        format!("{switch}{v6}{encrypted}{wire}")
    }

    fn start(self) -> Result<Joined> {
        let hosts = [Namespace::create("h1")?, Namespace::create("h2")?];
        join(&hosts)?;
        let guests = [Guest::on_veth(&hosts[0], 1)?, Guest::on_veth(&hosts[1], 2)?];
        let keys = if self.is_encrypted { Some(keys()?) } else { None };
        let sealed = if self.is_encrypted { SEALED } else { 0 };
        let mtu = (WIRE - self.underlay.overhead() - sealed).to_string();
        for guest in &guests {
            guest.namespace.ip(&["link", "set", "eth0", "mtu", &mtu])?;
        }
        let side = |here: usize| {
            let [local, remote] = [here, 1 - here].map(|host| self.underlay.address(host));
            let keys = keys.as_ref().map(|keys| &*keys[here]);
            let side = Side { host: &hosts[here], guest: &guests[here], local, remote, keys };
            let started = match self.by.switch {
                Switch::Suiro | Switch::SuiroOnBoth => {
                    suiro::start(&side, self.by.attach, self.wire)
                }
                Switch::Ovs { tso } => ovs::start(&side, self.by.attach, tso),
                Switch::Bridge { .. } => bridge::start(&side),
            };
            started.with_context(|| format!("{}: starting host {} failed", self.name(), here + 1))
        };
        let joined = Joined { states: [side(0)?, side(1)?], guests, hosts };
        wait_until_joined(&joined.guests).with_context(|| self.name())?;
        Ok(joined)
    }
}

impl Joined {
    /// The switches' processes.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.states.iter().flat_map(State::processes)
    }

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

/// Key files of both hosts, with keys of this run only: two SAs each way.
fn keys() -> Result<[String; 2]> {
    let mut files = [String::new(), String::new()];
    for number in 1..=2 {
        let (there, back) = (random()?, random()?);
        let [there, back] = [(0x1000 + number, there), (0x2000 + number, back)];
        for (file, (out, into)) in files.iter_mut().zip([(&there, &back), (&back, &there)]) {
            *file += &format!(
                "[[sa]]\nspi_out = {}\nkey_out = \"{}\"\nspi_in = {}\nkey_in = \"{}\"\n",
                out.0, out.1, into.0, into.1
            );
        }
    }
    Ok(files)
}

/// A key of 16 bytes and its salt, in hexadecimal digits.
fn random() -> Result<String> {
    let mut bytes = [0; 20];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
