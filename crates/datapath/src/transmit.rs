//! Tx: the frames that wait go to their destinations, one call for each destination.

use crate::heads::Carried;
use crate::local::{LocalPort, PortIx, Way};
use crate::pending::{HeadAt, Pending};
use crate::touch::{Touch, Touching};
use arrayvec::ArrayVec;
use port::{BATCH, Body, Drops, TxFrame};
use std::sync::atomic::Ordering::Relaxed;
use wire::{DropReason, Head};

/// Frames handed to a destination in one call: a batch, and as many again when its frames leave twice.
const TX_BATCH: usize = 2 * BATCH;

/// What a transmission works on.
pub(crate) struct Transmit<'a> {
    pub(crate) worker: usize,
    pub(crate) ports: &'a mut [Option<LocalPort>],
    pub(crate) pending: &'a mut Pending,
    pub(crate) carried: &'a mut [Carried],
    /// The bodies of the batch's frames.
    pub(crate) bodies: &'a [Body<'a>],
    pub(crate) drops: &'a mut Drops,
    pub(crate) touching: &'a Touching,
}

impl Transmit<'_> {
    /// Sends every waiting frame whose head `head_of` has; the others go on waiting.
    ///
    /// One that goes on waiting while a later frame to the same port leaves is one of several copies of its packet, and a
    /// program treats all packets of a flow alike: the frames of one flow and one output stay in order.
    pub(crate) fn flush<'h>(&mut self, head_of: impl Fn(HeadAt) -> Option<&'h Head>) {
        let before = self.touching.get();
        let dirty = self.pending.take_dirty();
        for &to in &dirty {
            self.flush_port(to, &head_of);
        }
        self.pending.return_dirty(dirty);
        self.touching.set(before);
    }

    fn flush_port<'h>(&mut self, to: PortIx, head_of: &impl Fn(HeadAt) -> Option<&'h Head>) {
        let Some(Some(port)) = self.ports.get_mut(to.0 as usize) else { return };
        let gate = Gate::of(port);
        let LocalPort { shared, way: Way::Queue(queue), chain, .. } = port else { return };
        let counters = &shared.counters[self.worker];
        let mut waiting = std::mem::take(chain);
        let mut frames = ArrayVec::<TxFrame<'_>, TX_BATCH>::new();
        while !waiting.is_empty() {
            while let Some(at) = self.pending.pop(&mut waiting) {
                let Some(head) = head_of(at) else {
                    self.pending.push(to, chain, at);
                    continue;
                };
                let carried = &mut self.carried[usize::from(at.0)];
                carried.users -= 1;
                if let Err(reason) = gate.pass(carried) {
                    counters.tx_drops.add(reason, 1);
                    continue;
                }
                let body = self.bodies[usize::from(carried.origin)];
                frames.push(TxFrame { head: head.bytes(), body, offload: carried.offload });
                if frames.is_full() {
                    break;
                }
            }
            if frames.is_empty() {
                break; // each was refused here
            }
            self.touching.set(Touch::Tx(to));
            counters.tx.add(queue.tx(&frames, self.drops));
            counters.tx_drops.take(self.drops);
            frames.clear();
        }
    }
}

/// What a frame must meet to leave by a port, read once for all frames that wait for it.
struct Gate {
    shut: Option<DropReason>,
    mtu: u32,
}

impl Gate {
    fn of(port: &LocalPort) -> Self {
        let shut = match () {
            () if port.is_parked() => Some(DropReason::TxError),
            () if !port.shared.up.load(Relaxed) => Some(DropReason::PortDown),
            () => None,
        };
        Self { shut, mtu: port.shared.mtu.load(Relaxed) }
    }

    #[inline]
    fn pass(&self, frame: &Carried) -> Result<(), DropReason> {
        match self.shut {
            Some(reason) => Err(reason),
            None if frame.packet_len > self.mtu => Err(DropReason::TooBig),
            None => Ok(()),
        }
    }
}
