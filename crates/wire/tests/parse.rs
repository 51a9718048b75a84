//! The parser against the naive one, on right and on hostile frames.

mod frames;
mod oracle;

use oracle::naive;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;
use std::net::Ipv6Addr;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::{Depth, Field, HEAD_MAX, Head, Key, Layers, ip_proto, parse, parse_into, parse_on};

fn agrees_with_the_naive_parser(frame: &[u8]) -> Result<(), TestCaseError> {
    let head = Head::copy_of(frame);
    let expected = naive::parse(head.bytes());
    let (key, layers) = parse(&head, 0);
    prop_assert_eq!(key, expected.key);
    prop_assert_eq!(layers, expected.layers);
    for offset in [layers.l3, layers.ip, layers.l4, layers.payload] {
        prop_assert!(usize::from(offset) <= head.bytes().len());
    }
    Ok(())
}

proptest! {
    // Hostile frames are rare among random ones; a case costs microseconds.
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn right_frames_parse_as_the_naive_parser_does(recipe in frames::recipe()) {
        agrees_with_the_naive_parser(&recipe.bytes())?;
    }

    #[test]
    fn hostile_frames_parse_as_the_naive_parser_does(frame in frames::hostile()) {
        agrees_with_the_naive_parser(&frame)?;
    }

    #[test]
    fn any_bytes_parse_as_the_naive_parser_does(frame in vec(any::<u8>(), 0..HEAD_MAX + 10)) {
        agrees_with_the_naive_parser(&frame)?;
    }

    #[test]
    fn every_shorter_head_parses_without_a_panic(frame in frames::hostile()) {
        for len in 0..=frame.len().min(HEAD_MAX) {
            agrees_with_the_naive_parser(&frame[..len])?;
        }
    }

    #[test]
    fn a_second_parse_keeps_what_is_not_in_the_frame(frame in frames::hostile(), in_port: u32, metadata: u64, tunnel: u64, ends: [u16; 2]) {
        let head = Head::copy_of(&frame);
        let (mut key, mut layers) = parse(&head, in_port);
        key.set(Field::Metadata, u128::from(metadata));
        key.set(Field::TunnelId, u128::from(tunnel));
        key.set(Field::TunSrc, u128::from(ends[0]));
        key.set(Field::TunDst, u128::from(ends[1]));
        let before = (key, layers);
        parse_into(&head, &mut key, &mut layers);
        prop_assert_eq!((key, layers), before);
        prop_assert_eq!(key.get(Field::InPort), u128::from(in_port));
    }

    #[test]
    fn a_parse_to_a_depth_knows_that_much_and_can_go_on(frame in frames::hostile(), in_port: u32) {
        let head = Head::copy_of(&frame);
        let (full, all) = parse(&head, in_port);
        let (mut key, mut layers) = (Key::default(), Layers::default());
        key.set(Field::InPort, u128::from(in_port));
        for depth in [Depth::Nothing, Depth::Link, Depth::Full] {
            parse_on(&head, depth, &mut key, &mut layers);
            for &field in Field::ALL {
                let mut mask = Key::default();
                mask.set(field, field.full());
                let known = if Depth::of(&mask) <= depth { full.get(field) } else { 0 };
                prop_assert_eq!(key.get(field), known, "{} at {:?}", field.name(), depth);
            }
            let (l3, vlans) = if depth < Depth::Link { (0, 0) } else { (all.l3, all.vlans) };
            let deep = if depth < Depth::Full { Layers::default() } else { all };
            prop_assert_eq!(layers, Layers { l3, vlans, ..deep });
        }
    }

    #[test]
    fn bits_outside_every_field_are_zero(frame in frames::hostile(), in_port: u32) {
        let (key, _) = parse(&Head::copy_of(&frame), in_port);
        let mut every = Key::default();
        for &field in Field::ALL {
            every.set(field, field.full());
        }
        prop_assert_eq!(key.masked(&every), key);
    }

    #[test]
    fn stale_key_and_layers_leave_no_trace(first in frames::hostile(), second in frames::hostile()) {
        let (mut key, mut layers): (Key, Layers) = parse(&Head::copy_of(&first), 1);
        let second = Head::copy_of(&second);
        parse_into(&second, &mut key, &mut layers);
        prop_assert_eq!((key, layers), parse(&second, 1));
    }
}

