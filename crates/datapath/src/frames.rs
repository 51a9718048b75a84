//! A received batch, taken apart for a pass.

use arrayvec::ArrayVec;
use port::{BATCH, Body, BodyAt, RxBatch, RxQueue, Sent, Slot};
use wire::{Head, Offload};

/// Shortest frame with an Ethernet header.
const ETHERNET_HEADER: usize = 14;

/// Heads to edit and bodies to read, frame by frame.
#[derive(Default)]
pub(crate) struct Frames<'a> {
    pub(crate) heads: ArrayVec<&'a mut Head, BATCH>,
    pub(crate) bodies: ArrayVec<Body<'a>, BATCH>,
    pub(crate) offloads: ArrayVec<Offload, BATCH>,
    /// What is here.
    pub(crate) received: Sent,
    /// Frames left out because they have no Ethernet header.
    pub(crate) runts: u64,
}

impl<'a> Frames<'a> {
    /// Takes the batch apart; `source` has the bodies that are not in the batch itself.
    pub(crate) fn of(batch: &'a mut RxBatch, source: Option<&'a dyn RxQueue>) -> Self {
        let mut frames = Self::default();
        for Slot { head, body, offload, buffer } in batch.frames_mut() {
            let body = match (*body, source) {
                (BodyAt::Nowhere, _) | (BodyAt::Port { .. }, None) => Body::default(),
                (BodyAt::Slot(len), _) => Body::private(&buffer[..len as usize]),
                (BodyAt::Port { at, len }, Some(source)) => source.body(at, len),
            };
            let len = head.bytes().len() + body.len();
            if len < ETHERNET_HEADER {
                frames.runts += 1;
                continue;
            }
            frames.received.frames += 1;
            frames.received.bytes += len as u64;
            frames.heads.push(head);
            frames.bodies.push(body);
            frames.offloads.push(*offload);
        }
        frames
    }
}
