//! Two hosts with a node each, joined by an underlay; guests on both, and a tunnel between.

use crate::paths::{exchange, inside};
use crate::sealed::keys;
use acceptance::{Place, sh};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use testbed::unbroken;

/// The hosts' addresses, of both families.
pub const HOSTS: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];
const PATIENCE: Duration = Duration::from_secs(20);
/// Datagrams of an [`Pair::exchange`] that are on their way at once.
const WINDOW: u64 = 16;

/// The two. Guest `g` is 10.0.0.1 on the first and 10.0.0.2 on the second, guest `s` 10.0.0.11 and 10.0.0.12.
pub struct Pair {
    pub hosts: [Place; 2],
}

/// What the tunnel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Whether the underlay's addresses are IPv6.
    pub is_v6: bool,
    /// Whether it is encrypted.
    pub is_sealed: bool,
}

impl Kind {
    /// Its UDP port.
    pub fn port(self) -> u16 {
        if self.is_sealed { 4500 } else { 4789 }
    }

    /// A counter of IP as `nstat` names it.
    pub fn counter(self, name: &str) -> String {
        format!("Ip{}{name}", if self.is_v6 { "6" } else { "" })
    }

    /// The one of datagrams for which a socket had no room.
    pub fn counter_of_sockets(self) -> &'static str {
        if self.is_v6 { "Udp6RcvbufErrors" } else { "UdpRcvbufErrors" }
    }

    /// The hosts' addresses.
    pub fn hosts(self) -> [&'static str; 2] {
        HOSTS[usize::from(self.is_v6)]
    }
}

impl Pair {
    /// Both, their nodes running.
    pub fn new(kind: Kind) -> Self {
        let mut pair = Self { hosts: [Place::new(&["g", "s"]), Place::new(&["g", "s"])] };
        let [near, far] = [&pair.hosts[0].netns, &pair.hosts[1].netns];
        sh(&[
            "ip", "-n", near, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", far,
        ]);
        keys(&pair.hosts[0], &[(1, "")]);
        let home = pair.hosts[0].path("");
        for (at, host) in pair.hosts.iter_mut().enumerate() {
            for address in [format!("{}/24", HOSTS[0][at]), format!("{}/64", HOSTS[1][at])] {
                let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
                sh(&[&["ip", "-n", &host.netns, "addr", "add", &address, "dev", "u"], nodad]
                    .concat());
            }
            sh(&["ip", "-n", &host.netns, "link", "set", "u", "up"]);
            host.start();
            host.suiro(&["switch", "add", "sw0"]);
            for (guest, address) in [("g", at + 1), ("s", at + 11)] {
                let tap = ["--interface", "eth0", "--netns", &host.guest(guest), "--mtu", "1380"];
                host.suiro(&[&["port", "add", "sw0", guest, "--type", "tap"][..], &tap].concat());
                host.address(guest, "eth0", &format!("10.0.0.{address}/24"));
            }
            let file = home.join(format!("keys{}", at + 1)).display().to_string();
            let tunnel = ["--type", "vxlan", "--remote", kind.hosts()[1 - at], "--key", "7"];
            let sealed: &[&str] = if kind.is_sealed { &["--encrypt", &file] } else { &[] };
            host.suiro(&[&["port", "add", "sw0", "tun0"][..], &tunnel, sealed].concat());
        }
        pair
    }

    /// Sends numbered datagrams of so many bytes from guest `g` to the other, who sends them back, a window at a time, one at least and until `done`;
    /// each must come back, in order. Returns how many.
    pub fn exchange(&self, len: usize, done: &AtomicBool) -> u64 {
        let [near, far] = self.hosts.each_ref().map(|host| {
            let socket = inside(host, "g", || UdpSocket::bind("0.0.0.0:7007").unwrap());
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        });
        near.connect("10.0.0.2:7007").unwrap();
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut bytes = [0; 9000];
                while let Ok((len @ 1.., from)) = unbroken(|| far.recv_from(&mut bytes)) {
                    far.send_to(&bytes[..len], from).unwrap();
                }
                assert!(ended.load(Relaxed), "the other guest hears nothing any more");
            });
            let mut number = 0;
            while number == 0 || !done.load(Relaxed) {
                window(&near, number, len);
                number += WINDOW;
            }
            ended.store(true, Relaxed);
            near.send(&[]).unwrap();
            number
        })
    }

    /// Sends bytes both ways between the guests `g` by their kernels' TCP; all must arrive.
    pub fn transfer(&self, bytes: usize) {
        let listener = inside(&self.hosts[1], "g", || TcpListener::bind("10.0.0.2:0").unwrap());
        let there = listener.local_addr().unwrap();
        let near = inside(&self.hosts[0], "g", || TcpStream::connect(there).unwrap());
        exchange(&near, &listener.accept().unwrap().0, bytes);
    }

    /// A counter of one host's kernel, by the name that `nstat` has for it.
    pub fn kernel(&self, host: usize, counter: &str) -> u64 {
        let netns = &self.hosts[host].netns;
        let words = ["netns", "exec", netns, "nstat", "-asz", counter];
        let text =
            String::from_utf8(Command::new("ip").args(words).output().unwrap().stdout).unwrap();
        let line = text.lines().find(|line| line.starts_with(counter)).expect("a known counter");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// One counter of a port: `rx_frames`, `tx_frames`.
    pub fn counted(&self, host: usize, port: &str, counter: &str) -> u64 {
        let view = self.hosts[host].json(&["port", "show", "sw0", port]);
        view["counters"][counter].as_u64().unwrap()
    }
}

/// Sends a window of datagrams and waits for each of them.
fn window(socket: &UdpSocket, first: u64, len: usize) {
    let mut bytes = vec![0; len];
    for number in first..first + WINDOW {
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        socket.send(&bytes).unwrap();
    }
    for number in first..first + WINDOW {
        let got = unbroken(|| socket.recv(&mut bytes))
            .unwrap_or_else(|error| panic!("{number} is lost: {error}"));
        assert_eq!((got, &bytes[..8]), (len, &number.to_be_bytes()[..]), "out of order");
    }
}
