//! Packets of a call some of whose heads are spare ones.
//!
//! The batch's packets and those made of spare heads do not live equally long, so the former are lent by copies here and brought up to date
//! afterwards. Only frames that went to several switches at once come this way.

use crate::frames::unparsed;
use crate::heads::{Carried, Parsed, SPARE, spare_index};
use crate::pending::HeadRef;
use arrayvec::ArrayVec;
use flow::Packet;
use wire::{BATCH, Head, Key, Layers, Offload};

/// The packets, and what the batch's are to learn of them.
#[derive(Default)]
pub(crate) struct Copies<'h> {
    packets: ArrayVec<Packet<'h>, BATCH>,
    originals: ArrayVec<Option<Original<'h>>, BATCH>,
}

/// A packet of the batch, less its head.
struct Original<'h> {
    key: &'h mut Key,
    layers: &'h mut Layers,
    offload: &'h mut Offload,
    frame_len: &'h mut u32,
}

impl Original<'_> {
    fn learn(&mut self, of: &Packet<'_>) {
        (*self.key, *self.layers) = (of.key, of.layers);
        (*self.offload, *self.frame_len) = (of.offload, of.frame_len);
    }
}

impl<'h> Copies<'h> {
    /// Makes a packet for each of `places`, of the batch's or of a spare head and its notes.
    pub(crate) fn fill(
        &mut self,
        batch: &'h mut [Packet<'_>],
        (heads, carried, parsed): (&'h mut [Head], &[Carried], &[Parsed]),
        places: &[HeadRef],
    ) {
        let mut batch: ArrayVec<_, BATCH> = batch.iter_mut().map(Some).collect();
        let mut heads: ArrayVec<_, SPARE> = heads.iter_mut().map(Some).collect();
        for &at in places {
            match spare_index(at) {
                Some(spare) => {
                    let Some(head) = heads.get_mut(spare).and_then(Option::take) else { continue };
                    let (carried, parsed) = (&carried[spare], &parsed[spare]);
                    self.add(
                        head,
                        (carried.offload, carried.frame_len),
                        (&parsed.key, parsed.layers),
                    );
                    self.originals.push(None);
                }
                None => {
                    let own = batch.get_mut(usize::from(at.0)).and_then(Option::take);
                    let Some(Packet { head, key, layers, offload, frame_len, .. }) = own else {
                        continue;
                    };
                    self.add(head, (*offload, *frame_len), (key, *layers));
                    self.originals.push(Some(Original { key, layers, offload, frame_len }));
                }
            }
        }
    }

    fn add(
        &mut self,
        head: &'h mut Head,
        (offload, frame_len): (Offload, u32),
        (key, layers): (&Key, Layers),
    ) {
        self.packets.push(unparsed(head, offload, frame_len));
        if let Some(packet) = self.packets.last_mut() {
            (packet.key, packet.layers) = (*key, layers);
        }
    }

    /// Whether none was made.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Lends the packets, and tells the batch's what became of them.
    pub(crate) fn lend(&mut self, to: impl FnOnce(&mut [&mut Packet<'_>])) {
        let mut packets: ArrayVec<&mut Packet<'_>, BATCH> = self.packets.iter_mut().collect();
        to(&mut packets);
        for (packet, original) in packets.iter().zip(&mut self.originals) {
            if let Some(original) = original {
                original.learn(packet);
            }
        }
    }
}
