//! Segmentation: what the segments carry, put together again, is the large frame; every checksum is right; nonsense is refused.

mod frames;
mod oracle;

use frames::{Extension, Network, Recipe, Transport};
use oracle::naive;
use oracle::sums::{State, check};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use std::net::Ipv6Addr;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::checksum::{BadOffload, complete};
use wire::segment::plan;
use wire::tunnel::Gre;
use wire::{Field, Gso, HEAD_MAX, Head, Offload, is_partial};

/// The segments as a port would write them: headers, its part of the payload, checksum.
fn cut(frame: &[u8], offload: &Offload) -> Result<Vec<Vec<u8>>, BadOffload> {
    let head = &frame[..frame.len().min(HEAD_MAX)];
    let segments = plan(head, frame.len(), offload)?;
    let write = |index| {
        let mut out = vec![0xee; segments.header_len()];
        segments.write_headers(index, &mut out);
        out.extend_from_slice(&frame[segments.payload(index)]);
        complete(&mut out, segments.checksum())?;
        Ok(out)
    };
    (0..segments.count()).map(write).collect()
}

/// Large frames, unfragmented, with their kind.
fn large() -> impl Strategy<Value = (Recipe, Gso, usize)> {
    let kind = (any::<bool>(), any::<(u16, u16, u16)>(), 0usize..4);
    (frames::recipe(), kind, 0usize..20_000).prop_filter_map(
        "not IP",
        |(mut recipe, (tcp, (src, dst, flags), options), payload)| {
            let is_v6 = match &mut recipe.network {
                Network::V4 { fragment, .. } => {
                    *fragment &= 0x4000;
                    false
                }
                Network::V6 { extensions, .. } => {
                    extensions.retain(|extension| !matches!(extension, Extension::Fragment(1..)));
                    true
                }
                _ => return None,
            };
            recipe.transport = if tcp {
                Transport::Tcp(src, dst, flags, options)
            } else {
                Transport::Udp(src, dst, true)
            };
            recipe.payload = (0..payload).map(|i| (i * 7 + i / 256) as u8).collect();
            let gso = match (tcp, is_v6) {
                (false, _) => Gso::Udp,
                (true, false) => Gso::TcpV4,
                (true, true) => Gso::TcpV6,
            };
            Some((recipe, gso, payload))
        },
    )
}

/// The IP packet of a segment behind a plain Ethernet header, which the oracle understands.
fn bare(segment: &[u8], ip: usize) -> Vec<u8> {
    let eth_type: [u8; 2] = if segment[ip] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&[0; 12][..], &eth_type, &segment[ip..]].concat()
}

