//! Edits, one after the other, on right and on hostile frames; each is judged against a fresh parse and full checksums.

mod frames;
mod oracle;

use oracle::edits::{Op, Subject};
use oracle::sums::{State, check};
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest,
};
use proptest::sample::{Index, select};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::{EditError, Field, PartialChecksum, ip_proto};

fn mask() -> impl Strategy<Value = u128> {
    prop_oneof![3 => Just(u128::MAX), 1 => any::<u128>()]
}

/// An edit of any kind, or one of a field that the frame has at that moment.
fn step() -> impl Strategy<Value = (Option<Index>, Op)> {
    let present = (any::<Index>(), any::<u128>(), mask());
    prop_oneof![
        op().prop_map(|op| (None, op)),
        present.prop_map(|(index, value, mask)| (Some(index), Op::Set(Field::EthDst, value, mask))),
    ]
}

fn run(subject: &mut Subject, steps: Vec<(Option<Index>, Op)>) {
    for step in steps {
        let op = match step {
            (Some(index), Op::Set(_, value, mask)) => {
                let present: Vec<Field> =
                    Field::ALL.iter().copied().filter(|&field| subject.has(field)).collect();
                Op::Set(
                    present
                        .get(index.index(present.len().max(1)))
                        .copied()
                        .unwrap_or(Field::EthDst),
                    value,
                    mask,
                )
            }
            (_, op) => op,
        };
        let _ = subject.edit_and_check(op);
    }
}

