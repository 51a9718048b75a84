//! Merging: what was merged and is cut again is the same frames, whatever they are; what was cut is merged whole.

use proptest::prelude::*;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::checksum::complete;
use wire::merge::Train;
use wire::segment::plan;
use wire::tunnel::Gre;
use wire::{Gso, HEAD_MAX, Offload};

const PSH_ACK: u16 = 0x18;

/// What is around the packet that is cut.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    /// GRE with a key, over IPv6 or IPv4, and with an Ethernet frame in it or not.
    Gre {
        is_v6: bool,
        has_ethernet: bool,
    },
    /// IP in IPv4.
    Ip,
}

impl Around {
    fn any() -> impl Strategy<Value = Self> {
        let gre = any::<(bool, bool)>();
        let gre = gre.prop_map(|(is_v6, has_ethernet)| Self::Gre { is_v6, has_ethernet });
        prop_oneof![Just(Self::Nothing), gre, Just(Self::Ip)]
    }

    fn begin(self) -> Frame {
        let (frame, ipv4) = (Frame::ethernet([2; 6], [4; 6]), Ipv4 { id: 9, ..Ipv4::default() });
        // An Ethernet frame; an IP packet says its own number.
        let gre = Gre { protocol: 0x6558, key: Some(7), ..Gre::default() };
        match self {
            Self::Nothing => frame,
            Self::Ip => frame.ipv4(ipv4),
            Self::Gre { is_v6, has_ethernet } => {
                let outer =
                    if is_v6 { frame.ipv6(Ipv6::default()) } else { frame.ipv4(ipv4) }.gre(gre);
                if has_ethernet { outer.inner_ethernet([6; 6], [8; 6]) } else { outer }
            }
        }
    }
}

/// A large frame with this many bytes, its checksum left to do.
fn large(is_v6: bool, options: bool, payload: usize) -> (Vec<u8>, Offload) {
    let frame = Frame::ethernet([2; 6], [4; 6]);
    around(if is_v6 { frame } else { frame.vlan(0x8100, 5) }, is_v6, options, payload)
}

fn around(frame: Frame, is_v6: bool, options: bool, payload: usize) -> (Vec<u8>, Offload) {
    let frame = match is_v6 {
        true => frame.ipv6(Ipv6 { flow_label: 77, ..Ipv6::default() }),
        false => frame.ipv4(Ipv4 { id: 0xfffe, tos: 2, ..Ipv4::default() }),
    };
    let options: &[u8] = if options { &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2] } else { &[] };
    let header = Tcp { sequence: u32::MAX - 3000, flags: PSH_ACK, options, ..Tcp::default() };
    let bytes: Vec<u8> = (0..payload).map(|at| (at * 7 + at / 256) as u8).collect();
    let (frame, checksum) = frame.tcp(header).payload(&bytes).finish_partial().expect("TCP");
    let gso = if is_v6 { Gso::TcpV6 } else { Gso::TcpV4 };
    (frame, Offload { checksum: Some(checksum), gso, gso_size: 1000, ..Offload::default() })
}

fn cut(frame: &[u8], offload: &Offload) -> Vec<Vec<u8>> {
    if offload.gso == Gso::None {
        return vec![frame.to_vec()];
    }
    let segments = plan(&frame[..frame.len().min(HEAD_MAX)], frame.len(), offload).expect("a plan");
    let write = |index| {
        let mut out = vec![0; segments.header_len()];
        segments.write_headers(index, &mut out);
        out.extend_from_slice(&frame[segments.payload(index)]);
        complete(&mut out, segments.checksum()).expect("a checksum");
        out
    };
    (0..segments.count()).map(write).collect()
}

/// As a port merges: the payload of what follows goes behind the first frame.
fn merge(frames: &[Vec<u8>]) -> Vec<(Vec<u8>, Offload)> {
    let (mut merged, mut at) = (Vec::new(), 0);
    while at < frames.len() {
        let mut whole = frames[at].clone();
        at += 1;
        let Some(mut train) = Train::begin(&whole) else {
            merged.push((whole, Offload::default()));
            continue;
        };
        while let Some(next) = frames.get(at).filter(|next| train.precedes(&whole, next)) {
            let headers = train.add(next);
            whole.extend_from_slice(&next[headers..]);
            at += 1;
        }
        assert_eq!(train.len(), whole.len());
        let offload = train.finish(&mut whole);
        merged.push((whole, offload));
    }
    merged
}

