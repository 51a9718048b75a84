//! A frame on its way to another worker, as a record of a ring: five words, and all its bytes.
//!
//! ```text
//! word 0   place of the switch 32, number of the switch 32
//! word 1   unit 32, port that it came in at 32
//! word 2   offload state: start 16, offset 16, segment 16, flags 8, large frame 8
//! word 3   number of the tunnel's end that sent it 16, tunnel id 32
//! word 4   when it came in, ns
//! ```

use crate::id::{SwitchId, SwitchIx};
use crate::sys::ring;
use flow::{Nanos, Packet, PortNo};
use place::UnitId;
use port::Body;
use wire::{Gso, Offload, PartialChecksum};

/// What goes with a frame's bytes.
type Words = [u64; 5];
/// The end of a ring of frames that puts.
pub(crate) type Writer = ring::Writer<5>;
/// The end that takes.
pub(crate) type Reader = ring::Reader<5>;

/// What is said of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) ix: SwitchIx,
    /// The place may belong to another switch when the frame gets there.
    pub(crate) switch: SwitchId,
    pub(crate) unit: UnitId,
    pub(crate) in_port: PortNo,
    /// As its port told it: rules have not seen it yet.
    pub(crate) tunnel_id: u32,
    pub(crate) tun_src: u16,
    pub(crate) offload: Offload,
    /// When the round began by which it came in.
    pub(crate) since: Nanos,
}

const HAS_CHECKSUM: u64 = 1 << 48;
const IS_ECN: u64 = 1 << 49;
const IS_VERIFIED: u64 = 1 << 50;
const KINDS: [Gso; 4] = [Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::Udp];

impl Label {
    pub(crate) fn words(&self) -> Words {
        let Self { ix, switch, unit, in_port, tunnel_id, tun_src, offload, since } = *self;
        let tunnel = pair(tun_src.into(), tunnel_id);
        [pair(ix.0, switch.0), pair(unit.0, in_port), packed(&offload), tunnel, since.0]
    }

    pub(crate) fn of(words: &Words) -> Self {
        let [(ix, switch), (unit, in_port)] =
            [words[0], words[1]].map(|word| ((word >> 32) as u32, word as u32));
        Self {
            ix: SwitchIx(ix),
            switch: SwitchId(switch),
            unit: UnitId(unit),
            in_port,
            tunnel_id: words[3] as u32,
            tun_src: (words[3] >> 32) as u16,
            offload: unpacked(words[2]),
            since: Nanos(words[4]),
        }
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn packed(offload: &Offload) -> u64 {
    let Offload { checksum, gso, gso_size, gso_ecn, verified } = *offload;
    let flag = |is: bool, bit: u64| if is { bit } else { 0 };
    let PartialChecksum { start, offset } =
        checksum.unwrap_or(PartialChecksum { start: 0, offset: 0 });
    u64::from(start)
        | u64::from(offset) << 16
        | u64::from(gso_size) << 32
        | flag(checksum.is_some(), HAS_CHECKSUM)
        | flag(gso_ecn, IS_ECN)
        | flag(verified, IS_VERIFIED)
        | (gso as u64) << 56
}

fn unpacked(word: u64) -> Offload {
    let checksum = PartialChecksum { start: word as u16, offset: (word >> 16) as u16 };
    Offload {
        checksum: (word & HAS_CHECKSUM != 0).then_some(checksum),
        gso: KINDS[(word >> 56) as usize % KINDS.len()],
        gso_size: (word >> 32) as u16,
        gso_ecn: word & IS_ECN != 0,
        verified: word & IS_VERIFIED != 0,
    }
}

/// Copies a frame into a ring; false when it is full.
pub(crate) fn put(ring: &mut Writer, label: &Label, packet: &Packet<'_>, body: &Body<'_>) -> bool {
    let head = packet.head.bytes();
    let Some(bytes) = ring.reserve(label.words(), head.len() + body.len()) else { return false };
    let (front, rest) = bytes.split_at_mut(head.len());
    front.copy_from_slice(head);
    body.copy_to(0, rest);
    ring.commit();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_comes_out_as_it_went_in() {
        let checksum = Some(PartialChecksum { start: 34, offset: 16 });
        let large = |gso| Offload { checksum, gso, gso_size: 1448, gso_ecn: true, verified: false };
        let verified = Offload { verified: true, ..Offload::default() };
        for offload in KINDS.map(large).into_iter().chain([Offload::default(), verified]) {
            let (ix, switch, unit) = (SwitchIx(3), SwitchId(u32::MAX), UnitId(1280));
            let (in_port, tunnel_id, tun_src) = (0xffff_ff00, 0xff_ffff, 0xfffe);
            let since = Nanos(u64::MAX);
            let label = Label { ix, switch, unit, in_port, tunnel_id, tun_src, offload, since };
            assert_eq!(Label::of(&label.words()), label);
        }
    }
}
