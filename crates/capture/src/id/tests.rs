//! Random packets, and every rewrite that a switch may make.

use super::*;
use proptest::prelude::*;
use wire::{Edit, Head, Key, Layers, Offload};

/// What a packet is made of.
#[derive(Clone, Debug)]
struct Made {
    is_ipv6: bool,
    protocol: u8,
    identification: u16,
    /// Words of the transport header.
    words: [u32; 4],
    payload: Vec<u8>,
}

fn made() -> impl Strategy<Value = Made> {
    let protocol = prop_oneof![Just(6u8), Just(17), Just(1), Just(132)];
    let payload = proptest::collection::vec(any::<u8>(), 0..120);
    (any::<bool>(), protocol, any::<u16>(), any::<[u32; 4]>(), payload).prop_map(
        |(is_ipv6, protocol, identification, words, payload)| Made {
            is_ipv6,
            protocol: if is_ipv6 && protocol == 1 { 58 } else { protocol },
            identification,
            words,
            payload,
        },
    )
}

impl Made {
    fn transport(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let [one, two, three, four] = self.words;
        match self.protocol {
            132 => {
                bytes.extend(one.to_be_bytes());
                bytes.extend(two.to_be_bytes());
                bytes.extend(three.to_be_bytes()); // checksum
            }
            6 => {
                bytes.extend(one.to_be_bytes()); // ports
                bytes.extend(two.to_be_bytes());
                bytes.extend(three.to_be_bytes());
                bytes.extend([0x50, four as u8 & 0x3f, (four >> 8) as u8, (four >> 16) as u8]);
                bytes.extend([0; 4]);
            }
            17 => {
                bytes.extend(one.to_be_bytes());
                bytes.extend((8 + self.payload.len() as u16).to_be_bytes());
                bytes.extend([0; 2]);
            }
            _ => {
                bytes.extend(one.to_be_bytes());
                bytes.extend(two.to_be_bytes());
            }
        }
        bytes.extend(&self.payload);
        bytes
    }

    fn frame(&self) -> Vec<u8> {
        let transport = self.transport();
        let mut frame = vec![2; 12];
        if self.is_ipv6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((transport.len() as u16).to_be_bytes());
            frame.extend([self.protocol, 64]);
            frame.extend([7; 32]);
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + transport.len() as u16).to_be_bytes());
            frame.extend(self.identification.to_be_bytes());
            frame.extend([0x40, 0, 64, self.protocol, 0, 0]);
            frame.extend([7; 8]);
        }
        frame.extend(transport);
        frame
    }
}

const KEY: IdKey = IdKey([3, 5]);

/// A rewrite that leaves a packet what it is.
#[derive(Clone, Debug)]
enum Rewrite {
    Set(Field, u128),
    Tag,
    Untag,
    Label,
    Pad(usize),
    Backbone,
}

fn rewrite() -> impl Strategy<Value = Rewrite> {
    let field = prop_oneof![
        Just(Field::EthDst),
        Just(Field::EthSrc),
        Just(Field::Ipv4Src),
        Just(Field::Ipv4Dst),
        Just(Field::Ipv6Src),
        Just(Field::Ipv6Dst),
        Just(Field::IpDscp),
        Just(Field::IpEcn),
        Just(Field::TpSrc),
        Just(Field::TpDst),
    ];
    prop_oneof![
        4 => (field, any::<u128>()).prop_map(|(field, value)| Rewrite::Set(field, value & field.full())),
        1 => Just(Rewrite::Tag),
        1 => Just(Rewrite::Untag),
        1 => Just(Rewrite::Label),
        1 => (1..20usize).prop_map(Rewrite::Pad),
        1 => Just(Rewrite::Backbone),
    ]
}

/// Makes it, where the frame allows it.
fn rewritten(frame: &[u8], rewrite: &Rewrite) -> Vec<u8> {
    let mut head = Head::copy_of(frame);
    let (mut key, mut layers): (Key, Layers) = wire::parse(&head, 0);
    let (mut offload, mut frame_len) = (Offload::default(), frame.len() as u32);
    let mut edit = Edit {
        head: &mut head,
        key: &mut key,
        layers: &mut layers,
        offload: &mut offload,
        frame_len: &mut frame_len,
    };
    let _ = match rewrite {
        Rewrite::Set(field, value) => edit.set_field(*field, *value, field.full()),
        Rewrite::Tag => edit.push_vlan(eth_type::VLAN),
        Rewrite::Untag => edit.pop_vlan(),
        // What is below a label is guessed, and a backbone's frame there is not.
        Rewrite::Label if edit.key.get(Field::EthType) == u128::from(eth_type::PBB) => Ok(()),
        Rewrite::Label => edit.push_mpls(eth_type::MPLS),
        Rewrite::Pad(_) => Ok(()),
        Rewrite::Backbone => edit.push_pbb(eth_type::PBB),
    };
    let mut bytes = [head.bytes(), frame.get(256..).unwrap_or_default()].concat();
    if let Rewrite::Pad(count) = rewrite {
        bytes.extend(std::iter::repeat_n(0, *count));
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_packet_has_one_id_whatever_a_switch_rewrites(made in made(), rewrites in proptest::collection::vec(rewrite(), 1..6)) {
        let frame = made.frame();
        let after = rewrites.iter().fold(frame.clone(), |frame, rewrite| rewritten(&frame, rewrite));
        prop_assert_eq!(KEY.id(&frame), KEY.id(&after), "{:02x?} became {:02x?}", frame, after);
    }

    #[test]
    fn packets_that_differ_in_what_counts_have_different_ids(one in made(), other in made()) {
        let differ = one.is_ipv6 != other.is_ipv6
            || one.protocol != other.protocol
            || (!one.is_ipv6 && one.identification != other.identification)
            || (one.protocol == 6 && one.words[1..3] != other.words[1..3])
            || one.payload.iter().take(56).ne(other.payload.iter().take(56));
        prop_assume!(differ);
        prop_assert_ne!(KEY.id(&one.frame()), KEY.id(&other.frame()));
    }

    #[test]
    fn any_bytes_have_an_id(bytes in proptest::collection::vec(any::<u8>(), 0..300), eth_type in prop_oneof![Just(0x0800u16), Just(0x86dd), Just(0x8847), Just(0x88e7), Just(0x8100)]) {
        let mut bytes = bytes;
        if let Some(at) = bytes.get_mut(12..14) {
            at.copy_from_slice(&eth_type.to_be_bytes());
        }
        prop_assert_eq!(KEY.id(&bytes), KEY.id(&bytes));
    }
}

#[test]
fn a_large_segment_has_the_id_of_its_first_piece() {
    let payload: Vec<u8> = (0..120).collect();
    let words = [1, 2, 3, 0x0008_0018]; // PSH and ACK
    let whole = Made { is_ipv6: false, protocol: 6, identification: 9, words, payload };
    let mut first = whole.clone();
    first.payload.truncate(80);
    first.words[3] &= !8; // PSH is its last piece's
    assert_eq!(KEY.id(&whole.frame()), KEY.id(&first.frame()));
}

#[test]
fn another_capture_has_other_ids() {
    let made =
        Made { is_ipv6: false, protocol: 17, identification: 9, words: [0; 4], payload: vec![1] };
    assert_ne!(KEY.id(&made.frame()), IdKey([3, 6]).id(&made.frame()));
}
