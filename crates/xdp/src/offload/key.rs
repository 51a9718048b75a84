//! The bits that tell flows apart, as the tables have them and as the programs do.

use super::abi::{IN_TUNNEL, OffloadKey};
use offload::FlowProgram;
use wire::{Field, Key, eth_type};

/// The key of a flow that comes in at the port of that place.
pub(super) fn of(port: u32, flow: &FlowProgram) -> OffloadKey {
    let tunnel = flow.approach.as_ref().map_or(0, |approach| IN_TUNNEL | approach.vni);
    OffloadKey { tunnel, ..to_kernel(port, &flow.key) }
}

/// Likewise, of a flow with that key.
pub(super) fn to_kernel(port: u32, key: &Key) -> OffloadKey {
    let number = |field| key.get(field) as u16;
    let mut made = OffloadKey {
        port,
        tunnel: 0,
        dl_vlan: number(Field::VlanPcp) << 13 | number(Field::VlanVid),
        dl_type: number(Field::EthType),
        dl_dst: tail((key.get(Field::EthDst) as u64).to_be_bytes()),
        dl_src: tail((key.get(Field::EthSrc) as u64).to_be_bytes()),
        nw_src: [0; 16],
        nw_dst: [0; 16],
        tp_src: number(Field::TpSrc),
        tp_dst: number(Field::TpDst),
        nw_proto: number(Field::IpProto) as u8,
        nw_dscp: number(Field::IpDscp) as u8,
        reserved: 0,
    };
    if made.dl_type == eth_type::IPV6 {
        made.nw_src = key.get(Field::Ipv6Src).to_be_bytes();
        made.nw_dst = key.get(Field::Ipv6Dst).to_be_bytes();
    } else {
        made.nw_src[..4].copy_from_slice(&(key.get(Field::Ipv4Src) as u32).to_be_bytes());
        made.nw_dst[..4].copy_from_slice(&(key.get(Field::Ipv4Dst) as u32).to_be_bytes());
    }
    made
}

/// Back again, at that port of a switch.
pub(super) fn from_kernel(key: &OffloadKey, in_port: u32) -> Key {
    let mut made = Key::default();
    let mut set = |field, value: u128| made.set(field, value);
    set(Field::InPort, in_port.into());
    set(Field::VlanPcp, (key.dl_vlan >> 13).into());
    set(Field::VlanVid, (key.dl_vlan & 0x1fff).into());
    set(Field::EthType, key.dl_type.into());
    set(Field::EthDst, number(&key.dl_dst));
    set(Field::EthSrc, number(&key.dl_src));
    set(Field::TpSrc, key.tp_src.into());
    set(Field::TpDst, key.tp_dst.into());
    set(Field::IpProto, key.nw_proto.into());
    set(Field::IpDscp, key.nw_dscp.into());
    if key.dl_type == eth_type::IPV6 {
        set(Field::Ipv6Src, number(&key.nw_src));
        set(Field::Ipv6Dst, number(&key.nw_dst));
    } else {
        set(Field::Ipv4Src, number(&key.nw_src[..4]));
        set(Field::Ipv4Dst, number(&key.nw_dst[..4]));
    }
    made
}

fn tail(bytes: [u8; 8]) -> [u8; 6] {
    *bytes.last_chunk().expect("6 of 8")
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}
