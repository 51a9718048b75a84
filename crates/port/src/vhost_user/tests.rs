//! From guest to guest through the two halves of a port, with the plain driver of `vhost`'s own tests at both ends.

#[path = "../../../vhost/tests/ring/driver/mod.rs"]
#[expect(dead_code, reason = "the ring's own tests use the rest")]
mod driver;
#[path = "../../../vhost/tests/ring/guest.rs"]
#[expect(dead_code, reason = "likewise")]
mod guest;

use super::rx::VhostRx;
use super::tx::VhostTx;
use crate::batch::{BodyAt, RxBatch};
use crate::drops::Drops;
use crate::frame::{Body, Sent, TxFrame};
use crate::queue::{RxQueue, TxQueue, UnreadSent};
use driver::Driver;
use rustix::event::{EventfdFlags, eventfd};
use std::sync::Arc;
use vhost::{Fault, Features, HEADER_MAX, Slot, SlotState, Unread, Vring};
use wire::{DropReason, Offload, Pattern, checksum};

const PLAIN: Features = Features::VERSION_1;
const MERGEABLE: Features = PLAIN.union(Features::MRG_RXBUF);
const PACKED: Features = MERGEABLE.union(Features::RING_PACKED);

fn slot(driver: &Driver) -> Arc<Slot> {
    let slot = Slot::new(Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap())).unwrap();
    slot.start(driver.device()).unwrap();
    slot
}

/// A switch that forwards everything from one ring to another.
struct Rig {
    from: Driver,
    to: Driver,
    source: Arc<Slot>,
    rx: VhostRx,
    tx: VhostTx,
    drops: Drops,
}

impl Rig {
    fn new(from: Features, to: Features) -> Self {
        let (from, to) = (Driver::new(64, from), Driver::new(64, to));
        let (source, destination) = (slot(&from), slot(&to));
        let rx = VhostRx::of(Arc::clone(&source));
        let tx = VhostTx::of([destination].into(), 0, 1);
        Self { from, to, source, rx, tx, drops: Drops::default() }
    }

    /// A round; returns how many frames were sent.
    fn forward(&mut self) -> u64 {
        let mut batch = RxBatch::default();
        self.rx.rx(&mut batch, &mut self.drops).unwrap();
        let frames: Vec<_> = batch
            .frames()
            .iter()
            .map(|slot| {
                let body = match slot.body {
                    BodyAt::Port { at, len } => self.rx.body(at, len),
                    _ => Body::default(),
                };
                TxFrame {
                    head: slot.head.bytes(),
                    body,
                    offload: slot.offload,
                    tunnel_id: 0,
                    tun_dst: 0,
                }
            })
            .collect();
        let sent = self.tx.tx(&frames, &mut self.drops);
        self.rx.release();
        sent.frames
    }

    /// A round of a port whose frames all go one way; returns how many went without being read, and how many came into the batch. Those are
    /// sent after them.
    fn forward_unread(&mut self) -> (u64, u64) {
        self.forward_like(None)
    }

    /// The same of frames like a pattern's.
    fn forward_like(&mut self, pattern: Option<&Pattern>) -> (u64, u64) {
        let (mut batch, mut sent) = (RxBatch::default(), Sent::default());
        let tx = &mut self.tx;
        let mut forward = |frames: Unread<'_>| {
            sent = tx.tx_unread(frames, &(14..=1514), pattern).sent;
            sent.frames as usize
        };
        self.rx.rx_unread(&mut batch, &mut self.drops, &mut forward).unwrap();
        let rest = self.tx.tx_received(batch.frames(), &self.rx, &mut self.drops);
        self.rx.release();
        assert_eq!(rest.frames, batch.frames().len() as u64);
        (sent.frames, rest.frames)
    }

    fn send(&mut self, header: [u8; HEADER_MAX], frame: &[u8]) {
        let whole = [&header[..], frame].concat();
        // Two pieces, the seam somewhere in the first head.
        let seam = whole.len().min(100) as u32;
        let pieces = [seam, whole.len() as u32 - seam];
        assert!(self.from.send(&whole, if pieces[1] == 0 { &pieces[..1] } else { &pieces }, false));
    }

    /// The same, in one piece.
    fn send_whole(&mut self, header: [u8; HEADER_MAX], frame: &[u8]) {
        let whole = [&header[..], frame].concat();
        assert!(self.from.send(&whole, &[whole.len() as u32], false));
    }

    /// A frame that arrived, put together, and its header.
    fn received(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut bytes = self.to.reap()?;
        for _ in 1..u16::from_le_bytes([bytes[10], bytes[11]]) {
            bytes.extend(self.to.reap().unwrap());
        }
        let frame = bytes.split_off(HEADER_MAX);
        Some((bytes, frame))
    }

    fn drops(&self) -> Vec<(DropReason, u64)> {
        self.drops.iter().collect()
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 256) as u8).collect()
}

