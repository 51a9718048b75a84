//! Frames at steering's programs in the kernel: one ring for each interface, and all captures that want its frames.
//!
//! Whichever capture's thread comes first takes what is in the ring, for all of them. While none wants anything the programs write nothing.
//!
//! Locks: that of all interfaces, held while a capture comes or goes; then that of one interface, held while its ring is read.

use super::aside::{Aside, Note};
use super::file::headers;
use super::{Look, lock};
use crate::refusal::Refusal;
use ::capture::{Direction, IdKey};
use datapath::{Clock, MonotonicClock, Sieve};
use flow::Nanos;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use xdp::steer::{Frames, Shown, ShownCount, ShownUnit, Side, UnitKind};

/// A capture that wants an interface's frames.
pub struct Watcher {
    /// Where it keeps them.
    pub aside: Arc<Aside>,
    /// As which points, by side.
    pub points: [Option<usize>; Side::ALL.len()],
    /// Which ones.
    pub sieve: Sieve,
    /// What makes their ids.
    pub key: IdKey,
    /// Most bytes of a frame that are looked at, and that are kept.
    pub looks_at: u32,
    /// Most bytes of a frame that are kept.
    pub snap: usize,
    /// Bytes kept behind a frame's headers; `None` for all.
    pub payload: Option<u32>,
}

/// All interfaces that somebody looks at.
#[derive(Clone, Default)]
pub struct Lookouts(Arc<Mutex<BTreeMap<String, Arc<Lookout>>>>);

/// One interface.
struct Lookout {
    name: String,
    inner: Mutex<Inner>,
}

struct Inner {
    frames: Frames,
    watchers: Vec<(u32, Watcher)>,
    /// Number of the next one.
    next: u32,
    /// As of the last look.
    counted: [ShownCount; Side::ALL.len()],
}

/// A capture looks until this is dropped.
pub struct Watching {
    all: Lookouts,
    lookout: Arc<Lookout>,
    number: u32,
}

impl Lookouts {
    /// Lets a capture look at an interface's frames, which `open` opens if nobody looks yet.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn watch(
        &self,
        interface: &str,
        watcher: Watcher,
        open: impl FnOnce() -> Result<Frames, Refusal>,
    ) -> Result<Watching, Refusal> {
        let mut all = lock(&self.0);
        let there = all.get(interface).filter(|there| !lock(&there.inner).frames.is_gone());
        let lookout = match there {
            Some(there) => there.clone(),
            None => {
                let lookout = Arc::new(Lookout::new(interface, open()?));
                all.insert(interface.to_owned(), lookout.clone());
                lookout
            }
        };
        let number = lookout.add(watcher);
        drop(all);
        Ok(Watching { all: self.clone(), lookout, number })
    }
}

impl Look for Watching {
    fn look(&mut self) {
        self.lookout.read(MonotonicClock.now());
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        let is_last = self.lookout.remove(self.number);
        let is_it = |there: &Arc<Lookout>| Arc::ptr_eq(there, &self.lookout);
        if is_last && all.get(&self.lookout.name).is_some_and(is_it) {
            all.remove(&self.lookout.name);
        }
    }
}

impl Lookout {
    fn new(name: &str, frames: Frames) -> Self {
        let counted = frames.counted();
        let inner = Inner { frames, watchers: Vec::new(), next: 0, counted };
        Self { name: name.to_owned(), inner: Mutex::new(inner) }
    }

    fn add(&self, watcher: Watcher) -> u32 {
        let mut inner = lock(&self.inner);
        let number = inner.next;
        inner.next += 1;
        // What was seen before it came is not for it.
        inner.read(&self.name, MonotonicClock.now());
        inner.watchers.push((number, watcher));
        inner.look();
        number
    }

    /// True if it was the last one.
    fn remove(&self, number: u32) -> bool {
        let mut inner = lock(&self.inner);
        inner.watchers.retain(|(other, _)| *other != number);
        inner.look();
        inner.watchers.is_empty()
    }

    fn read(&self, now: Nanos) {
        lock(&self.inner).read(&self.name, now);
    }
}

impl Inner {
    /// Takes what was seen until now.
    fn read(&mut self, name: &str, now: Nanos) {
        self.charge(now);
        let Self { frames, watchers, .. } = self;
        while frames.take(|shown| tell(watchers, name, &shown)).is_some() {}
        self.look();
    }

