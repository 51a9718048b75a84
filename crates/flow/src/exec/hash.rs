//! The hash that keeps a flow on one bucket of a select group.

use wire::{Field, Key, ip_proto};

/// Odd constants with well-spread bits (the fractional digits of π, as in Blowfish). A tenant who knows them can
/// unbalance only the select groups of his own switches.
const DIGITS: [u64; 8] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6d,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
];

/// Fields that the hash of some packet depends on; of word 0 and 3 of a key all bits.
pub(crate) const HASHED: &[Field] = &[
    Field::EthDst,
    Field::EthType,
    Field::EthSrc,
    Field::VlanVid,
    Field::MplsLabel,
    Field::PbbIsid,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::IpProto,
    Field::IpFrag,
    Field::TpSrc,
    Field::TpDst,
];

/// Hashes what all packets of a flow share: Ethernet addresses and type, VLAN id, addresses, protocol and ports of IP,
/// first MPLS label, I-SID. Fragments leave their ports out, so that the whole datagram goes one way.
pub(crate) fn flow_hash(key: &Key) -> u64 {
    let word = |field: Field| key.get(field) as u64;
    let wide = |field: Field| key.get(field);
    let (src6, dst6) = (wide(Field::Ipv6Src), wide(Field::Ipv6Dst));
    let first =
        fold(key.0[0] ^ DIGITS[0], word(Field::EthSrc) << 16 | word(Field::VlanVid) ^ DIGITS[1]);
    let addresses =
        fold(first ^ key.0[3], DIGITS[2] ^ word(Field::MplsLabel) << 24 ^ word(Field::PbbIsid));
    let wide_addresses = match src6 | dst6 {
        0 => addresses,
        _ => fold(
            addresses ^ fold(src6 as u64 ^ DIGITS[3], (src6 >> 64) as u64 ^ DIGITS[4]),
            fold(dst6 as u64 ^ DIGITS[5], (dst6 >> 64) as u64 ^ DIGITS[6]) ^ DIGITS[1],
        ),
    };
    fold(wide_addresses ^ ports(key) << 8 ^ word(Field::IpProto), DIGITS[7])
}

/// Both transport ports, where all packets of a flow have the same.
fn ports(key: &Key) -> u64 {
    let proto = key.get(Field::IpProto) as u8;
    let has_ports = matches!(proto, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP);
    match has_ports && key.get(Field::IpFrag) == 0 {
        true => (key.get(Field::TpSrc) << 16 | key.get(Field::TpDst)) as u64,
        false => 0,
    }
}

/// Both halves of a 128-bit product mixed into one: every input bit reaches every output bit.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(port: u128) -> Key {
        let mut key = Key::default();
        key.set(Field::EthType, 0x0800);
        key.set(Field::Ipv4Src, 0x0a00_0001);
        key.set(Field::IpProto, u128::from(ip_proto::TCP));
        key.set(Field::TpSrc, port);
        key
    }

    #[test]
    fn flows_differ_and_packets_of_a_flow_do_not() {
        let mut later = tcp(1);
        later.set(Field::TcpFlags, 0x18);
        later.set(Field::Metadata, 7);
        later.set(Field::IpEcn, 3);
        assert_eq!(flow_hash(&tcp(1)), flow_hash(&later));
        assert_ne!(flow_hash(&tcp(1)), flow_hash(&tcp(2)));
    }

    #[test]
    fn all_fragments_of_a_datagram_agree() {
        let (mut first, mut second) = (tcp(1), tcp(0));
        first.set(Field::IpFrag, 1);
        second.set(Field::IpFrag, 3);
        assert_eq!(flow_hash(&first), flow_hash(&second));
    }

    #[test]
    fn hashes_of_neighbouring_flows_spread_evenly() {
        let mut bins = [0u32; 16];
        (0..16_000).for_each(|port| bins[(flow_hash(&tcp(port)) % 16) as usize] += 1);
        assert!(bins.iter().all(|&bin| (850..1150).contains(&bin)), "{bins:?}");
    }
}
