//! Frames said to be alike, against their keys.

mod frames;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::{Index, subsequence};
use wire::build::{Frame, Ipv4};
use wire::{Field, Head, Key, Likeness, parse};

/// What frames can be alike in.
const INSIDE: [Field; 10] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::IpDscp,
    Field::IpEcn,
    Field::IpFrag,
    Field::Ipv4Src,
    Field::Ipv4Dst,
];

fn mask_of(fields: &[Field], bits: u128) -> Key {
    let mut mask = Key::default();
    fields.iter().for_each(|&field| mask.set(field, bits & field.full()));
    mask
}

fn masks() -> impl Strategy<Value = Key> {
    let fields = subsequence(&INSIDE[..], 0..=INSIDE.len());
    (fields, any::<(bool, u128)>())
        .prop_map(|(fields, (whole, bits))| mask_of(&fields, if whole { u128::MAX } else { bits }))
}

/// A frame, and others that differ from it here and there.
fn relatives() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let changes = vec(vec((any::<Index>(), any::<u8>()), 0..3), 1..4);
    (frames::hostile(), changes, any::<bool>()).prop_map(|(first, changes, small)| {
        let changed = |changes: &Vec<(Index, u8)>| {
            let mut bytes = first.clone();
            for (index, value) in changes.iter().filter(|_| !first.is_empty()) {
                let at = index.index(bytes.len().min(60));
                bytes[at] = if small { bytes[at] ^ (value & 3) } else { *value };
            }
            bytes
        };
        let others: Vec<_> = changes.iter().map(changed).collect();
        [vec![first.clone()], others].concat()
    })
}

fn holds(likeness: &Likeness, frames: &[Vec<u8>]) -> bool {
    let heads: Vec<Head> = frames.iter().map(|frame| Head::copy_of(frame)).collect();
    likeness.holds(heads.iter())
}

fn keys(frames: &[Vec<u8>], mask: &Key) -> Vec<Key> {
    frames.iter().map(|frame| parse(&Head::copy_of(frame), 0).0.masked(mask)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn frames_that_are_alike_have_one_key(frames in relatives(), mask in masks()) {
        let likeness = Likeness::of(&mask).unwrap();
        if holds(&likeness, &frames) {
            let keys = keys(&frames, &mask);
            prop_assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        }
    }

    #[test]
    fn of_plain_frames_it_is_told_exactly(
        addresses in vec(any::<([u8; 4], u8, u8, bool)>(), 2..5),
        bits: u32,
        fields in subsequence(&INSIDE[..], 1..=INSIDE.len()),
    ) {
        let frames: Vec<_> = addresses
            .iter()
            .map(|&(dst, tos, last, udp)| {
                let ipv4 = Ipv4 { dst: dst.map(|byte| byte & 1).into(), tos: tos & 4, ..Ipv4::default() };
                let frame = Frame::ethernet([2, 0, 0, 0, 0, last & 1], [2; 6]).ipv4(ipv4);
                if udp { frame.udp(tos.into(), 9) } else { frame.icmp(tos, 0) }.payload(&[last; 20]).finish()
            })
            .collect();
        let mask = mask_of(&fields, u128::from(bits) << 96 | u128::from(bits) << 64 | u128::from(bits) << 32 | u128::from(bits));
        let keys = keys(&frames, &mask);
        let alike = keys.iter().all(|key| *key == keys[0]);
        prop_assert_eq!(holds(&Likeness::of(&mask).unwrap(), &frames), alike);
    }
}

#[test]
fn masks_of_other_fields_have_no_likeness() {
    let outside = Field::ALL.iter().filter(|field| {
        let noted = [
            Field::InPort,
            Field::InPhyPort,
            Field::Metadata,
            Field::TunnelId,
            Field::TunSrc,
            Field::TunDst,
        ];
        // ARP's addresses and the flow label lie where IPv4's addresses are: rules that look at them say so by the type.
        let shared = [Field::VlanPcp, Field::ArpSpa, Field::ArpTpa, Field::Ipv6Flabel];
        !INSIDE.contains(field) && !noted.contains(field) && !shared.contains(field)
    });
    for &field in outside {
        assert!(Likeness::of(&mask_of(&[field], u128::MAX)).is_none(), "{}", field.name());
    }
}

#[test]
fn frames_without_fixed_places_are_not_told() {
    let network = Likeness::of(&mask_of(&[Field::Ipv4Dst], u128::MAX)).unwrap();
    let link = Likeness::of(&mask_of(&[Field::EthDst], u128::MAX)).unwrap();
    let ethernet = || Frame::ethernet([2; 6], [4; 6]);
    let plain = ethernet().ipv4(Ipv4::default()).udp(1, 2).payload(&[0; 18]).finish();
    let tagged = ethernet().vlan(0x8100, 7).ipv4(Ipv4::default()).udp(1, 2).finish();
    let options = ethernet().ipv4(Ipv4 { options: &[1; 4], ..Ipv4::default() }).udp(1, 2).finish();
    let mut cut = plain.clone();
    // A total length below the header's own.
    (cut[16], cut[17]) = (0, 19);
    for (frame, by_link, by_network) in [
        (&plain, true, true),
        (&tagged, false, false),
        (&options, true, false),
        (&cut, true, false),
        (&plain[..33].to_vec(), false, false),
    ] {
        let pair = [frame.clone(), frame.clone()];
        assert_eq!((holds(&link, &pair), holds(&network, &pair)), (by_link, by_network));
    }
    assert!(!holds(&link, &[]) && !holds(&network, &[plain.clone(), cut]));
    assert!(holds(&network, &[plain]));
}
