//! # The workers, as enforcement points
//!
//! **Question answered**: how do the rules and policies that steer the kernel's interfaces steer a switch's flows between the workers of the
//! userspace switch?
//!
//! A steered switch goes by the name `switch:NAME` (no interface has a colon in its name), takes the same rules, and is asked the same
//! questions. What carries it out is [`Steering`]; only cores with a worker can be chosen. Nothing outlives the node: there is nothing
//! to adopt, and a node that starts again steers again when its switches are back.

mod switch;

use crate::{Datapath, Steering, SteeringError, SwitchId};
use api::steer::SWITCH_PREFIX;
use place::CoreTable;
use place::steering::{Enforcer, OpenError, Opener, Options};
use std::sync::{Arc, OnceLock};
use switch::Steered;

/// The number of the switch of that name.
type Find = dyn Fn(&str) -> Option<SwitchId> + Send + Sync;

/// What happens to a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steers {
    /// It is about to be steered: workers will hand each other its frames.
    Begins,
    /// They do no more, or will not after all.
    Ended,
}

/// Hears of it; steering begins when it has returned.
type Tell = dyn Fn(SwitchId, Steers) + Send + Sync;

struct Served {
    datapath: Arc<Datapath>,
    find: Box<Find>,
    tell: Box<Tell>,
}

/// The workers of this process, once there are any.
#[derive(Clone, Default)]
pub struct Workers(Arc<OnceLock<Arc<Served>>>);

/// Why a switch is not steered.
#[derive(Debug, thiserror::Error)]
enum NotServed {
    #[error("no workers run yet")]
    NoWorkers,
    #[error("there is no switch of that name")]
    NoSwitch,
}

impl Workers {
    /// These are the workers, `find` finds switches by name, and `tell` hears before one is steered, and after. Only the first call counts.
    pub fn serve(
        &self,
        datapath: Arc<Datapath>,
        find: impl Fn(&str) -> Option<SwitchId> + Send + Sync + 'static,
        tell: impl Fn(SwitchId, Steers) + Send + Sync + 'static,
    ) {
        let served = Served { datapath, find: Box::new(find), tell: Box::new(tell) };
        let _ = self.0.set(Arc::new(served));
    }

    fn open(&self, switch: &str, options: &Options) -> Result<Steered, OpenError> {
        let refused = |step, remedy: &str, source: NotServed| OpenError::Refused {
            step,
            remedy: remedy.into(),
            source: Box::new(source),
        };
        let finding = "finding the switch";
        let served =
            self.0.get().ok_or_else(|| refused(finding, "try again", NotServed::NoWorkers))?;
        let id = (served.find)(switch).ok_or_else(|| {
            refused(
                finding,
                "see `suiro switch list` for the switches of this node",
                NotServed::NoSwitch,
            )
        })?;
        let steering = served.steer(id, options).map_err(|error| OpenError::Refused {
            step: "connecting the workers",
            remedy: remedy(&error).into(),
            source: Box::new(error),
        })?;
        Ok(Steered::new(Arc::clone(served), steering))
    }
}

impl Served {
    fn steer(&self, id: SwitchId, options: &Options) -> Result<Steering, SteeringError> {
        if self.datapath.steers(id) {
            return Err(SteeringError::Steered(id));
        }
        (self.tell)(id, Steers::Begins);
        self.datapath.steer(id, *options).inspect_err(|_| (self.tell)(id, Steers::Ended))
    }

    fn unsteer(&self, steering: &Steering) {
        self.datapath.unsteer(steering);
        (self.tell)(steering.switch(), Steers::Ended);
    }
}

fn remedy(error: &SteeringError) -> &'static str {
    match error {
        SteeringError::OneWorker => {
            "give the node several cores: suiro node --cores 0,1, or [node] cores = [0, 1] in its configuration"
        }
        SteeringError::Steered(_) => "detach it first: suiro steer detach switch:NAME",
        _ => "see `suiro switch list`, and the node's log",
    }
}

impl Opener for Workers {
    fn adopt(&self, _: &str) -> Result<Option<Box<dyn Enforcer>>, OpenError> {
        Ok(None)
    }

    fn attach(
        &self,
        name: &str,
        options: &Options,
        _: &CoreTable,
    ) -> Result<Box<dyn Enforcer>, OpenError> {
        let switch = name.strip_prefix(SWITCH_PREFIX).unwrap_or(name);
        Ok(Box::new(self.open(switch, options)?))
    }
}
