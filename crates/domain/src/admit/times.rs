//! A slice's time: it ends after it begins and after now, and what runs goes on running.

use super::Found;
use crate::calendar::Span;
use crate::fault::Fault;
use crate::file::slice::SliceSpec;
use crate::words::Moment;
use crate::world::World;

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
