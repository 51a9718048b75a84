//! The dissector against frames written out, and against the switch's own parser.

#[path = "../agreement/mod.rs"]
mod agreement;

use agreement::difference;
use place::steering::{Field, FlowKey};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use xdp::steer::{Dissected, Dissector};

fn dissector() -> Option<Dissector> {
    if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
        return None;
    }
    Some(Dissector::new().expect("loading needs root (or set SUIRO_SKIP_PRIVILEGED=1 to skip)"))
}

fn plain() -> Frame {
    Frame::ethernet([2; 6], [4; 6])
}

fn v4(last: u8) -> Ipv4<'static> {
    Ipv4 {
        src: Ipv4Addr::new(10, 0, 0, last),
        dst: Ipv4Addr::new(10, 0, 1, last),
        tos: 0x2e,
        ..Ipv4::default()
    }
}

fn key(fields: &[(Field, u128)]) -> FlowKey {
    fields.iter().fold(FlowKey::default(), |key, &(field, value)| key.with(field, value))
}

const V4_SRC: u128 = 0x0a00_0001;
const V4_DST: u128 = 0x0a00_0101;
const MACS: [(Field, u128); 2] =
    [(Field::DlDst, 0x0202_0202_0202), (Field::DlSrc, 0x0404_0404_0404)];

/// What a UDP frame over `v4(1)` has.
fn udp_fields() -> Vec<(Field, u128)> {
    let mut fields = MACS.to_vec();
    fields.extend([
        (Field::DlType, 0x800),
        (Field::NwProto, 17),
        (Field::NwTos, 0x2e),
        (Field::OuterTos, 0x2e),
        (Field::NwSrc, V4_SRC),
        (Field::NwDst, V4_DST),
        (Field::TunSrc, V4_SRC),
        (Field::TunDst, V4_DST),
        (Field::TpSrc, 1000),
        (Field::TpDst, 53),
    ]);
    fields
}

#[test]
fn every_kind_of_frame_has_the_key_that_is_written_beside_it() {
    let Some(dissector) = dissector() else { return };
    let see = |frame: &[u8]| dissector.dissect(frame).expect("it runs");
    let is = |frame: Vec<u8>, fields: &[(Field, u128)]| {
        let found = see(&frame);
        assert!(found.is_ip);
        for field in Field::ALL {
            assert_eq!(found.key.get(field), key(fields).get(field), "{field:?}");
        }
        found
    };
    let with = |fields: &[(Field, u128)]| {
        let mut all = udp_fields();
        all.extend_from_slice(fields);
        all
    };
    is(plain().ipv4(v4(1)).udp(1000, 53).finish(), &udp_fields());
    is(
        plain().vlan(0x8100, 0xe007).ipv4(v4(1)).udp(1000, 53).finish(),
        &with(&[(Field::DlVlan, FlowKey::vlan(7))]),
    );
    let two_tags = plain().vlan(0x88a8, 9).vlan(0x8100, 7);
    is(two_tags.ipv4(v4(1)).udp(1000, 53).finish(), &with(&[(Field::DlVlan, FlowKey::vlan(9))]));
    let options = Ipv4 { options: &[1; 40], ..v4(1) };
    is(plain().ipv4(options).udp(1000, 53).finish(), &udp_fields());
    let tcp = Tcp { src: 1000, dst: 53, ..Tcp::default() };
    is(plain().ipv4(v4(1)).tcp(tcp).finish(), &with(&[(Field::NwProto, 6)]));
    is(plain().ipv4(v4(1)).sctp(1000, 53).finish(), &with(&[(Field::NwProto, 132)]));
    let no_ports = [(Field::TpSrc, 0), (Field::TpDst, 0)];
    is(
        plain().ipv4(v4(1)).icmp(8, 0).finish(),
        &with(&[(Field::NwProto, 1), no_ports[0], no_ports[1]]),
    );
    // ESP: the SPI stands where ports do.
    let mut esp = plain().ipv4(v4(1)).payload(&[0xab, 0xcd, 0x12, 0x34, 0, 0, 0, 1, 9, 9]).finish();
    esp[23] = 50;
    is(esp, &with(&[(Field::NwProto, 50), (Field::TpSrc, 0xabcd), (Field::TpDst, 0x1234)]));
}

