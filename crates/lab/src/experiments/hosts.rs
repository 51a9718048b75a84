//! The papers' two hosts in network namespaces.
//!
//! ```text
//!  tx                      wi                       ho                                  g1, g2, …
//!  sockets                 a wire whose far end     eth0   steering here                sockets of the VMs
//!  vxlan0 (VNI 7)          interrupts one core      vxlan0 (VNI 7) ┐
//!  eth0 ──── veth ──── w0  bridge  w1 ──── veth ─── eth0           ├ bridge ── v1 ─ veth ─ eth0
//! ```
//!
//! *tx* is the sending host: tunnel by the kernel's vxlan device, MTU 1500 below and 9000 above it, so that a datagram of 8192 bytes travels as
//! fragments of the *outer* packet, as in the paper. *ho* is the receiving host: what arrives at `eth0` has been interrupted on [`Layout::rx`],
//! whatever core sends: `w0` hands every frame to that core. From `eth0` on all is the kernel's own and is done where the steering says:
//! [`super::stage`], defragmentation, tunnel, bridge, and a VM's namespace up to its socket.
//!
//! Where a frame enters the host, and where it enters a VM, the interface has a queue of its own ([`own_queue`]), as network cards and VMs have: otherwise one queue
//! of the core would hold frames before *and* behind the expensive work, and overload would throw away work already done. Nothing is learned or resolved:
//! addresses are static.

use super::cipher::{Cipher, encrypt};
use super::layout::Layout;
use super::stage::{Counts, Stage};
use anyhow::{Context, Result};
use std::os::fd::OwnedFd;
use testbed::netns::{Namespace, run};

/// The tunnel's network identifier.
pub const VNI: u32 = 7;

/// Underlay addresses.
pub const SENDER: &str = "192.0.2.1";
/// See [`SENDER`].
pub const HOST: &str = "192.0.2.2";

const MTU: &str = "9000";

/// The namespaces and what is in them; gone when dropped.
pub struct Hosts {
    /// The sending host.
    pub sender: Namespace,
    /// The receiving host.
    pub host: Namespace,
    /// The wire between them.
    pub wire: Namespace,
    /// The VMs, from number 1.
    pub vms: Vec<Namespace>,
    /// Who runs where.
    pub layout: Layout,
    /// The work of the receiving host.
    pub stage: Stage,
}

/// Address of a VM.
pub fn address(vm: u8) -> String {
    format!("10.88.0.{vm}")
}

/// Address of whoever sends to a VM.
pub fn peer(vm: u8) -> String {
    format!("10.88.0.{}", 100 + vm)
}

/// Hardware address of a VM.
pub fn mac(vm: u8) -> String {
    format!("02:00:00:58:00:{vm:02x}")
}

impl Hosts {
    /// Builds one with so many VMs; the stage counts and does no work yet.
    ///
    /// # Errors
    /// The command that failed; what was made is gone by then.
    pub fn build(vms: u8, layout: &Layout, cipher: Cipher) -> Result<Self> {
        let hosts = Self {
            sender: Namespace::create("tx")?,
            wire: Namespace::create("wi")?,
            host: Namespace::create("ho")?,
            vms: (1..=vms).map(|vm| Namespace::create(&format!("g{vm}"))).collect::<Result<_>>()?,
            layout: layout.clone(),
            stage: Stage::load()?,
        };
        hosts.quiet()?;
        hosts.lay_wire()?;
        hosts.set_up_sender(vms)?;
        hosts.set_up_host()?;
        if cipher == Cipher::Esp {
            encrypt(&hosts.sender, &hosts.host)?;
        }
        (1..=vms).try_for_each(|vm| hosts.add_vm(vm))?;
        hosts.attach_programs()
    }

    fn all(&self) -> impl Iterator<Item = &Namespace> {
        [&self.sender, &self.wire, &self.host].into_iter().chain(&self.vms)
    }

