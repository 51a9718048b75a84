//! Frames lost, by reason; and the one call with which a frame ends.

use crate::batch::{BodyAt, Slot};
use crate::frame::{Body, TxFrame};
use flow::PortAt;
use std::fmt;
use std::sync::Arc;
use wire::DropReason;

/// What was lost.
#[derive(Clone, Copy, Debug)]
pub enum Lost<'f> {
    /// A frame at hand.
    Frame {
        /// Its first bytes, as far as they came.
        head: &'f [u8],
        /// The rest.
        body: Body<'f>,
    },
    /// So many frames that nobody has at hand: the kernel or another thread lost them, or they were not put together yet.
    Elsewhere(u64),
}

impl<'f> Lost<'f> {
    /// A frame all of whose bytes lie in one piece.
    pub fn bytes(bytes: &'f [u8]) -> Self {
        Self::Frame { head: bytes, body: Body::default() }
    }

    /// A frame in a slot, whose body is not in its port's memory.
    pub(crate) fn slot(slot: &'f Slot) -> Self {
        let body = match slot.body {
            BodyAt::Slot(len) => Body::private(&slot.buffer[..len as usize]),
            BodyAt::Nowhere | BodyAt::Port { .. } => Body::default(),
        };
        Self::Frame { head: slot.head.bytes(), body }
    }

    /// Frames.
    fn count(&self) -> u64 {
        match *self {
            Self::Frame { .. } => 1,
            Self::Elsewhere(count) => count,
        }
    }
}

impl<'f> From<&TxFrame<'f>> for Lost<'f> {
    fn from(frame: &TxFrame<'f>) -> Self {
        Self::Frame { head: frame.head, body: frame.body }
    }
}

/// A packet of a tunnel as it is on the underlay.
#[derive(Clone, Copy, Debug)]
pub struct OuterPacket<'p> {
    /// Whether it leaves; else it came.
    pub is_sent: bool,
    /// Headers up to UDP's, made of what is known here: the kernel writes and reads the real ones. There are no MAC addresses.
    pub headers: &'p [u8],
    /// What is in the datagram, encrypted if the tunnel is.
    pub payload: &'p [u8],
    /// The frame inside; nothing of what could not be opened.
    pub inside: &'p [u8],
}

/// Sees every frame that is lost, and the packets of tunnels that somebody watches outside. It runs on the worker, and on the thread that seals: it must not wait.
pub trait LossTap: fmt::Debug + Send + Sync {
    /// A frame was lost at a port: on its way in or out, or by the verdict of its switch on what came in there.
    fn lost(&self, at: PortAt, reason: DropReason, lost: &Lost<'_>);

    /// A packet of this port, which is a tunnel, is about to leave on the underlay, or came from there.
    fn outside(&self, at: PortAt, packet: &OuterPacket<'_>) {
        let _ = (at, packet);
    }
}

/// Who sees a tunnel's packets outside.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    at: PortAt,
    tap: Arc<dyn LossTap>,
}

impl Watch {
    pub(crate) fn show(&self, packet: &OuterPacket<'_>) {
        self.tap.outside(self.at, packet);
    }
}

/// Frames lost since the counts were taken, by reason.
#[derive(Clone, Debug)]
pub struct Drops {
    counts: [u64; DropReason::ALL.len()],
    /// Reasons with a count, as bits: a look at one word tells a batch without losses from any other.
    seen: u64,
    /// Where frames are lost now.
    at: PortAt,
    /// Whether that port's packets are seen outside, if it is a tunnel.
    is_watched: bool,
    tap: Option<Arc<dyn LossTap>>,
}

const _: () = assert!(DropReason::ALL.len() <= u64::BITS as usize);

impl Default for Drops {
    fn default() -> Self {
        Self {
            counts: [0; DropReason::ALL.len()],
            seen: 0,
            at: PortAt::default(),
            is_watched: false,
            tap: None,
        }
    }
}

impl Drops {
    /// Drops that a tap sees.
    pub fn tapped(tap: Option<Arc<dyn LossTap>>) -> Self {
        Self { tap, ..Self::default() }
    }

    /// Names the port at which frames are lost from now on.
    #[inline]
    pub fn at(&mut self, port: PortAt) -> &mut Self {
        (self.at, self.is_watched) = (port, false);
        self
    }

