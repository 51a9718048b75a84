//! Where the steering program's dissector and the switch's parser must see the same: for the test and for the fuzz target.

use wire::{Field, Head, Layers};

/// Dissector words of 64 bits, as `crates/xdp/bpf/abi.h` lays them out.
pub type Words = [u64; 12];

/// The first thing in which they differ and should not; `None` also where they differ on purpose: in a tunnel, behind a third tag, behind
/// LLC, beyond what the parser keeps of a frame, and behind more extension headers than RFC 8200 names.
pub fn difference(frame: &[u8], words: &Words, is_ip: bool) -> Option<String> {
    let (key, layers) = wire::parse(&Head::copy_of(frame), 0);
    let (eth_type, tunnel) = (words[5] >> 48, words[4] >> 32);
    if tunnel != 0 || layers.vlans > 2 || u128::from(eth_type) != key.get(Field::EthType) {
        return None;
    }
    if !matches!(eth_type, 0x800 | 0x86dd) || frame.len() > wire::HEAD_MAX {
        return is_ip
            .then(|| "IP where there is none".to_owned())
            .filter(|_| eth_type != 0x800 && eth_type != 0x86dd);
    }
    if is_ip != (layers.ip != 0) {
        return Some(format!("is_ip {is_ip}, ip at {}", layers.ip));
    }
    if !is_ip || (eth_type == 0x86dd && has_long_chain(frame, &layers)) {
        return None;
    }
    let tos = key.get(Field::IpDscp) << 2 | key.get(Field::IpEcn);
    let (src, dst) = match eth_type {
        0x800 => (Field::Ipv4Src, Field::Ipv4Dst),
        _ => (Field::Ipv6Src, Field::Ipv6Dst),
    };
    let wide = |at: usize| u128::from(words[at]) << 64 | u128::from(words[at + 1]);
    let part = |at: usize, shift: u32, mask: u64| u128::from(words[at] >> shift & mask);
    let mut pairs = vec![
        ("nw_proto", part(5, 40, 0xff), key.get(Field::IpProto)),
        ("nw_tos", part(5, 32, 0xff), tos),
        ("ip_frag", part(5, 0, 0xff), key.get(Field::IpFrag)),
        ("dl_vlan", part(5, 16, 0xffff), key.get(Field::VlanVid)),
        ("dl_src", part(10, 16, 0xffff_ffff_ffff), key.get(Field::EthSrc)),
        ("dl_dst", part(11, 16, 0xffff_ffff_ffff), key.get(Field::EthDst)),
        ("nw_src", wide(0), key.get(src)),
        ("nw_dst", wide(2), key.get(dst)),
    ];
    if layers.l4 != 0 && matches!(key.get(Field::IpProto), 6 | 17 | 132) {
        pairs.push(("tp_src", part(4, 16, 0xffff), key.get(Field::TpSrc)));
        pairs.push(("tp_dst", part(4, 0, 0xffff), key.get(Field::TpDst)));
    }
    let differing = pairs.into_iter().find(|(_, ours, theirs)| ours != theirs);
    differing.map(|(name, ours, theirs)| format!("{name}: {ours:x} and {theirs:x}"))
}

/// More than six extension headers, and jumbograms (RFC 2675), are where the dissector stops on purpose.
fn has_long_chain(frame: &[u8], layers: &Layers) -> bool {
    let header = &frame[usize::from(layers.ip)..];
    let (mut at, mut next) = (usize::from(layers.ip) + 40, header[6]);
    if header[4..7] == [0, 0, 0] {
        return true;
    }
    for step in 0.. {
        if !matches!(next, 0 | 43 | 44 | 51 | 60) {
            return false;
        }
        if step == 6 {
            return true;
        }
        let Some(header) = frame.get(at..at + 8) else { return false };
        at += match next {
            44 => 8,
            51 => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        next = header[0];
    }
    false
}