fn ethernet() -> Frame {
    Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
}

fn parsed(frame: &[u8]) -> (Key, Layers) {
    agrees_with_the_naive_parser(frame).expect("the naive parser agrees");
    parse(&Head::copy_of(frame), 0)
}

fn field(frame: &[u8], field: Field) -> u128 {
    parsed(frame).0.get(field)
}

#[test]
fn padding_after_the_ip_packet_is_not_a_transport_header() {
    for frame in [ethernet().ipv4(Ipv4::default()), ethernet().ipv6(Ipv6::default())] {
        let mut frame = frame.finish();
        let proto_at = if frame[12] == 0x08 { 23 } else { 20 };
        frame[proto_at] = ip_proto::UDP;
        frame.extend([0, 53, 0, 53, 0, 8, 0, 0]);
        let (key, layers) = parsed(&frame);
        assert_eq!((key.get(Field::IpProto), key.get(Field::TpDst), layers.l4), (17, 0, 0));
    }
}

#[test]
fn first_fragments_carry_ports_and_later_ones_do_not() {
    let v4 = |fragment| ethernet().ipv4(Ipv4 { fragment, ..Ipv4::default() }).udp(1, 53).finish();
    let v6 = |offset| ethernet().ipv6(Ipv6::default()).fragment(offset, 7).udp(1, 53).finish();
    let ports = |frame: &[u8]| (field(frame, Field::IpFrag), field(frame, Field::TpDst));
    assert_eq!([ports(&v4(0x2000)), ports(&v6(1))], [(1, 53); 2]);
    assert_eq!([ports(&v4(0x2001)), ports(&v6(9))], [(3, 0); 2]);
    assert_eq!([ports(&v4(0x0001)), ports(&v6(8))], [(3, 0); 2]);
    // Don't-fragment, and an atomic fragment with its reserved bits set: no fragments.
    assert_eq!([ports(&v4(0x4000)), ports(&v6(6))], [(0, 53); 2]);
}

#[test]
fn the_pseudo_field_knows_presence_repeats_and_order() {
    const OPTIONS: [u8; 7] = [0, 1, 4, 0, 0, 0, 0];
    const AUTH: [u8; 11] = [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    let bits = |protos: &[u8]| {
        let frame =
            protos.iter().fold(ethernet().ipv6(Ipv6::default()), |frame, &proto| match proto {
                ip_proto::ROUTING => frame.routing(0, Ipv6Addr::LOCALHOST),
                ip_proto::FRAGMENT => frame.fragment(0, 7),
                ip_proto::AUTH => frame.extension(proto, &AUTH),
                _ => frame.extension(proto, &OPTIONS),
            });
        field(&frame.udp(1, 2).finish(), Field::Ipv6Exthdr)
    };
    const UNREPEATED: u128 = 1 << 7;
    const UNSEQUENCED: u128 = 1 << 8;
    assert_eq!(bits(&[]), 0);
    assert_eq!(bits(&[0, 60, 43, 44, 51, 60]), 0b0111_1100);
    assert_eq!(bits(&[60, 60]), 1 << 3, "both places of the destination options");
    assert_eq!(bits(&[43, 60]), 0b10_1000, "the second place alone");
    assert_eq!(bits(&[43, 60, 60]), 0b10_1000 | UNSEQUENCED);
    assert_eq!(bits(&[60, 60, 60]), 1 << 3 | UNREPEATED | UNSEQUENCED);
    assert_eq!(bits(&[44, 43]), 0b11_0000 | UNSEQUENCED);
    assert_eq!(bits(&[43, 43]), 1 << 5 | UNREPEATED);
    assert_eq!(
        bits(&[60, 0]),
        1 << 3 | UNSEQUENCED,
        "hop-by-hop options only count as the first header"
    );
    assert_eq!(bits(&[0, 0]), 1 << 6 | UNREPEATED | UNSEQUENCED);
    assert_eq!(bits(&[50]), 1 << 1);
    assert_eq!(bits(&[59]), 1);
}

#[test]
fn neighbour_discovery_has_a_target_and_the_option_of_its_kind() {
    let target = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5);
    let ask =
        ethernet().ipv6(Ipv6::default()).neighbor(135, target, Some([2, 0, 0, 0, 0, 9])).finish();
    assert_eq!(field(&ask, Field::Ipv6NdTarget), u128::from(target));
    assert_eq!(
        (field(&ask, Field::Ipv6NdSll), field(&ask, Field::Ipv6NdTll)),
        (0x0200_0000_0009, 0)
    );
    let answer =
        ethernet().ipv6(Ipv6::default()).neighbor(136, target, Some([2, 0, 0, 0, 0, 9])).finish();
    assert_eq!(
        (field(&answer, Field::Ipv6NdSll), field(&answer, Field::Ipv6NdTll)),
        (0, 0x0200_0000_0009)
    );
    let mut other_code = ask.clone();
    other_code[55] = 1;
    assert_eq!(field(&other_code, Field::Ipv6NdTarget), 0);
    let mut longer = ask.clone();
    longer[79] = 2;
    longer[19] += 8;
    longer.extend([0; 8]);
    assert_eq!(field(&longer, Field::Ipv6NdSll), 0, "not of Ethernet's length");
    let mut other_option = ask;
    other_option[78] = 2;
    assert_eq!(field(&other_option, Field::Ipv6NdSll), 0);
}

