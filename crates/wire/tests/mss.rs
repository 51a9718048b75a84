//! The MSS clamp: a SYN comes out as if its sender had offered less, everything else as it went in.

mod frames;

use frames::hostile;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::PartialChecksum;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::checksum::{fold, sum};
use wire::mss::{clamp, is_syn};

const SYN: u16 = 0x02;

/// Options before the MSS: alone or behind one or more bytes of others.
const BEFORE: [&[u8]; 4] = [&[], &[1], &[3, 3, 7], &[1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]];

/// A SYN that offers `mss` at one of the places that an option may have.
fn syn(is_v6: bool, is_tagged: bool, flags: u16, before: usize, mss: u16) -> Frame {
    let frame = Frame::ethernet([2; 6], [4; 6]);
    let frame = if is_tagged { frame.vlan(0x8100, 7) } else { frame };
    let frame = if is_v6 { frame.ipv6(Ipv6::default()) } else { frame.ipv4(Ipv4::default()) };
    let [high, low] = mss.to_be_bytes();
    let mut options = [BEFORE[before], &[2, 4, high, low]].concat();
    options.resize(options.len().next_multiple_of(4), 1);
    frame.tcp(Tcp { flags, options: &options, ..Tcp::default() })
}

/// Whether the TCP checksum is right.
fn is_right(frame: &[u8], is_v6: bool, is_tagged: bool) -> bool {
    let l4 = l4(is_v6, is_tagged);
    let addresses = if is_v6 { 32 } else { 8 };
    fold(sum(&frame[l4 - addresses..]) + 6 + (frame.len() - l4) as u64) == 0xffff
}

proptest! {
    #[test]
    fn a_syn_offers_what_fits_and_no_more_than_its_sender_did(
        is_v6: bool, is_tagged: bool, is_answer: bool, before in 0usize..4, mss: u16, carries in 200usize..2000, payload in vec(any::<u8>(), 0..40),
    ) {
        let flags = if is_answer { SYN | 0x10 } else { SYN };
        let most = carries - if is_tagged { 18 } else { 14 } - if is_v6 { 60 } else { 40 };
        let wanted = mss.min(most as u16);
        let build = |mss| syn(is_v6, is_tagged, flags, before, mss).payload(&payload);
        let mut frame = build(mss).finish();
        prop_assert!(is_syn(&frame));
        clamp(&mut frame, carries, false);
        prop_assert!(is_right(&frame, is_v6, is_tagged));
        let mut expected = build(wanted).finish();
        let at = l4(is_v6, is_tagged) + 16;
        // 0 and 0xffff are the same number: the sums were compared above.
        expected[at..at + 2].copy_from_slice(&frame[at..at + 2]);
        prop_assert_eq!(&frame, &expected);
        let (mut partial, PartialChecksum { .. }) = build(mss).finish_partial().expect("TCP");
        clamp(&mut partial, carries, true);
        prop_assert_eq!(partial, build(wanted).finish_partial().expect("TCP").0);
    }

    #[test]
    fn no_other_bytes_change_whatever_the_frame(frame in hostile(), carries in 0usize..3000, is_partial: bool) {
        let mut after = frame.clone();
        clamp(&mut after, carries, is_partial);
        let changed = frame.iter().zip(&after).filter(|(old, new)| old != new).count();
        let most = if is_partial { 2 } else { 4 };
        prop_assert!(changed == 0 || is_syn(&frame) && changed <= most);
    }
}

fn l4(is_v6: bool, is_tagged: bool) -> usize {
    14 + if is_tagged { 4 } else { 0 } + if is_v6 { 40 } else { 20 }
}

#[test]
fn what_is_no_syn_or_offers_nothing_stays() {
    let mut data = syn(false, false, 0x10, 0, 1460).finish();
    let before = data.clone();
    clamp(&mut data, 1000, false);
    assert_eq!((&data, is_syn(&data)), (&before, false));
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
    for options in [&[][..], &[0, 2, 4, 5, 180, 0, 0, 0], &[3, 0, 0, 0], &[2, 3, 255, 255]] {
        let mut silent = frame.clone().tcp(Tcp { flags: SYN, options, ..Tcp::default() }).finish();
        let before = silent.clone();
        clamp(&mut silent, 1000, false);
        assert_eq!(silent, before, "{options:?}");
    }
}

#[test]
fn a_path_that_carries_next_to_nothing_changes_nothing() {
    for carries in [0, 14, 54, 101] {
        let mut frame = syn(false, false, SYN, 0, 1460).finish();
        let before = frame.clone();
        clamp(&mut frame, carries, false);
        assert_eq!(frame, before);
    }
}
