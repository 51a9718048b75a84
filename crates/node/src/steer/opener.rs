//! Interfaces are steered by the kernel, switches by the workers.

use api::steer::SWITCH_PREFIX;
use datapath::Workers;
use place::CoreTable;
use place::steering::{Enforcer, OpenError, Opener, Options};
use xdp::steer::Kernel;

/// Both.
pub struct Everywhere {
    pub kernel: Kernel,
    pub workers: Workers,
}

impl Everywhere {
    fn of(&self, name: &str) -> &dyn Opener {
        if name.starts_with(SWITCH_PREFIX) { &self.workers } else { &self.kernel }
    }
}

impl Opener for Everywhere {
    fn adopt(&self, name: &str) -> Result<Option<Box<dyn Enforcer>>, OpenError> {
        self.of(name).adopt(name)
    }

    fn attach(
        &self,
        name: &str,
        options: &Options,
        table: &CoreTable,
    ) -> Result<Box<dyn Enforcer>, OpenError> {
        self.of(name).attach(name, options, table)
    }
}
