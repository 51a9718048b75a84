//! Two guests and a switch's place between them, in namespaces of their own, and a loop that forwards.

#![expect(dead_code, reason = "each test file uses a part")]

use port::{
    Body, BodyAt, Drops, NetnsRef, OpenPort, PortKind, PortSpec, RxBatch, RxQueue, Slot, TxFrame,
    TxQueue,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, id};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Namespaces `su-<test>-<pid>-a`, `-b` (guests) and `-s` (the switch's), removed at the end, also of a panic.
pub struct Lab {
    prefix: String,
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
        let lab = Self { prefix: format!("su-{test}-{}", id()) };
        for place in ["a", "b", "s"] {
            run(&format!("ip netns add {}-{place}", lab.prefix));
            run(&format!("ip -n {}-{place} link set lo up", lab.prefix));
        }
        Some(lab)
    }

    /// The name of a namespace.
    pub fn netns(&self, place: &str) -> String {
        format!("{}-{place}", self.prefix)
    }

    /// Runs `ip` in a namespace.
    pub fn ip(&self, place: &str, arguments: &str) -> String {
        run(&format!("ip -n {} {arguments}", self.netns(place)))
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
            PortKind::Tap => PortSpec::new(kind, "eth0").in_netns(&*self.netns(guest)),
            _ => PortSpec::new(kind, format!("port{guest}")).in_netns(&*self.netns("s")),
        }
    }

    /// Opens a port to a guest, with its veth where it needs one, and gives the guest the address `10.9.0.<host>`.
    pub fn guest(&self, spec: &PortSpec, guest: &str, host: u8) -> OpenPort {
        if spec.kind != PortKind::Tap {
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
        let file =
            File::open(NetnsRef::Name(self.netns(place)).path()).expect("the namespace is there");
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

impl Drop for Lab {
    fn drop(&mut self) {
        for place in ["a", "b", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.netns(place)]).status();
        }
    }
}

/// Runs a command line; its output, or a panic with what it said.
pub fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    let output = Command::new(program)
        .args(words)
        .output()
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
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

fn wait<'a>(queues: impl Iterator<Item = &'a Box<dyn RxQueue>>) {
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