proptest! {
    #[test]
    fn what_was_cut_is_merged_whole(is_v6: bool, options: bool, payload in 8usize..60_000) {
        let (frame, offload) = large(is_v6, options, payload);
        let merged = merge(&cut(&frame, &offload));
        prop_assert_eq!(merged.len(), 1);
        if payload > 1000 {
            prop_assert_eq!(&merged[0], &(frame, offload));
        }
    }

    #[test]
    fn what_was_merged_is_cut_to_the_same_frames_whatever_was_changed_in_them(
        is_v6: bool,
        payload in 2000usize..6000,
        changes in proptest::collection::vec((0usize..6, 0usize..90, any::<u8>()), 0..4),
        swaps in proptest::collection::vec((0usize..6, 0usize..6), 0..2),
        sums: bool,
    ) {
        let (frame, offload) = large(is_v6, true, payload);
        let mut frames = cut(&frame, &offload);
        for (which, at, value) in changes {
            let which = which % frames.len();
            let at = at % frames[which].len();
            frames[which][at] = value;
            if sums {
                set_right(&mut frames[which], is_v6);
            }
        }
        for (a, b) in swaps {
            let count = frames.len();
            frames.swap(a % count, b % count);
        }
        let again: Vec<_> = merge(&frames).iter().flat_map(|(frame, offload)| cut(frame, offload)).collect();
        prop_assert_eq!(again, frames);
    }

    #[test]
    fn what_was_cut_in_a_tunnel_is_merged_whole_in_it(
        outside in Around::any(), is_v6: bool, payload in 2000usize..60_000,
    ) {
        let (frame, offload) = around(outside.begin(), is_v6, true, payload);
        let merged = merge(&cut(&frame, &offload));
        prop_assert_eq!(merged, [(frame, offload)]);
    }

    #[test]
    fn what_was_merged_in_a_tunnel_is_cut_to_the_same_frames_whatever_was_changed_in_them(
        outside in Around::any(),
        is_v6: bool,
        changes in proptest::collection::vec((0usize..4, 0usize..120, any::<u8>()), 0..3),
    ) {
        let (frame, offload) = around(outside.begin(), is_v6, true, 3500);
        let mut frames = cut(&frame, &offload);
        for (which, at, value) in changes {
            frames[which][at] = value;
        }
        let again: Vec<_> = merge(&frames).iter().flat_map(|(frame, offload)| cut(frame, offload)).collect();
        prop_assert_eq!(again, frames);
    }

    #[test]
    fn no_bytes_make_it_fail(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Train::begin(&frame);
    }
}

/// Makes checksums right again, so that changes elsewhere are not found by them.
fn set_right(frame: &mut [u8], is_v6: bool) {
    let (ip, l4) = if is_v6 { (14, 54) } else { (18, 38) };
    if !is_v6 {
        frame[ip + 10..ip + 12].fill(0);
        let sum = !wire::checksum::fold(wire::checksum::sum(&frame[ip..l4]));
        frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let addresses = if is_v6 { &frame[ip + 8..l4] } else { &frame[ip + 12..l4] };
    let pseudo = wire::checksum::sum(addresses) + 6 + (frame.len() - l4) as u64;
    frame[l4 + 16..l4 + 18].fill(0);
    let sum = !wire::checksum::fold(wire::checksum::sum(&frame[l4..]) + pseudo);
    frame[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn a_train_ends_with_a_push_a_short_segment_or_64_kib() {
    let (frame, offload) = large(false, false, 4000);
    let mut pushed = cut(&frame, &offload);
    pushed[1][38 + 13] |= 8;
    set_right(&mut pushed[1], false);
    assert_eq!(merge(&pushed).len(), 2);
    let mut bad = cut(&frame, &offload);
    bad[2][100] ^= 1;
    assert_eq!(merge(&bad).len(), 3, "a wrong checksum stays alone, and visible to the receiver");
}
