//! The key by which steering's entries and flow groups know a frame: the same that the kernel's program dissects
//! (`crates/xdp/bpf/dissect.h`), so that a rule means the same frames at either.
//!
//! In a VXLAN tunnel all but the outermost addresses and type of service are the inner headers'. Deviations: headers beyond the head's
//! 256 bytes are not seen.

use flow::Packet;
use place::steering::{Field, FlowKey};
use wire::tunnel::{VXLAN_PORT, Vxlan};
use wire::{Field as Wire, HEAD_MAX, Head, Layers, eth_type, ip_proto};

/// `ip_frag`: not the first fragment.
const LATER: u128 = 2;
/// Bytes of a UDP header.
const UDP: usize = 8;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Parses a packet to its full depth and says its key; `inner` is memory for the headers in a tunnel.
pub(crate) fn key_of(packet: &mut Packet<'_>, inner: &mut Head) -> FlowKey {
    let Packet { head, key, layers, .. } = packet;
    wire::parse_on(head, wire::Depth::Full, key, layers);
    let mut steer = FlowKey::default();
    link(&mut steer, key);
    if !network(&mut steer, key, layers, head) {
        return steer;
    }
    let [src, dst, tos] = [Field::NwSrc, Field::NwDst, Field::NwTos].map(|field| steer.get(field));
    if let Some(vxlan) = open_tunnel(key, layers, head, inner) {
        steer = FlowKey::default();
        let (key, layers) = wire::parse(inner, 0);
        link(&mut steer, &key);
        network(&mut steer, &key, &layers, inner);
        steer.set(Field::TunId, FlowKey::vni(vxlan.vni));
    }
    steer.set(Field::TunSrc, src);
    steer.set(Field::TunDst, dst);
    steer.set(Field::OuterTos, tos);
    steer
}

fn link(steer: &mut FlowKey, key: &wire::Key) {
    steer.set(Field::DlSrc, key.get(Wire::EthSrc));
    steer.set(Field::DlDst, key.get(Wire::EthDst));
    steer.set(Field::DlType, key.get(Wire::EthType));
    steer.set(Field::DlVlan, key.get(Wire::VlanVid));
}

/// IP and ports; whether there is an IP header.
fn network(steer: &mut FlowKey, key: &wire::Key, layers: &Layers, head: &Head) -> bool {
    if key.get(Wire::EthType) as u16 == eth_type::ARP {
        steer.set(Field::NwSrc, key.get(Wire::ArpSpa));
        steer.set(Field::NwDst, key.get(Wire::ArpTpa));
        steer.set(Field::NwProto, key.get(Wire::ArpOp));
    }
    let (src, dst) = match key.get(Wire::EthType) as u16 {
        _ if layers.ip == 0 => return false,
        eth_type::IPV4 => (Wire::Ipv4Src, Wire::Ipv4Dst),
        eth_type::IPV6 => (Wire::Ipv6Src, Wire::Ipv6Dst),
        _ => return false,
    };
    steer.set(Field::NwSrc, key.get(src));
    steer.set(Field::NwDst, key.get(dst));
    steer.set(Field::NwProto, key.get(Wire::IpProto));
    steer.set(Field::NwTos, key.get(Wire::IpDscp) << 2 | key.get(Wire::IpEcn));
    steer.set(Field::IpFrag, key.get(Wire::IpFrag));
    match key.get(Wire::IpProto) as u8 {
        ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP if layers.l4 != 0 => {
            steer.set(Field::TpSrc, key.get(Wire::TpSrc));
            steer.set(Field::TpDst, key.get(Wire::TpDst));
        }
        ip_proto::ESP if key.get(Wire::IpFrag) & LATER == 0 && layers.payload != 0 => {
            let spi =
                head.bytes().get(usize::from(layers.payload)..).and_then(|rest| rest.first_chunk());
            let spi = u128::from(spi.map_or(0, |bytes| u32::from_be_bytes(*bytes)));
            steer.set(Field::TpSrc, spi >> 16);
            steer.set(Field::TpDst, spi);
        }
        _ => {}
    }
    true
}

/// The VXLAN header, if there is one; what it carries is put into `inner`.
fn open_tunnel(key: &wire::Key, layers: &Layers, head: &Head, inner: &mut Head) -> Option<Vxlan> {
    let is_udp = layers.l4 != 0 && key.get(Wire::IpProto) == u128::from(ip_proto::UDP);
    if !is_udp || key.get(Wire::TpDst) != u128::from(VXLAN_PORT) {
        return None;
    }
    let payload = head.bytes().get(usize::from(layers.l4) + UDP..)?;
    let vxlan = Vxlan::parse(payload)?;
    let frame = payload.get(Vxlan::LEN..).filter(|frame| frame.len() >= ETHERNET)?;
    let len = frame.len().min(HEAD_MAX);
    inner.area()[..len].copy_from_slice(&frame[..len]);
    inner.set_len(len);
    Some(vxlan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::unparsed;
    use wire::Offload;
    use wire::build::{Frame, Ipv4};

    fn key(bytes: &[u8]) -> FlowKey {
        let mut head = Head::copy_of(bytes);
        let mut packet = unparsed(&mut head, Offload::default(), bytes.len() as u32);
        key_of(&mut packet, &mut Head::default())
    }

    fn udp(src: u32, port: u16, payload: &[u8]) -> Vec<u8> {
        let ip =
            Ipv4 { src: src.to_be_bytes().into(), dst: [10, 0, 0, 9].into(), ..Ipv4::default() };
        Frame::ethernet([2; 6], [4; 6])
            .vlan(0x8100, 7)
            .ipv4(ip)
            .udp(1234, port)
            .payload(payload)
            .finish()
    }

    #[test]
    fn a_plain_frame_is_known_by_its_own_headers() {
        let key = key(&udp(0x0a00_0001, 53, &[0; 40]));
        let fields = [
            Field::NwSrc,
            Field::NwDst,
            Field::TpSrc,
            Field::TpDst,
            Field::NwProto,
            Field::DlType,
            Field::DlVlan,
        ];
        let values = [0x0a00_0001, 0x0a00_0009, 1234, 53, 17, 0x0800, FlowKey::vlan(7)];
        assert_eq!(fields.map(|field| key.get(field)), values);
        assert_eq!(
            [Field::TunSrc, Field::TunDst, Field::TunId].map(|field| key.get(field)),
            [0x0a00_0001, 0x0a00_0009, 0]
        );
    }

    #[test]
    fn in_a_tunnel_the_inner_headers_count_and_the_outer_addresses_too() {
        let mut payload = Vxlan { vni: 77 }.emit().to_vec();
        payload.extend(udp(0x0b00_0001, 53, &[0; 10]));
        let key = key(&udp(0x0a00_0001, VXLAN_PORT, &payload));
        let fields = [Field::NwSrc, Field::TunSrc, Field::TpDst, Field::TunId];
        assert_eq!(
            fields.map(|field| key.get(field)),
            [0x0b00_0001, 0x0a00_0001, 53, FlowKey::vni(77)]
        );
    }

    #[test]
    fn what_is_no_ip_has_no_addresses() {
        let mut arp = vec![0xff; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        let key = key(&arp);
        assert_eq!(
            (key.get(Field::DlType), key.get(Field::NwSrc), key.get(Field::TunSrc)),
            (0x0806, 0, 0)
        );
    }
}
