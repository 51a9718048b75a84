//! Guests behind ports of each kind: they send and receive frames as their kernels and drivers do.

use crate::lab::{Lab, bytes, port, with};
use api::{PortKind, PortSpec};
use port::{Body, Drops, OpenPort, RxBatch, TxFrame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use testbed::driver::frontend::{HEADER, Listener, Shape, feature};
use testbed::driver::plain::PlainGuest;
use wire::{Gso, HEAD_MAX, Offload, PartialChecksum};

const PATIENCE: Duration = Duration::from_secs(10);
pub const KINDS: [PortKind; 5] =
    [PortKind::Tap, PortKind::AfPacket, PortKind::AfXdp, PortKind::VhostUser, PortKind::Vxlan];

/// A port and its guest.
pub struct Place {
    pub kind: PortKind,
    pub port: OpenPort,
    pub guest: Guest,
}

pub enum Guest {
    /// A kernel's: a packet socket on the interface that the guest has; behind a tunnel, its other end.
    Kernel(OpenPort),
    Driver(Box<PlainGuest>),
}

impl Place {
    /// On the side that has the namespace `side` ("a" or "b").
    pub fn new(lab: &Lab, kind: PortKind, side: &str, folder: &Path) -> Self {
        let (own, its) = (format!("{}{side}", kind.word().replace('_', "")), kind.word());
        let veth = |mtu| {
            let there = lab.netns(side);
            lab.ip(
                "s",
                &format!(
                    "link add {own} mtu {mtu} type veth peer name {its} mtu {mtu} netns {there}"
                ),
            );
            lab.ip(side, &format!("link set {its} up"));
        };
        let opened = |spec: &PortSpec| {
            port::open(spec, 1)
                .unwrap_or_else(|error| panic!("{error}: {error:?}; {}", error.remedy()))
        };
        let socket_of = |name: &str| opened(&lab.on(PortKind::AfPacket, name, side));
        let (port, guest) = match kind {
            PortKind::Tap => {
                let port = opened(&lab.on(kind, its, side));
                (port, Guest::Kernel(socket_of(its)))
            }
            PortKind::AfPacket | PortKind::AfXdp => {
                veth(1500);
                (opened(&lab.on(kind, &own, "s")), Guest::Kernel(socket_of(its)))
            }
            PortKind::Vxlan => {
                veth(2000);
                let net = if side == "a" { "192.0.2" } else { "198.51.100" };
                lab.ip("s", &format!("addr add {net}.1/24 dev {own}"));
                lab.ip("s", &format!("link set {own} up"));
                lab.ip(side, &format!("addr add {net}.2/24 dev {its}"));
                let end = |place: &str, far: &str| {
                    // One port of a namespace has one end.
                    let udp_port = if side == "a" { 4789 } else { 4790 };
                    opened(&with(&lab.tunnel(place, far, 7), json!({"udp_port": udp_port})))
                };
                let (near, far) = (format!("{net}.1"), format!("{net}.2"));
                (end("s", &far), Guest::Kernel(end(side, &near)))
            }
            PortKind::VhostUser => {
                let socket = folder.join(&own);
                let listener = Listener::bind(&socket).expect("a socket");
                let port =
                    opened(&port(json!({"type": kind.word(), "name": own, "socket": socket})));
                let stream = listener.accept(PATIENCE).expect("the port calls");
                // Checksums, TCP over IPv4 and IPv6, UDP, both ways (VIRTIO 1.2 §5.1.3).
                let large = 1 << 8 | 1 << 12 | 1 << 54 | 1 << 55 | 1 << 56;
                let features = Shape::default().features
                    | feature::CSUM
                    | feature::GUEST_CSUM
                    | feature::HOST_TSO4
                    | feature::GUEST_TSO4
                    | large;
                let shape = Shape { frame: 16_000, features, ..Shape::default() };
                let driver = PlainGuest::connect(stream, shape).expect("a guest");
                (port, Guest::Driver(Box::new(driver)))
            }
            PortKind::Vlink => unreachable!("no kind of the matrix"),
        };
        Self { kind, port, guest }
    }

    /// What the port receives now, as it would be sent.
    pub fn forward(&mut self, to: &mut OpenPort, drops: &mut Drops) -> usize {
        let mut batch = RxBatch::default();
        let mut count = 0;
        for rx in &mut self.port.rx {
            batch.clear();
            count += rx.rx(&mut batch, drops).expect("the interface is there");
            let ours = batch.frames().iter().filter(|slot| is_ours(slot.head.bytes()));
            let frames: Vec<_> = ours.map(|slot| crate::lab::frame(slot, rx.as_ref())).collect();
            to.tx[0].tx(&frames, drops);
            rx.release();
        }
        count
    }
}

/// Whether a frame is one of the test's: kernels send others by themselves.
fn is_ours(head: &[u8]) -> bool {
    head.get(6..12) == Some(&crate::cells::FROM)
}

impl Guest {
    pub fn send(&mut self, frame: &[u8], offload: Offload) {
        match self {
            Self::Kernel(port) => send(port, frame, offload),
            Self::Driver(guest) => {
                guest.send_with(header(&offload), frame, PATIENCE).expect("room")
            }
        }
    }

    /// What came, with its marks; waits a moment if nothing is there.
    pub fn receive(&mut self) -> Vec<(Vec<u8>, Offload)> {
        match self {
            Self::Kernel(port) => {
                let (mut batch, mut drops) = (RxBatch::default(), Drops::default());
                let rx = &mut port.rx[0];
                let mut ready = [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)];
                let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
                let _ = poll(&mut ready, Some(&moment));
                rx.rx(&mut batch, &mut drops).expect("the interface is there");
                let ours = batch.frames().iter().filter(|slot| is_ours(slot.head.bytes()));
                let came = ours.map(|slot| (bytes(slot, rx.as_ref()), slot.offload)).collect();
                rx.release();
                came
            }
            Self::Driver(guest) => {
                let moment = Duration::from_millis(1);
                let came = guest.receive(moment).expect("rings in order").into_iter();
                came.map(|came| (came.bytes, offload(&came.header))).collect()
            }
        }
    }
}

