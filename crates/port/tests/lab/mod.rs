//! Two guests and a switch's place between them, in namespaces of their own, and a loop that forwards.

#![expect(dead_code, reason = "each test file uses a part")]

use api::{Kind, PortKind, PortSpec};
use port::{Body, BodyAt, Drops, NetnsRef, OpenPort, RxBatch, RxQueue, Slot, TxFrame, TxQueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use testbed::netns::{self, Namespace};

/// Namespaces of two guests, `a` and `b`, and of the switch, `s`.
pub struct Lab {
    places: [(&'static str, Namespace); 3],
}

impl Lab {
    /// `None` when the user asked to skip.
    ///
    /// # Panics
    /// Without root, with the remedy.
    pub fn new(test: &str) -> Option<Self> {
        if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
            eprintln!("skipped: SUIRO_SKIP_PRIVILEGED=1");
            return None;
        }
        assert!(
            rustix::process::geteuid().is_root(),
            "this test makes network namespaces: run it as root, or set SUIRO_SKIP_PRIVILEGED=1 to skip it"
        );
        let made = |place| Namespace::create(&format!("{test}-{place}")).expect("a namespace");
        Some(Self { places: ["a", "b", "s"].map(|place| (place, made(place))) })
    }

    /// The name of a namespace.
    pub fn netns(&self, place: &str) -> &str {
        self.place(place).name()
    }

    /// A namespace, as ports name it.
    pub fn at(&self, place: &str) -> NetnsRef {
        self.netns(place).into()
    }

    fn place(&self, place: &str) -> &Namespace {
        let found = self.places.iter().find(|(name, _)| *name == place);
        &found.expect("a, b or s").1
    }

    /// Runs `ip` in a namespace.
    pub fn ip(&self, place: &str, arguments: &str) -> String {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        self.place(place).ip(&arguments).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Runs a program in a namespace.
    pub fn exec(&self, place: &str, command: &str) -> String {
        run(&format!("ip netns exec {} {command}", self.netns(place)))
    }

    /// A veth from the guest's `eth0` to the switch's `port<guest>`.
    pub fn veth(&self, guest: &str) {
        let there = self.netns(guest);
        self.ip("s", &format!("link add port{guest} type veth peer name eth0 netns {there}"));
        self.ip(guest, "link set eth0 up");
    }

    /// The specification of a port to a guest.
    pub fn spec(&self, kind: PortKind, guest: &str) -> PortSpec {
        match kind {
            PortKind::Tap => self.on(kind, "eth0", guest),
            _ => self.on(kind, &format!("port{guest}"), "s"),
        }
    }

    /// The specification of a port on an interface somewhere.
    pub fn on(&self, kind: PortKind, interface: &str, place: &str) -> PortSpec {
        let netns = self.netns(place);
        port(json!({"type": kind.word(), "interface": interface, "netns": netns}))
    }

    /// The specification of a tunnel from somewhere.
    pub fn tunnel(&self, place: &str, remote: &str, vni: u32) -> PortSpec {
        let netns = self.netns(place);
        port(json!({"type": "vxlan", "name": "tun0", "netns": netns, "remote": remote, "key": vni}))
    }

    /// Opens a port to a guest, with its veth where it needs one, and gives the guest the address `10.9.0.<host>`.
    pub fn guest(&self, spec: &PortSpec, guest: &str, host: u8) -> OpenPort {
        if !matches!(spec.kind, Kind::Tap(_)) {
            self.veth(guest);
        }
        let port = port::open(spec, 1)
            .unwrap_or_else(|error| panic!("{error}: {error:?}; {}", error.remedy()));
        self.ip(guest, &format!("addr add 10.9.0.{host}/24 dev eth0"));
        port
    }

    /// Does `work` on a thread inside a namespace.
    pub fn inside<'scope, 'env, R: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        place: &str,
        work: impl FnOnce() -> R + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, R> {
        let file = File::open(self.at(place).path()).expect("the namespace is there");
        scope.spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("root may enter");
            work()
        })
    }

    /// Drops what has all UDP sockets of a namespace, and waits until they are gone, so that others may bind to their ports: a child of
    /// another test has them too until it has become another program.
    pub fn close<T>(&self, place: &str, sockets: T) {
        drop(sockets);
        let begin = Instant::now();
        while !self.exec(place, "ss -Hun -a").is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(10), "the sockets in {place} stay");
        }
    }

    /// A counter of `/proc/net/snmp`, as `Tcp InCsumErrors`.
    pub fn counter(&self, place: &str, protocol: &str, name: &str) -> u64 {
        let text = self.exec(place, "cat /proc/net/snmp");
        let mut lines = text.lines().filter(|line| line.starts_with(&format!("{protocol}:")));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let at = names.split(' ').position(|known| known == name).expect("a known counter");
        values.split(' ').nth(at).and_then(|value| value.parse().ok()).expect("a number")
    }
}

