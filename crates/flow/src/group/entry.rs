//! One group, ready for workers.

use super::select::Slots;
use super::{Bucket, GroupKind};
use crate::action::{Action, Output};
use crate::action_set::ActionSet;
use crate::tally::{Counted, History, Tally};
use std::ops::Range;
use std::sync::Arc;

/// A bucket, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its actions in the order of execution of an action set.
    pub actions: Box<[Action]>,
    /// What it was given.
    pub tally: Tally,
}

/// The part of a group that lasts until it is modified.
#[derive(Debug)]
pub(crate) struct Body {
    pub kind: GroupKind,
    pub buckets: Vec<Bucket>,
    pub programs: Box<[Program]>,
    pub history: History,
}

impl Body {
    pub fn new(kind: GroupKind, buckets: Vec<Bucket>, history: History) -> Arc<Self> {
        let program = |bucket: &Bucket| Program {
            actions: ActionSet::of(&bucket.actions).program().into(),
            tally: Tally::default(),
        };
        let programs = buckets.iter().map(program).collect();
        Arc::new(Self { kind, buckets, programs, history })
    }
}

/// Which buckets packets take, as long as the same ports and groups are live.
#[derive(Debug)]
enum Choice {
    None,
    Every,
    One(u16),
    ByHash(Slots),
}

/// One group as it stands.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) body: Arc<Body>,
    /// Which buckets are usable.
    usable: Box<[bool]>,
    choice: Choice,
}

impl Group {
    /// The group when those of its buckets are usable that `usable` says.
    pub fn new(body: Arc<Body>, usable: impl Fn(&Bucket) -> bool) -> Self {
        let usable: Box<[bool]> = body.buckets.iter().map(usable).collect();
        let choice = match body.kind {
            GroupKind::All => Choice::Every,
            GroupKind::Indirect => Choice::One(0),
            GroupKind::FastFailover => {
                let first = usable.iter().position(|&usable| usable);
                first.map_or(Choice::None, |at| Choice::One(at as u16))
            }
            GroupKind::Select => by_hash(&body.buckets, &usable),
        };
        Self { body, usable, choice }
    }

    /// Whether some bucket is usable.
    pub fn is_live(&self) -> bool {
        self.usable.contains(&true)
    }

    /// Whether the same buckets are usable as when it was made.
    pub fn still_holds(&self, usable: impl Fn(&Bucket) -> bool) -> bool {
        self.body.buckets.iter().map(usable).eq(self.usable.iter().copied())
    }

    /// The buckets that a packet takes.
    pub fn choose(&self, hash: impl FnOnce() -> u64) -> &[Program] {
        &self.body.programs[self.chosen(hash)]
    }

    /// The places of the buckets that a packet takes.
    pub fn chosen(&self, hash: impl FnOnce() -> u64) -> Range<usize> {
        let one = |at: usize| at..at + 1;
        match &self.choice {
            Choice::None => 0..0,
            Choice::Every => 0..self.body.programs.len(),
            Choice::One(at) => one(usize::from(*at)),
            Choice::ByHash(slots) => one(slots.pick(hash())),
        }
    }

    /// Whether it depends on a packet's hash which one it takes.
    pub fn chooses_by_hash(&self) -> bool {
        matches!(self.choice, Choice::ByHash(_))
    }

    /// The actions of the bucket at a place.
    pub fn actions(&self, at: usize) -> &[Action] {
        self.body.programs.get(at).map_or(&[], |program| &program.actions)
    }

    /// Counts frames that took a bucket elsewhere.
    pub fn credit(&self, bucket: usize, frames: Counted) {
        self.tally().add(frames);
        if let Some(program) = self.body.programs.get(bucket) {
            program.tally.add(frames);
        }
    }

    /// What the group was given.
    pub fn tally(&self) -> &Tally {
        &self.body.history.tally
    }
}

fn by_hash(buckets: &[Bucket], usable: &[bool]) -> Choice {
    let weight = |(bucket, &usable): (&Bucket, &bool)| if usable { bucket.weight } else { 0 };
    let weights: Vec<u16> = buckets.iter().zip(usable).map(weight).collect();
    let mut takers = (0..).zip(&weights).filter(|&(_, &weight)| weight > 0).map(|(at, _)| at);
    match (takers.next(), takers.next()) {
        (None, _) => Choice::None,
        (Some(at), None) => Choice::One(at),
        _ => Choice::ByHash(Slots::fill(buckets, &weights)),
    }
}

/// Where a bucket's packets go in the end: the ports and groups that an unwatched bucket depends on.
pub(super) fn destination(bucket: &Bucket) -> Option<Action> {
    let set = ActionSet::of(&bucket.actions);
    match set.program().last() {
        Some(&last @ (Action::Group(_) | Action::Output(Output::Port(_)))) => Some(last),
        _ => None,
    }
}