/// Sends a frame out of a port.
pub fn send(port: &mut OpenPort, frame: &[u8], offload: Offload) {
    let (head, body) = frame.split_at(frame.len().min(HEAD_MAX));
    let frame = TxFrame { head, body: Body::private(body), offload, tunnel_id: 0, tun_dst: 0 };
    let mut drops = Drops::default();
    port.tx[0].tx(&[frame], &mut drops);
    assert!(drops.is_empty(), "the kernel refuses: {drops:?}");
}

/// The virtio-net header of a frame in this state (VIRTIO 1.2 §5.1.6).
fn header(offload: &Offload) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    if let Some(PartialChecksum { start, offset }) = offload.checksum {
        header[0] = 1;
        header[6..8].copy_from_slice(&start.to_le_bytes());
        header[8..10].copy_from_slice(&offset.to_le_bytes());
    }
    header[1] = match offload.gso {
        Gso::None => 0,
        Gso::TcpV4 => 1,
        Gso::TcpV6 => 4,
        Gso::Udp => 5,
    };
    header[4..6].copy_from_slice(&offload.gso_size.to_le_bytes());
    header
}

/// The state that a virtio-net header says.
fn offload(header: &[u8; HEADER]) -> Offload {
    let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let is_partial = header[0] & 1 == 1;
    let checksum = is_partial.then(|| PartialChecksum { start: number(6), offset: number(8) });
    let gso = match header[1] & 0x7f {
        1 => Gso::TcpV4,
        4 => Gso::TcpV6,
        5 => Gso::Udp,
        _ => Gso::None,
    };
    Offload { checksum, gso, gso_size: number(4), ..Offload::default() }
}
