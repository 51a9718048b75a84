//! What a stream of frames through a tunnel loses by `kill -9` of a host's node, and by new keys: printed (`cargo test -p suiro-acceptance --test cli restarts -- --nocapture`);
//! asserted is only what no clock decides.

use crate::pair::{Kind, Pair};
use crate::paths::inside;
use crate::sealed::keys;
use acceptance::{privileged, sh, until};
use rustix::net::sockopt;
use rustix::process::Signal;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Frames in a second, and so the precision of times. Chosen: so few that what waits while a loaded machine does not get round to it fits into
/// queues.
const RATE: u32 = 200;
/// Frames that a guest's interface lets wait, and bytes that a socket does: far more than come in a test.
const INTERFACE: &str = "20000";
const SOCKET: usize = 32 << 20;
/// Frames that must pass before something happens, and after it.
pub const QUIET: u64 = 100;

/// Numbered datagrams at a constant rate from guest `g` to the other, whatever becomes of them, and which came when.
#[derive(Default)]
pub struct Stream {
    sent: AtomicU64,
    came: Mutex<Vec<(u64, Instant)>>,
    done: AtomicBool,
}

impl Stream {
    fn send(&self, socket: &UdpSocket) {
        let begin = Instant::now();
        while !self.done.load(Relaxed) {
            let number = self.sent.load(Relaxed);
            // Nothing takes it while the node is away.
            let _ = socket.send(&number.to_be_bytes());
            self.sent.store(number + 1, Relaxed);
            let due = Duration::from_secs(number + 1) / RATE;
            thread::sleep(due.saturating_sub(begin.elapsed()));
        }
    }

    fn receive(&self, socket: &UdpSocket) {
        let mut bytes = [0; 8];
        while !self.done.load(Relaxed) {
            if socket.recv(&mut bytes).is_ok() {
                self.came.lock().unwrap().push((u64::from_be_bytes(bytes), Instant::now()));
            }
        }
    }

    /// Waits until so many frames more than have been sent by now have come, or would have.
    pub fn flow(&self, what: &str, frames: u64) {
        let enough = self.sent.load(Relaxed) + frames;
        let last = || self.came.lock().unwrap().last().map_or(0, |&(number, _)| number);
        until(what, || last() >= enough);
    }
}

/// A run of numbers that did not come, and the time without traffic around it.
#[derive(Debug)]
pub struct Hole {
    /// Frames.
    pub lost: u64,
    pub pause: Duration,
}

/// The holes between the numbers that came, which rise: nothing came twice, or late.
fn holes(came: &[(u64, Instant)]) -> Vec<Hole> {
    let hole = |pair: &[(u64, Instant)]| {
        let [(before, ended), (after, begun)] = [pair[0], pair[1]];
        assert!(after > before, "{after} came after {before}");
        let lost = after - before - 1;
        (lost > 0).then(|| Hole { lost, pause: begun.duration_since(ended) })
    };
    came.windows(2).filter_map(hole).collect()
}

/// Guests know each other's MAC addresses and never ask: what is lost is what was sent.
fn introduce(pair: &Pair) {
    let [near, far] = pair.hosts.each_ref().map(|host| host.guest("g"));
    let show = ["netns", "exec", &far, "cat", "/sys/class/net/eth0/address"];
    let mac = String::from_utf8(Command::new("ip").args(show).output().unwrap().stdout).unwrap();
    let neighbour = ["ip", "-n", &near, "neigh", "replace", "10.0.0.2", "lladdr", mac.trim()];
    sh(&[&neighbour[..], &["dev", "eth0", "nud", "permanent"]].concat());
}

/// The stream from one host's guest to the other's while `change` does something to the hosts; what it cost.
pub fn beside(kind: Kind, change: impl FnOnce(&mut Pair, &Stream)) -> Vec<Hole> {
    let mut pair = Pair::new(kind);
    introduce(&pair);
    for host in &pair.hosts {
        sh(&["ip", "-n", &host.guest("g"), "link", "set", "eth0", "txqueuelen", INTERFACE]);
    }
    let bound = || {
        let socket = UdpSocket::bind("0.0.0.0:7007").unwrap();
        sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET).unwrap();
        socket
    };
    let [from, to] = pair.hosts.each_ref().map(|host| inside(host, "g", bound));
    from.connect("10.0.0.2:7007").unwrap();
    to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let stream = Stream::default();
    thread::scope(|scope| {
        scope.spawn(|| stream.send(&from));
        scope.spawn(|| stream.receive(&to));
        stream.flow("the stream flows", QUIET);
        change(&mut pair, &stream);
        stream.flow("it flows on", QUIET);
        stream.done.store(true, Relaxed);
    });
    holes(&stream.came.lock().unwrap())
}

#[test]
fn a_node_that_is_killed_and_started_again_loses_what_came_meanwhile_and_nothing_else() {
    if !privileged() {
        return;
    }
    for (is_sealed, name) in [(false, "plain"), (true, "encrypted")] {
        for (victim, who) in [(0, "sender"), (1, "receiver")] {
            let holes = beside(Kind { is_v6: false, is_sealed }, |pair, stream| {
                pair.hosts[victim].end(Signal::KILL);
                pair.hosts[victim].start();
                // What was sent while it was away is not what is waited for.
                stream.flow("it flows again", 1);
            });
            let [Hole { lost, pause }] = &holes[..] else {
                panic!("one hole, and nothing lost before or after: {holes:?}")
            };
            println!(
                "{name} tunnel, kill -9 of the {who}'s node: {lost} frames of {RATE} a second lost, {pause:.3?} without traffic"
            );
        }
    }
}

#[test]
fn a_change_of_keys_costs_a_stream_nothing() {
    if !privileged() {
        return;
    }
    let holes = beside(Kind { is_v6: false, is_sealed: true }, |pair, stream| {
        // New keys: received by both first, then sent with, then the old ones go.
        for pairs in [
            &[(1, ""), (2, "receive_only = true")][..],
            &[(1, "receive_only = true"), (2, "")],
            &[(2, "")],
        ] {
            keys(&pair.hosts[0], pairs);
            for host in &pair.hosts {
                host.suiro(&["port", "mod", "sw0", "tun0", "--rekey"]);
            }
            stream.flow("it flows under these keys", QUIET / 5);
        }
    });
    assert_eq!(holes.len(), 0, "{holes:?}");
}
