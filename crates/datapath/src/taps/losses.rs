//! What is lost, and what tunnels send outside: seen from the ports' side, at once and by whatever thread is there.

use super::record::Front;
use super::tap::Bytes;
use super::{Point, Taps};
use crate::id::PortAt;
use flow::Nanos;
use port::{Body, LossTap, Lost, OuterPacket, TxFrame};
use wire::{DropReason, HEAD_MAX};

impl Taps {
    /// A frame that a port's queue has no room for, or cannot get rid of.
    #[cold]
    #[inline(never)]
    pub(crate) fn queue_lost(
        &self,
        (at, queue): (PortAt, u32),
        reason: DropReason,
        frame: &TxFrame<'_>,
    ) {
        let lost = Lost::Frame { head: frame.head, body: frame.body };
        self.show_loss(|point| point.sees_queue(at, queue), at, reason, (&lost, self.clock.now()));
    }

    /// What is lost, at the first point of each capture that sees it.
    fn show_loss(
        &self,
        sees: impl Fn(&Point) -> bool,
        at: PortAt,
        reason: DropReason,
        (lost, now): (&Lost<'_>, Nanos),
    ) {
        for tap in self.list().iter_mut() {
            let Some(point) = tap.points.iter().position(&sees) else { continue };
            tap.charged(&*self.clock, (point, 1), |tap| {
                // A number has no bytes that a filter could want or not.
                let (is_wanted, bytes) = match *lost {
                    Lost::Frame { head, body } => {
                        (tap.wants((at, point), head, body), Bytes::of(head, body))
                    }
                    Lost::Elsewhere(_) => (tap.filter.takes_all(), Bytes::of(&[], Body::default())),
                };
                if is_wanted {
                    tap.put(point, Front::of_loss((point, at), reason, now, lost), bytes);
                    tap.publish();
                }
            });
        }
    }
}

impl LossTap for Taps {
    fn lost(&self, at: PortAt, reason: DropReason, lost: &Lost<'_>) {
        if let Some(always) = &self.always {
            always.lost(at, reason, lost);
        }
        let now = self.clock.now();
        let head = match lost {
            Lost::Frame { head, .. } => *head,
            Lost::Elsewhere(_) => &[],
        };
        self.flight.note(now, Front::of_loss((0, at), reason, now, lost), head);
        if self.is_on() {
            self.show_loss(|point| point.sees_losses(at), at, reason, (lost, now));
        }
    }

    #[cold]
    fn outside(&self, at: PortAt, packet: &OuterPacket<'_>) {
        // Not the round's: it comes after what was sent within the round of another worker.
        let now = self.clock.now();
        let &OuterPacket { headers, payload, inside, .. } = packet;
        let (inside, body) = (&inside[..inside.len().min(HEAD_MAX)], Body::private(payload));
        for tap in self.list().iter_mut() {
            let Some(point) = tap.points.iter().position(|point| point.sees_outside(at)) else {
                continue;
            };
            tap.charged(&*self.clock, (point, 1), |tap| {
                if tap.filter.takes_outer(at, inside, (headers, body))
                    && tap.chooser.takes_outer((at, point), inside, (headers, body))
                {
                    let front = Front::of_outer((point, at), now, packet);
                    tap.put(point, front, Bytes { inside, head: headers, body });
                    tap.publish();
                }
            });
        }
    }
}
