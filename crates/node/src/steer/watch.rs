//! The agent's thread among busy cores: it must run when nothing else gets to.
//!
//! Two things can hold it up. Another thread: so a tick runs before all ordinary ones ([`set_prompt`]). And soft interrupts, which run on top of any
//! thread whatever its priority: on a core that a card keeps busy the thread may not get on for a tenth of a second, and that is when it is
//! needed. So it keeps off cores that receive much, if it has others.

use place::{CoreId, Load};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use xdp::steer::set_prompt;

/// A core above this receives much, and does so until it falls below the other.
const MUCH: Load = Load::percent(25);
const LITTLE: Load = Load::percent(10);

/// The calling thread, as it watches over cores.
pub struct Watch {
    /// Where it may run; `None`: nobody knows, and it stays as it is.
    allowed: Option<CpuSet>,
    avoided: Vec<CoreId>,
}

impl Watch {
    /// Of the calling thread, which ticks from now on.
    pub fn begin() -> Self {
        set_prompt(true);
        Self { allowed: sched_getaffinity(None).ok(), avoided: Vec::new() }
    }

    /// Does what may take long, as a thread like others.
    pub fn aside(&self, work: impl FnOnce()) {
        set_prompt(false);
        work();
        set_prompt(true);
    }

    /// Keeps off the cores that receive much, by what each spends on receiving.
    pub fn look(&mut self, receiving: impl Iterator<Item = (CoreId, Load)>) {
        let avoided = busy(&self.avoided, receiving);
        if avoided == self.avoided {
            return;
        }
        if let Some(allowed) = &self.allowed {
            // Refused (a core went away): it stays where it is, and the next change tries again.
            let _ = sched_setaffinity(None, &without(allowed, &avoided));
        }
        self.avoided = avoided;
    }
}

/// The cores to be avoided, of which `before` were until now.
fn busy(before: &[CoreId], receiving: impl Iterator<Item = (CoreId, Load)>) -> Vec<CoreId> {
    let mark = |core: &CoreId| if before.contains(core) { LITTLE } else { MUCH };
    receiving.filter(|(core, load)| *load > mark(core)).map(|(core, _)| core).collect()
}

/// What is left of `allowed`, or all of it if nothing is.
fn without(allowed: &CpuSet, avoided: &[CoreId]) -> CpuSet {
    let mut left = *allowed;
    let known = avoided.iter().map(|core| usize::from(core.0));
    known.filter(|&core| core < CpuSet::MAX_CPU).for_each(|core| left.unset(core));
    if left.count() > 0 { left } else { *allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(numbers: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        numbers.iter().for_each(|&core| set.set(core));
        set
    }

    #[test]
    fn a_core_is_avoided_from_a_quarter_on_until_it_is_nearly_at_rest() {
        let now = |percent| [(CoreId(0), Load::percent(percent)), (CoreId(1), Load::ZERO)];
        assert_eq!(busy(&[], now(20).into_iter()), []);
        assert_eq!(busy(&[], now(30).into_iter()), [CoreId(0)]);
        assert_eq!(busy(&[CoreId(0)], now(20).into_iter()), [CoreId(0)]);
        assert_eq!(busy(&[CoreId(0)], now(5).into_iter()), []);
    }

    #[test]
    fn somewhere_it_must_run() {
        let allowed = cores(&[0, 1, 3]);
        assert_eq!(without(&allowed, &[CoreId(1), CoreId(2)]), cores(&[0, 3]));
        assert_eq!(without(&allowed, &[CoreId(0), CoreId(1), CoreId(3)]), allowed);
    }
}
