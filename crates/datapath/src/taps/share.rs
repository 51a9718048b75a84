//! Which part of the frames that a capture's filter takes it shows, and what it may cost.
//!
//! * One in so many, chosen by the packet's id: each point of each node chooses the same packets.
//! * The first of each flow, at each point and worker. Flows are told apart by 65,536 places: two in one place share what one has.
//! * A share of each worker's time, over a second: a short burst is shown whole.

use crate::id::PortAt;
use capture::IdKey;
use flow::Nanos;
use port::Body;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use wire::{Field, HEAD_MAX, Key, WORDS};

/// What a capture shows of that which its filter takes, and may cost. The default is all, whatever that costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// One packet in so many.
    pub every: Option<Every>,
    /// So many of each flow.
    pub first: Option<NonZeroU32>,
    /// Percent of a worker's time.
    pub budget: Option<u8>,
}

/// One packet in so many, by the ids that this key makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Every {
    /// In so many.
    pub packets: NonZeroU32,
    /// The capture's key.
    pub key: IdKey,
}

/// Chooses frames for one tap.
pub(super) struct Chooser {
    every: Option<Every>,
    first: Option<First>,
}

impl Chooser {
    pub(super) fn new(share: &Share) -> Self {
        Self { every: share.every, first: share.first.map(First::new) }
    }

    /// Whether a frame is shown at a point.
    #[inline]
    pub(super) fn takes(&mut self, place: (PortAt, usize), head: &[u8], body: Body<'_>) -> bool {
        (self.every.is_none() && self.first.is_none()) || self.choose(place, head, body)
    }

    /// Whether a tunnel's packet is shown as it is outside: chosen by the frame inside, as far as that is known.
    pub(super) fn takes_outer(
        &mut self,
        place: (PortAt, usize),
        inside: &[u8],
        (head, body): (&[u8], Body<'_>),
    ) -> bool {
        match inside {
            [] => self.takes(place, head, body),
            _ => self.takes(place, inside, Body::default()),
        }
    }

    fn choose(&mut self, place: (PortAt, usize), head: &[u8], body: Body<'_>) -> bool {
        self.every.is_none_or(|every| every.takes(head, body))
            && self.first.as_mut().is_none_or(|first| first.takes(place, head))
    }
}

impl Every {
    fn takes(&self, head: &[u8], body: Body<'_>) -> bool {
        let mut space = [0; HEAD_MAX];
        let more = body.len().min(HEAD_MAX.saturating_sub(head.len()));
        let bytes = match more {
            0 => head,
            _ => {
                space[..head.len()].copy_from_slice(head);
                body.copy_to(0, &mut space[head.len()..][..more]);
                &space[..head.len() + more]
            }
        };
        self.key.id(bytes).0.is_multiple_of(self.packets.get().into())
    }
}

/// Places of flows.
const PLACES: usize = 1 << 16;

/// How many frames of each flow were shown.
struct First {
    most: u32,
    mask: Key,
    hash: RandomState,
    shown: Box<[u32]>,
}

impl First {
    fn new(most: NonZeroU32) -> Self {
        let mut mask = Key::default();
        let fields = [
            Field::EthType,
            Field::VlanVid,
            Field::IpProto,
            Field::Ipv4Src,
            Field::Ipv4Dst,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::TpSrc,
            Field::TpDst,
        ];
        fields.into_iter().for_each(|field| mask.set(field, field.full()));
        let shown = vec![0; PLACES].into_boxed_slice();
        Self { most: most.get(), mask, hash: RandomState::new(), shown }
    }

    fn takes(&mut self, (at, point): (PortAt, usize), head: &[u8]) -> bool {
        let key = wire::parse_bytes(head).0;
        let words: [u64; WORDS] = std::array::from_fn(|word| key.0[word] & self.mask.0[word]);
        let place = self.hash.hash_one((point, at, words)) as usize % PLACES;
        let shown = &mut self.shown[place];
        let is_one = *shown < self.most;
        *shown += u32::from(is_one);
        is_one
    }
}

/// What is saved at most: the budget of this time.
const SAVED_NS: i64 = 1_000_000_000;

/// What one tap may spend of its worker's time.
pub(super) struct Purse {
    /// `None`: it may spend whatever it takes.
    percent: Option<i64>,
    left_ns: i64,
    /// When it was filled last.
    at: Nanos,
}

impl Purse {
    pub(super) fn new(share: &Share) -> Self {
        let percent = share.budget.map(i64::from);
        let left_ns = SAVED_NS * percent.unwrap_or_default() / 100;
        Self { percent, left_ns, at: Nanos(0) }
    }

