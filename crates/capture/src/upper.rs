//! Messages of a protocol without what is below it, as Wireshark takes them: link type "upper PDU".
//!
//! ```text
//! tag u16 · length u16 · value, in network order; last 0, 0; then one whole message
//! ```
//!
//! Source: Wireshark's `epan/exported_pdu.h`, and LINKTYPE_WIRESHARK_UPPER_PDU of the pcap registry.

use std::net::{IpAddr, SocketAddr};

/// Tags.
const END: u16 = 0;
const DISSECTOR: u16 = 12;
const IPV4: [u16; 2] = [20, 21];
const IPV6: [u16; 2] = [22, 23];
const PORT_KIND: u16 = 24;
const PORTS: [u16; 2] = [25, 26];
/// A port of TCP.
const TCP: u32 = 2;

/// Tags for a message that went over TCP `from` one end `to` the other, or by no such ends. Its dissector is named as Wireshark has it.
pub fn tags(dissector: &str, ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let mut out = Vec::new();
    // Values are multiples of four, zeros fill what a name lacks.
    let mut name = dissector.as_bytes().to_vec();
    name.resize(name.len().next_multiple_of(4), 0);
    tag(&mut out, DISSECTOR, &name);
    if let Some((from, to)) = ends {
        // A socket of both families has IPv4 addresses in IPv6's form.
        let [from, to] = [from, to].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
        for (side, end) in [from, to].into_iter().enumerate() {
            match end.ip() {
                IpAddr::V4(address) => tag(&mut out, IPV4[side], &address.octets()),
                IpAddr::V6(address) => tag(&mut out, IPV6[side], &address.octets()),
            }
        }
        tag(&mut out, PORT_KIND, &TCP.to_be_bytes());
        for (side, end) in [from, to].into_iter().enumerate() {
            tag(&mut out, PORTS[side], &u32::from(end.port()).to_be_bytes());
        }
    }
    tag(&mut out, END, &[]);
    out
}

fn tag(out: &mut Vec<u8>, tag: u16, value: &[u8]) {
    out.extend(tag.to_be_bytes());
    out.extend((value.len() as u16).to_be_bytes());
    out.extend(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_the_dissector_and_both_ends() {
        let ends = ("[::ffff:10.0.0.1]:6653".parse().unwrap(), "10.0.0.2:40000".parse().unwrap());
        let expected = [
            &[0, 12, 0, 8][..],
            b"openflow",
            &[0, 20, 0, 4, 10, 0, 0, 1, 0, 21, 0, 4, 10, 0, 0, 2],
            &[0, 24, 0, 4, 0, 0, 0, 2],
            &[0, 25, 0, 4, 0, 0, 0x19, 0xfd, 0, 26, 0, 4, 0, 0, 0x9c, 0x40],
            &[0, 0, 0, 0],
        ];
        assert_eq!(tags("openflow", Some(ends)), expected.concat());
        assert_eq!(tags("arp", None), [&[0, 12, 0, 4][..], b"arp\0", &[0; 4]].concat());
    }
}
