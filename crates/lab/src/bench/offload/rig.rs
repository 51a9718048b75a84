//! Contenders of `suiro bench offload`: two rules between two guests, whose flows stay on the worker or leave it; a plain XDP redirect; the
//! others as they come.

use anyhow::{Context, Result, bail, ensure};
use aya::Ebpf;
use aya::maps::DevMap;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::netns::run;
use testbed::peer::{Attach, Contend, Contender, Running, Switch};
use testbed::sys::interface_index;
use testbed::traffic::frames::{self, Frames, Packets};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.bpf.o"));

/// Share of a figure's packets that must have gone past the worker.
pub const PAST: f64 = 0.9;
/// How long flows may take to leave. Measured: some 100 ms.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who forwards.
#[derive(Clone, Copy)]
pub enum Rig {
    /// suiro with a rule each way.
    Suiro {
        attach: Attach,
        /// Whether flows leave the worker.
        past: bool,
        /// Whether a meter is in their way. It is wider than what comes, so that its cost is measured and not its rate.
        limited: bool,
    },
    /// suiro, whose first guest's frames leave by a VXLAN tunnel: to the second one's interface, which stands for the underlay's other end.
    Tunnel {
        /// Whether flows leave the worker.
        past: bool,
        /// Whether the outer UDP header has a checksum.
        sum: bool,
    },
    /// The other way: frames come by the tunnel, from the second guest's interface to the first guest.
    OutOfTunnel {
        /// Whether flows leave the worker.
        past: bool,
    },
    /// XDP programs that send all that one guest sends to the other.
    Redirect,
    /// Another switch.
    Other(Contender),
}

/// A rig at work.
pub struct AtWork {
    pub running: Running,
    rig: Rig,
    /// Attached while they live.
    _programs: Vec<Ebpf>,
}

impl Contend for Rig {
    type Running = AtWork;

    fn name(self) -> String {
        match self {
            Rig::Suiro { attach, past, limited } => {
                let place = if past { "past the worker" } else { "worker" };
                let limit = if limited { ", meter" } else { "" };
                format!("suiro {place} {}{limit}", attach.name())
            }
            Rig::Tunnel { past, sum } => {
                let place = if past { "past the worker" } else { "worker" };
                let sum = if sum { "" } else { " without outer checksum" };
                format!("suiro {place} af_xdp, VXLAN{sum}")
            }
            Rig::OutOfTunnel { past } => {
                let place = if past { "past the worker" } else { "worker" };
                format!("suiro {place} af_xdp, out of VXLAN")
            }
            Rig::Redirect => "XDP devmap redirect".into(),
            Rig::Other(contender) => contender.name(),
        }
    }

    fn start(self) -> Result<AtWork> {
        let contender = match self {
            Rig::Suiro { attach, .. } => Contender { switch: Switch::Suiro, attach },
            Rig::Tunnel { .. } | Rig::OutOfTunnel { .. } => {
                Contender { switch: Switch::Suiro, attach: Attach::AfXdpNative }
            }
            Rig::Redirect => super::super::cases::BRIDGE,
            Rig::Other(contender) => contender,
        };
        let mut work = AtWork { running: contender.start()?, rig: self, _programs: Vec::new() };
        // Redirected XDP frames are taken by a veth whose other end has GRO.
        for guest in &work.running.guests {
            run(guest.namespace.command("ethtool").args(["-K", "eth0", "gro", "on"]))?;
        }
        match self {
            Rig::Suiro { past, limited, .. } => work.program(past, limited)?,
            Rig::Tunnel { past, sum } => work.tunnel(past, sum)?,
            Rig::OutOfTunnel { past } => work.tunnel(past, false)?,
            Rig::Redirect => work._programs = work.redirects()?,
            Rig::Other(_) => {}
        }
        Ok(work)
    }
}

impl AtWork {
    /// A rule each way, and who leaves.
    fn program(&self, past: bool, limited: bool) -> Result<()> {
        let meter = if limited { "meter:1," } else { "" };
        if limited {
            let wide = "meter=1,kbps,burst,band=type=drop,rate=4000000,burst_size=4000000";
            self.suiro(&["meter", "add", "sw0", wide])?;
        }
        let [a, b] = &self.running.guests;
        for (from, to) in [(a, b), (b, a)] {
            let rule =
                format!("priority=100,in_port={},actions={meter}output:{}", from.port, to.port);
            self.suiro(&["flow", "add", "sw0", &rule])?;
        }
        if past { self.offload() } else { Ok(()) }
    }

    fn offload(&self) -> Result<()> {
        self.suiro(&["offload", "policy", "add", "all", "--when", "first"])?;
        self.suiro(&["offload", "on"])?;
        Ok(())
    }

    /// The second guest's port is the underlay's card, and the switch has the host's own address; a tunnel leads there.
    fn tunnel(&self, past: bool, sum: bool) -> Result<()> {
        let [a, b] = &self.running.guests;
        let sum = if sum { "on" } else { "off" };
        let tunnel = ["--type", "vxlan", "--remote", "192.0.2.2", "--key", "7"];
        let own = ["--forwarding", "own", "--outer-checksum", sum];
        self.suiro(&["port", "add", "sw0", "host", "--type", "tap", "--interface", "host0"])?;
        let host = self.running.switch();
        let neighbour = ["neigh", "replace", "192.0.2.2", "lladdr", &b.mac, "dev", "host0"];
        run(host.command("ip").args(["addr", "add", "192.0.2.1/24", "dev", "host0"]))?;
        run(host.command("ip").args(neighbour))?;
        self.suiro(&[&["port", "add", "sw0", "tun0"][..], &tunnel, &own].concat())?;
        let out = [(&*a.port, "tun0"), ("host", &b.port)];
        for (from, to) in out.into_iter().chain([(&*b.port, "host"), ("tun0", &a.port)]) {
            let rule = format!("priority=100,in_port={from},actions=output:{to}");
            self.suiro(&["flow", "add", "sw0", &rule])?;
        }
        if past { self.offload() } else { Ok(()) }
    }

