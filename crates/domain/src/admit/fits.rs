//! What would fit: computed by the same decision with one quantity changed and all else fixed.

use super::{Found, decide};
use crate::fault::Fault;
use crate::file::slice::SliceSpec;
use crate::parse::Slice;
use crate::words::{Cpu, Delay, Name, Size, Uid};
use crate::world::{Ledger, World};
use api::Rate;

/// Most faults that are given what would fit. Chosen: who has more begins with these.
const EXPLAINED_MAX: usize = 8;
/// Most halvings and doublings for one fault (D4).
const LOOKS_MAX: usize = 24;
/// Most other sites that are tried (D4).
const SITES_MAX: usize = 8;

/// A quantity of the file that could be another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// A guest's memory.
    Memory(Name),
    /// A guest's share of cores.
    Cpu(Name),
    /// A link's rate.
    Rate(Name),
    /// A link's MTU.
    Mtu(Name),
    /// A link's longest time.
    Delay(Name),
    /// A guest's or switch's site alone.
    Site(Name),
}

/// Which way a quantity becomes easier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Easier {
    Less,
    More,
}

/// Adds what would fit and where it is written.
pub fn explain(
    world: &World,
    slice: &Slice,
    uid: Uid,
    (found, ledger, later): (Vec<Found>, &Ledger, Option<SliceSpec>),
) -> Vec<Fault> {
    let spec = &slice.spec;
    let later = later.and_then(|spec| {
        let from = spec.from?;
        let until = spec.until.map(|until| format!(", until: {until}")).unwrap_or_default();
        Some(format!("from: {from}{until}"))
    });
    let explained = found.into_iter().enumerate().map(|(n, found)| {
        let quantity = found.quantity.as_ref().filter(|_| n < EXPLAINED_MAX);
        let fits = quantity.map(|quantity| fits(world, spec, (uid, ledger), (&found, quantity)));
        let mut fault = match fits {
            Some(fits) if !fits.is_empty() => found.fault.fits(fits),
            _ => found.fault,
        };
        fault.fits.extend(later.clone());
        fault.at(slice.place(&found.pointer))
    });
    explained.collect()
}

fn fits(
    world: &World,
    spec: &SliceSpec,
    (uid, ledger): (Uid, &Ledger),
    (found, quantity): (&Found, &Quantity),
) -> Vec<String> {
    // The same object, whatever its fault is then: a guest that has its memory may lack cores.
    let object = object(&found.pointer);
    let admitted = |spec: &SliceSpec| match decide(world, spec, uid, ledger) {
        Ok(decision) => Some(Some(decision)),
        Err(faults) => {
            faults.iter().all(|fault| self::object(&fault.pointer) != object).then_some(None)
        }
    };
    // Admitted whole, if one quantity is enough for that; else the object's own fault is gone, and what is left is told beside it.
    let whole = quantity.best(spec, |spec| decide(world, spec, uid, ledger).is_ok());
    let fits = whole.or_else(|| quantity.best(spec, |spec| admitted(spec).is_some())).into_iter();
    let elsewhere = quantity.guest().into_iter().flat_map(|guest| {
        let own = spec
            .guests
            .get(guest)
            .map(|it| &it.site)
            .or_else(|| spec.switches.get(guest).map(|it| &it.site));
        let sites =
            world.domain().sites.keys().filter(move |site| Some(*site) != own).take(SITES_MAX);
        sites.filter_map(|site| {
            let decision = admitted(&moved(spec, guest, site))?;
            let node = decision
                .map(|decision| format!(" ({})", decision.nodes[guest]))
                .unwrap_or_default();
            Some(format!("{}at {site}{node}", quantity.wanted(spec)))
        })
    });
    fits.chain(elsewhere).collect()
}

/// `/guests/h1/memory` is of `/guests/h1`.
fn object(pointer: &str) -> &str {
    pointer.match_indices('/').nth(2).map_or(pointer, |(at, _)| &pointer[..at])
}

fn moved(spec: &SliceSpec, name: &Name, site: &Name) -> SliceSpec {
    let mut spec = spec.clone();
    spec.guests.get_mut(name).into_iter().for_each(|guest| guest.site = site.clone());
    spec.switches.get_mut(name).into_iter().for_each(|switch| switch.site = site.clone());
    spec
}

impl Quantity {
    fn guest(&self) -> Option<&Name> {
        match self {
            Self::Memory(name) | Self::Cpu(name) | Self::Site(name) => Some(name),
            Self::Rate(_) | Self::Mtu(_) | Self::Delay(_) => None,
        }
    }

