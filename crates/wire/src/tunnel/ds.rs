//! The DS field at both ends of a tunnel: ECN by RFC 6040, DSCP uniform or pipe (RFC 2983).
//!
//! The field is the IPv4 TOS byte or the IPv6 traffic class: DSCP 6 bits, ECN 2 bits (RFC 2474, RFC 3168).

use super::network;
use crate::checksum::update;
use crate::parse::chunk;

/// The ECN field (RFC 3168 §5), named as RFC 6040 names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// The transport knows no ECN.
    NotEct = 0,
    /// ECN-capable; L4S (RFC 9331).
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Of a DS field.
    pub fn of(field: u8) -> Self {
        [Self::NotEct, Self::Ect1, Self::Ect0, Self::Ce][usize::from(field & 3)]
    }

    /// What the packet of this inner field carries on, having travelled under `outer`; `None`: it must be dropped (RFC 6040 §4.2, figure 4).
    ///
    /// Congestion marked outside an inner packet that cannot say so would be lost, so the packet is. ECT(1) outside means a mark of a
    /// lower severity than CE (RFC 6660) and goes inside; a CE inside stays whatever is outside.
    pub fn decapsulated(self, outer: Self) -> Option<Self> {
        match (self, outer) {
            (Self::NotEct, Self::Ce) => None,
            (Self::NotEct, _) => Some(Self::NotEct),
            (Self::Ect0 | Self::Ect1, Self::Ce) => Some(Self::Ce),
            (Self::Ect0, Self::Ect1) => Some(Self::Ect1),
            (inner, _) => Some(inner),
        }
    }
}

/// What the DSCP does at the tunnel's ends (RFC 2983 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dscp {
    /// The outer packet has this one, 6 bits; the inner stays as it is.
    Pipe(u8),
    /// The outer packet has the inner one's, and the inner takes over the outer's at the end.
    Uniform,
}

/// The outer DS field of a frame that begins with `head`: its ECN is copied (RFC 6040 §4.1, normal mode). Not IP: no ECN.
pub fn outer_ds(head: &[u8], dscp: Dscp) -> u8 {
    let inner = field(head).map_or(0, |(_, inner)| inner);
    match dscp {
        Dscp::Pipe(outer) => outer << 2 | inner & 3,
        Dscp::Uniform => inner,
    }
}

/// Brings into a frame that begins with `head` what happened to the outer DS field; false: the frame must be dropped.
#[must_use]
pub fn decapsulate_ds(head: &mut [u8], outer: u8, dscp: Dscp) -> bool {
    let Some((at, inner)) = field(head) else { return true };
    let Some(ecn) = Ecn::of(inner).decapsulated(Ecn::of(outer)) else { return false };
    let above = if dscp == Dscp::Uniform { outer } else { inner };
    let wanted = above & 0xfc | ecn as u8;
    if wanted != inner {
        set_field(head, at, wanted);
    }
    true
}

/// Where the IP header is, and its DS field.
fn field(head: &[u8]) -> Option<(usize, u8)> {
    let at = network(head)?;
    let &[first, second] = chunk(head, at)?;
    Some((at, if first >> 4 == 4 { second } else { first << 4 | second >> 4 }))
}

/// Writes the DS field of the IP header at `at`, of which there are two bytes, and the IPv4 header checksum that follows.
fn set_field(head: &mut [u8], at: usize, field: u8) {
    let old = [head[at], head[at + 1]];
    let is_v4 = old[0] >> 4 == 4;
    let new = match is_v4 {
        true => [old[0], field],
        false => [old[0] & 0xf0 | field >> 4, field << 4 | old[1] & 0xf],
    };
    head[at..at + 2].copy_from_slice(&new);
    if let Some(sum) = head.get_mut(at + 10..at + 12).filter(|_| is_v4) {
        let [old, new] = [old, new].map(u16::from_be_bytes);
        let checksum = update(u16::from_be_bytes([sum[0], sum[1]]), old.into(), new.into());
        sum.copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::Ecn::{Ce, Ect0, Ect1, NotEct};
    use super::*;
    use crate::build::{Frame, Ipv4, Ipv6};
    use crate::checksum::{fold, sum};
    use proptest::prelude::*;

    #[test]
    fn every_row_of_rfc_6040_figure_4() {
        let rows = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce); 4]),
        ];
        for (inner, row) in rows {
            let found = [NotEct, Ect0, Ect1, Ce].map(|outer| inner.decapsulated(outer));
            assert_eq!(found, row, "{inner:?}");
        }
    }

    fn frame(is_v6: bool, field: u8) -> Vec<u8> {
        let frame = Frame::ethernet([2; 6], [4; 6]).vlan(0x8100, 7);
        let frame = match is_v6 {
            true => frame.ipv6(Ipv6 { traffic_class: field, ..Ipv6::default() }),
            false => frame.ipv4(Ipv4 { tos: field, ..Ipv4::default() }),
        };
        frame.udp(1, 2).payload(&[0; 18]).finish()
    }

    proptest! {
        #[test]
        fn a_frame_comes_out_as_if_it_had_been_built_with_the_field_that_follows(
            is_v6: bool, inner: u8, outer: u8, uniform: bool,
        ) {
            let dscp = if uniform { Dscp::Uniform } else { Dscp::Pipe(9) };
            let mut bytes = frame(is_v6, inner);
            prop_assert_eq!(outer_ds(&bytes, dscp), if uniform { inner } else { 9 << 2 | inner & 3 });
            let kept = decapsulate_ds(&mut bytes, outer, dscp);
            match Ecn::of(inner).decapsulated(Ecn::of(outer)) {
                None => prop_assert!(!kept),
                Some(ecn) => {
                    let above = if uniform { outer } else { inner };
                    prop_assert!(kept);
                    prop_assert_eq!(&bytes, &frame(is_v6, above & 0xfc | ecn as u8));
                    prop_assert!(is_v6 || fold(sum(&bytes[18..38])) == 0xffff);
                }
            }
        }

        #[test]
        fn no_bytes_make_it_fail(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), outer: u8) {
            let before = bytes.len();
            let _ = decapsulate_ds(&mut bytes, outer, Dscp::Uniform);
            prop_assert_eq!(bytes.len(), before);
        }
    }
}