proptest! {
    #[test]
    fn segments_put_together_are_the_large_frame((recipe, gso, payload) in large(), size in 8usize..3000) {
        let size = size.max(payload.div_ceil(128)).max(1);
        let (frame, partial) = recipe.frame().finish_partial().unwrap();
        let offload = Offload { checksum: Some(partial), gso, gso_size: size as u16, ..Offload::default() };
        let segments = cut(&frame, &offload).unwrap();
        let ip = recipe.link().finish().len();
        let header_len = frame.len() - payload;
        prop_assert_eq!(segments.len(), payload.div_ceil(size).max(1));

        let whole = naive::parse(&bare(&frame, ip));
        let together: Vec<u8> = segments.iter().flat_map(|segment| &segment[header_len..]).copied().collect();
        prop_assert_eq!(&together[..], &frame[header_len..]);
        for (index, segment) in segments.iter().enumerate() {
            prop_assert_eq!(&segment[..ip], &frame[..ip]);
            let is_last = index + 1 == segments.len();
            prop_assert_eq!(is_last || segment.len() == header_len + size, true);
            let bare = bare(segment, ip);
            let [header, transport] = check(&bare, None);
            prop_assert_eq!(header, if gso == Gso::TcpV6 || whole.get(Field::EthType) == 0x86dd { State::Unknown } else { State::Right });
            prop_assert_eq!(transport, State::Right);
            let parsed = naive::parse(&bare);
            prop_assert_eq!(parsed.ip_end, bare.len());
            for field in [Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst, Field::TpSrc, Field::TpDst, Field::IpDscp, Field::IpEcn, Field::Ipv6Exthdr] {
                prop_assert_eq!(parsed.get(field), whole.get(field));
            }
            if gso != Gso::Udp {
                let flags = whole.get(Field::TcpFlags) as u16;
                let kept = if is_last { 0xfff } else { !0x009 } & if index == 0 { 0xfff } else { !0x080 };
                prop_assert_eq!(parsed.get(Field::TcpFlags) as u16, flags & kept);
                let sequence = |frame: &[u8]| u32::from_be_bytes(*frame[usize::from(whole.layers.l4) + 4..].first_chunk().unwrap());
                prop_assert_eq!(sequence(&bare), 1 + (index * size) as u32);
            }
            if whole.get(Field::EthType) == 0x0800 {
                prop_assert_eq!(u16::from_be_bytes([bare[18], bare[19]]), index as u16);
            }
        }
    }

    #[test]
    fn hostile_frames_are_refused_or_cut_within_bounds(frame in frames::hostile(), gso in 1u8..4, gso_size: u16, total: u16) {
        let gso = [Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::Udp][usize::from(gso)];
        let offload = Offload { gso, gso_size, ..Offload::default() };
        let total = frame.len() + usize::from(total);
        let head = &frame[..frame.len().min(HEAD_MAX)];
        let Ok(segments) = plan(head, total, &offload) else { return Ok(()) };
        let mut at = segments.header_len();
        for index in 0..segments.count() {
            let payload = segments.payload(index);
            prop_assert_eq!(payload.start, at);
            at = payload.end;
            segments.write_headers(index, &mut vec![0; segments.header_len()]);
        }
        prop_assert_eq!(at, total);
    }

    #[test]
    fn a_partial_checksum_without_a_mark_is_recognised(recipe in frames::recipe()) {
        let Some((frame, partial)) = recipe.frame().finish_partial() else { return Ok(()) };
        let head = Head::copy_of(&frame);
        let (_, layers) = wire::parse(&head, 0);
        // What lies before the IP header is no matter, and the oracle does not look behind it.
        let parsed = naive::parse(&bare(&frame, recipe.link().finish().len()));
        let is_offloaded = [6, 17, 132].contains(&parsed.get(Field::IpProto)) && parsed.layers.l4 != 0;
        let expected = is_offloaded && parsed.get(Field::IpFrag) == 0 && (!parsed.routed || parsed.get(Field::IpProto) == 132);
        prop_assert_eq!(is_partial(&head, &layers), expected.then_some(partial));
    }

    #[test]
    fn a_partial_checksum_in_a_guests_own_tunnel_is_recognised_and_a_complete_one_is_none(
        tunnels in vec(0usize..8, 1..=2),
        tags in 0usize..3,
        is_v6: bool,
        tcp: bool,
        payload in 0usize..60,
    ) {
        let frame = tunnels.iter().fold(link(tags), |frame, &tunnel| enter(frame, tunnel));
        let frame = match is_v6 {
            true => frame.ipv6(Ipv6::default()),
            false => frame.ipv4(Ipv4::default()),
        };
        let frame = if tcp { frame.tcp(Tcp::default()) } else { frame.udp(1000, 2000) };
        let frame = frame.payload(&vec![0x5a; payload]);
        let found = |bytes: &[u8]| {
            let head = Head::copy_of(bytes);
            is_partial(&head, &wire::parse(&head, 0).1)
        };
        let whole = frame.clone().finish();
        prop_assert_eq!(found(&whole), None);
        let (mut undone, partial) = frame.finish_partial().unwrap();
        prop_assert_eq!(found(&undone), Some(partial));
        complete(&mut undone, partial).unwrap();
        prop_assert_eq!(undone, whole);
    }

    #[test]
    fn segments_of_a_tunnel_in_a_tunnel_are_frames_that_a_sender_would_send(
        tunnels in vec(0usize..8, 0..=2),
        tags in 0usize..3,
        is_v6: bool,
        udp: bool,
        payload in 1usize..9000,
    ) {
        const SIZE: usize = 1200;
        // IPv4 ids count up in segments, and the builder gives 0.
        let built = |data: &[u8], at: usize| {
            let frame = tunnels.iter().fold(link(tags), |frame, &tunnel| enter(frame, tunnel));
            let frame = match is_v6 {
                true => frame.ipv6(Ipv6::default()),
                false => frame.ipv4(Ipv4::default()),
            };
            let sequence = 1 + at as u32;
            let frame = if udp { frame.udp(1000, 2000) } else { frame.tcp(Tcp { sequence, flags: 0x10, ..Tcp::default() }) };
            frame.payload(data)
        };
        let data: Vec<u8> = (0..payload).map(|at| (at * 7 + at / 256) as u8).collect();
        let (frame, partial) = built(&data, 0).finish_partial().unwrap();
        let gso = if udp { Gso::Udp } else if is_v6 { Gso::TcpV6 } else { Gso::TcpV4 };
        let offload = Offload { checksum: Some(partial), gso, gso_size: SIZE as u16, ..Offload::default() };
        let segments = cut(&frame, &offload).unwrap();
        prop_assert_eq!(segments.len(), payload.div_ceil(SIZE));
        for (index, (segment, data)) in segments.iter().zip(data.chunks(SIZE)).enumerate() {
            let wanted = built(data, index * SIZE).finish();
            prop_assert_eq!(segment.len(), wanted.len());
            if index == 0 {
                prop_assert_eq!(segment, &wanted);
            }
            let head = Head::copy_of(segment);
            prop_assert_eq!(is_partial(&head, &wire::parse(&head, 0).1), None);
            prop_assert!(sums_are_right(segment, 14 + 4 * tags));
        }
    }

    #[test]
    fn completing_what_is_taken_for_partial_never_spoils_a_right_checksum(recipe in frames::recipe()) {
        let frame = recipe.bytes();
        let head = Head::copy_of(&frame);
        let (_, layers) = wire::parse(&head, 0);
        if let Some(partial) = is_partial(&head, &layers) {
            let mut completed = frame.clone();
            complete(&mut completed, partial).unwrap();
            prop_assert_eq!(check(&completed, None), check(&frame, None));
        }
    }

    #[test]
    fn built_frames_have_right_checksums(recipe in frames::recipe()) {
        for state in check(&recipe.frame().finish(), None) {
            prop_assert_eq!(matches!(state, State::Right | State::Unknown), true);
        }
    }
}

