//! A host whose tunnels end in Open vSwitch's userspace datapath (Debian's `openvswitch-switch`), private to one test.

use crate::paths::transfer;
use acceptance::{Place, privileged, sh, until};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// By its own path: `ovs-vswitchd` is an alternative that may name the build with DPDK.
const DAEMON: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";

/// Database and switch in a namespace, with all their files in one directory; both end with it.
struct Ovs {
    netns: String,
    home: tempfile::TempDir,
    children: Vec<Child>,
}

impl Ovs {
    fn start(netns: String) -> Self {
        let mut ovs = Self { netns, home: tempfile::tempdir().unwrap(), children: Vec::new() };
        let (file, database) = (ovs.path("conf.db"), ovs.database());
        sh(&["ovsdb-tool", "create", file.to_str().unwrap(), SCHEMA]);
        let mut server = ovs.command("ovsdb-server");
        server.arg(file).arg(format!("--remote=p{database}"));
        ovs.spawn(server);
        let socket = ovs.path("db.sock");
        until("the database serves", || socket.exists());
        ovs.vsctl(&["--no-wait", "init"]);
        let mut daemon = ovs.command(DAEMON);
        daemon.arg(database).arg(format!("--unixctl={}", ovs.path("ctl").display()));
        ovs.spawn(daemon);
        ovs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn database(&self) -> String {
        format!("unix:{}", self.path("db.sock").display())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.netns, program]);
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(name, self.home.path());
        }
        command
    }

    fn spawn(&mut self, mut command: Command) {
        let log =
            std::fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        self.children.push(command.stdin(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// Changes the switch's configuration and waits until it has taken effect.
    fn vsctl(&self, words: &[&str]) {
        let database = format!("--db={}", self.database());
        let output =
            self.command("ovs-vsctl").args(["--timeout=20", &database]).args(words).output();
        let output = output.unwrap();
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        assert!(output.status.success(), "{}\n{log}", String::from_utf8_lossy(&output.stderr));
    }

    /// A bridge with one port more; `interface` says what kind of port.
    fn bridge(&self, name: &str, port: &str, interface: &[&str]) {
        let add = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "--"];
        let port = ["add-port", name, port, "--", "set", "interface", port];
        self.vsctl(&[&add[..], &port, interface].concat());
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Host `h1` has suiro, `h2` Open vSwitch; guests `a` and `b` are theirs.
fn hosts(is_v6: bool) -> (Place, Ovs) {
    let mut place = Place::new(&["h1", "h2", "a", "b"]);
    let [h1, h2, a, b] = ["h1", "h2", "a", "b"].map(|name| place.guest(name));
    sh(&["ip", "-n", &h1, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", &h2]);
    // Open vSwitch reads frames as they would be on a wire.
    let off = ["tx", "off", "tx-udp-segmentation", "off"];
    sh(&[&["ip", "netns", "exec", &h1, "ethtool", "-K", "u"][..], &off].concat());
    let [near, far] =
        if is_v6 { ["2001:db8::1", "2001:db8::2"] } else { ["192.0.2.1", "192.0.2.2"] };
    let ovs = Ovs::start(h2.clone());
    ovs.bridge("br-phy", "u", &["type=system"]);
    let tunnel = ["type=vxlan", &format!("options:remote_ip={near}"), "options:key=7"];
    ovs.bridge("br0", "tun0", &tunnel);
    ovs.vsctl(&["add-port", "br0", "guest", "--", "set", "interface", "guest", "type=internal"]);
    sh(&["ip", "-n", &h2, "link", "set", "u", "up"]);
    sh(&["ip", "-n", &h2, "link", "set", "guest", "netns", &b, "name", "eth0"]);
    sh(&["ip", "-n", &b, "link", "set", "eth0", "mtu", "1430", "up"]);
    let (bits, nodad): (_, &[&str]) = if is_v6 { ("64", &["nodad"]) } else { ("24", &[]) };
    for (netns, interface, address) in [(&h1, "u", near), (&h2, "br-phy", far)] {
        sh(&["ip", "-n", netns, "link", "set", interface, "up"]);
        let address = format!("{address}/{bits}");
        sh(&[&["ip", "-n", netns, "addr", "add", &address, "dev", interface][..], nodad].concat());
    }
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    let tap = ["--type", "tap", "--interface", "eth0", "--netns", &a, "--mtu", "1430"];
    place.suiro(&[&["port", "add", "sw0", "guest"][..], &tap].concat());
    let tunnel = ["--type", "vxlan", "--remote", far, "--key", "7", "--netns", &h1];
    place.suiro(&[&["port", "add", "sw0", "tun0"][..], &tunnel].concat());
    place.address("a", "eth0", "10.0.0.1/24");
    place.address("b", "eth0", "10.0.0.2/24");
    (place, ovs)
}

#[test]
fn guests_reach_each_other_through_a_tunnel_whose_other_end_is_open_vswitch() {
    if !privileged() {
        return;
    }
    for is_v6 in [false, true] {
        let (place, _ovs) = hosts(is_v6);
        until("the guests see each other", || place.reaches("a", "10.0.0.2"));
        assert!(place.reaches("b", "10.0.0.1"));
        transfer(&place, ["a", "b"], "10.0.0.2", 1 << 20);
        transfer(&place, ["b", "a"], "10.0.0.1", 1 << 20);
    }
}