    /// No IPv6: its own messages would be counted. Fragments that wait for others wait a second, so that one window's losses do not fill the next one's memory.
    fn quiet(&self) -> Result<()> {
        const SETTINGS: [(&str, &str); 4] = [
            ("ipv6/conf/all/disable_ipv6", "1"),
            ("ipv6/conf/default/disable_ipv6", "1"),
            ("ipv4/ipfrag_time", "1"),
            ("ipv4/ip_forward", "0"),
        ];
        let set = |(name, value): (&str, &str)| {
            let path = format!("/proc/sys/net/{name}");
            // A kernel without IPv6 has nothing to be quieted.
            match std::fs::write(&path, value) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(error).context(path)
                }
                _ => Ok(()),
            }
        };
        self.all().try_for_each(|space| space.enter(|| SETTINGS.into_iter().try_for_each(set)))
    }

    fn lay_wire(&self) -> Result<()> {
        let (wire, sender, host) = (&self.wire, self.sender.name(), self.host.name());
        for (end, space) in [("w0", sender), ("w1", host)] {
            wire.ip(&["link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", space])?;
        }
        wire.ip(&["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"])?;
        for name in ["w0", "w1", "br0"] {
            wire.ip(&["link", "set", name, "up"])?;
        }
        for end in ["w0", "w1"] {
            wire.ip(&["link", "set", end, "master", "br0"])?;
        }
        set_rps(wire, "w0", 1 << self.layout.rx)
    }

    fn set_up_sender(&self, vms: u8) -> Result<()> {
        let sender = &self.sender;
        self.underlay(sender, SENDER, HOST, &["tos", "inherit"])?;
        // Checksums as a wire needs them: what is built anew from a frame on another core has no note that a device would have filled them in.
        for name in ["vxlan0", "eth0"] {
            run(sender.command("ethtool").args(["-K", name, "tx", "off"]))?;
        }
        for vm in 1..=vms {
            let (source, neighbour) = (peer(vm) + "/24", address(vm));
            sender.ip(&["addr", "add", &source, "dev", "vxlan0"])?;
            // Locked: otherwise the kernel learns from its own tunnel what fits in there whole, and cuts up the inner packet instead of the outer.
            let (to, from) = (address(vm), peer(vm));
            let route =
                ["route", "replace", &to, "dev", "vxlan0", "src", &from, "mtu", "lock", MTU];
            sender.ip(&route)?;
            sender.ip(&[
                "neigh",
                "replace",
                &neighbour,
                "lladdr",
                &mac(vm),
                "dev",
                "vxlan0",
                "nud",
                "permanent",
            ])?;
        }
        Ok(())
    }

    fn set_up_host(&self) -> Result<()> {
        let host = &self.host;
        host.ip(&["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"])?;
        host.ip(&["link", "set", "br0", "mtu", MTU, "up"])?;
        self.underlay(host, HOST, SENDER, &[])?;
        own_queue((host, "eth0"), (&self.wire, "w1"))?;
        host.ip(&["link", "set", "vxlan0", "master", "br0"]).map(drop)
    }

    /// `eth0` with its address, the neighbour's hardware address, and the tunnel to the neighbour.
    fn underlay(
        &self,
        space: &Namespace,
        local: &str,
        remote: &str,
        tunnel: &[&str],
    ) -> Result<()> {
        let (own, other) =
            if local == HOST { (mac(0xfe), mac(0xfd)) } else { (mac(0xfd), mac(0xfe)) };
        space.ip(&["link", "set", "eth0", "address", &own])?;
        space.ip(&["addr", "add", &format!("{local}/24"), "dev", "eth0"])?;
        space.ip(&["link", "set", "eth0", "up"])?;
        space.ip(&[
            "neigh",
            "replace",
            remote,
            "lladdr",
            &other,
            "dev",
            "eth0",
            "nud",
            "permanent",
        ])?;
        let vni = VNI.to_string();
        let device = [
            "link", "add", "vxlan0", "type", "vxlan", "id", &vni, "local", local, "remote", remote,
        ];
        space.ip(
            &[&device[..], &["dstport", "4789", "df", "unset", "nolearning"], tunnel].concat()
        )?;
        space.ip(&["link", "set", "vxlan0", "mtu", MTU, "up"]).map(drop)
    }

    fn add_vm(&self, vm: u8) -> Result<()> {
        let (host, space) = (&self.host, &self.vms[usize::from(vm) - 1]);
        let (port, hardware) = (format!("v{vm}"), mac(vm));
        host.ip(&[
            "link",
            "add",
            &port,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            space.name(),
        ])?;
        host.ip(&["link", "set", &port, "mtu", MTU, "master", "br0", "up"])?;
        space.ip(&["link", "set", "eth0", "address", &hardware, "mtu", MTU])?;
        space.ip(&["addr", "add", &(address(vm) + "/24"), "dev", "eth0"])?;
        space.ip(&["link", "set", "eth0", "up"])?;
        own_queue((space, "eth0"), (host, &port))?;
        self.lead_to(vm)
    }

    /// Joins a VM to the bridge by a TAP instead of its veth pair: what is sent to the VM is read from the file, and the interface goes with it.
    ///
    /// # Errors
    /// The step that failed; the VM has no interface then.
    pub fn join_by_tap(&self, vm: u8) -> Result<OwnedFd> {
        let (host, port) = (&self.host, format!("v{vm}"));
        host.ip(&["link", "del", &port])?;
        let tap = host.enter(|| testbed::sys::open_tap(&port))?;
        // A queue as long as a veth pair's.
        host.ip(&["link", "set", &port, "txqueuelen", "256", "mtu", MTU, "master", "br0", "up"])?;
        self.lead_to(vm)?;
        Ok(tap)
    }

    /// Tells the bridge which port a VM is behind.
    fn lead_to(&self, vm: u8) -> Result<()> {
        let (port, hardware) = (format!("v{vm}"), mac(vm));
        let mut command = self.host.command("bridge");
        command.args(["fdb", "replace", &hardware, "dev", &port, "master", "static"]);
        run(&mut command).map(drop)
    }

    fn attach_programs(mut self) -> Result<Self> {
        let Self { host, wire, stage, .. } = &mut self;
        host.enter(|| stage.attach("eth0"))?;
        wire.enter(|| stage.attach_forgetting("w0"))?;
        Ok(self)
    }

    /// Spreads what arrives at the host over cores by hash, as the kernel does it; no core is no spreading.
    pub fn set_rps(&self, cores: u64) -> Result<()> {
        set_rps(&self.host, "eth0", cores)
    }

    /// Who has processed what since the testbed was built.
    pub fn counts(&self) -> Result<Counts> {
        self.stage.counts()
    }
}

/// Gives the end of a veth pair a queue of its own (of 256 frames): it has one with GRO on, and its peer uses it if that one sends no large segments.
fn own_queue((space, end): (&Namespace, &str), (other, peer): (&Namespace, &str)) -> Result<()> {
    run(space.command("ethtool").args(["-K", end, "gro", "on"]))?;
    run(other.command("ethtool").args(["-K", peer, "tso", "off"])).map(drop)
}

/// `ip netns exec` shows the namespace's own sysfs.
fn set_rps(space: &Namespace, interface: &str, cores: u64) -> Result<()> {
    let line = format!("echo {cores:x} > /sys/class/net/{interface}/queues/rx-0/rps_cpus");
    run(space.command("sh").args(["-c", &line])).map(drop)
}