fn link(tags: usize) -> Frame {
    (0..tags).fold(Frame::ethernet([2; 6], [4; 6]), |frame, tag| frame.vlan(0x8100, tag as u16 + 1))
}

/// Appends a tunnel of some kind, up to where the packet inside begins.
fn enter(frame: Frame, tunnel: usize) -> Frame {
    let outer = if tunnel.is_multiple_of(2) {
        frame.ipv4(Ipv4::default())
    } else {
        frame.ipv6(Ipv6::default())
    };
    let gre = |protocol, key| Gre { protocol, key, ..Gre::default() };
    match tunnel / 2 {
        0 => outer.udp(30000, 4789).vxlan(5).inner_ethernet([6; 6], [8; 6]),
        // Geneve: one option of two words (RFC 8926 §3.4).
        1 => outer
            .udp(30000, 6081)
            .payload(&[2, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 1, 9, 9, 9, 9])
            .inner_ethernet([6; 6], [8; 6]),
        2 => outer.gre(gre(0x6558, Some(7))).inner_ethernet([6; 6], [8; 6]),
        _ => outer.gre(gre(0, None)),
    }
}

/// Whether all checksums from the IP header at `ip` on are right, one packet after the other.
fn sums_are_right(frame: &[u8], mut ip: usize) -> bool {
    loop {
        let at = bare(frame, ip);
        let [header, transport] = check(&at, None);
        if header == State::Wrong || transport == State::Wrong {
            return false;
        }
        let parsed = naive::parse(&at);
        let l4 =
            ip + usize::from(parsed.layers.l4).max(if at[14] >> 4 == 4 { 34 } else { 54 }) - 14;
        ip = match parsed.get(Field::IpProto) {
            17 if frame[l4 + 2..l4 + 4] == 4789_u16.to_be_bytes() => l4 + 8 + 8 + 14,
            17 if frame[l4 + 2..l4 + 4] == 6081_u16.to_be_bytes() => l4 + 8 + 16 + 14,
            47 if frame[l4] & 0x20 != 0 => l4 + 8 + 14,
            47 => l4 + 4,
            _ => return true,
        };
    }
}