#[test]
fn the_outermost_tag_is_in_the_key_and_the_type_is_the_innermost() {
    let (key, layers) =
        parsed(&ethernet().vlan(0x88a8, 0xf005).vlan(0x8100, 0x2007).eth_type(0x88cc).finish());
    assert_eq!((key.get(Field::VlanVid), key.get(Field::VlanPcp)), (0x1005, 7));
    assert_eq!((key.get(Field::EthType), layers.vlans, layers.l3), (0x88cc, 2, 22));
    let (cut_off, layers) = parsed(&ethernet().eth_type(0x8100).payload(&[0; 3]).finish());
    assert_eq!(
        (cut_off.get(Field::VlanVid), cut_off.get(Field::EthType), layers.vlans),
        (0, 0x8100, 0)
    );
}

#[test]
fn nothing_below_an_mpls_stack_or_an_itag_is_in_the_key() {
    let mpls =
        ethernet().mpls(3, 5, 64).mpls(4, 0, 63).ipv4(Ipv4::default()).tcp(Tcp::default()).finish();
    let (key, layers) = parsed(&mpls);
    assert_eq!(
        (key.get(Field::MplsLabel), key.get(Field::MplsTc), key.get(Field::MplsBos)),
        (3, 5, 0)
    );
    assert_eq!((key.get(Field::IpProto), key.get(Field::TpDst)), (0, 0));
    assert_eq!((layers.labels, layers.ip, layers.l4), (2, 22, 0));
    let pbb = ethernet().pbb(0, 0xabcdef, [4; 6], [6; 6]).ipv4(Ipv4::default()).finish();
    let (key, layers) = parsed(&pbb);
    assert_eq!((key.get(Field::PbbIsid), key.get(Field::Ipv4Dst), layers.ip), (0xabcdef, 0, 0));
}

#[test]
fn an_8023_frame_has_the_type_of_its_snap_header_or_none() {
    let snap = ethernet().eth_type(30).payload(&[0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd]).finish();
    assert_eq!(field(&snap, Field::EthType), 0x86dd);
    let llc = ethernet().eth_type(30).payload(&[0x42, 0x42, 3, 0, 0, 0, 0x86, 0xdd]).finish();
    assert_eq!(field(&llc, Field::EthType), 0x05ff);
}

#[test]
fn arp_for_other_hardware_has_no_fields() {
    let mut frame =
        ethernet().eth_type(0x0806).payload(&[0, 1, 8, 0, 6, 4, 0, 2]).payload(&[9; 20]).finish();
    assert_eq!(field(&frame, Field::ArpOp), 2);
    frame[15] = 6;
    assert_eq!((field(&frame, Field::ArpOp), parsed(&frame).1.payload), (0, 0));
}
