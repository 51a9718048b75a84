//! What is around a VXLAN packet inside ESP.

use crate::refusal::Refusal;
use std::net::IpAddr;
use std::ops::Range;

const UDP: u8 = 17;
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// Source ports inside: nobody on the way sees them; dynamic ones (RFC 6335 §6).
const SOURCE_PORTS: u16 = 0xc000;

/// What an SA carries (RFC 4301 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The payload of an IP packet: here a UDP datagram, next header 17.
    #[default]
    Transport,
    /// A whole IP packet, next header 4 or 41.
    Tunnel,
}

impl Mode {
    /// The name in key files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Tunnel => "tunnel",
        }
    }
}

/// The headers around a VXLAN packet: UDP to the tunnel's port, in tunnel mode an IP header before it.
///
/// The UDP checksum inside is 0: RFC 7348 §5 allows it and over IPv6 RFC 6935 does; the ICV is the better one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// What the SA carries.
    pub mode: Mode,
    /// This end.
    pub local: IpAddr,
    /// The other end, of the same family.
    pub remote: IpAddr,
    /// UDP port of both.
    pub port: u16,
}

/// What an envelope held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Where the VXLAN packet is, from the beginning of the payload.
    pub vxlan: Range<usize>,
    /// The DS field of the IP header inside, in tunnel mode.
    pub ds: Option<u8>,
}

impl Envelope {
    /// Bytes of the headers.
    pub fn len(&self) -> usize {
        UDP_HEADER
            + match (self.mode, self.remote) {
                (Mode::Transport, _) => 0,
                (Mode::Tunnel, IpAddr::V4(_)) => IPV4_HEADER,
                (Mode::Tunnel, IpAddr::V6(_)) => IPV6_HEADER,
            }
    }

    /// Never: there is a UDP header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What ESP says that the payload is.
    pub fn next_header(&self) -> u8 {
        match (self.mode, self.remote) {
            (Mode::Transport, _) => UDP,
            (Mode::Tunnel, IpAddr::V4(_)) => IPV4,
            (Mode::Tunnel, IpAddr::V6(_)) => IPV6,
        }
    }

