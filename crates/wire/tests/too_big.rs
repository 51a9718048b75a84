//! Answers to frames that are too long: what they say, to whom, and when none is sent.

mod frames;
mod oracle;

use frames::{hostile, recipe};
use oracle::naive;
use oracle::sums::{State, check};
use proptest::prelude::*;
use wire::Field;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::too_big::{ENOUGH, answer};

/// What the RFCs ask of any answer, whatever was answered.
fn is_sound(frame: &[u8], carries: usize, answer: &[u8]) {
    let (asked, told) = (naive::parse(frame), naive::parse(answer));
    let at = usize::from(asked.layers.ip);
    assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]), "back, from there");
    assert_eq!(answer[12..at], frame[12..at], "tags and type stay");
    assert_eq!((frame[0] | frame[6]) & 1, 0, "no groups");
    assert_eq!(asked.get(Field::IpFrag) & 2, 0, "no later fragments");
    assert!(check(answer, None).iter().all(|state| matches!(state, State::Right | State::Unknown)));
    let is_v4 = asked.get(Field::EthType) == 0x0800;
    let (src, dst) =
        if is_v4 { (Field::Ipv4Src, Field::Ipv4Dst) } else { (Field::Ipv6Src, Field::Ipv6Dst) };
    assert_eq!((told.get(src), told.get(dst)), (asked.get(dst), asked.get(src)));
    let proto = asked.get(Field::IpProto);
    let about = asked.get(Field::IcmpType);
    assert!(!(is_v4 && proto == 1 && [3, 4, 5, 11, 12].contains(&about)), "no ICMP errors");
    assert!(!(!is_v4 && proto == 58 && (about < 128 || about == 137)), "no ICMPv6 errors");
    let (head, most, least, kind) =
        if is_v4 { (28, 576, 68, (3, 4)) } else { (48, 1280, 1280, (2, 0)) };
    assert_eq!((told.get(Field::IcmpType), told.get(Field::IcmpCode)), kind);
    let mtu = u32::from_be_bytes(answer[at + head - 4..at + head].try_into().expect("four bytes"));
    assert_eq!(mtu as usize, (carries - at).min(if is_v4 { 65_535 } else { usize::MAX }));
    assert!(mtu >= least && answer.len() - at <= most);
    let quote = &answer[at + head..];
    assert!(frame[at..].starts_with(quote));
    let all = asked.ip_end.min(frame.len()) - at;
    assert_eq!(quote.len(), all.min(most - head), "as much as there is and fits");
}

proptest! {
    #[test]
    fn an_answer_to_whatever_frame_is_what_the_rfcs_ask_for(frame in hostile(), carries in 0usize..3000) {
        if let Some(told) = answer(&frame, carries) {
            is_sound(&frame, carries, &told);
        }
    }

    #[test]
    fn an_answer_is_answered_by_none(frame in hostile(), carries in 1400usize..1500) {
        if let Some(told) = answer(&frame, carries) {
            prop_assert_eq!(answer(&told, carries), None);
        }
    }

    #[test]
    fn the_first_bytes_of_a_frame_are_enough(frame in recipe(), carries in 1300usize..1500) {
        let mut frame = frame.bytes();
        let whole = answer(&frame, carries);
        frame.truncate(ENOUGH + 8);
        prop_assert_eq!(answer(&frame, carries), whole);
    }

    #[test]
    fn hosts_that_talk_by_tcp_or_udp_are_told(
        is_v6: bool, is_tcp: bool, has_df: bool, tags in 0usize..3, len in 1000usize..1400, carries in 1320usize..1500,
    ) {
        let frame = (0..tags).fold(Frame::ethernet([2; 6], [4; 6]), |frame, tag| frame.vlan(0x8100, tag as u16));
        let fragment = if has_df { 0x4000 } else { 0 };
        let frame = if is_v6 { frame.ipv6(Ipv6::default()) } else { frame.ipv4(Ipv4 { fragment, ..Ipv4::default() }) };
        let frame = if is_tcp { frame.tcp(Tcp::default()) } else { frame.udp(1, 2) };
        let frame = frame.payload(&vec![7; len]).finish();
        let told = answer(&frame, carries).expect("an answer");
        is_sound(&frame, carries, &told);
    }
}

fn udp(src: [u8; 4], dst: [u8; 4]) -> Frame {
    Frame::ethernet([2; 6], [4; 6])
        .ipv4(Ipv4 { src: src.into(), dst: dst.into(), ..Ipv4::default() })
        .udp(1, 2)
        .payload(&[0; 1400])
}

#[test]
fn what_is_not_one_hosts_address_is_not_answered() {
    let (one, two) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    assert!(answer(&udp(one, two).finish(), 1400).is_some());
    for odd in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 5], [240, 0, 0, 1], [255; 4]] {
        assert_eq!(answer(&udp(odd, two).finish(), 1400), None, "from {odd:?}");
        assert_eq!(answer(&udp(one, odd).finish(), 1400), None, "to {odd:?}");
    }
    for odd in ["::", "::1", "ff02::1"] {
        let odd = odd.parse().expect("an address");
        for ends in [Ipv6 { src: odd, ..Ipv6::default() }, Ipv6 { dst: odd, ..Ipv6::default() }] {
            let frame = Frame::ethernet([2; 6], [4; 6]).ipv6(ends).udp(1, 2).payload(&[0; 1400]);
            assert_eq!(answer(&frame.finish(), 1400), None, "{odd}");
        }
    }
    let mut to_all = udp(one, two).finish();
    to_all[..6].fill(0xff);
    assert_eq!(answer(&to_all, 1400), None);
}

#[test]
fn a_header_with_a_wrong_checksum_is_not_answered() {
    let mut frame = udp([10, 0, 0, 1], [10, 0, 0, 2]).finish();
    frame[24] ^= 1;
    assert_eq!(answer(&frame, 1400), None);
}

#[test]
fn a_sender_that_cannot_go_so_low_is_not_told() {
    let v4 = udp([10, 0, 0, 1], [10, 0, 0, 2]).finish();
    assert!(answer(&v4, 14 + 68).is_some() && answer(&v4, 14 + 67).is_none());
    let v6 = Frame::ethernet([2; 6], [4; 6]).ipv6(Ipv6::default()).udp(1, 2).payload(&[0; 1400]);
    let v6 = v6.finish();
    assert!(answer(&v6, 14 + 1280).is_some() && answer(&v6, 14 + 1279).is_none());
}