    /// What was lost and spent since the last look is everybody's who looked.
    fn charge(&mut self, now: Nanos) {
        let counted = self.frames.counted();
        for (_, watcher) in &mut self.watchers {
            for (side, (count, before)) in counted.iter().zip(&self.counted).enumerate() {
                let (lost, spent) = (count.lost - before.lost, count.spent_ns - before.spent_ns);
                watcher.sieve.pay(now, spent);
                let Some(point) = watcher.points[side] else { continue };
                watcher.aside.charge(point, spent);
                if lost > 0 {
                    watcher.aside.lose(point, lost);
                }
            }
        }
        self.counted = counted;
    }

    /// Has the programs show what those want who have not overspent.
    fn look(&self) {
        let looking = self.watchers.iter().filter(|(_, watcher)| watcher.sieve.may_look());
        self.frames.look(looking.map(|(_, watcher)| watcher.looks_at).max().unwrap_or(0));
    }
}

fn tell(watchers: &mut [(u32, Watcher)], interface: &str, shown: &Shown<'_>) {
    for (_, watcher) in watchers {
        let Some(point) = watcher.points[shown.side as usize] else { continue };
        if !watcher.sieve.takes(point, shown.bytes) {
            continue;
        }
        match watcher.sieve.may_write() {
            true => watcher.aside.put(watcher.note(point, interface, shown)),
            false => watcher.aside.refuse(point),
        }
    }
}

impl Watcher {
    fn note(&self, point: usize, interface: &str, shown: &Shown<'_>) -> Note {
        let mut kept = shown.bytes.len().min(self.snap);
        if let Some(payload) = self.payload {
            kept = kept.min(headers(shown.bytes).saturating_add(payload as usize));
        }
        Note {
            at: Nanos(shown.at_ns),
            point,
            direction: match shown.side {
                Side::Before => Some(Direction::In),
                Side::After => Some(Direction::Out),
                Side::Dropped => None,
            },
            bytes: shown.bytes[..kept].to_vec(),
            original: shown.len,
            comment: said(interface, shown),
            id: Some(self.key.id(shown.bytes)),
            lost_before: 0,
        }
    }
}

/// What steering decided.
fn said(interface: &str, shown: &Shown<'_>) -> String {
    let mut text = String::new();
    // A String takes every text.
    if let Some(verdict) = shown.verdict {
        let word = if shown.side == Side::Dropped { "drop" } else { "verdict" };
        let _ = write!(text, "{word}={} ", verdict.name());
    }
    let _ = write!(text, "interface={interface} core={}", shown.core.0);
    if let Some(queue) = shown.queue {
        let _ = write!(text, " queue={queue}");
    }
    if let Some(unit) = &shown.unit {
        say_unit(&mut text, unit);
    }
    text
}

fn say_unit(text: &mut String, unit: &ShownUnit) {
    let _ = match unit.kind {
        UnitKind::Group(number) => write!(text, " unit=group/{number}"),
        UnitKind::Fcf { vm, .. } => write!(text, " unit=guest/{}", vm.get()),
        UnitKind::Entry => write!(text, " unit=rule/{}", unit.id.0),
    };
    text.push_str(if unit.is_priority { " class=priority" } else { " class=ordinary" });
    if unit.wants_own_core {
        text.push_str(" wants=own-core");
    }
    if let Some(core) = unit.core {
        let _ = write!(text, " to=core{}", core.0);
    }
    if let Some(reason) = unit.reason {
        let _ = write!(text, " why={}", reason.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use place::{CoreId, Reason, UnitId};
    use xdp::steer::Steered;

    #[test]
    fn a_comment_says_what_steering_decided() {
        let unit = ShownUnit {
            id: UnitId(7),
            kind: UnitKind::Group(7),
            is_priority: true,
            wants_own_core: false,
            core: Some(CoreId(3)),
            reason: Some(Reason::LeastLoaded),
        };
        let mut shown = Shown {
            side: Side::Before,
            at_ns: 0,
            core: CoreId(1),
            queue: Some(2),
            verdict: None,
            unit: None,
            len: 60,
            bytes: &[0; 60],
        };
        assert_eq!(said("eth0", &shown), "interface=eth0 core=1 queue=2");
        shown = Shown { queue: None, unit: Some(unit), ..shown };
        shown.side = Side::After;
        shown.verdict = Some(Steered::Sent);
        let after = "verdict=sent interface=eth0 core=1 unit=group/7 class=priority to=core3 why=least-loaded";
        assert_eq!(said("eth0", &shown), after);
        shown.side = Side::Dropped;
        shown.verdict = Some(Steered::QueueFull);
        assert!(said("eth0", &shown).starts_with("drop=queue-full interface=eth0 core=1 "));
    }
}
