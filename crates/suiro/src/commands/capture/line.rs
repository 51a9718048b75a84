//! A frame in one line, for a terminal. Wireshark knows a thousand protocols; this knows where a frame goes.

use capture::Direction;
use capture::pcapng::{ETHERNET, Packet};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{Field, Key, eth_type, ip_proto};

/// Its way, what it is, its length, and what the node says of it. Of a message, whose `link` is not Ethernet's, the node says it all.
pub fn line(link: u16, packet: &Packet<'_>) -> String {
    let way = match packet.direction {
        Some(Direction::In) => "rx",
        Some(Direction::Out) => "tx",
        None => "--",
    };
    let mut text = format!("{way} ");
    if link != ETHERNET {
        let _ = write!(text, "openflow {} bytes", packet.original);
    } else if packet.bytes.len() >= 14 {
        text += &headers(packet.bytes);
        let _ = write!(text, " {} bytes", packet.original);
    }
    if let Some(id) = packet.id {
        let _ = write!(text, " id={id}");
    }
    for said in packet.comment.split(' ').filter(|said| is_news(said)) {
        let _ = write!(text, " {said}");
    }
    if packet.dropped > 0 {
        let _ = write!(text, " missing={}", packet.dropped);
    }
    text
}

/// Switch and port stand at the line's beginning already, but for drops.
fn is_news(said: &str) -> bool {
    !said.starts_with("core=") && !said.is_empty()
}

fn headers(bytes: &[u8]) -> String {
    let (key, _) = wire::parse_bytes(bytes);
    let eth = key.get(Field::EthType) as u16;
    let mut text = String::new();
    if key.get(Field::VlanVid) != 0 {
        let _ = write!(text, "vlan {} ", key.get(Field::VlanVid) & 0xfff);
    }
    match eth {
        eth_type::IPV4 => {
            let [src, dst] = [Field::Ipv4Src, Field::Ipv4Dst]
                .map(|field| Ipv4Addr::from(key.get(field) as u32).to_string());
            text += &transport(&key, &src, &dst);
        }
        eth_type::IPV6 => {
            let [src, dst] = [Field::Ipv6Src, Field::Ipv6Dst]
                .map(|field| format!("[{}]", Ipv6Addr::from(key.get(field))));
            text += &transport(&key, &src, &dst);
        }
        eth_type::ARP => {
            let [from, to] =
                [Field::ArpSpa, Field::ArpTpa].map(|field| Ipv4Addr::from(key.get(field) as u32));
            let what = if key.get(Field::ArpOp) == 1 { "asks for" } else { "answers" };
            let _ = write!(text, "arp {from} {what} {to}");
        }
        other => {
            let [from, to] = [Field::EthSrc, Field::EthDst].map(|field| mac(key.get(field)));
            let _ = write!(text, "0x{other:04x} {from} > {to}");
        }
    }
    text
}

fn transport(key: &Key, src: &str, dst: &str) -> String {
    let [from, to] = [Field::TpSrc, Field::TpDst].map(|field| key.get(field));
    match key.get(Field::IpProto) as u8 {
        ip_proto::TCP => format!("tcp {src}:{from} > {dst}:{to}"),
        ip_proto::UDP => format!("udp {src}:{from} > {dst}:{to}"),
        ip_proto::ICMP | ip_proto::ICMPV6 => format!("icmp {src} > {dst} type {from}"),
        other => format!("ip {src} > {dst} protocol {other}"),
    }
}

fn mac(address: u128) -> String {
    let bytes = address.to_be_bytes();
    bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::build::{Frame, Ipv4};

    #[test]
    fn a_frame_is_one_line() {
        let bytes = Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
            .ipv4(Ipv4::default())
            .udp(1000, 53)
            .payload(&[7; 20])
            .finish();
        let packet = Packet {
            original: 62,
            bytes: &bytes,
            comment: "drop=by_rule switch=sw0 port=vm1 core=3",
            ..Packet::default()
        };
        let text = line(ETHERNET, &packet);
        assert!(
            text.starts_with("-- udp ")
                && text.contains(":1000 > ")
                && text.contains(":53 62 bytes"),
            "{text}"
        );
        assert!(text.ends_with(" drop=by_rule switch=sw0 port=vm1"), "{text}");
        let nothing = Packet {
            comment: "drop=rx_full frames=25 switch=sw0 port=p",
            dropped: 25,
            ..Packet::default()
        };
        assert_eq!(
            line(ETHERNET, &nothing),
            "--  drop=rx_full frames=25 switch=sw0 port=p missing=25"
        );
    }
}