fn op() -> impl Strategy<Value = Op> {
    let eth_type = || {
        prop_oneof![
            select(&[0x0800, 0x86dd, 0x8847, 0x8848, 0x8100, 0x88a8, 0x88e7][..]),
            any::<u16>()
        ]
    };
    prop_oneof![
        2 => select(&[0x8100, 0x88a8, 0x9100][..]).prop_map(Op::PushVlan),
        2 => Just(Op::PopVlan),
        1 => select(&[0x8847, 0x8848, 0x0800][..]).prop_map(Op::PushMpls),
        1 => eth_type().prop_map(Op::PopMpls),
        1 => select(&[0x88e7, 0x88a8][..]).prop_map(Op::PushPbb),
        1 => Just(Op::PopPbb),
        2 => (select(Field::ALL), any::<u128>(), mask()).prop_map(|(field, value, mask)| Op::Set(field, value, mask)),
        1 => eth_type().prop_map(|value| Op::Set(Field::EthType, u128::from(value), 0xffff)),
        1 => Just(Op::CopyTtlOut),
        1 => Just(Op::CopyTtlIn),
        1 => any::<u8>().prop_map(Op::SetMplsTtl),
        1 => Just(Op::DecMplsTtl),
        1 => any::<u8>().prop_map(Op::SetNwTtl),
        1 => Just(Op::DecNwTtl),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn edits_of_right_frames_keep_key_layers_and_checksums(recipe in frames::recipe(), steps in vec(step(), 1..12)) {
        let mut subject = Subject::new(&recipe.bytes(), None);
        run(&mut subject, steps);
    }

    #[test]
    fn edits_keep_partial_checksums_partial(recipe in frames::recipe(), steps in vec(step(), 1..12)) {
        let Some((frame, partial)) = recipe.frame().finish_partial() else { return Ok(()) };
        let mut subject = Subject::new(&frame, Some(partial));
        run(&mut subject, steps);
    }

    #[test]
    fn edits_of_hostile_frames_keep_key_and_layers(frame in frames::hostile(), start: u16, steps in vec(step(), 1..12)) {
        let checksum = (start % 3 == 0).then_some(PartialChecksum { start: start % 300, offset: 16 });
        let mut subject = Subject::new(&frame, checksum);
        run(&mut subject, steps);
    }

    #[test]
    fn a_push_undone_gives_the_same_frame(frame in frames::hostile(), tci: u16) {
        let mut subject = Subject::new(&frame, None);
        let before = subject.frame();
        let eth_type = subject.key.get(Field::EthType) as u16;
        let pairs = [
            (Op::PushVlan(0x8100), set(Field::VlanVid, u128::from(tci)), Op::PopVlan),
            (Op::PushMpls(0x8847), set(Field::MplsLabel, u128::from(tci)), Op::PopMpls(eth_type)),
            (Op::PushPbb(0x88e7), set(Field::PbbIsid, u128::from(tci)), Op::PopPbb),
        ];
        for (push, set, pop) in pairs {
            if subject.edit_and_check(push).is_ok() {
                prop_assert_eq!(subject.edit_and_check(set), Ok(()));
                prop_assert_eq!(subject.edit_and_check(pop), Ok(()));
                prop_assert_eq!(subject.frame(), &before[..]);
            }
        }
    }
}

fn ethernet() -> Frame {
    Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
}

fn set(field: Field, value: u128) -> Op {
    Op::Set(field, value, field.full())
}

#[test]
fn a_pushed_vlan_tag_copies_the_tag_that_was_outermost() {
    let mut subject =
        Subject::new(&ethernet().vlan(0x8100, 0xb123).ipv4(Ipv4::default()).finish(), None);
    subject.edit_and_check(Op::PushVlan(0x88a8)).unwrap();
    assert_eq!(subject.head.bytes()[12..20], [0x88, 0xa8, 0xa1, 0x23, 0x81, 0x00, 0xb1, 0x23]);
}

#[test]
fn a_first_shim_takes_the_ip_ttl_and_a_second_copies_the_first() {
    let frame = ethernet().ipv4(Ipv4 { ttl: 17, ..Ipv4::default() }).udp(1, 2).finish();
    let mut subject = Subject::new(&frame, None);
    subject.edit_and_check(Op::PushMpls(0x8847)).unwrap();
    subject.edit_and_check(set(Field::MplsLabel, 0xabcde)).unwrap();
    subject.edit_and_check(Op::PushMpls(0x8848)).unwrap();
    assert_eq!(
        subject.head.bytes()[12..22],
        [0x88, 0x48, 0xab, 0xcd, 0xe0, 17, 0xab, 0xcd, 0xe1, 17]
    );
}

#[test]
fn a_pushed_itag_takes_the_vlan_tags_inside_and_popping_restores_the_customer() {
    let frame = ethernet().vlan(0x8100, 0x6005).ipv4(Ipv4::default()).finish();
    let mut subject = Subject::new(&frame, None);
    subject.edit_and_check(Op::PushPbb(0x88e7)).unwrap();
    assert_eq!(subject.head.bytes()[12..18], [0x88, 0xe7, 0x60, 0, 0, 0]);
    assert_eq!(subject.key.get(Field::VlanVid), 0);
    subject.edit_and_check(set(Field::EthDst, 0x0a0b)).unwrap();
    subject.edit_and_check(set(Field::PbbIsid, 0x123456)).unwrap();
    subject.edit_and_check(Op::PushVlan(0x88a8)).unwrap();
    subject.edit_and_check(Op::PopPbb).unwrap();
    subject.edit_and_check(Op::PopVlan).unwrap();
    assert_eq!(subject.frame(), frame);
}

#[test]
fn ttl_one_expires_and_changes_nothing() {
    for ttl in [0, 1] {
        let frame = ethernet().mpls(5, 0, ttl).ipv4(Ipv4 { ttl, ..Ipv4::default() }).finish();
        let mut subject = Subject::new(&frame, None);
        assert_eq!(subject.edit_and_check(Op::DecMplsTtl), Err(EditError::TtlExpired));
        subject.edit_and_check(Op::PopMpls(0x0800)).unwrap();
        assert_eq!(subject.edit_and_check(Op::DecNwTtl), Err(EditError::TtlExpired));
    }
}

#[test]
fn ttl_is_copied_between_shims_between_shim_and_ip_and_between_ip_headers() {
    let inner = Ipv4 { ttl: 9, ..Ipv4::default() };
    let frame =
        ethernet().mpls(1, 0, 1).mpls(2, 0, 2).ipv6(Ipv6::default()).ipv4(inner).udp(1, 2).finish();
    let mut subject = Subject::new(&frame, None);
    subject.edit_and_check(Op::CopyTtlOut).unwrap();
    assert_eq!(subject.head.bytes()[17], 2);
    subject.edit_and_check(Op::PopMpls(0x8847)).unwrap();
    subject.edit_and_check(Op::CopyTtlIn).unwrap();
    assert_eq!(subject.head.bytes()[18 + 7], 2);
    subject.edit_and_check(Op::PopMpls(0x86dd)).unwrap();
    subject.edit_and_check(Op::CopyTtlIn).unwrap();
    assert_eq!(subject.head.bytes()[14 + 40 + 8], 2);
    let inner = &subject.head.bytes()[54..74];
    assert_eq!(oracle::sums::ones_complement(&[inner]), 0xffff);
}

#[test]
fn ip_edits_do_not_reach_below_an_mpls_stack() {
    let mut subject =
        Subject::new(&ethernet().mpls(1, 0, 64).ipv4(Ipv4::default()).udp(1, 2).finish(), None);
    for op in [
        set(Field::Ipv4Src, 1),
        set(Field::IpDscp, 1),
        set(Field::TpDst, 1),
        Op::SetNwTtl(3),
        Op::DecNwTtl,
    ] {
        assert_eq!(subject.edit_and_check(op), Err(EditError::NotPresent), "{op:?}");
    }
}

#[test]
fn fields_that_are_not_settable_are_refused() {
    let frame = ethernet().ipv6(Ipv6::default()).tcp(Tcp::default()).finish();
    let mut subject = Subject::new(&frame, None);
    for &field in Field::ALL.iter().filter(|field| !field.is_settable()) {
        assert_eq!(subject.edit_and_check(set(field, 0)), Err(EditError::NotPresent));
    }
}

#[test]
fn a_udp_sum_that_becomes_zero_is_written_as_ones() {
    let frame = ethernet().ipv4(Ipv4::default()).udp(0, 9).payload(b"suiro").finish();
    let mut subject = Subject::new(&frame, None);
    let checksum = u16::from_be_bytes([frame[40], frame[41]]);
    // The source port absorbs what is left of the sum.
    subject.edit_and_check(set(Field::TpSrc, u128::from(checksum))).unwrap();
    assert_eq!(subject.head.bytes()[40..42], [0xff, 0xff]);
}

#[test]
fn the_sum_of_an_icmp_message_that_becomes_all_zeros_is_ones() {
    let request = ethernet().ipv4(Ipv4::default()).icmp(8, 0).payload(&[0; 8]).finish();
    let mut subject = Subject::new(&request, None);
    subject.edit_and_check(set(Field::IcmpType, 0)).unwrap();
    assert_eq!(subject.frame()[36..38], [0xff, 0xff]);
    // Beside another byte 0 would do as well; ones do in any case.
    let request = ethernet().ipv4(Ipv4::default()).icmp(8, 0).payload(&[0xff, 0xff]).finish();
    let mut subject = Subject::new(&request, None);
    subject.edit_and_check(set(Field::IcmpType, 0)).unwrap();
}

#[test]
fn the_sctp_crc_follows_a_port_though_the_body_is_elsewhere() {
    let frame = ethernet().ipv4(Ipv4::default()).sctp(1, 2).payload(&[7; 9000]).finish();
    let mut subject = Subject::new(&frame, None);
    subject.edit_and_check(set(Field::TpDst, 4711)).unwrap();
    assert_eq!(check(&subject.frame(), None), [State::Right, State::Right]);
}

#[test]
fn sctp_ports_of_a_first_fragment_are_refused() {
    let frame = ethernet()
        .ipv4(Ipv4 { fragment: 0x2000, ..Ipv4::default() })
        .sctp(1, 2)
        .payload(&[7; 16])
        .finish();
    let mut subject = Subject::new(&frame, None);
    assert_eq!(subject.edit_and_check(set(Field::TpDst, 4711)), Err(EditError::Malformed));
}

#[test]
fn a_destination_under_a_routing_header_is_a_waypoint_and_not_in_the_checksum() {
    let last = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
    for left in [0, 1] {
        let frame = ethernet()
            .ipv6(Ipv6::default())
            .routing(left, last)
            .udp(1, 2)
            .payload(b"body")
            .finish();
        assert_eq!(check(&frame, None)[1], State::Right);
        let mut subject = Subject::new(&frame, None);
        subject.edit_and_check(set(Field::Ipv6Dst, 0x1234_5678)).unwrap();
        assert_eq!(check(&subject.frame(), None)[1], State::Right, "{left} segments left");
    }
}

#[test]
fn an_8023_frame_takes_vlan_tags_but_no_shim() {
    let mut frame = ethernet()
        .eth_type(40)
        .payload(&[0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00])
        .payload(&[0; 32])
        .finish();
    frame[22] = 0x45;
    let mut subject = Subject::new(&frame, None);
    assert_eq!(subject.key.get(Field::EthType), 0x0800);
    assert_eq!(subject.edit_and_check(Op::PushMpls(0x8847)), Err(EditError::Malformed));
    assert_eq!(subject.edit_and_check(set(Field::EthType, 0x86dd)), Err(EditError::Malformed));
    subject.edit_and_check(Op::PushVlan(0x8100)).unwrap();
    subject.edit_and_check(Op::PopVlan).unwrap();
}

#[test]
fn pushes_stop_when_the_headroom_is_used_up() {
    let mut subject = Subject::new(&ethernet().ipv4(Ipv4::default()).udp(1, 2).finish(), None);
    let pushed = std::iter::from_fn(|| subject.edit_and_check(Op::PushVlan(0x8100)).ok()).count();
    assert_eq!(pushed, wire::HEADROOM / 4);
    assert_eq!(subject.edit_and_check(Op::PushMpls(0x8847)), Err(EditError::NoRoom));
}

#[test]
fn a_partial_checksum_moves_with_its_header_and_takes_new_addresses_only() {
    let (frame, partial) =
        ethernet().ipv4(Ipv4::default()).tcp(Tcp::default()).finish_partial().unwrap();
    let mut subject = Subject::new(&frame, Some(partial));
    subject.edit_and_check(set(Field::TpDst, 443)).unwrap();
    assert_eq!(subject.frame()[50..52], frame[50..52]);
    let address = Ipv4Addr::new(192, 0, 2, 1);
    subject.edit_and_check(set(Field::Ipv4Dst, u128::from(u32::from(address)))).unwrap();
    subject.edit_and_check(Op::PushVlan(0x8100)).unwrap();
    assert_eq!(subject.offload.checksum.map(|checksum| checksum.start), Some(38));
    let mut whole = subject.frame();
    wire::checksum::complete(&mut whole, subject.offload.checksum.unwrap()).unwrap();
    assert_eq!(check(&whole, None), [State::Right, State::Right]);
}

#[test]
fn a_renamed_protocol_is_parsed_anew() {
    let mut subject =
        Subject::new(&ethernet().ipv6(Ipv6::default()).fragment(0, 1).udp(5, 6).finish(), None);
    subject.edit_and_check(set(Field::IpProto, u128::from(ip_proto::SCTP))).unwrap();
    assert_eq!((subject.key.get(Field::IpProto), subject.layers.l4), (132, 0));
    subject.edit_and_check(set(Field::IpProto, u128::from(ip_proto::UDP))).unwrap();
    assert_eq!(subject.key.get(Field::TpDst), 6);
}

#[test]
fn a_checksum_that_begins_inside_a_pushed_or_popped_header_is_refused() {
    let frame = ethernet().vlan(0x8100, 1).ipv4(Ipv4::default()).udp(1, 2).finish();
    for start in [0, 11, 13, 15] {
        let mut subject = Subject::new(&frame, Some(PartialChecksum { start, offset: 6 }));
        assert_eq!(subject.edit_and_check(Op::PopVlan), Err(EditError::Malformed));
        if start < 12 {
            assert_eq!(subject.edit_and_check(Op::PushVlan(0x8100)), Err(EditError::Malformed));
        }
    }
}

#[test]
fn neighbour_discovery_past_the_packet_is_padding_and_not_a_field() {
    let frame =
        ethernet().ipv6(Ipv6::default()).neighbor(135, Ipv6Addr::LOCALHOST, Some([2; 6])).finish();
    // 32 bytes of message: cut after the target, and inside it.
    for (payload, has_target) in [(24, true), (23, false)] {
        let mut cut = frame.clone();
        cut[19] = payload;
        let mut subject = Subject::new(&cut, None);
        assert_eq!(subject.edit_and_check(set(Field::Ipv6NdTarget, 7)).is_ok(), has_target);
        assert_eq!(subject.edit_and_check(set(Field::Ipv6NdSll, 7)), Err(EditError::NotPresent));
    }
}

#[test]
fn the_data_of_a_later_fragment_is_not_an_inner_ip_header() {
    let outer = Ipv4 { fragment: 7, ..Ipv4::default() };
    let mut subject = Subject::new(&ethernet().ipv4(outer).ipv4(Ipv4::default()).finish(), None);
    assert_eq!(subject.edit_and_check(Op::CopyTtlIn), Err(EditError::NotPresent));
}
