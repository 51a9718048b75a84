//! Bursts that leave a port, of kind af_xdp as XDP frames: taken, refused and lost.

mod lab;

use api::{PortKind, PortSpec};
use lab::{Lab, bytes};
use port::{Body, Drops, OpenPort, Opener, RxBatch, TxFrame};
use std::time::{Duration, Instant};
use wire::{BATCH, DropReason, Offload, PartialChecksum};

const PATIENCE: Duration = Duration::from_secs(10);

/// A port of the switch on one end of a veth, and one on the guest's end.
struct Pair {
    sender: Option<OpenPort>,
    receiver: OpenPort,
    opener: Opener,
    lab: Lab,
}

impl Pair {
    /// The guest's end is read by `kind`: with an XDP program, or through the kernel's stack.
    fn new(test: &str, kind: PortKind) -> Option<Self> {
        let lab = Lab::new(test)?;
        lab.veth("a");
        let opener = Opener::new(1);
        let guest = lab.on(kind, "eth0", "a");
        let open = |spec: &PortSpec| {
            opener.open(spec).unwrap_or_else(|error| panic!("{error}: {error:?}"))
        };
        let receiver = open(&guest);
        let sender = Some(open(&lab.spec(PortKind::AfXdp, "a")));
        Some(Self { sender, receiver, opener, lab })
    }

    fn sender(&mut self) -> &mut OpenPort {
        self.sender.as_mut().expect("open")
    }

    fn send(&mut self, frames: &[Vec<u8>], offload: Offload) -> (u64, Drops) {
        let mut drops = Drops::default();
        let frames: Vec<_> = frames.iter().map(|frame| tx_frame(frame, offload)).collect();
        let sent = self.sender().tx[0].tx(&frames, &mut drops);
        (sent.frames, drops)
    }

    /// Ours among the next frames, until there are `count`: the kernel's own (neighbour discovery) are passed over.
    fn received(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut batch = RxBatch::default();
        let mut frames = Vec::new();
        let end = Instant::now() + PATIENCE;
        while frames.len() < count && Instant::now() < end {
            batch.clear();
            let rx = &mut self.receiver.rx[0];
            rx.rx(&mut batch, &mut Drops::default()).expect("the interface is there");
            let whole = batch.frames().iter().map(|slot| bytes(slot, rx.as_ref()));
            frames.extend(whole.filter(|frame| frame[12..14] == TYPE));
            rx.release();
        }
        frames
    }

    fn notes(&mut self) -> String {
        self.sender().control.facts().expect("the interface is there").notes.join("; ")
    }
}

/// An experimental EtherType (IEEE 802), which no kernel sends by itself.
const TYPE: [u8; 2] = [0x88, 0xb5];

fn tx_frame(frame: &[u8], offload: Offload) -> TxFrame<'_> {
    let (head, body) = frame.split_at(frame.len().min(200));
    TxFrame { head, body: Body::private(body), offload, tunnel_id: 0, tun_dst: 0 }
}

/// Broadcast frames, each with its number and of its own length.
fn numbered(count: usize) -> Vec<Vec<u8>> {
    let frame = |number: usize| {
        let mut frame = [[0xff; 6], [2, 0, 0, 0, 0, number as u8]].concat();
        frame.extend(TYPE);
        frame.resize(60 + number * 1454 / count.max(2), number as u8);
        frame
    };
    (0..count).map(frame).collect()
}

#[test]
fn a_burst_leaves_as_xdp_frames_whole_and_in_order() {
    let Some(mut pair) = Pair::new("burst", PortKind::AfXdp) else { return };
    assert!(!pair.sender().control.has_news(), "nothing was sent yet");
    for count in [BATCH, 20, 2 * BATCH, 21] {
        let frames = numbered(count);
        let (sent, drops) = pair.send(&frames, Offload::default());
        assert_eq!((sent, drops.iter().count()), (count as u64, 0));
        let lens = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).collect::<Vec<_>>();
        let received = pair.received(count);
        assert_eq!(lens(&received), lens(&frames), "{count} frames arrive in order");
        assert!(received == frames, "{count} frames arrive as they were sent");
    }
    assert!(pair.sender().control.has_news() && !pair.sender().control.has_news());
    assert!(pair.notes().contains("leave as XDP frames"), "{}", pair.notes());
}

#[test]
fn a_few_frames_and_a_burst_keep_their_order() {
    let Some(mut pair) = Pair::new("mixed", PortKind::AfXdp) else { return };
    let frames = numbered(BATCH);
    let mut rest = &frames[..];
    for count in [1, 30, 2, 31] {
        let (now, later) = rest.split_at(count);
        assert_eq!(pair.send(now, Offload::default()).0, count as u64);
        rest = later;
    }
    assert!(rest.is_empty() && pair.received(BATCH) == frames);
}

#[test]
fn a_few_frames_do_not_pass_the_burst_before_them_in_a_guests_stack() {
    let Some(mut pair) = Pair::new("passing", PortKind::AfPacket) else { return };
    pair.lab.exec("a", "ethtool -K eth0 gro on");
    // Received by a thread of its own: burst and few wait for it together.
    let line = "echo 1 > /sys/class/net/eth0/threaded";
    let netns = pair.lab.netns("a").to_owned();
    let command = ["netns", "exec", &netns, "sh", "-c", line];
    assert!(std::process::Command::new("ip").args(command).status().unwrap().success());
    let frames = numbered(BATCH);
    for _ in 0..50 {
        let mut rest = &frames[..];
        for count in [1, 30, 2, 31] {
            let (now, later) = rest.split_at(count);
            assert_eq!(pair.send(now, Offload::default()).0, count as u64);
            rest = later;
        }
        let numbers = |frames: &[Vec<u8>]| frames.iter().map(|frame| frame[11]).collect::<Vec<_>>();
        assert_eq!(numbers(&pair.received(BATCH)), numbers(&frames));
    }
    assert!(pair.notes().contains("leave as XDP frames"), "{}", pair.notes());
}

