//! A frame of the testbed's tunnel, byte by byte: what calibrates the stage, and what is sent where sockets would be too slow.

use super::scale::HEADERS;
use super::testbed::{HOST, SENDER, VNI, address, mac, peer};
use super::traffic::receiver::PORT;

/// The tunnel's UDP port (RFC 7348).
const VXLAN_PORT: u16 = 4789;

/// A datagram of `size` zero bytes to a VM as the sending host's tunnel emits it; UDP without checksums (RFC 768 allows 0).
pub fn tunnelled(vm: u8, size: u16) -> Vec<u8> {
    let payload = vec![0; size.into()];
    let inner = udp(&peer(vm), &address(vm), (5000, PORT), &payload);
    let inner = ethernet(&mac(vm), &mac(0xfd), &inner);
    let vxlan = [&[8, 0, 0, 0][..], &(VNI << 8).to_be_bytes(), &inner].concat();
    let frame = ethernet(&mac(0xfe), &mac(0xfd), &udp(SENDER, HOST, (50_000, VXLAN_PORT), &vxlan));
    debug_assert_eq!(frame.len(), usize::from(size) + HEADERS);
    frame
}

fn ethernet(to: &str, from: &str, packet: &[u8]) -> Vec<u8> {
    let mac = |text: &str| -> Vec<u8> {
        text.split(':').map(|part| u8::from_str_radix(part, 16).unwrap_or(0)).collect()
    };
    [&mac(to)[..], &mac(from), &[8, 0], packet].concat()
}

/// IPv4 without options around UDP.
fn udp(from: &str, to: &str, (source, destination): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 28) as u16;
    let mut packet =
        [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    for text in [from, to] {
        packet.extend(text.split('.').map(|part| part.parse::<u8>().unwrap_or(0)));
    }
    let sum: u32 =
        packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
    for field in [source, destination, length - 20, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vm_is_where_the_stage_looks_for_it_and_checksums_are_right() {
        let frame = tunnelled(3, 100);
        assert_eq!(frame.len(), 100 + HEADERS);
        assert_eq!(&frame[80..84], [10, 88, 0, 3], "inner destination");
        for header in [&frame[14..34], &frame[64..84]] {
            let sum: u32 = header
                .chunks(2)
                .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
                .sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }
}
