mod agree;
mod cases;
mod frame;
mod model;
mod recorder;

use crate::action::PortNo;
use crate::exec::Env;
use crate::group::{Bucket, GroupKind, GroupMod, GroupTable};
use crate::mac::MacTable;
use crate::meter::MeterTable;
use crate::ports::{PortState, PortTable};
use crate::time::Nanos;

const NOW: Nanos = Nanos(1_000_000_000_000);

/// The local port's number.
const LOCAL: PortNo = 0xffff_fffe;

/// A switch to run actions on.
struct Switch {
    ports: PortTable,
    groups: GroupTable,
    meters: MeterTable,
    macs: MacTable,
    invalid_ttl_to_controller: bool,
    for_v10: bool,
}

impl Switch {
    /// Ports 1 to 3 as usual, 4 floods not, 5 is down, 6 forwards not, 7 makes no packet-in of a miss, and a local one.
    fn new() -> Self {
        let ports = PortTable::new(vec![
            PortState::up(1),
            PortState::up(2),
            PortState::up(3),
            PortState { no_flood: true, ..PortState::up(4) },
            PortState { live: false, ..PortState::up(5) },
            PortState { no_fwd: true, ..PortState::up(6) },
            PortState { no_packet_in: true, ..PortState::up(7) },
            PortState { local: true, ..PortState::up(LOCAL) },
        ]);
        Self {
            ports,
            groups: GroupTable::default(),
            meters: MeterTable::default(),
            macs: MacTable::new([1, 2], 256),
            invalid_ttl_to_controller: false,
            for_v10: false,
        }
    }

    fn add_group(&mut self, id: u32, kind: GroupKind, buckets: Vec<Bucket>) {
        let change = GroupMod::Add { id, kind, buckets };
        self.groups.apply(change, &self.ports, NOW).unwrap();
    }

    fn env(&self) -> Env<'_> {
        Env {
            ports: &self.ports,
            groups: &self.groups,
            meters: &self.meters,
            macs: &self.macs,
            flood_copies_per_s: None,
            invalid_ttl_to_controller: self.invalid_ttl_to_controller,
            for_v10: self.for_v10,
            now: NOW,
        }
    }
}
