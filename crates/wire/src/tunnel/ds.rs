//! The DS field at both ends of a tunnel: ECN by RFC 6040, DSCP uniform or pipe (RFC 2983), or what of it identifies the flow outside.
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

/// What the DSCP does at the tunnel's ends: as RFC 2983 §3 has it, or as the identity of the flow.
///
/// | | outer DSCP | outer ECN | inner DSCP at the end | inner ECN at the end |
/// |---|---|---|---|---|
/// | `Pipe(n)` | n | inner | inner | RFC 6040 |
/// | `Uniform` | inner | inner | outer | RFC 6040 |
/// | `Identity` | inner | inner | inner | RFC 6040 |
/// | `WholeByte` | inner | inner | inner | inner |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dscp {
    /// The outer packet has this one, 6 bits; the inner stays as it is.
    Pipe(u8),
    /// The outer packet has the inner one's, and the inner takes over the outer's at the end.
    Uniform,
    /// The outer packet has the inner one's, for whoever looks at it on the way, and the inner keeps its own.
    Identity,
    /// Likewise the whole field, whose ECN bits then mean no congestion: RFC 6040 does not hold, and nothing is brought inside.
    WholeByte,
}

/// The outer DS field of a frame that begins with `head`: its ECN is copied (RFC 6040 §4.1, normal mode). Not IP: no ECN.
pub fn outer_ds(head: &[u8], dscp: Dscp) -> u8 {
    let inner = field(head).map_or(0, |(_, inner)| inner);
    match dscp {
        Dscp::Pipe(outer) => outer << 2 | inner & 3,
        Dscp::Uniform | Dscp::Identity | Dscp::WholeByte => inner,
    }
}

/// The outer DSCP of a packet whose inner one this is.
pub fn outer_dscp(inner: u8, dscp: Dscp) -> u8 {
    match dscp {
        Dscp::Pipe(outer) => outer,
        Dscp::Uniform | Dscp::Identity | Dscp::WholeByte => inner,
    }
}

/// Brings into a frame that begins with `head` what happened to the outer DS field; false: the frame must be dropped.
#[must_use]
pub fn decapsulate_ds(head: &mut [u8], outer: u8, dscp: Dscp) -> bool {
    if dscp == Dscp::WholeByte {
        return true;
    }
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

    /// Figure 4 of RFC 6040, §4.2, as it is printed: a row for each inner field, a column for each outer one, both in the order Not-ECT, ECT(0),
    /// ECT(1), CE. `None`: drop.
    const FIGURE_4: [(u8, [Option<u8>; 4]); 4] = [
        (0b00, [Some(0b00), Some(0b00), Some(0b00), None]),
        (0b10, [Some(0b10), Some(0b10), Some(0b01), Some(0b11)]),
        (0b01, [Some(0b01), Some(0b01), Some(0b01), Some(0b11)]),
        (0b11, [Some(0b11), Some(0b11), Some(0b11), Some(0b11)]),
    ];

    fn figure_4(inner: u8, outer: u8) -> Option<u8> {
        let column = [0b00, 0b10, 0b01, 0b11].iter().position(|&ecn| ecn == outer % 4);
        let row = FIGURE_4.iter().find(|row| row.0 == inner % 4);
        row.expect("a row").1[column.expect("a column")]
    }

    /// Outer field at the beginning, and inner field at the end (`None`: dropped), by the columns of [`Dscp`].
    fn expected(dscp: Dscp, inner: u8, outer: u8) -> (u8, Option<u8>) {
        let ecn = figure_4(inner, outer);
        let joined = |dscp: u8| ecn.map(|ecn| dscp / 4 * 4 + ecn);
        match dscp {
            Dscp::Pipe(number) => (number * 4 + inner % 4, joined(inner)),
            Dscp::Uniform => (inner, joined(outer)),
            Dscp::Identity => (inner, joined(inner)),
            Dscp::WholeByte => (inner, Some(inner)),
        }
    }

    const MODES: [Dscp; 5] =
        [Dscp::Pipe(0), Dscp::Pipe(46), Dscp::Uniform, Dscp::Identity, Dscp::WholeByte];

    #[test]
    fn every_field_inside_and_outside_comes_out_as_the_table_of_its_mode_says() {
        let frames: [Vec<_>; 2] =
            [false, true].map(|is_v6| (0..=255).map(|field| frame(is_v6, field)).collect());
        for (frames, is_v6) in frames.iter().zip([false, true]) {
            for (mode, inner, outer) in every_case() {
                let mut bytes = frames[usize::from(inner)].clone();
                let (begun, ended) = expected(mode, inner, outer);
                let case = || format!("{mode:?}, inner {inner:#x}, outer {outer:#x}");
                assert_eq!(outer_ds(&bytes, mode), begun, "{}", case());
                let kept = decapsulate_ds(&mut bytes, outer, mode);
                assert_eq!(kept, ended.is_some(), "{}", case());
                let field = usize::from(ended.unwrap_or(inner));
                assert!(bytes == frames[field], "{}", case());
                assert!(is_v6 || fold(sum(&bytes[18..38])) == 0xffff, "{}", case());
            }
        }
    }

    fn every_case() -> impl Iterator<Item = (Dscp, u8, u8)> {
        let fields =
            || (0..=255_u8).flat_map(|inner| (0..=255_u8).map(move |outer| (inner, outer)));
        MODES
            .into_iter()
            .flat_map(move |mode| fields().map(move |(inner, outer)| (mode, inner, outer)))
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), outer: u8) {
            let before = bytes.len();
            for mode in MODES {
                let _ = (outer_ds(&bytes, mode), decapsulate_ds(&mut bytes, outer, mode));
                prop_assert_eq!(bytes.len(), before);
            }
        }
    }
}