    /// Has that port show its packets as they are outside.
    pub fn watch(&mut self) -> &mut Self {
        self.is_watched = true;
        self
    }

    /// Who sees them.
    #[inline]
    pub(crate) fn watcher(&self) -> Option<Watch> {
        match &self.tap {
            Some(tap) if self.is_watched => Some(Watch { at: self.at, tap: Arc::clone(tap) }),
            _ => None,
        }
    }

    /// Ends a frame, or counts frames that ended elsewhere.
    #[cold]
    pub fn lose<'f>(&mut self, reason: DropReason, lost: impl Into<Lost<'f>>) {
        let lost = lost.into();
        let count = lost.count();
        if count == 0 {
            return;
        }
        self.counts[reason as usize] += count;
        self.seen |= 1 << reason as u8;
        if let Some(tap) = &self.tap {
            tap.lost(self.at, reason, &lost);
        }
    }

    /// Whether no frame was lost.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.seen == 0
    }

    /// Reasons with frames, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let seen = DropReason::ALL.iter().filter(|&&reason| self.seen >> reason as u8 & 1 == 1);
        seen.map(|&reason| (reason, self.counts[reason as usize]))
    }

    /// Takes the counts out, reason by reason.
    #[inline]
    pub fn drain(&mut self, mut to: impl FnMut(DropReason, u64)) {
        while self.seen != 0 {
            let reason = DropReason::ALL[self.seen.trailing_zeros() as usize];
            self.seen &= self.seen - 1;
            to(reason, std::mem::take(&mut self.counts[reason as usize]));
        }
    }

    /// Forgets the counts; the tap stays.
    pub fn forget(&mut self) {
        self.drain(|_, _| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::SwitchId;
    use std::sync::Mutex;

    /// Where, why, how many frames, and their bytes.
    type Loss = (PortAt, DropReason, u64, Vec<u8>);

    #[derive(Debug, Default)]
    struct Seen(Mutex<Vec<Loss>>);

    impl LossTap for Seen {
        fn lost(&self, at: PortAt, reason: DropReason, lost: &Lost<'_>) {
            let mut bytes = Vec::new();
            if let Lost::Frame { head, body } = lost {
                bytes.extend_from_slice(head);
                body.append_to(&mut bytes);
            }
            self.0.lock().unwrap().push((at, reason, lost.count(), bytes));
        }
    }

    #[test]
    fn every_lost_frame_is_counted_once_and_seen_by_the_tap() {
        let seen = Arc::new(Seen::default());
        let mut drops = Drops::tapped(Some(Arc::clone(&seen) as Arc<dyn LossTap>));
        let at = PortAt { switch: SwitchId(3), port: 7 };
        drops.at(at).lose(DropReason::TxFull, Lost::bytes(&[1, 2]));
        drops.lose(DropReason::TxFull, Lost::Frame { head: &[3], body: Body::private(&[4, 5]) });
        drops.lose(DropReason::RxFull, Lost::Elsewhere(9));
        drops.lose(DropReason::Runt, Lost::Elsewhere(0));
        let wanted = [(DropReason::TxFull, 2), (DropReason::RxFull, 9)];
        assert_eq!(drops.iter().collect::<Vec<_>>(), wanted);
        let expected = vec![
            (at, DropReason::TxFull, 1, vec![1, 2]),
            (at, DropReason::TxFull, 1, vec![3, 4, 5]),
            (at, DropReason::RxFull, 9, vec![]),
        ];
        assert_eq!(*seen.0.lock().unwrap(), expected);
    }

    #[test]
    fn what_is_drained_is_gone_and_the_tap_stays() {
        let seen = Arc::new(Seen::default());
        let mut drops = Drops::tapped(Some(Arc::clone(&seen) as Arc<dyn LossTap>));
        let mut drained = Vec::new();
        for count in [1, 2] {
            drops.lose(DropReason::SealFull, Lost::Elsewhere(count));
            drops.lose(DropReason::NoMatch, Lost::Elsewhere(count));
            drops.drain(|reason, count| drained.push((reason, count)));
            assert!(drops.is_empty() && drops.iter().next().is_none());
        }
        let (no_match, full) = (DropReason::NoMatch, DropReason::SealFull);
        assert_eq!(drained, [(no_match, 1), (full, 1), (no_match, 2), (full, 2)]);
        assert_eq!(seen.0.lock().unwrap().len(), 4);
    }
}