    /// Frames of the second guest to the first as they come by the tunnel.
    pub fn out_of_tunnel(&self) -> Result<Frames> {
        let [a, b] = &self.running.guests;
        let door = match self.rig {
            Rig::OutOfTunnel { .. } => self.mac_of("host0")?,
            _ => a.mac.clone(),
        };
        let packets = Packets { to: (&door, "192.0.2.1"), from: "192.0.2.2", vni: 7 };
        Ok(Frames::in_tunnel(b, a, frames::SMALLEST, &packets))
    }

    fn mac_of(&self, interface: &str) -> Result<String> {
        let words = ["-j", "link", "show", "dev", interface];
        let shown = run(self.running.switch().command("ip").args(words))?;
        let shown: Value = serde_json::from_str(&shown)?;
        Ok(shown[0]["address"].as_str().context("an interface without a MAC")?.to_owned())
    }

    /// What one guest sends leaves to the other, without a look at it.
    fn redirects(&self) -> Result<Vec<Ebpf>> {
        let [a, b] = [0, 1].map(|at: usize| self.running.guests[at].port.clone());
        self.running.switch().enter(move || {
            [(&a, &b), (&b, &a)].map(|(from, to)| redirect(from, to)).into_iter().collect()
        })
    }

    /// Says something to the node.
    fn suiro(&self, words: &[&str]) -> Result<String> {
        let management = self.running.state.management.as_ref().context("no node")?;
        let mut command = Command::new(std::env::current_exe().context("own binary")?);
        run(command.args(words).env("SUIRO_API", management.with_file_name("api.sock")))
    }

    /// Packets of all flows so far, and of those the ones that went past the worker.
    fn packets(&self) -> Result<(u64, u64)> {
        let listed = self.suiro(&["flow", "list", "sw0", "--rungs", "--json"])?;
        let flows: Vec<Value> = serde_json::from_str(&listed)?;
        let sum = |key: &str| flows.iter().filter_map(|flow| flow[key].as_u64()).sum();
        Ok((sum("packets"), sum("offloaded_packets")))
    }

    fn is_past(&self) -> bool {
        matches!(
            self.rig,
            Rig::Suiro { past: true, .. }
                | Rig::Tunnel { past: true, .. }
                | Rig::OutOfTunnel { past: true }
        )
    }

    /// Does `warm`, small parts of what is measured, until all flows have left.
    ///
    /// # Errors
    /// They do not leave.
    pub fn warmed(&self, warm: impl Fn() -> Result<()>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = self.packets_if_past()?;
            warm()?;
            let Some(share) = share(before, self.packets_if_past()?) else { return Ok(()) };
            if share >= PAST {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!(
                    "flows do not leave the worker: {}",
                    self.suiro(&["flow", "list", "sw0", "--rungs"])?
                );
            }
        }
    }

    /// The figure of `measure`, if at least the share `least` of its packets went past the worker where they should.
    ///
    /// # Errors
    /// What `measure` says, or fewer went past it.
    pub fn measured(&self, least: f64, measure: impl Fn(&Running) -> Result<f64>) -> Result<f64> {
        let before = self.packets_if_past()?;
        let figure = measure(&self.running)?;
        if let Some(share) = share(before, self.packets_if_past()?) {
            eprintln!("  {:.1} % past the worker", 100.0 * share);
            ensure!(
                share >= least,
                "only {:.0} % of the packets went past the worker",
                100.0 * share
            );
        }
        Ok(figure)
    }

    fn packets_if_past(&self) -> Result<Option<(u64, u64)>> {
        if self.is_past() { self.packets().map(Some) } else { Ok(None) }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        // Flows past the worker would outlive it.
        if self.is_past() {
            let _ = self.suiro(&["offload", "off"]);
        }
    }
}

/// Share past the worker of what came between two looks; `None` where nothing is to go past it.
fn share(before: Option<(u64, u64)>, now: Option<(u64, u64)>) -> Option<f64> {
    let ((all, past), (all_now, past_now)) = before.zip(now)?;
    // Flows that are forgotten are counted no more.
    Some(past_now.saturating_sub(past) as f64 / all_now.saturating_sub(all).max(1) as f64)
}

fn redirect(from: &str, to: &str) -> Result<Ebpf> {
    let step = || format!("redirect from {from} to {to}");
    let mut ebpf = Ebpf::load(OBJECT).with_context(step)?;
    let mut exits: DevMap<_> = ebpf.map_mut("exits").context("map exits")?.try_into()?;
    exits.set(0, interface_index(to)?, None, 0).with_context(step)?;
    let program: &mut Xdp = ebpf.program_mut("redirect").context("program redirect")?.try_into()?;
    program.load().with_context(step)?;
    program.attach(from, XdpMode::Driver).with_context(step)?;
    Ok(ebpf)
}
