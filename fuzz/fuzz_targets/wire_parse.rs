//! Any bytes as a frame: the parser agrees with the naive one, every offset lies in the head, and nothing that looks at a
//! parsed frame panics.
#![no_main]

#[path = "../../crates/wire/tests/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;
use oracle::naive;
use wire::tunnel::{Datagram, Gre, Vxlan};
use wire::{Field, Gso, Head, Offload, checksum, is_partial, parse, parse_into, segment};

fuzz_target!(|frame: &[u8]| {
    let head = Head::copy_of(frame);
    let (mut key, mut layers) = parse(&head, 7);
    for offset in [layers.l3, layers.ip, layers.l4, layers.payload] {
        assert!(usize::from(offset) <= head.bytes().len());
    }

    let mut expected = naive::parse(head.bytes());
    expected.key.set(wire::Field::InPort, 7);
    assert_eq!((key, layers), (expected.key, expected.layers));

    let first = (key, layers);
    parse_into(&head, &mut key, &mut layers);
    assert_eq!((key, layers), first, "a second parse differs");

    if let Some(partial) = is_partial(&head, &layers) {
        let _ = checksum::complete(&mut frame.to_vec(), partial);
    }
    segments_stay_in_bounds(frame, &head);
    let _ = (Gre::parse(frame), Vxlan::parse(frame));
    a_datagram_is_what_the_parser_sees(frame, &head);
});

/// A datagram that is found in a frame lies in it, and is the one that the parser sees there.
fn a_datagram_is_what_the_parser_sees(frame: &[u8], head: &Head) {
    let gso_size = frame.last().map_or(1, |&byte| u16::from(byte) * 9);
    let large = Offload { gso: Gso::Udp, gso_size, ..Offload::default() };
    for offload in [Offload::default(), large] {
        let Some(found) = Datagram::find(head.bytes(), frame.len(), &offload) else { continue };
        let (key, layers) = parse(head, 0);
        assert!(found.payload.start <= found.payload.end && found.payload.end <= frame.len());
        assert_eq!(found.payload.start, usize::from(layers.l4) + 8);
        assert_eq!(key.get(Field::IpProto), u128::from(wire::ip_proto::UDP));
        assert_eq!(key.get(Field::IpFrag), 0);
        let ports = (key.get(Field::TpSrc), key.get(Field::TpDst));
        assert_eq!(ports, (found.ports.0.into(), found.ports.1.into()));
        assert_eq!(found.from.is_ipv4(), key.get(Field::EthType) == 0x0800);
    }
}

/// Every kind of cut: refused, or gapless and inside the frame.
fn segments_stay_in_bounds(frame: &[u8], head: &Head) {
    let size = frame.last().map_or(1, |&byte| u16::from(byte) * 9);
    for gso in [Gso::TcpV4, Gso::TcpV6, Gso::Udp] {
        let offload = Offload { gso, gso_size: size, ..Offload::default() };
        let Ok(segments) = segment::plan(head.bytes(), frame.len(), &offload) else { continue };
        let mut at = segments.header_len();
        for index in 0..segments.count() {
            let payload = segments.payload(index);
            assert_eq!(payload.start, at);
            at = payload.end;
            let mut out = vec![0; segments.header_len()];
            segments.write_headers(index, &mut out);
            out.extend_from_slice(&frame[payload]);
            checksum::complete(&mut out, segments.checksum()).expect("the plan put the checksum inside the headers");
        }
        assert_eq!(at, frame.len());
    }
}
