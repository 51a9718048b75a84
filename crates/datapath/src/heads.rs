//! Heads of the frames in hand, and what is known of each.
//!
//! Heads 0..64 are the batch's; above them lie spare ones, used for copies: when an output is followed by more edits, and when
//! one frame goes to several switches. Spare heads are a stack: `top` rises within a pass and falls back when everything
//! above a mark has left. The memory is touched only as far as it is used.

use crate::pending::HeadRef;
use flow::Packet;
use port::{Body, TxFrame};
use wire::{BATCH, Gso, Head, Key, Layers, Offload, TunnelOut};

/// Bytes before the tags and what the MTU limits.
const ETHERNET_HEADER: u32 = 14;

/// Spare heads: 64 for each of 16 vlinks in a row that all go on to several switches, and 96 for copies on the way.
pub(crate) const SPARE: usize = 16 * BATCH + 96;

/// All heads.
pub(crate) const HEADS: usize = BATCH + SPARE;

const _: () = assert!(HEADS < u16::MAX as usize); // the highest names no head

/// What goes with a spare head to its destinations. Of the batch's own heads the packets themselves know it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Carried {
    pub(crate) offload: Offload,
    pub(crate) frame_len: u32,
    /// Frame of the batch that it came from: whose body it has.
    pub(crate) origin: u8,
    /// As [`Key::tunnel`].
    pub(crate) tunnel: [u64; 2],
}

/// What a spare head that crosses a vlink needs besides, so that it need not be parsed again.
#[derive(Clone, Copy, Default)]
pub(crate) struct Parsed {
    pub(crate) key: Key,
    pub(crate) layers: Layers,
}

/// A frame as it waits for the end of the pass. By reference: a copy of the offload state is made where it stays, and few read what is for a tunnel.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'h> {
    pub(crate) head: &'h Head,
    pub(crate) offload: &'h Offload,
    pub(crate) frame_len: u32,
    /// Frame of the batch whose body it has.
    pub(crate) origin: u8,
    pub(crate) tunnel: TunnelOut<'h>,
}

impl<'h> Waiting<'h> {
    /// Frame `index` of the batch.
    #[inline]
    pub(crate) fn own(packets: &'h [Packet<'_>], index: usize) -> Self {
        let Packet { head, offload, frame_len, key, .. } = &packets[index];
        let tunnel = key.tunnel();
        Self { head, offload, frame_len: *frame_len, origin: index as u8, tunnel }
    }

    /// A frame in a spare head.
    #[inline]
    pub(crate) fn spare(head: &'h Head, carried: &'h Carried) -> Self {
        let Carried { offload, frame_len, origin, tunnel } = carried;
        let tunnel = TunnelOut(tunnel);
        Self { head, offload, frame_len: *frame_len, origin: *origin, tunnel }
    }

    /// As it is handed to a destination, with what rules said of tunnels if that is wanted; `bodies` are those of the batch.
    #[inline]
    pub(crate) fn to_send(self, bodies: &[Body<'h>], by_tunnel: bool) -> TxFrame<'h> {
        let body = bodies[usize::from(self.origin)];
        let (tunnel_id, tun_dst) = match by_tunnel {
            true => (u32::try_from(self.tunnel.id()).unwrap_or(u32::MAX), self.tunnel.dst()),
            false => (0, 0),
        };
        TxFrame { head: self.head.bytes(), body, offload: *self.offload, tunnel_id, tun_dst }
    }
}

/// Whether a port that takes packets of up to `mtu` bytes after Ethernet header and tags takes a frame. What fits without a look at its
/// headers fits.
#[inline]
pub(crate) fn fits(head: &Head, offload: &Offload, frame_len: u32, mtu: u32) -> bool {
    frame_len <= surely_fits(mtu) || packet_len(head, offload, frame_len) <= mtu
}

/// The length up to which every frame fits, whatever its headers say.
#[inline]
pub(crate) fn surely_fits(mtu: u32) -> u32 {
    mtu.saturating_add(ETHERNET_HEADER)
}

/// Bytes after the Ethernet header and tags of the longest frame on the wire.
///
/// For a large frame that is one segment: the headers after the tags, and `gso_size`.
#[inline(never)]
fn packet_len(head: &Head, offload: &Offload, frame_len: u32) -> u32 {
    let (_, layers) = wire::parse(head, 0);
    let l3 = u32::from(layers.l3).max(ETHERNET_HEADER);
    match offload.gso {
        Gso::None => frame_len.saturating_sub(l3),
        _ => u32::from(layers.payload).saturating_sub(l3) + u32::from(offload.gso_size),
    }
}

/// The spare heads and the notes on them.
pub(crate) struct Heads {
    pub(crate) spare: Box<[Head]>,
    pub(crate) top: usize,
    pub(crate) carried: Box<[Carried]>,
    pub(crate) parsed: Box<[Parsed]>,
    /// Places that will still read each head, of those that may have several; the batch's own first.
    pub(crate) users: Box<[u16; HEADS]>,
}

impl Default for Heads {
    fn default() -> Self {
        Self {
            spare: std::iter::repeat_with(Head::default).take(SPARE).collect(),
            top: 0,
            carried: vec![Carried::default(); SPARE].into(),
            parsed: vec![Parsed::default(); SPARE].into(),
            users: Box::new([0; HEADS]),
        }
    }
}

/// Index of the spare head `at` names; `None` if it is one of the batch's, or none at all.
#[inline]
pub(crate) fn spare_index(at: HeadRef) -> Option<usize> {
    usize::from(at.0).checked_sub(BATCH).filter(|&index| index < SPARE)
}

/// Name of the spare head at `index`.
#[inline]
pub(crate) fn spare_at(index: usize) -> HeadRef {
    HeadRef((BATCH + index) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::build::{Frame, Ipv4, Tcp};

    fn tcp() -> Head {
        let frame = Frame::ethernet([2; 6], [4; 6]).vlan(0x8100, 7).ipv4(Ipv4::default());
        Head::copy_of(&frame.tcp(Tcp::default()).finish())
    }

    #[test]
    fn the_mtu_limits_what_follows_the_tags() {
        let fits = |head: &Head, frame_len| fits(head, &Offload::default(), frame_len, 1500);
        assert!(fits(&tcp(), 1518) && !fits(&tcp(), 1519));
        assert!(fits(&Head::copy_of(&[0; 60]), 1514) && !fits(&Head::copy_of(&[0; 60]), 1515));
        assert!(fits(&Head::default(), 10));
    }

    #[test]
    fn a_large_frame_is_as_long_as_its_segments() {
        let offload = |gso_size| Offload { gso: Gso::TcpV4, gso_size, ..Offload::default() };
        assert!(fits(&tcp(), &offload(1460), 64_000, 20 + 20 + 1460));
        assert!(!fits(&tcp(), &offload(1461), 64_000, 20 + 20 + 1460));
    }
}
