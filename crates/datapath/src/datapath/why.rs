//! What would become of a frame, asked.

use super::Datapath;
use crate::id::PortAt;
use crate::why::{Door, Journey, Rules, Way, World};
use flow::Asked;
use std::sync::atomic::Ordering::Relaxed;

impl Datapath {
    /// The way of a frame that came in there now. Takes no worker's time. `rules` is asked where not all of it is
    /// known.
    pub fn why(&self, at: PortAt, frame: Asked, rules: &dyn Rules) -> Way {
        let world = self.world();
        Journey::of((&world, rules), self.started.now(), at, frame)
    }

    fn world(&self) -> World {
        let registry = self.registry();
        let switches = registry.switches.iter();
        let ports = registry.ports.iter().map(|(&at, entry)| {
            let (mtu, is_up) = (entry.shared.mtu.load(Relaxed), entry.shared.up.load(Relaxed));
            (at, Door { ix: entry.ix, mtu, is_up, far: entry.peer })
        });
        World {
            switches: switches
                .map(|(&id, entry)| (id, (entry.ix, entry.shared.tables.load_full())))
                .collect(),
            ports: ports.collect(),
        }
    }
}