#[test]
fn frames_of_all_lengths_arrive_whole_through_every_kind_of_ring() {
    for (from, to) in [(PLAIN, MERGEABLE), (PACKED, MERGEABLE), (MERGEABLE, PACKED)] {
        let mut rig = Rig::new(from, to);
        for len in [14, 60, 64, 256, 257, 1518, 3000] {
            (0..3).for_each(|_| assert!(rig.to.post(&[1000, 526], false)));
            rig.send([0; HEADER_MAX], &pattern(len));
            assert_eq!(rig.forward(), 1, "{len}");
            assert_eq!(rig.received().unwrap().1, pattern(len));
            assert!(rig.from.reap().is_some());
        }
        assert_eq!(rig.drops(), []);
    }
}

#[test]
fn what_nobody_reads_goes_straight_and_the_rest_after_it() {
    for (from, to) in [(SENDS_LARGE, MERGEABLE), (PACKED, MERGEABLE), (MERGEABLE, PACKED)] {
        let mut rig = Rig::new(from, to);
        (0..9).for_each(|_| assert!(rig.to.post(&[1600], false)));
        let frames = [14, 60, 1514, 1515, 64, 13, 256].map(pattern);
        frames.iter().for_each(|frame| rig.send_whole([0; HEADER_MAX], frame));
        let mut rounds = vec![rig.forward_unread()];
        assert_eq!(rounds[0].0, 3, "the fourth is too long");
        // A packed ring's round ends before a line that is being filled.
        while rounds.iter().map(|(straight, read)| straight + read).sum::<u64>() < 7 {
            rounds.push(rig.forward_unread());
        }
        for frame in &frames {
            let (header, got) = rig.received().unwrap();
            assert_eq!(header, [vec![0; 10], vec![1, 0]].concat());
            assert!(got == *frame, "{} bytes", frame.len());
            assert!(rig.from.reap().is_some());
        }
        rig.send([0; HEADER_MAX], &frames[2]);
        assert_eq!(rig.forward_unread(), (0, 1), "it lies in two pieces");
        assert_eq!(rig.drops(), []);
    }
}

#[test]
fn of_frames_that_are_compared_those_go_straight_that_are_like_the_pattern() {
    let mut like = Pattern { value: [0; 64], mask: [0; 64], some: [0; 64] };
    (like.value[33], like.mask[33]) = (pattern(34)[33], 0xff);
    like.some[1] = 0xff;
    for (from, to) in [(SENDS_LARGE, MERGEABLE), (PACKED, MERGEABLE), (MERGEABLE, PACKED)] {
        for (place, straight) in [(0, 0), (2, 2), (5, 4)] {
            let straight = if Vring::compares() { straight } else { 0 };
            let mut rig = Rig::new(from, to);
            (0..5).for_each(|_| assert!(rig.to.post(&[1600], false)));
            let mut frames = [34, 64, 256, 60].map(pattern);
            if let Some(frame) = frames.get_mut(place) {
                frame[33] ^= 1;
            }
            frames.iter().for_each(|frame| rig.send_whole([0; HEADER_MAX], frame));
            assert_eq!(rig.forward_like(Some(&like)), (straight, 4 - straight));
            for frame in &frames {
                let (header, got) = rig.received().unwrap();
                assert_eq!(header, [vec![0; 10], vec![1, 0]].concat());
                assert!(got == *frame, "{} bytes", frame.len());
            }
            assert_eq!((rig.received(), rig.drops()), (None, vec![]));
        }
    }
}

