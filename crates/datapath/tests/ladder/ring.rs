//! Guests' rings between a line and the switch: frames are shown in one guest's memory, and may be copied into another's before anybody reads them.
//!
//! What does not go that way is received from the line, and sent to it, as without rings.

#[path = "../../../vhost/tests/ring/driver/mod.rs"]
#[expect(dead_code, reason = "the ring's own tests use the rest")]
mod driver;
#[path = "../../../vhost/tests/ring/guest.rs"]
#[expect(dead_code, reason = "likewise")]
mod guest;

use datapath::Queues;
use driver::{Driver, SPACE};
use port::{Body, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue, Unread, UnreadSent};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vhost::{Chains, Features, HEADER_MAX, Put, Vring};
use wire::{BATCH, HEAD_MAX, Offload, Pattern};

/// Fewer than a batch has frames, so that there is not always room.
const BUFFERS: u16 = 32;

/// A driver and the switch's end of its ring.
struct End {
    driver: Driver,
    device: Vring,
    chains: Chains,
}

impl End {
    fn new(size: u16, features: Features) -> Arc<Mutex<Self>> {
        let driver = Driver::new(size, features);
        let device = driver.device();
        Arc::new(Mutex::new(Self { driver, device, chains: Chains::default() }))
    }
}

/// A ring that frames come from and one that they go to, for all lines of a worker.
#[derive(Clone)]
pub struct Rings {
    from: Arc<Mutex<End>>,
    to: Arc<Mutex<End>>,
    /// Frames that went unread: without a pattern, and with one.
    taken: Arc<[AtomicU64; 2]>,
}

impl Rings {
    pub fn new(features: Features) -> Self {
        let features = features | Features::VERSION_1 | Features::MRG_RXBUF;
        let to = End::new(BUFFERS, features);
        (0..BUFFERS).for_each(|_| assert!(to.lock().unwrap().driver.post(&[1600], false)));
        Self {
            from: End::new(2 * BATCH as u16, features | Features::CSUM),
            to,
            taken: Arc::default(),
        }
    }

    pub fn taken(&self) -> [u64; 2] {
        [0, 1].map(|rung| self.taken[rung].load(Ordering::Relaxed))
    }

    /// A line's queues behind these rings.
    pub fn before(&self, line: Queues) -> Queues {
        let rx =
            |line| Box::new(Rx { line, rings: self.clone(), batch: RxBatch::default() }) as Box<_>;
        let tx = |line| Box::new(Tx { line, rings: self.clone() }) as Box<_>;
        Queues {
            rx: line.rx.into_iter().map(rx).collect(),
            tx: line.tx.into_iter().map(tx).collect(),
            mtu: line.mtu,
        }
    }
}

struct Rx {
    line: Box<dyn RxQueue>,
    rings: Rings,
    batch: RxBatch,
}

impl Rx {
    /// Shows the first frames of the batch in a guest's memory; how many were sent from there.
    fn show(&self, forward: &mut dyn FnMut(Unread<'_>) -> usize) -> usize {
        let End { driver, device, chains } = &mut *self.rings.from.lock().unwrap();
        for slot in self.batch.frames() {
            // One with a state has a header that says something, as drivers with this feature may.
            let mut bytes = vec![0; HEADER_MAX];
            bytes[0] = u8::from(!slot.offload.is_none());
            bytes.extend(slot.head.bytes());
            slot.to_send(&*self.line).body.append_to(&mut bytes);
            if bytes.len() as u64 > SPACE {
                break;
            }
            assert!(driver.send(&bytes, &[bytes.len() as u32], false));
        }
        let sent = match device.take(BATCH, chains).unwrap() {
            0 => 0,
            _ => forward(Unread::new(chains, device.features())),
        };
        // A round takes a bounded number of bytes; the rest goes back unseen.
        loop {
            device.give_back();
            if device.take(BATCH, chains).unwrap() == 0 {
                break;
            }
        }
        while driver.reap().is_some() {}
        sent
    }
}

impl RxQueue for Rx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        self.line.rx(batch, drops)
    }

    fn rx_unread(
        &mut self,
        batch: &mut RxBatch,
        drops: &mut Drops,
        forward: &mut dyn FnMut(Unread<'_>) -> usize,
    ) -> io::Result<()> {
        self.batch.clear();
        let count = self.line.rx(&mut self.batch, drops)?;
        let sent = if count > 0 { self.show(forward) } else { 0 };
        let rest = &self.batch.frames()[sent..];
        for (slot, from) in batch.free().iter_mut().zip(rest) {
            let head = from.head.bytes();
            slot.head.area()[..head.len()].copy_from_slice(head);
            slot.head.set_len(head.len());
            (slot.offload, slot.body) = (from.offload, from.body);
        }
        batch.advance(rest.len());
        if count > 0 && rest.is_empty() {
            self.line.release();
        }
        Ok(())
    }

    fn body(&self, at: u64, len: u32) -> Body<'_> {
        self.line.body(at, len)
    }

    fn release(&mut self) {
        self.line.release();
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.line.readiness()
    }
}

struct Tx {
    line: Box<dyn TxQueue>,
    rings: Rings,
}

impl TxQueue for Tx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        self.line.tx(frames, drops)
    }

    fn tx_unread(
        &mut self,
        frames: Unread<'_>,
        lengths: &RangeInclusive<usize>,
        pattern: Option<&Pattern>,
    ) -> UnreadSent {
        let End { driver, device, .. } = &mut *self.rings.to.lock().unwrap();
        let count = frames.len();
        device.reserve(count).unwrap();
        let Put { frames, bytes } = match pattern {
            None => device.put_unread(frames, lengths),
            Some(pattern) => device.put_alike(frames, lengths, pattern),
        };
        let is_full = frames < count && !device.has_room();
        device.publish();
        for _ in 0..frames {
            let received = driver.reap().unwrap().split_off(HEADER_MAX);
            let (head, body) = received.split_at(received.len().min(HEAD_MAX));
            let (body, offload) = (Body::private(body), Offload::default());
            let frame = TxFrame { head, body, offload, tunnel_id: 0, tun_dst: 0 };
            assert_eq!(self.line.tx(&[frame], &mut Drops::default()).frames, 1);
            assert!(driver.post(&[1600], false));
        }
        assert!(driver.reap().is_none(), "the guest has what was counted");
        self.rings.taken[usize::from(pattern.is_some())]
            .fetch_add(frames as u64, Ordering::Relaxed);
        UnreadSent { sent: Sent { frames: frames as u64, bytes }, is_full }
    }
}