    /// Its value, the step that it is changed by, and which way is easier.
    fn range(&self, spec: &SliceSpec) -> Option<(u64, u64, Easier)> {
        Some(match self {
            Self::Memory(name) => (spec.memory(spec.guests.get(name)?).0, 1 << 20, Easier::Less),
            Self::Cpu(name) => (spec.cpu(spec.guests.get(name)?).0.into(), 10, Easier::Less),
            Self::Rate(name) => {
                let rate = spec.rate(spec.links.get(name)?).bits().get();
                (rate, if rate >= 2_000_000 { 1_000_000 } else { 1000 }, Easier::Less)
            }
            Self::Mtu(name) => (spec.mtu(spec.links.get(name)?).into(), 1, Easier::Less),
            Self::Delay(name) => (spec.links.get(name)?.max_delay?.0, 100, Easier::More),
            Self::Site(_) => return None,
        })
    }

    /// The file with another value.
    pub fn set(&self, spec: &SliceSpec, value: u64) -> SliceSpec {
        let mut spec = spec.clone();
        let guest =
            |spec: &mut SliceSpec, name: &Name, change: &dyn Fn(&mut crate::file::slice::Guest)| {
                spec.guests.get_mut(name).into_iter().for_each(change);
            };
        let link =
            |spec: &mut SliceSpec, name: &Name, change: &dyn Fn(&mut crate::file::slice::Link)| {
                spec.links.get_mut(name).into_iter().for_each(change);
            };
        match self {
            Self::Memory(name) => guest(&mut spec, name, &|it| it.memory = Some(Size(value))),
            Self::Cpu(name) => {
                guest(&mut spec, name, &|it| it.cpu = u32::try_from(value).ok().map(Cpu))
            }
            Self::Rate(name) => {
                link(&mut spec, name, &|it| it.rate = value.to_string().parse::<Rate>().ok())
            }
            Self::Mtu(name) => link(&mut spec, name, &|it| it.mtu = u16::try_from(value).ok()),
            Self::Delay(name) => link(&mut spec, name, &|it| it.max_delay = Some(Delay(value))),
            Self::Site(_) => {}
        }
        spec
    }

    /// The value nearest to the wished one that is admitted, in whole steps; the next step is not.
    fn best(&self, spec: &SliceSpec, admitted: impl Fn(&SliceSpec) -> bool) -> Option<String> {
        let (wished, step, easier) = self.range(spec)?;
        let fits = |steps: u64| admitted(&self.set(spec, steps * step));
        let steps = match easier {
            Easier::Less => {
                let (mut good, mut bad) = (1, wished.div_ceil(step));
                if bad <= 1 || !fits(good) {
                    return None;
                }
                while bad - good > 1 {
                    let middle = good + (bad - good) / 2;
                    if fits(middle) { good = middle } else { bad = middle }
                }
                good
            }
            Easier::More => {
                let mut bad = wished / step;
                let mut good = (0..LOOKS_MAX).map(|n| bad + (1 << n)).find(|steps| fits(*steps))?;
                while good - bad > 1 {
                    let middle = bad + (good - bad) / 2;
                    if fits(middle) { good = middle } else { bad = middle }
                }
                good
            }
        };
        Some(self.shown(spec, steps * step))
    }

    fn shown(&self, spec: &SliceSpec, value: u64) -> String {
        let site = |name| {
            spec.guests
                .get(name)
                .map(|it: &crate::file::slice::Guest| it.site.to_string())
                .unwrap_or_default()
        };
        match self {
            Self::Memory(name) => format!("{} at {}", Size(value).in_words(), site(name)),
            Self::Cpu(name) => format!("{} at {}", Cpu(value as u32).in_words(), site(name)),
            Self::Rate(_) => format!(
                "rate {}",
                value
                    .to_string()
                    .parse::<Rate>()
                    .map_or_else(|_| value.to_string(), |rate| rate.to_string())
            ),
            Self::Mtu(_) => format!("mtu {value}"),
            Self::Delay(_) => format!("max_delay {}", Delay(value)),
            Self::Site(_) => String::new(),
        }
    }

    /// What is wished, as `fits` says it before another site.
    fn wanted(&self, spec: &SliceSpec) -> String {
        match self {
            Self::Memory(name) => format!("{} ", spec.memory(&spec.guests[name]).in_words()),
            Self::Cpu(name) => format!("{} ", spec.cpu(&spec.guests[name]).in_words()),
            _ => String::new(),
        }
    }
}