/// A port as a user says it.
pub fn port(keys: Value) -> PortSpec {
    serde_json::from_value(keys).expect("a port")
}

/// The port with these keys besides; `null` takes one back.
pub fn with(spec: &PortSpec, keys: Value) -> PortSpec {
    let mut all = spec.keys();
    all.extend(keys.as_object().cloned().expect("keys"));
    PortSpec::read(all).expect("a port")
}

/// Runs a command line; its output, or a panic with what it said.
pub fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    netns::run(Command::new(program).args(words)).unwrap_or_else(|error| panic!("{error:#}"))
}

/// The next datagram: how long it is and who sent it. Waits on if the machine was stopped for a moment (`EINTR`, signal(7)).
///
/// # Panics
/// If none comes before the socket's timeout.
pub fn datagram(socket: &UdpSocket, bytes: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            got => return got.expect("a datagram"),
        }
    }
}

/// What the forwarder saw.
#[derive(Default)]
pub struct Seen {
    /// The longest frame received from the left and from the right port.
    pub longest: [usize; 2],
    /// Frames lost.
    pub drops: Drops,
}

/// Forwards between two ports until `stop`, asleep while there is nothing to do.
pub fn forward(left: &mut OpenPort, right: &mut OpenPort, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut batch = RxBatch::default();
    while !stop.load(Ordering::Relaxed) {
        let mut count = 0;
        for rx in &mut left.rx {
            count += pass(rx.as_mut(), right.tx[0].as_mut(), &mut batch, &mut seen, 0);
        }
        for rx in &mut right.rx {
            count += pass(rx.as_mut(), left.tx[0].as_mut(), &mut batch, &mut seen, 1);
        }
        if count == 0 {
            wait(left.rx.iter().chain(&right.rx));
        }
    }
    seen
}

pub fn wait<'a>(queues: impl Iterator<Item = &'a Box<dyn RxQueue>>) {
    let mut fds: Vec<_> =
        queues.map(|rx| PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)).collect();
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 }));
}

fn pass(
    rx: &mut dyn RxQueue,
    tx: &mut dyn TxQueue,
    batch: &mut RxBatch,
    seen: &mut Seen,
    side: usize,
) -> usize {
    batch.clear();
    let count = rx.rx(batch, &mut seen.drops).expect("the interface is there");
    let frames: Vec<_> = batch.frames().iter().map(|slot| frame(slot, rx)).collect();
    let longest = frames.iter().map(TxFrame::len).max().unwrap_or(0);
    seen.longest[side] = seen.longest[side].max(longest);
    tx.tx(&frames, &mut seen.drops);
    rx.release();
    count
}

/// A received frame, to be sent as it is.
pub fn frame<'a>(slot: &'a Slot, rx: &'a dyn RxQueue) -> TxFrame<'a> {
    let body = match slot.body {
        BodyAt::Nowhere => Body::default(),
        BodyAt::Slot(len) => Body::private(&slot.buffer[..len as usize]),
        BodyAt::Port { at, len } => rx.body(at, len),
    };
    TxFrame { head: slot.head.bytes(), body, offload: slot.offload, tunnel_id: 0, tun_dst: 0 }
}

/// All bytes of a received frame.
pub fn bytes(slot: &Slot, rx: &dyn RxQueue) -> Vec<u8> {
    let frame = frame(slot, rx);
    let mut bytes = frame.head.to_vec();
    frame.body.append_to(&mut bytes);
    bytes
}