    /// Writes the headers before a VXLAN packet that is in its place. `flow` goes into the source port, `ds` into an IP header's field.
    ///
    /// # Panics
    /// `payload` is shorter than the headers, or longer than 65535.
    pub fn write(&self, payload: &mut [u8], flow: u16, ds: u8) {
        let (ip, udp) = payload.split_at_mut(self.len() - UDP_HEADER);
        let len = u16::try_from(udp.len()).expect("shorter than a datagram");
        let ports = [(SOURCE_PORTS | flow).to_be_bytes(), self.port.to_be_bytes()];
        udp[..UDP_HEADER]
            .copy_from_slice(&[ports[0], ports[1], len.to_be_bytes(), [0; 2]].concat());
        match (ip, self.local, self.remote) {
            ([], ..) => {}
            (ip, IpAddr::V4(local), IpAddr::V4(remote)) => {
                let len = (len + IPV4_HEADER as u16).to_be_bytes();
                // Don't fragment; identification 0 is then in order (RFC 6864 §4.1).
                ip.copy_from_slice(&[
                    0x45, ds, len[0], len[1], 0, 0, 0x40, 0, 64, UDP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                ]);
                ip[12..16].copy_from_slice(&local.octets());
                ip[16..].copy_from_slice(&remote.octets());
                let checksum = !sum(ip);
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (ip, IpAddr::V6(local), IpAddr::V6(remote)) => {
                let len = len.to_be_bytes();
                ip[..8].copy_from_slice(&[0x60 | ds >> 4, ds << 4, 0, 0, len[0], len[1], UDP, 64]);
                ip[8..24].copy_from_slice(&local.octets());
                ip[24..].copy_from_slice(&remote.octets());
            }
            _ => panic!("both ends have addresses of one family"),
        }
    }

    /// Finds the VXLAN packet in an authentic payload. Lengths are those of the headers: what is behind is padding against traffic analysis
    /// (RFC 4303 §2.7).
    ///
    /// # Errors
    /// [`Refusal::BadContents`]: not from the other end to the tunnel's port, a fragment, or broken.
    pub fn read(&self, next_header: u8, payload: &[u8]) -> Result<Contents, Refusal> {
        let contents = if next_header == self.next_header() { self.find(payload) } else { None };
        contents.ok_or(Refusal::BadContents)
    }

    fn find(&self, payload: &[u8]) -> Option<Contents> {
        let (udp, ds) = match (self.mode, self.remote) {
            (Mode::Transport, _) => (0..payload.len(), None),
            (Mode::Tunnel, IpAddr::V4(remote)) => {
                let header: &[u8; IPV4_HEADER] = payload.first_chunk()?;
                let (len, at) =
                    (u16::from_be_bytes([header[2], header[3]]), 4 * usize::from(header[0] & 15));
                let is_whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
                let is_ours =
                    header[0] >> 4 == 4 && header[9] == UDP && header[12..16] == remote.octets();
                (is_whole && is_ours && at >= IPV4_HEADER)
                    .then_some((at..len.into(), Some(header[1])))?
            }
            (Mode::Tunnel, IpAddr::V6(remote)) => {
                let header: &[u8; IPV6_HEADER] = payload.first_chunk()?;
                let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
                let is_ours =
                    header[0] >> 4 == 6 && header[6] == UDP && header[8..24] == remote.octets();
                let ds = header[0] << 4 | header[1] >> 4;
                is_ours.then_some((IPV6_HEADER..IPV6_HEADER + len, Some(ds)))?
            }
        };
        let header: &[u8; UDP_HEADER] = payload.get(udp.clone())?.first_chunk()?;
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let is_ours = header[2..4] == self.port.to_be_bytes();
        let fits = (UDP_HEADER..=udp.len()).contains(&len);
        (is_ours && fits).then(|| Contents { vxlan: udp.start + UDP_HEADER..udp.start + len, ds })
    }
}

/// The Internet checksum's sum (RFC 1071) of an even number of bytes.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelopes() -> Vec<Envelope> {
        let ends = [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")];
        let both = |mode| {
            ends.map(|(local, remote)| {
                let [local, remote] = [local, remote].map(|address| address.parse().unwrap());
                Envelope { mode, local, remote, port: 4789 }
            })
        };
        [Mode::Transport, Mode::Tunnel].map(both).concat()
    }

    fn returned(envelope: &Envelope) -> Envelope {
        Envelope { local: envelope.remote, remote: envelope.local, ..*envelope }
    }

    #[test]
    fn the_other_end_finds_what_was_written() {
        for envelope in envelopes() {
            let mut payload = vec![0xaa; envelope.len() + 30];
            envelope.write(&mut payload, 5, 0x2e << 2 | 1);
            let contents = returned(&envelope).read(envelope.next_header(), &payload).unwrap();
            let ds = (envelope.mode == Mode::Tunnel).then_some(0x2e << 2 | 1);
            assert_eq!(contents, Contents { vxlan: envelope.len()..payload.len(), ds });
            payload.extend([0; 9]);
            let padded = returned(&envelope).read(envelope.next_header(), &payload).unwrap();
            assert_eq!(padded, contents, "what is behind is padding");
            if payload[0] == 0x45 {
                assert_eq!(sum(&payload[..20]), 0xffff);
            }
        }
    }

    #[test]
    fn whatever_is_changed_or_cut_in_the_headers_is_refused_or_still_in_bounds() {
        for envelope in envelopes() {
            let mut whole = vec![0xaa; envelope.len() + 10];
            envelope.write(&mut whole, 5, 0);
            let reader = returned(&envelope);
            for (at, value) in
                (0..envelope.len()).flat_map(|at| (0..=255).map(move |value| (at, value)))
            {
                let mut payload = whole.clone();
                payload[at] = value;
                for len in [payload.len(), at] {
                    if let Ok(contents) = reader.read(envelope.next_header(), &payload[..len]) {
                        assert!(
                            contents.vxlan.start <= contents.vxlan.end && contents.vxlan.end <= len
                        );
                    }
                }
            }
            assert_eq!(
                envelope.read(envelope.next_header(), &whole).is_ok(),
                envelope.mode == Mode::Transport
            );
            assert!(reader.read(6, &whole).is_err());
        }
    }
}
