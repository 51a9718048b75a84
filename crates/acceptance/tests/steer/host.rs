//! A host in a namespace, with a cable from guest `g1` to its interface `g1`, and no node. The host has 10.0.0.100.
//!
//! Commands enter the network namespace only: pins live in the file system of pins that all of the machine shares, as they would on a
//! real host.

use crate::Lab;
use acceptance::{Said, inside, sh, until};
use rustix::net::sockopt::{
    set_socket_recv_buffer_size_force, set_socket_reuseaddr, socket_incoming_cpu,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testbed::unbroken;

/// Where interfaces are pinned.
const PINS: &str = "/sys/fs/bpf/suiro/steer/interfaces";
/// The host's address.
pub const ADDRESS: &str = "10.0.0.100";

/// The host; nothing of it is left when it is dropped.
pub struct Host {
    pub lab: Lab,
    netns_id: u64,
}

impl Host {
    /// Without a node, nothing steered.
    pub fn new() -> Self {
        let lab = Lab::new(&["g1"]);
        lab.cable("g1");
        sh(&["ip", "-n", &lab.netns, "addr", "add", &format!("{ADDRESS}/24"), "dev", "g1"]);
        let netns_id = std::fs::metadata(format!("/run/netns/{}", lab.netns)).unwrap().ino();
        Self { lab, netns_id }
    }

    /// Runs a command of suiro on the host.
    pub fn says(&self, words: &[&str]) -> Said {
        let net = format!("--net=/run/netns/{}", self.lab.netns);
        let mut command = Command::new("nsenter");
        command.args([net.as_str(), acceptance::suiro()]).args(words);
        Said::of(command.env("SUIRO_API", self.lab.socket()).output().unwrap())
    }

    /// Runs one that must succeed; returns its output.
    #[track_caller]
    pub fn suiro(&self, words: &[&str]) -> String {
        let said = self.says(words);
        assert_eq!(said.code, 0, "suiro {}: {}\nlog:\n{}", words.join(" "), said.err, self.log());
        said.out
    }

    /// Runs one and reads its JSON.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> Value {
        let words: Vec<_> = ["--json"].iter().chain(words).copied().collect();
        serde_json::from_str(&self.suiro(&words)).unwrap()
    }

    /// The log of the node in the background.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.lab.path("run/node.log")).unwrap_or_default()
    }

    /// Process of the node in the background, if one runs.
    pub fn node(&self) -> Option<i32> {
        let said = self.says(&["--json", "status"]);
        let view: Value = serde_json::from_str(&said.out).ok()?;
        view["pid"].as_i64().map(|pid| pid as i32)
    }

    /// Kills the node and waits until it is gone.
    pub fn kill_node(&self) {
        let pid = self.node().expect("a node runs");
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        until("the node is gone", || self.node().is_none());
    }

    /// Directory of an interface's pins.
    pub fn pins(&self, interface: &str) -> PathBuf {
        Path::new(PINS).join(format!("{interface}@{}", self.netns_id))
    }

    /// Whether an XDP program is on the interface, as `ip` sees it.
    pub fn has_program(&self, interface: &str) -> bool {
        let output = Command::new("ip")
            .args(["-n", &self.lab.netns, "-j", "link", "show", "dev", interface])
            .output()
            .unwrap();
        let links: Value = serde_json::from_slice(&output.stdout).unwrap();
        !links[0]["xdp"].is_null()
    }

    /// A socket of the host on that port, which shares it with one that was closed a moment ago: a child of another test has that one too until
    /// it has become another program.
    fn receiver(&self, port: u16) -> UdpSocket {
        let open =
            || socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let socket = UdpSocket::from(inside(&self.lab.netns, || open().unwrap()));
        set_socket_reuseaddr(&socket, true).unwrap();
        bind(&socket, &SocketAddrV4::new(ADDRESS.parse().unwrap(), port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    /// A socket of the guest that sends to a port of the host.
    pub fn sender(&self, port: u16) -> UdpSocket {
        inside(&self.lab.guest("g1"), || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect((ADDRESS, port)).unwrap();
            socket
        })
    }

    /// A receiver and the one sender that it listens to: only such a socket knows the core that its last datagram came by
    /// (`SO_INCOMING_CPU`, socket(7)).
    pub fn pair(&self, port: u16) -> (UdpSocket, UdpSocket) {
        let (receiver, sender) = (self.receiver(port), self.sender(port));
        receiver.connect((Lab::ip("g1"), sender.local_addr().unwrap().port())).unwrap();
        // A receiver that has to wait for a processor of this machine loses nothing.
        set_socket_recv_buffer_size_force(&receiver, 32 << 20).unwrap();
        (receiver, sender)
    }

    /// Sends so many datagrams to a port, one after the other, and tells on which cores the kernel's stack had them.
    pub fn cores_of(&self, port: u16, count: usize) -> Vec<u32> {
        let (receiver, sender) = self.pair(port);
        let mut buffer = [0; 64];
        let one = |number: usize| {
            sender.send(&number.to_be_bytes()).unwrap();
            let length = unbroken(|| receiver.recv(&mut buffer)).unwrap();
            assert_eq!(buffer[..length], number.to_be_bytes());
            socket_incoming_cpu(&receiver).unwrap()
        };
        (0..count).map(one).collect()
    }

    /// The steered interface `g1`, as `list` shows it.
    pub fn interface(&self) -> Value {
        self.json(&["steer", "list"])[0].clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.pins("g1").exists() && self.node().is_none() {
            self.says(&["steer", "attach", "g1"]);
        }
        self.says(&["steer", "detach", "--all"]);
        if let Some(pid) = self.node() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        // Whatever went wrong before, no pin of ours stays.
        let _ = std::fs::remove_dir_all(self.pins("g1"));
    }
}