#[test]
fn a_full_destination_says_so_whatever_comes_next() {
    for (room, sent, is_full) in [(0, 0, true), (2, 2, true), (3, 3, false), (4, 3, false)] {
        let mut rig = Rig::new(PLAIN, MERGEABLE);
        (0..room).for_each(|_| assert!(rig.to.post(&[1600], false)));
        [60, 64, 256].map(pattern).iter().for_each(|frame| rig.send_whole([0; 12], frame));
        let (mut batch, mut straight) = (RxBatch::default(), UnreadSent::default());
        let tx = &mut rig.tx;
        let mut forward = |frames: Unread<'_>| {
            straight = tx.tx_unread(frames, &(14..=1514), None);
            straight.sent.frames as usize
        };
        rig.rx.rx_unread(&mut batch, &mut rig.drops, &mut forward).unwrap();
        assert_eq!((straight.sent.frames, straight.is_full), (sent, is_full), "{room}");
    }
}

#[test]
fn what_a_header_says_something_of_is_read() {
    let mut rig = Rig::new(SENDS_LARGE, MERGEABLE | Features::GUEST_CSUM | Features::GUEST_TSO4);
    (0..5).for_each(|_| assert!(rig.to.post(&[1600], false)));
    rig.send_whole([0; HEADER_MAX], &pattern(60));
    rig.send_whole(LARGE, &large(1000));
    rig.send_whole([0; HEADER_MAX], &pattern(64));
    assert_eq!(rig.forward_unread(), (1, 2));
    let headers: Vec<_> = std::iter::from_fn(|| rig.received()).map(|(header, _)| header).collect();
    assert_eq!(headers.iter().map(|header| header[0]).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn nothing_goes_straight_where_a_flow_has_its_pair_or_no_ring_runs() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    let mut drivers = [Driver::new(64, PLAIN), Driver::new(64, PLAIN)];
    drivers.iter_mut().for_each(|driver| assert!(driver.post(&[1600], false)));
    rig.tx = VhostTx::of(drivers.iter().map(slot).collect(), 0, 1);
    rig.send_whole([0; HEADER_MAX], &pattern(60));
    assert_eq!(rig.forward_unread(), (0, 1));
    rig.tx = VhostTx::of([].into(), 0, 1);
    rig.send_whole([0; HEADER_MAX], &pattern(60));
    let mut batch = RxBatch::default();
    let tx = &mut rig.tx;
    let mut forward =
        |frames: Unread<'_>| tx.tx_unread(frames, &(14..=1514), None).sent.frames as usize;
    rig.rx.rx_unread(&mut batch, &mut rig.drops, &mut forward).unwrap();
    assert_eq!(batch.frames().len(), 1, "whose loss is then counted under its reason");
}

#[test]
fn a_destination_that_breaks_the_rules_stops_and_the_frames_are_read() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    let mut to = Driver::new(64, PLAIN);
    let destination = slot(&to);
    rig.tx = VhostTx::of([Arc::clone(&destination)].into(), 0, 1);
    // A buffer of the wrong direction.
    assert!(to.send(&[0; 100], &[100], false));
    rig.send_whole([0; HEADER_MAX], &pattern(60));
    let (mut batch, tx) = (RxBatch::default(), &mut rig.tx);
    let mut forward =
        |frames: Unread<'_>| tx.tx_unread(frames, &(14..=1514), None).sent.frames as usize;
    rig.rx.rx_unread(&mut batch, &mut rig.drops, &mut forward).unwrap();
    assert_eq!(batch.frames().len(), 1);
    assert!(matches!(destination.state(), SlotState::Faulted(Fault::WrongDirection { .. })));
}