#[test]
fn ipv6_extension_headers_are_skipped_as_far_as_rfc_8200_names_them() {
    let Some(dissector) = dissector() else { return };
    let see = |frame: Frame| dissector.dissect(&frame.finish()).expect("it runs");
    let v6 = Ipv6 { traffic_class: 0xb8, ..Ipv6::default() };
    let ports = |found: Dissected| {
        assert_eq!(found.key.get(Field::NwTos), 0xb8);
        assert_eq!(found.key.get(Field::NwSrc), Ipv6Addr::from_bits(0xfd00 << 112 | 1).to_bits());
        (found.key.get(Field::NwProto), found.key.get(Field::TpSrc), found.key.get(Field::TpDst))
    };
    assert_eq!(ports(see(plain().ipv6(v6).udp(7, 8))), (17, 7, 8));
    let destination = |frame: Frame| frame.extension(60, &[0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(ports(see(destination(plain().ipv6(v6)).udp(7, 8))), (17, 7, 8));
    let six = (0..6).fold(plain().ipv6(v6), |frame, _| destination(frame));
    assert_eq!(ports(see(six.udp(7, 8))), (17, 7, 8));
    // The seventh is not looked behind.
    let seven = (0..7).fold(plain().ipv6(v6), |frame, _| destination(frame));
    assert_eq!(ports(see(seven.udp(7, 8))), (60, 0, 0));
    let authenticated = plain().ipv6(v6).extension(51, &[1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(ports(see(authenticated.udp(7, 8))), (17, 7, 8));
}

#[test]
fn fragments_are_told_first_from_later_with_their_identification() {
    let Some(dissector) = dissector() else { return };
    let see = |frame: Frame| {
        let found = dissector.dissect(&frame.finish()).expect("it runs");
        (found.key.get(Field::IpFrag), found.key.get(Field::TpSrc), found.fragment_id)
    };
    let piece = |fragment| Ipv4 { id: 77, fragment, ..v4(1) };
    assert_eq!(see(plain().ipv4(piece(0x2000)).udp(7, 8)), (1, 7, 77));
    // What lies where ports would is payload.
    assert_eq!(see(plain().ipv4(piece(0x2001)).udp(7, 8)), (3, 0, 77));
    assert_eq!(see(plain().ipv4(piece(0x0005)).udp(7, 8)), (3, 0, 77));
    let v6 = || plain().ipv6(Ipv6::default());
    assert_eq!(see(v6().fragment(1, 0xabcd_ef01).udp(7, 8)), (1, 7, 0xabcd_ef01));
    assert_eq!(see(v6().fragment(8, 0xabcd_ef01).udp(7, 8)), (3, 0, 0xabcd_ef01));
    // RFC 6946: an atomic fragment is none.
    assert_eq!(see(v6().fragment(0, 5).udp(7, 8)), (0, 7, 5));
}

#[test]
fn a_tunnels_key_is_the_inner_headers_and_the_outer_addresses() {
    let Some(dissector) = dissector() else { return };
    let outer = Ipv4 { tos: 0x15, id: 99, ..v4(1) };
    let tunnel =
        |outer| plain().ipv4(outer).udp(5555, 4789).vxlan(0x123456).inner_ethernet([6; 6], [8; 6]);
    let found = dissector.dissect(&tunnel(outer).ipv4(v4(3)).udp(1000, 53).finish()).unwrap();
    let expected = [
        (Field::DlDst, 0x0606_0606_0606),
        (Field::DlSrc, 0x0808_0808_0808),
        (Field::DlType, 0x800),
        (Field::NwSrc, 0x0a00_0003),
        (Field::NwDst, 0x0a00_0103),
        (Field::NwProto, 17),
        (Field::NwTos, 0x2e),
        (Field::OuterTos, 0x15),
        (Field::TunSrc, V4_SRC),
        (Field::TunDst, V4_DST),
        (Field::TunId, FlowKey::vni(0x123456)),
        (Field::TpSrc, 1000),
        (Field::TpDst, 53),
    ];
    for field in Field::ALL {
        assert_eq!(found.key.get(field), key(&expected).get(field), "{field:?}");
    }
    assert_eq!(found.outer_fragment, None);
    // An inner piece is told by the inner identification.
    let piece = Ipv4 { id: 7, fragment: 0x2003, ..v4(3) };
    let found = dissector.dissect(&tunnel(outer).ipv4(piece).udp(1, 2).finish()).unwrap();
    assert_eq!((found.key.get(Field::IpFrag), found.fragment_id), (3, 7));
    // The first piece of an outer packet is looked into; its later pieces have the outer key.
    let first = Ipv4 { fragment: 0x2000, ..outer };
    let found = dissector.dissect(&tunnel(first).ipv4(v4(3)).udp(1000, 53).finish()).unwrap();
    assert_eq!((found.outer_fragment, found.key.get(Field::TpSrc)), (Some(99), 1000));
    let later = Ipv4 { fragment: 0x00b9, ..outer };
    let found = dissector.dissect(&plain().ipv4(later).payload(&[0; 40]).finish()).unwrap();
    assert_eq!((found.key.get(Field::NwSrc), found.fragment_id), (V4_SRC, 99));
    // ARP inside: no IP there, but the frame is steered by its tunnel.
    let found =
        dissector.dissect(&tunnel(outer).eth_type(0x806).payload(&[0; 28]).finish()).unwrap();
    assert!(found.is_ip);
    assert_eq!(
        (found.key.get(Field::DlType), found.key.get(Field::TunId)),
        (0x806, FlowKey::vni(0x123456))
    );
}

#[test]
fn whatever_contradicts_itself_ends_the_key_at_the_layer_before() {
    let Some(dissector) = dissector() else { return };
    let good =
        plain().vlan(0x8100, 5).ipv4(v4(1)).udp(1000, 4789).vxlan(5).inner_ethernet([6; 6], [8; 6]);
    let good = good.ipv4(v4(3)).udp(1000, 53).payload(&[0; 20]).finish();
    let whole = dissector.dissect(&good).unwrap();
    // Cut anywhere: never a field that is not wholly there.
    for len in 0..good.len() {
        let found = dissector.dissect(&good[..len]).unwrap();
        for field in [Field::NwSrc, Field::TunSrc, Field::TpSrc, Field::TpDst, Field::TunId] {
            let value = found.key.get(field);
            let outer = [0, V4_SRC, V4_DST, 1000, 4789];
            assert!(
                value == whole.key.get(field) || outer.contains(&value),
                "{len}: {field:?} is {value:x}"
            );
        }
    }
    let broken = |at: usize, byte: u8| {
        let mut frame = plain().ipv4(v4(1)).udp(1000, 53).finish();
        frame[at] = byte;
        dissector.dissect(&frame).unwrap()
    };
    assert!(!broken(14, 0x55).is_ip, "not version 4");
    assert!(!broken(14, 0x44).is_ip, "a header of 16 bytes");
    assert!(!broken(17, 19).is_ip, "a packet shorter than its header");
    assert_eq!(broken(17, 27).key.get(Field::TpSrc), 0, "UDP's header is not in the packet");
    assert!(!broken(12, 0x05).is_ip, "a length, not a type");
}

/// Bytes that look like frames often enough.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let ip = (
        any::<u8>(),
        any::<u16>(),
        prop_oneof![Just(0_u16), Just(0x2000), Just(0x4000), any::<u16>()],
    );
    let ports = (any::<u16>(), any::<u16>());
    let shape = (0_usize..4, 0..3_u8, 0..4_u8, prop::collection::vec(any::<u8>(), 0..60));
    let noise = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let cut = prop_oneof![4 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    (ip, ports, shape, noise, cut).prop_map(
        |((tos, id, fragment), (src, dst), (kind, tags, more, payload), noise, cut)| {
            let frame = (0..tags).fold(plain(), |frame, tag| frame.vlan(0x8100, tag.into()));
            let v4 =
                Ipv4 { tos, id, fragment, options: &[1; 8][..usize::from(more) / 2 * 4], ..v4(9) };
            let v6 = frame.clone().ipv6(Ipv6 { traffic_class: tos, ..Ipv6::default() });
            let v6 = (0..more).fold(v6, |frame, _| frame.extension(60, &[0, 1, 4, 0, 0, 0, 0]));
            let frame = match kind {
                0 => frame.ipv4(v4).udp(src, dst),
                1 => frame.ipv4(v4).tcp(Tcp { src, dst, ..Tcp::default() }),
                2 => v6.udp(src, dst),
                _ => v6.fragment(fragment, id.into()).sctp(src, dst),
            };
            let mut bytes = frame.payload(&payload).finish();
            for (at, byte) in noise {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()).max(14));
            }
            bytes
        },
    )
}

#[test]
fn the_switchs_parser_and_the_dissector_see_the_same() {
    let Some(dissector) = dissector() else { return };
    let mut runner =
        TestRunner::new(Config { cases: 4096, failure_persistence: None, ..Config::default() });
    let result = runner.run(&frames(), |frame| {
        let found = dissector.dissect(&frame).expect("it runs");
        prop_assert_eq!(difference(&frame, &found.key.0, found.is_ip), None);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