    /// Adds what has come in since the last time.
    pub(super) fn fill(&mut self, now: Nanos) {
        let Some(percent) = self.percent else { return };
        // Less than 100 ns waits for the next time.
        let passed = now.since(self.at) / 100;
        if passed > 0 {
            self.at = Nanos(self.at.0 + passed * 100);
            let passed = i64::try_from(passed).unwrap_or(SAVED_NS).min(SAVED_NS);
            self.left_ns = (self.left_ns + passed * percent).min(SAVED_NS * percent / 100);
        }
    }

    /// Takes out what was spent.
    pub(super) fn spend(&mut self, ns: u64) {
        if self.percent.is_some() {
            self.left_ns = self.left_ns.saturating_sub_unsigned(ns);
        }
    }

    /// Whether there is time for records.
    pub(super) fn may_write(&self) -> bool {
        self.percent.is_none() || self.left_ns > 0
    }

    /// Whether there is time to look at frames: as long as no more is owed than is ever saved.
    pub(super) fn may_look(&self) -> bool {
        self.percent.is_none_or(|percent| self.left_ns > -SAVED_NS * percent / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SwitchId;
    use wire::build::{Frame, Ipv4};

    fn frame(flow: u16, number: u8) -> Vec<u8> {
        Frame::ethernet([2; 6], [4; 6])
            .ipv4(Ipv4::default())
            .udp(flow, 2)
            .payload(&[number; 300])
            .finish()
    }

    const AT: PortAt = PortAt { switch: SwitchId(1), port: 1 };

    #[test]
    fn one_packet_in_so_many_is_the_same_one_wherever_its_head_ends() {
        let every = Every { packets: NonZeroU32::new(4).unwrap(), key: IdKey([1, 2]) };
        let frames: Vec<_> = (0..=255).map(|number| frame(7, number)).collect();
        let chosen: Vec<_> =
            frames.iter().map(|bytes| every.takes(bytes, Body::default())).collect();
        let count = chosen.iter().filter(|is| **is).count();
        assert!((40..90).contains(&count), "{count} of 256 are one in four, about");
        for (bytes, is_chosen) in frames.iter().zip(&chosen) {
            for cut in [60, 200, 256] {
                let (head, body) = bytes.split_at(cut);
                assert_eq!(every.takes(head, Body::private(body)), *is_chosen);
            }
        }
    }

    #[test]
    fn the_first_of_each_flow_are_shown_at_each_point() {
        let share = Share { first: NonZeroU32::new(3), ..Share::default() };
        let mut chooser = Chooser::new(&share);
        for point in [0, 1] {
            for flow in [10, 20] {
                let shown = (0..10).filter(|&number| {
                    chooser.takes((AT, point), &frame(flow, number), Body::default())
                });
                assert_eq!(shown.count(), 3, "flow {flow} at point {point}");
            }
        }
    }

    #[test]
    fn who_spent_the_budget_writes_no_more_and_who_spent_twice_as_much_does_not_look() {
        let mut purse = Purse::new(&Share { budget: Some(5), ..Share::default() });
        let second = 1_000_000_000;
        purse.fill(Nanos(10 * second));
        purse.spend(49_000_000);
        assert!(purse.may_write(), "5 % of a second are 50 ms");
        purse.spend(2_000_000);
        assert!(!purse.may_write() && purse.may_look());
        purse.spend(50_000_000);
        assert!(!purse.may_look());
        purse.fill(Nanos(10 * second + second / 2));
        assert!(purse.may_look() && !purse.may_write(), "25 of 51 owed ms have come in");
        purse.fill(Nanos(20 * second));
        purse.spend(49_000_000);
        assert!(purse.may_write(), "no more is saved than a second's");
        purse.spend(2_000_000);
        assert!(!purse.may_write());
    }

    #[test]
    fn little_by_little_the_same_comes_in() {
        let mut purse = Purse::new(&Share { budget: Some(10), ..Share::default() });
        purse.fill(Nanos(1000));
        purse.spend(200_000_000);
        let before = purse.left_ns;
        (1001..=11_000).for_each(|now| purse.fill(Nanos(now)));
        assert_eq!(purse.left_ns - before, 1000, "a tenth of 10 us");
    }

    #[test]
    fn without_a_budget_nothing_is_too_much() {
        let mut purse = Purse::new(&Share::default());
        purse.spend(u64::MAX);
        assert!(purse.may_write() && purse.may_look());
    }
}