#[test]
fn a_checksum_is_finished_in_a_burst() {
    let Some(mut pair) = Pair::new("sums", PortKind::AfXdp) else { return };
    let frames = vec![numbered(2).remove(0); 32];
    let checksum = Some(PartialChecksum { start: 20, offset: 4 });
    let (sent, _) = pair.send(&frames, Offload { checksum, ..Offload::default() });
    assert_eq!(sent, 32);
    // RFC 1071: the sum of all words from `start` on, the finished one included, is all ones.
    let sum = |frame: &[u8]| {
        let words =
            frame[20..].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    };
    let mut expected = frames[0].clone();
    let received = pair.received(32);
    expected[24..26].copy_from_slice(&received[0][24..26]);
    assert_eq!(sum(&received[0]), 0xffff);
    assert!(received.len() == 32 && received.iter().all(|frame| *frame == expected));
}

#[test]
fn a_burst_that_the_driver_refuses_leaves_by_the_socket() {
    let Some(mut pair) = Pair::new("refused", PortKind::AfPacket) else { return };
    for _ in 0..3 {
        let frames = numbered(32);
        let (sent, drops) = pair.send(&frames, Offload::default());
        assert_eq!((sent, drops.iter().count()), (32, 0));
        assert!(pair.received(32) == frames, "none is lost, none comes twice");
    }
    assert!(pair.sender().control.has_news());
    assert!(pair.notes().contains("bursts leave by the socket"), "{}", pair.notes());
}

#[test]
fn a_burst_to_an_interface_that_is_down_is_lost_for_that_reason() {
    let Some(mut pair) = Pair::new("down", PortKind::AfXdp) else { return };
    pair.sender().control.set_admin(false).expect("the interface is there");
    let (sent, drops) = pair.send(&numbered(32), Offload::default());
    assert_eq!((sent, drops.iter().collect::<Vec<_>>()), (0, vec![(DropReason::PortDown, 32)]));
}

#[test]
fn a_port_that_goes_makes_way_for_another() {
    let Some(mut pair) = Pair::new("next", PortKind::AfXdp) else { return };
    pair.sender = None;
    pair.lab.veth("b");
    let guest = pair.lab.on(PortKind::AfXdp, "eth0", "b");
    pair.receiver = pair.opener.open(&guest).expect("opens");
    pair.sender = Some(pair.opener.open(&pair.lab.spec(PortKind::AfXdp, "b")).expect("opens"));
    let frames = numbered(40);
    assert_eq!(pair.send(&frames, Offload::default()).0, 40);
    assert!(pair.received(40) == frames, "by the exit that the first port had");
}

#[test]
fn a_thousand_full_frames_wait_for_a_guest_that_is_late() {
    let Some(lab) = Lab::new("late") else { return };
    lab.veth("a");
    let mut port = Opener::new(1).open(&lab.spec(PortKind::AfPacket, "a")).expect("a veth");
    let queue = "tc qdisc add dev porta root tbf rate 8kbit burst 2kb limit 100000000";
    lab.exec("s", queue);
    let bytes = [&[2; 12][..], &TYPE, &[0; 1500]].concat();
    let (mut drops, mut sent) = (Drops::default(), 0);
    for _ in 0..1000 {
        let frame = tx_frame(&bytes, Offload::default());
        sent += port.tx[0].tx(&[frame], &mut drops).frames;
    }
    let lost: Vec<_> = drops.iter().collect();
    assert_eq!((sent, lost), (1000, Vec::new()));
}

#[test]
fn a_large_frame_does_not_pass_the_burst_before_it() {
    let Some(mut pair) = Pair::new("large", PortKind::AfXdp) else { return };
    let frame = |port: u16, len: usize| {
        let link = wire::build::Frame::ethernet([0xff; 6], [2, 0, 0, 0, 0, 1]);
        link.ipv4(wire::build::Ipv4::default()).udp(port, 9).payload(&vec![7; len]).finish()
    };
    let burst: Vec<_> = (0..32).map(|_| frame(1, 100)).collect();
    let large = Offload {
        gso: wire::Gso::Udp,
        gso_size: 100,
        checksum: Some(PartialChecksum { start: 34, offset: 6 }),
        ..Offload::default()
    };
    for segments in [3, 40, 64] {
        assert_eq!(pair.send(&burst, Offload::default()).0, 32);
        assert_eq!(pair.send(&[frame(2, 100 * segments)], large).0, 1);
        assert_eq!(pair.send(&burst[..2], Offload::default()).0, 2);
        let mut ports = Vec::new();
        let end = Instant::now() + PATIENCE;
        while ports.len() < 34 + segments && Instant::now() < end {
            let mut batch = RxBatch::default();
            let rx = &mut pair.receiver.rx[0];
            rx.rx(&mut batch, &mut Drops::default()).unwrap();
            let whole = batch.frames().iter().map(|slot| bytes(slot, rx.as_ref()));
            let ours = whole.filter(|frame| frame.get(6..12) == Some(&[2, 0, 0, 0, 0, 1]));
            ports.extend(ours.map(|frame| frame[35]));
            rx.release();
        }
        let expected = [vec![1; 32], vec![2; segments], vec![1; 2]].concat();
        assert_eq!(ports, expected, "{segments} segments");
    }
}