fn tcp(payload: usize) -> Frame {
    let header = Tcp { flags: 0x0d9, ..Tcp::default() };
    Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(header).payload(&vec![5; payload])
}

fn offload(frame: Frame, gso: Gso, gso_size: u16) -> (Vec<u8>, Offload) {
    let (frame, partial) = frame.finish_partial().expect("the frame has a transport header");
    (frame, Offload { checksum: Some(partial), gso, gso_size, ..Offload::default() })
}

#[test]
fn fin_and_psh_stay_on_the_last_segment_and_cwr_on_the_first() {
    let (frame, offload) = offload(tcp(2500), Gso::TcpV4, 1000);
    let segments = cut(&frame, &offload).unwrap();
    let flags: Vec<u8> = segments.iter().map(|segment| segment[47]).collect();
    assert_eq!(flags, [0xd0, 0x50, 0x59]);
}

#[test]
fn a_frame_that_fits_is_one_segment_as_it_was() {
    let (frame, offload) = offload(tcp(1000), Gso::TcpV4, 1000);
    assert_eq!(cut(&frame, &offload).unwrap(), [tcp(1000).finish()]);
}

#[test]
fn a_checksum_under_a_routing_header_is_right_in_every_segment() {
    let frame =
        Frame::ethernet([2; 6], [4; 6]).ipv6(Ipv6::default()).routing(1, Ipv6Addr::LOCALHOST);
    let (frame, offload) = offload(frame.tcp(Tcp::default()).payload(&[1; 3000]), Gso::TcpV6, 1400);
    for segment in cut(&frame, &offload).unwrap() {
        assert_eq!(check(&segment, None)[1], State::Right);
    }
}

#[test]
fn offload_state_that_contradicts_the_frame_is_refused() {
    let (frame, good) = offload(tcp(3000), Gso::TcpV4, 1000);
    assert!(cut(&frame, &good).is_ok());
    let start = good
        .checksum
        .map(|checksum| wire::PartialChecksum { start: checksum.start + 2, ..checksum });
    let bad = [
        Offload { gso: Gso::None, ..good },
        Offload { gso: Gso::TcpV6, ..good },
        Offload { gso: Gso::Udp, ..good },
        Offload { gso_size: 0, ..good },
        Offload { gso_size: 7, ..good },
        Offload { checksum: start, ..good },
    ];
    for offload in bad {
        assert_eq!(cut(&frame, &offload), Err(BadOffload), "{offload:?}");
    }
    assert!(plan(&frame[..53], frame.len(), &good).is_err(), "headers cut off");
    assert!(plan(&frame[..100], 53, &good).is_err(), "shorter than its headers");
    assert!(
        plan(&frame[..100], 80_000, &Offload { gso_size: 65_535, ..good }).is_err(),
        "longer than IP can say"
    );
}

#[test]
fn a_udp_frame_is_cut_into_no_more_datagrams_than_linux_would() {
    let udp = |len| {
        Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(1, 2).payload(&vec![1; len])
    };
    let (frame, good) = offload(udp(1280), Gso::Udp, 10);
    assert_eq!(cut(&frame, &good).unwrap().len(), 128);
    let (frame, bad) = offload(udp(1281), Gso::Udp, 10);
    assert_eq!(cut(&frame, &bad), Err(BadOffload));
}

#[test]
fn fragments_are_not_cut() {
    for fragment in [0x2000, 0x0001] {
        let header = Ipv4 { fragment, ..Ipv4::default() };
        let frame =
            Frame::ethernet([2; 6], [4; 6]).ipv4(header).tcp(Tcp::default()).payload(&[5; 3000]);
        let (frame, offload) = offload(frame, Gso::TcpV4, 1000);
        assert_eq!(cut(&frame, &offload), Err(BadOffload));
    }
}
