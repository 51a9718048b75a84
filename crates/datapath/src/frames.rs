//! A received batch, taken apart for a pass.

use arrayvec::ArrayVec;
use flow::{Packet, PortNo};
use port::{Body, BodyAt, Drops, Lost, RxBatch, RxQueue, Sent, Slot};
use wire::{BATCH, Depth, DropReason, Field, HEAD_MAX, Head, Key, Layers, Offload};

/// Shortest frame with an Ethernet header.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// Heads to edit and bodies to read, frame by frame. Large: made where it stays, and not moved.
pub(crate) struct Frames<'a> {
    pub(crate) packets: ArrayVec<Packet<'a>, BATCH>,
    pub(crate) bodies: ArrayVec<Body<'a>, BATCH>,
    /// What is here.
    pub(crate) received: Sent,
    /// Bytes of the longest.
    pub(crate) longest: u32,
    /// Frames left out because they have no Ethernet header.
    pub(crate) runts: u64,
    /// How far the packets have been parsed.
    pub(crate) parsed: Depth,
}

impl Frames<'_> {
    /// Where each came in, and its bytes.
    pub(crate) fn each(&self) -> impl Iterator<Item = (PortNo, &[u8], Body<'_>)> + Clone {
        let both = self.packets.iter().zip(&self.bodies);
        both.map(|(packet, &body)| (packet.in_port(), packet.head.bytes(), body))
    }
}

impl Default for Frames<'_> {
    fn default() -> Self {
        Self {
            packets: ArrayVec::new(),
            bodies: ArrayVec::new(),
            received: Sent::default(),
            longest: 0,
            runts: 0,
            parsed: Depth::Nothing,
        }
    }
}

impl<'a> Frames<'a> {
    /// Takes a batch apart, which came in at `in_port`; `source` has the bodies that are not in the batch itself. Loses runts.
    pub(crate) fn take(
        &mut self,
        batch: &'a mut RxBatch,
        source: Option<&'a dyn RxQueue>,
        in_port: PortNo,
        drops: &mut Drops,
    ) {
        let (mut bytes, mut longest) = (0, 0);
        let tunnels = tunnels(batch);
        for Slot { head, body, offload, buffer, .. } in batch.frames_mut() {
            // Each pushes its own: a body that was put together before would be read while it is still being written.
            match (*body, source) {
                (BodyAt::Nowhere, _) | (BodyAt::Port { .. }, None) => {
                    self.bodies.push(Body::default())
                }
                (BodyAt::Slot(len), _) => self.bodies.push(Body::private(&buffer[..len as usize])),
                (BodyAt::Port { at, len }, Some(source)) => self.bodies.push(source.body(at, len)),
            }
            let body_len = match body {
                BodyAt::Nowhere => 0,
                _ => self.bodies.last().map_or(0, Body::len),
            };
            let len = head.bytes().len() + body_len;
            if len < ETHERNET_HEADER {
                self.runts += 1;
                let body = self.bodies.pop().unwrap_or_default();
                drops.lose(DropReason::Runt, Lost::Frame { head: head.bytes(), body });
                continue;
            }
            (bytes, longest) = (bytes + len as u64, len.max(longest));
            self.packets.push(unparsed(head, *offload, len as u32));
            if let Some(packet) = self.packets.last_mut() {
                packet.key.set(Field::InPort, u128::from(in_port));
            }
        }
        for (packet, &(tunnel_id, tun_src)) in self.packets.iter_mut().zip(&tunnels) {
            packet.key.set(Field::TunnelId, tunnel_id.into());
            packet.key.set(Field::TunSrc, tun_src.into());
        }
        self.received = Sent { frames: self.packets.len() as u64, bytes };
        self.longest = longest as u32;
    }

    /// Loses all frames.
    #[cold]
    pub(crate) fn lose(&self, reason: DropReason, drops: &mut Drops) {
        for (packet, &body) in self.packets.iter().zip(&self.bodies) {
            drops.lose(reason, Lost::Frame { head: packet.head.bytes(), body });
        }
    }

    /// Adds a frame that was received earlier and came in at `in_port`: `head` is filled, and `bytes` are all of the frame.
    pub(crate) fn push(
        &mut self,
        head: &'a mut Head,
        bytes: &'a [u8],
        offload: Offload,
        in_port: PortNo,
    ) {
        let len = bytes.len().min(HEAD_MAX);
        head.area()[..len].copy_from_slice(&bytes[..len]);
        head.set_len(len);
        self.bodies.push(Body::private(&bytes[len..]));
        self.packets.push(unparsed(head, offload, bytes.len() as u32));
        if let Some(packet) = self.packets.last_mut() {
            packet.key.set(Field::InPort, u128::from(in_port));
        }
        self.received.count(bytes.len());
        self.longest = self.longest.max(bytes.len() as u32);
    }

    /// Says by which tunnel the frame pushed last had come.
    pub(crate) fn push_tunnel(&mut self, tunnel_id: u32, tun_src: u16) {
        if let Some(packet) = self.packets.last_mut() {
            packet.key.set(Field::TunnelId, tunnel_id.into());
            packet.key.set(Field::TunSrc, tun_src.into());
        }
    }

    /// Forgets all frames but those whose bit is set, in order.
    pub(crate) fn keep(&mut self, bits: u64) {
        let mut kept = 0;
        for at in 0..self.packets.len() {
            if bits & 1 << at != 0 {
                if kept != at {
                    self.packets.swap(kept, at);
                    self.bodies.swap(kept, at);
                }
                kept += 1;
            }
        }
        self.packets.truncate(kept);
        self.bodies.truncate(kept);
        self.received = Sent::default();
        self.packets.iter().for_each(|packet| self.received.count(packet.frame_len as usize));
    }
}

/// Tunnel id and sender of a batch's frames, but for runts; of a batch that has none nothing is looked at.
#[inline]
fn tunnels(batch: &RxBatch) -> ArrayVec<(u32, u16), BATCH> {
    match batch.has_tunnel_ids() {
        true => {
            let frames = batch.frames().iter().filter(|slot| slot.frame_len() >= ETHERNET_HEADER);
            frames.map(|slot| (slot.tunnel_id, slot.tun_src)).collect()
        }
        false => ArrayVec::new(),
    }
}

/// A packet of which nothing is known yet, to be filled in where it lies: key and layers are constants, for a key assembled elsewhere and
/// moved stalls on its own stores; and so would an offload state that is made here.
#[inline]
pub(crate) fn unparsed(head: &mut Head, offload: Offload, frame_len: u32) -> Packet<'_> {
    let (key, layers) = (Key::default(), Layers::default());
    Packet { head, key, layers, offload, frame_len, queue: 0 }
}
