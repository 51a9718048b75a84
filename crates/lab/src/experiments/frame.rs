//! A frame of the testbed's tunnel, byte by byte: what calibrates the stage, and what is sent where sockets would be too slow; and the datagram in a frame that
//! has come to a VM without a stack of its own.

use super::hosts::{HOST, SENDER, VNI, address, mac, peer};
use super::scale::HEADERS;
use super::traffic::receiver::PORT;
use wire::checksum::{fold, pseudo_ipv4, sum};

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

/// The payload of a frame that is a whole IPv4 datagram to the VMs' port with right checksums; a UDP checksum of 0 is none (RFC 768).
pub fn datagram(frame: &[u8]) -> Option<&[u8]> {
    const UDP: u8 = 17;
    let (header, rest) = frame.get(14..)?.split_at_checked(20)?;
    let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let address = |at: usize| u32::from(word(header, at)) << 16 | u32::from(word(header, at + 2));
    let udp = rest.get(..usize::from(word(header, 2)).checked_sub(20)?)?;
    let payload = udp.get(8..)?;
    let is_whole = frame[12..14] == [8, 0] && header[0] == 0x45 && word(header, 6) & 0x3fff == 0;
    let is_udp = header[9] == UDP && word(udp, 2) == PORT && usize::from(word(udp, 4)) == udp.len();
    let pseudo = pseudo_ipv4(address(12), address(16), UDP, udp.len() as u32);
    let is_intact = word(udp, 6) == 0 || fold(pseudo + sum(udp)) == 0xffff;
    (is_whole && is_udp && fold(sum(header)) == 0xffff && is_intact).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as it leaves the tunnel, with a UDP checksum.
    fn inner() -> Vec<u8> {
        let mut frame = tunnelled(3, 101).split_off(50);
        frame[80] = 7;
        let pseudo = pseudo_ipv4(0x0a58_0067, 0x0a58_0003, 17, 109);
        let checksum = !fold(pseudo + sum(&frame[34..]));
        frame[40..42].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    #[test]
    fn a_datagram_is_taken_out_of_its_frame_and_padding_is_not_its() {
        let frame = [inner(), vec![0xee; 3]].concat();
        assert_eq!(datagram(&frame).unwrap().len(), 101);
        assert!(datagram(&tunnelled(3, 101)[50..]).is_some(), "no checksum is not a wrong one");
    }

    #[test]
    fn any_wrong_byte_behind_the_ethernet_addresses_is_noticed() {
        let frame = inner();
        for at in 12..frame.len() {
            let mut wrong = frame.clone();
            wrong[at] ^= 0x41;
            assert_eq!(datagram(&wrong), None, "byte {at}");
        }
        (0..frame.len()).for_each(|length| assert_eq!(datagram(&frame[..length]), None));
    }

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
