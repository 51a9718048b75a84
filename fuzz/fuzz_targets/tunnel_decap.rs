//! Any datagrams out of a tunnel, in runs as the kernel hands them over: nothing panics, no frame is longer than what came, and a frame that was put together
//! from several is, cut again, what came.
//!
//! Input: runs. Each begins with a byte of flags ([`RIGHT`], [`MARKED`], [`FEW`]), one with the length of a datagram, two (little-endian) with that of the run.
#![no_main]

#[path = "../../crates/wire/tests/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;
use oracle::sums::{State, check};
use port::testing::{Decapsulator, Frame};
use std::cell::RefCell;
use wire::checksum::{complete, fold, sum};
use wire::tunnel::Vxlan;
use wire::{Field, Gso, HEAD_MAX, Head, PartialChecksum, ip_proto, parse, segment};

/// The checksums inside are made right, and the VNI the port's: else hardly two datagrams in a row would ever be merged.
const RIGHT: u8 = 1;
/// Congestion was marked outside.
const MARKED: u8 = 2;
/// The path's MTU is small: frames may look like large segments that were never cut.
const FEW: u8 = 4;

const VNI: u32 = 7;
/// No frame is longer, so that none looks like a large one.
const ENDLESS: u16 = u16::MAX;
const SMALL: u16 = 80;

thread_local! {
    /// The far ends of two tunnels; they keep nothing from one input to the next, but megabytes of buffers.
    static ENDS: RefCell<[Decapsulator; 2]> = RefCell::new([ENDLESS, SMALL].map(|mtu| {
        Decapsulator::new(VNI, mtu)
    }));
}

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Some((&[flags, datagram, low, high], after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (run, after) = after.split_at(len);
        rest = after;
        let mut run = run.to_vec();
        // One that is not said to be a run is one datagram.
        let longest = if datagram == 0 { len } else { len.min(datagram.into()) };
        if flags & RIGHT != 0 {
            run.chunks_mut(longest.max(1)).for_each(set_right);
        }
        one(&run, datagram.into(), longest, flags);
    }
});

fn one(run: &[u8], segment: usize, longest: usize, flags: u8) {
    let is_small = flags & FEW != 0;
    let ds = if flags & MARKED != 0 { 3 } else { 0 };
    let (frames, drops) =
        ENDS.with_borrow_mut(|ends| ends[usize::from(is_small)].frames_of(run, segment, ds));
    let lost: u64 = drops.iter().map(|(_, count)| count).sum();
    for frame in &frames {
        assert!(frame.bytes.len() <= run.len());
        assert!(frame.offload.gso != Gso::None || frame.bytes.len() + Vxlan::LEN <= longest);
    }
    if ds == 0 && !is_small {
        let came: Vec<&[u8]> = run.chunks(longest.max(1)).filter_map(ours).collect();
        let cut: Vec<Vec<u8>> = frames.iter().flat_map(cut).collect();
        assert_eq!(came.len(), cut.len());
        assert_eq!(run.chunks(longest.max(1)).count() as u64 - lost, came.len() as u64);
        came.iter().zip(&cut).for_each(|(came, cut)| is_same(came, cut));
    }
}

/// The frame in a datagram of our tunnel.
fn ours(datagram: &[u8]) -> Option<&[u8]> {
    let header = Vxlan::parse(datagram)?;
    (header.vni == VNI).then(|| &datagram[Vxlan::LEN..])
}

/// What a frame was put together from.
fn cut(frame: &Frame) -> Vec<Vec<u8>> {
    if frame.offload.gso == Gso::None {
        return vec![frame.bytes.clone()];
    }
    let head = &frame.bytes[..frame.bytes.len().min(HEAD_MAX)];
    let segments = segment::plan(head, frame.bytes.len(), &frame.offload).expect("a frame of ours");
    let write = |index| {
        let mut out = vec![0; segments.header_len()];
        segments.write_headers(index, &mut out);
        out.extend_from_slice(&frame.bytes[segments.payload(index)]);
        complete(&mut out, segments.checksum()).expect("it has one");
        out
    };
    (0..segments.count()).map(write).collect()
}

/// Equal but for a checksum that was left to do or is another number for the same sum; what is wrong stays wrong.
fn is_same(came: &[u8], cut: &[u8]) {
    if came == cut {
        return;
    }
    let (_, layers) = parse(&Head::copy_of(came), 0);
    let partial = PartialChecksum { start: layers.l4, offset: 16 };
    let is_fine = |state| matches!(state, State::Right | State::Partial | State::Unknown);
    let is_right = |partial| check(came, partial).iter().all(|state| is_fine(*state));
    assert!(is_right(None) || is_right(wire::is_partial(&Head::copy_of(came), &layers)));
    let mut came = came.to_vec();
    header_right(&mut came, layers.ip.into());
    pseudo(&mut came);
    complete(&mut came, partial).expect("it has one");
    assert_eq!(came, cut);
}

/// Makes a datagram one of ours, and the checksums of TCP in it right.
fn set_right(datagram: &mut [u8]) {
    let Some((header, frame)) = datagram.split_first_chunk_mut::<{ Vxlan::LEN }>() else { return };
    *header = Vxlan { vni: VNI }.emit();
    let (key, layers) = parse(&Head::copy_of(frame), 0);
    if layers.l4 != 0 && key.get(Field::IpProto) == u128::from(ip_proto::TCP) {
        header_right(frame, layers.ip.into());
        pseudo(frame);
        let _ = complete(frame, PartialChecksum { start: layers.l4, offset: 16 });
    }
}

fn header_right(frame: &mut [u8], ip: usize) {
    if frame[ip] >> 4 == 4 {
        let end = ip + usize::from(frame[ip] & 15) * 4;
        frame[ip + 10..ip + 12].fill(0);
        let checksum = !fold(sum(&frame[ip..end]));
        frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Puts the pseudo-header's sum into a TCP checksum.
fn pseudo(frame: &mut [u8]) {
    let (_, layers) = parse(&Head::copy_of(frame), 0);
    let (ip, l4) = (usize::from(layers.ip), usize::from(layers.l4));
    let addresses = if frame[ip] >> 4 == 4 { ip + 12..ip + 20 } else { ip + 8..ip + 40 };
    let len = (frame.len() - l4) as u64;
    let pseudo = fold(sum(&frame[addresses]) + u64::from(ip_proto::TCP) + len);
    if let Some(field) = frame.get_mut(l4 + 16..l4 + 18) {
        field.copy_from_slice(&pseudo.to_be_bytes());
    }
}