#[test]
fn a_source_that_breaks_the_rules_after_frames_left_loses_its_ring() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    (0..2).for_each(|_| assert!(rig.to.post(&[1600], false)));
    rig.send_whole([0; HEADER_MAX], &pattern(60));
    assert!(rig.from.send(&[0; 11], &[11], false));
    assert_eq!(rig.forward_unread(), (1, 0));
    assert_eq!(rig.source.state(), SlotState::Faulted(Fault::NoHeader(11)));
    assert_eq!(rig.received().unwrap().1, pattern(60));
}

/// `needs_csum`, TCP over IPv4, segments of 1448 bytes, checksum from 34 at 16.
const LARGE: [u8; HEADER_MAX] = [1, 1, 54, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
const SENDS_LARGE: Features = PLAIN.union(Features::CSUM).union(Features::HOST_TSO4);

/// A large TCP frame with `payload` bytes, its checksum left to do.
fn large(payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 54];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6]);
    frame[16..18].copy_from_slice(&(40 + payload as u16).to_be_bytes());
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[46] = 0x50;
    let pseudo = checksum::pseudo_ipv4(0x0a00_0001, 0x0a00_0002, 6, 20 + payload as u32);
    frame[50..52].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
    frame.extend(pattern(payload));
    frame
}

#[test]
fn a_large_frame_goes_whole_to_a_driver_that_takes_it() {
    let mut rig = Rig::new(SENDS_LARGE, MERGEABLE | Features::GUEST_CSUM | Features::GUEST_TSO4);
    (0..3).for_each(|_| assert!(rig.to.post(&[1600], false)));
    rig.send(LARGE, &large(3900));
    assert_eq!(rig.forward(), 1);
    let (header, frame) = rig.received().unwrap();
    assert_eq!((header[..10].to_vec(), header[10]), (LARGE[..10].to_vec(), 3));
    assert_eq!(frame, large(3900));
}

#[test]
fn to_one_that_does_not_it_goes_in_segments_with_their_sums() {
    let mut rig = Rig::new(SENDS_LARGE, MERGEABLE);
    (0..3).for_each(|_| assert!(rig.to.post(&[1600], false)));
    rig.send(LARGE, &large(3900));
    assert_eq!(rig.forward(), 1);
    let mut payload = Vec::new();
    while let Some((header, frame)) = rig.received() {
        assert_eq!(header[..10], [0; 10]);
        let len = frame.len() as u32 - 34;
        let sum =
            checksum::sum(&frame[34..]) + checksum::pseudo_ipv4(0x0a00_0001, 0x0a00_0002, 6, len);
        assert_eq!(checksum::fold(sum), 0xffff);
        payload.extend_from_slice(&frame[54..]);
    }
    assert_eq!(payload, pattern(3900));
}

#[test]
fn a_header_that_says_what_was_not_negotiated_costs_the_frame_and_nothing_else() {
    let mut rig = Rig::new(PLAIN | Features::CSUM, MERGEABLE);
    assert!(rig.to.post(&[1600], false));
    rig.send(LARGE, &large(100));
    assert_eq!(rig.forward(), 0);
    assert_eq!(rig.drops(), [(DropReason::BadSource, 1)]);
    assert!(rig.from.reap().is_some(), "its buffer came back");
    rig.send([0; HEADER_MAX], &pattern(60));
    assert_eq!(rig.forward(), 1);
}

#[test]
fn a_header_that_can_say_nothing_is_not_read() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    (0..3).for_each(|_| assert!(rig.to.post(&[1600], false)));
    rig.send_whole(LARGE, &large(100));
    assert_eq!(rig.forward_unread(), (1, 0));
    rig.send_whole(LARGE, &large(100));
    rig.send(LARGE, &large(100));
    assert_eq!(rig.forward(), 2);
    while let Some((header, frame)) = rig.received() {
        assert_eq!((header[..10].to_vec(), frame), (vec![0; 10], large(100)));
    }
    assert_eq!((rig.drops(), rig.to.reap()), (vec![], None));
}

