//! On which core a tunnel's packets are encrypted, when that is a stage of its own.
//!
//! Sealing takes most of an encrypted frame's time. A core of its own lets the worker that forwards go on; it must be one that has nothing
//! better to do: no worker, no guest (the models of [`StageModel`](crate::StageModel) keep guests' cores to themselves likewise).

use crate::{Core, CoreId, CoreTable, Role};

/// No core may be had for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no core is free: each has a worker or a guest, is reserved or excluded, or above the threshold"
)]
pub struct NoFreeCore;

/// The core for one more sealing stage: of those that are allowed, without a guest and within the threshold, the one with the fewest stages
/// (`placed`), then the least loaded, then the first. Who asks excludes cores with workers.
///
/// # Errors
/// [`NoFreeCore`].
pub fn sealing_core(table: &CoreTable) -> Result<CoreId, NoFreeCore> {
    let is_free = |core: &&Core| {
        let within = core.load.total() <= table.threshold;
        core.role == Role::Allowed && core.pinned.is_empty() && within
    };
    let rank = |core: &&Core| (core.placed, core.load.total(), core.id());
    table.cores().iter().filter(is_free).min_by_key(rank).map(Core::id).ok_or(NoFreeCore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Stage};

    fn table(count: u16, change: impl Fn(u16, &mut Core)) -> CoreTable {
        let core = |id| {
            let mut core = Core::new(CoreId(id));
            change(id, &mut core);
            core
        };
        CoreTable::new((0..count).map(core).collect()).unwrap()
    }

    #[test]
    fn the_first_of_equal_cores_takes_it() {
        assert_eq!(sealing_core(&table(4, |_, _| ())), Ok(CoreId(0)));
        assert_eq!(sealing_core(&table(0, |_, _| ())), Err(NoFreeCore));
    }

    #[test]
    fn a_core_with_a_guest_a_role_or_work_above_the_threshold_takes_none() {
        let refuse: [fn(&mut Core); 4] = [
            |core| core.pinned.add(None),
            |core| core.role = Role::Reserved,
            |core| core.role = Role::Excluded,
            |core| core.load[Stage::Packet] = Load::percent(51),
        ];
        for refuse in refuse {
            let all_but_2 = table(4, |id, core| {
                if id != 2 {
                    refuse(core)
                }
            });
            assert_eq!(sealing_core(&all_but_2), Ok(CoreId(2)));
            assert_eq!(sealing_core(&table(4, |_, core| refuse(core))), Err(NoFreeCore));
        }
    }

    #[test]
    fn stages_spread_and_then_load_decides() {
        let one_there = table(3, |id, core| core.placed = u32::from(id == 0));
        assert_eq!(sealing_core(&one_there), Ok(CoreId(1)));
        let busy =
            table(3, |id, core| core.load[Stage::Driver] = Load::percent(30 - 10 * u32::from(id)));
        assert_eq!(sealing_core(&busy), Ok(CoreId(2)));
    }
}
