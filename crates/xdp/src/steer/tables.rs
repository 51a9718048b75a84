//! An interface's core tables: what its undecided units are placed by.
//!
//! There are two: the program reads the one that `config.table` names while the other is filled. Loads are the host's; roles, guests and
//! thresholds are those of the node that steers the interface, and another node on the host has its own.

use super::abi::{CORES, PINNED, SteerConfig, SteerTable, SteerTableCore};
use super::attached::Attached;
use super::error::SteerError;
use super::host::Host;
use super::maps::access;
use place::{CoreTable, Role};
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Acquire, Release};

impl Attached {
    /// Writes the core table; the program sees the old one or the new one. Units that came since the last [`Host::arrivals`] count in
    /// addition to those of the table.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_cores(&mut self, host: &mut Host, table: &CoreTable) -> Result<(), SteerError> {
        let arrived = host.arrived()?;
        let active = self.config.u32_at(0, offset_of!(SteerConfig, table));
        let read = active.load(Acquire) & 1;
        let before = self.tables.get(&read, 0).map_err(access("tables"))?.generation;
        let value = raw_table(table, before.wrapping_add(1).max(1), arrived);
        self.tables.set(1 - read, value, 0).map_err(access("tables"))?;
        active.store(1 - read, Release);
        Ok(())
    }
}

fn raw_table(table: &CoreTable, generation: u32, arrived: &[u32]) -> SteerTable {
    let empty =
        SteerTableCore { load: 0, measured: 0, id: 0, role: 0, is_pinned: 0, pinned: [0; PINNED] };
    let mut value = SteerTable {
        len: table.cores().len() as u32,
        generation,
        threshold: table.threshold.as_ppm(),
        priority_threshold: table.priority_threshold.as_ppm(),
        allowed: table.cores().iter().filter(|core| core.role == Role::Allowed).count() as u32,
        reserved: 0,
        cores: [empty; CORES],
    };
    for (raw, core) in value.cores.iter_mut().zip(table.cores()) {
        raw.load = core.load.total().as_ppm();
        let arrived = arrived.get(usize::from(core.id().0)).copied().unwrap_or(0);
        raw.measured = arrived.wrapping_sub(core.placed);
        raw.id = core.id().0;
        raw.role = match core.role {
            Role::Allowed => 0,
            Role::Reserved => 1,
            Role::Excluded => 2,
        };
        raw.is_pinned = u8::from(!core.pinned.is_empty());
        for (slot, vm) in raw.pinned.iter_mut().zip(core.pinned.ids()) {
            *slot = vm.get();
        }
    }
    value
}