#[test]
fn a_driver_that_breaks_the_rules_loses_its_ring_and_the_worker_goes_on() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    assert!(rig.from.send(&[0; 11], &[11], false));
    assert_eq!(rig.forward(), 0);
    assert_eq!(rig.source.state(), SlotState::Faulted(Fault::NoHeader(11)));
    assert_eq!(rig.forward(), 0);
    // The front-end starts it again.
    rig.from = Driver::new(64, PLAIN);
    rig.source.start(rig.from.device()).unwrap();
    assert!(rig.to.post(&[1600], false));
    rig.send([0; HEADER_MAX], &pattern(60));
    assert_eq!(rig.forward(), 1);
}

#[test]
fn every_frame_lost_is_counted_under_its_reason() {
    let mut rig = Rig::new(PLAIN, PLAIN);
    rig.send([0; HEADER_MAX], &pattern(60));
    assert_eq!(rig.forward(), 0);
    assert!(rig.to.post(&[71], false));
    rig.send([0; HEADER_MAX], &pattern(60));
    assert_eq!(rig.forward(), 0);
    rig.tx = VhostTx::of([].into(), 0, 1);
    rig.send([0; HEADER_MAX], &pattern(60));
    assert_eq!(rig.forward(), 0);
    assert_eq!(
        rig.drops(),
        [(DropReason::TooBig, 1), (DropReason::PortDown, 1), (DropReason::TxFull, 1)]
    );
}

#[test]
fn what_is_sent_by_a_queue_that_is_not_enabled_is_counted_and_discarded() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    rig.from = Driver::new(64, PLAIN);
    rig.source.start_disabled(rig.from.device()).unwrap();
    assert!(rig.to.post(&[1600], false));
    rig.send([0; HEADER_MAX], &pattern(60));
    rustix::io::write(&rig.from.kick, &1_u64.to_ne_bytes()).unwrap();
    assert_eq!(rig.forward(), 0);
    assert!(rig.from.reap().is_some(), "its buffer came back");
    assert!(rig.received().is_none());
    assert_eq!(rig.drops(), [(DropReason::PortDown, 1)]);
}

#[test]
fn the_session_waits_for_what_a_worker_holds() {
    let mut rig = Rig::new(PLAIN, MERGEABLE);
    rig.send([0; HEADER_MAX], &pattern(60));
    let mut batch = RxBatch::default();
    assert_eq!(rig.rx.rx(&mut batch, &mut rig.drops).unwrap(), 1);
    let source = Arc::clone(&rig.source);
    let stopped = std::thread::spawn(move || source.stop());
    rig.rx.release();
    assert_eq!(stopped.join().unwrap(), Some(vhost::Base::Split(1)));
    assert!(rig.from.reap().is_some(), "given back before it stopped");
}

#[test]
fn the_flows_of_a_worker_spread_over_its_pairs_and_keep_their_order() {
    let mut drivers: Vec<_> = (0..4).map(|_| Driver::new(128, MERGEABLE)).collect();
    for driver in &mut drivers {
        (0..128).for_each(|_| assert!(driver.post(&[200], false)));
    }
    let mut tx = VhostTx::of(drivers.iter().map(slot).collect(), 0, 1);
    let frame = |flow: u8, number: u8| {
        let mut bytes = pattern(60);
        bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, number, 0, 0, 0, 64, 17]);
        bytes[26..42].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, flow, 0, 80, 0, 26, 0, 0]);
        bytes
    };
    let all: Vec<_> = (0..120).map(|at: u8| frame(at % 10, at / 10)).collect();
    let frames: Vec<_> = all
        .iter()
        .map(|head| TxFrame {
            head,
            body: Body::default(),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        })
        .collect();
    assert_eq!(tx.tx(&frames, &mut Drops::default()).frames, 120);
    let mut used = 0;
    for driver in &mut drivers {
        let arrived: Vec<_> = std::iter::from_fn(|| driver.reap()).collect();
        used += usize::from(!arrived.is_empty());
        for flow in 0..10 {
            let numbers: Vec<_> = arrived
                .iter()
                .filter(|frame| frame[12 + 35] == flow)
                .map(|frame| frame[12 + 18])
                .collect();
            assert!(
                numbers.is_empty() || numbers == (0..12).collect::<Vec<_>>(),
                "flow {flow}: {numbers:?}"
            );
        }
    }
    assert!(used > 1, "flows spread");
}
