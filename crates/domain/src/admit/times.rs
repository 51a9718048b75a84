//! A slice's time: it ends after it begins and after now, what runs goes on running, and what does not fit is told when it would.

use super::{Found, decide};
use crate::calendar::Span;
use crate::fault::Fault;
use crate::file::slice::SliceSpec;
use crate::parse::Slice;
use crate::words::{Moment, Uid};
use crate::world::World;

/// Most moments that are tried for a slice that does not fit. Chosen: with the demo's size 64 decisions take some 10 ms.
const TRIED_MAX: usize = 64;

/// What is wrong with when a slice is to be.
pub fn check(world: &World, spec: &SliceSpec) -> Vec<Found> {
    let (span, now) = (Span::of(spec), world.now());
    let has_begun = world.slice(&spec.key()).is_some_and(|old| Span::of(&old.spec).from <= now);
    let thing = || format!("slice {}", spec.key());
    let mut found = Vec::new();
    let mut note = |pointer: &str, what: String, remedy: &str| {
        found.push(Found::new(pointer, Fault::new(thing(), what).remedy(remedy)));
    };
    if span.until <= span.from {
        note("/until", "ends before it begins".into(), "give it an end behind `from`");
    } else if span.until <= now {
        let what = format!("would have ended: it is {}", Moment::at(now));
        note("/until", what, "give it a later end, or none");
    }
    if has_begun && span.from > now {
        let remedy = "leave `from` as it was; to have it later, delete it first";
        note("/from", "runs already, and would begin later".into(), remedy);
    }
    found
}

/// The first span of the same length, not before the wished one, in which the slice would be admitted; none if there is none, or it fits as it is.
pub fn first_fit(world: &World, slice: &Slice, uid: Uid) -> Option<SliceSpec> {
    let wished = Span::of(&slice.spec);
    let begin = wished.from.max(world.now());
    let length = (wished.until < i64::MAX).then(|| wished.until.saturating_sub(begin));
    let ends = world.slices().map(|(_, it)| Span::of(&it.spec).until);
    let mut starts: Vec<i64> = ends.filter(|end| *end > begin && *end < i64::MAX).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().take(TRIED_MAX).find_map(|from| {
        let mut spec = slice.spec.clone();
        spec.from = Some(Moment::at(from));
        spec.until = length.map(|length| Moment::at(from.saturating_add(length)));
        let ledger = world.peak(Span::of(&spec), Some(&spec.key()));
        decide(world, &spec, uid, &ledger).is_ok().then_some(spec)
    })
}
