//! Which core runs which stage of a flow's way to its guest: the models A to D of the authors' slides of 2015.
//!
//! | model | cores, from the wire to the guest |
//! |---|---|
//! | A | driver ┃ packet + vhost + guest |
//! | B | driver ┃ packet ┃ vhost + guest |
//! | C | driver ┃ packet + vhost ┃ guest |
//! | D | driver ┃ packet ┃ vhost ┃ guest |
//!
//! The slides call C and D right for priority flows: the guest keeps its core to itself, so there is no switching of contexts (A) and
//! nothing queues for it (B). The driver's core is given: the NIC interrupts it. The cores of packet and vhost are chosen as [`Vse`](crate::Vse)
//! chooses, never the driver's; the guest's is the one it is pinned to.

use std::fmt;
use std::str::FromStr;

use crate::vse::Best;
use crate::{CoreId, CoreTable, Facts, Stage};

/// How stages share cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StageModel {
    /// The guest's core does all but the driver's work.
    A,
    /// vhost runs on the guest's core, packets on another.
    B,
    /// Packets and vhost share a core, the guest has its own.
    C,
    /// Every stage has its own core.
    D,
    /// The best that the free cores allow: D for priority flows, else C, else A, else everything stays where it is received.
    #[default]
    Auto,
}

impl StageModel {
    /// One letter or word, as the user writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::Auto => "auto",
        }
    }

    /// The cores of one unit's stages.
    ///
    /// # Errors
    /// The model needs a free core that the table does not have, a guest's core that nobody knows, or one that is not the driver's.
    /// [`StageModel::Auto`] never fails.
    pub fn assign(self, table: &CoreTable, facts: &Facts) -> Result<Stages, NoStages> {
        let cores = Cores::of(table, facts);
        if self != Self::Auto && cores.guest == Some(cores.driver) {
            return Err(NoStages::DriversCore { model: self, core: cores.driver });
        }
        match self {
            Self::A => cores.a(),
            Self::B => cores.b(),
            Self::C => cores.c(),
            Self::D => cores.d(),
            Self::Auto => Ok(cores.auto(facts.is_priority)),
        }
    }
}

impl fmt::Display for StageModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StageModel {
    type Err = BadModel;

    fn from_str(text: &str) -> Result<Self, BadModel> {
        let all = [Self::A, Self::B, Self::C, Self::D, Self::Auto];
        all.into_iter().find(|model| model.name().eq_ignore_ascii_case(text)).ok_or(BadModel)
    }
}

/// No model of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such stage model: use a, b, c, d or auto")]
pub struct BadModel;

/// The cores of one unit's stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The model that this is, never [`StageModel::Auto`]; `None`: everything stays on the core that received it.
    pub model: Option<StageModel>,
    /// The core that the NIC interrupts.
    pub driver: CoreId,
    /// Where protocols, tunnel and switch run.
    pub packet: CoreId,
    /// Where the copy to the guest runs; `None`: wherever the scheduler puts it.
    pub vhost: Option<CoreId>,
    /// Where the guest is pinned; `None`: wherever the scheduler puts it.
    pub guest: Option<CoreId>,
}

impl Stages {
    /// The core of one stage, if any is set.
    pub fn core(&self, stage: Stage) -> Option<CoreId> {
        match stage {
            Stage::Driver => Some(self.driver),
            Stage::Packet => Some(self.packet),
            Stage::Vhost => self.vhost,
            Stage::Guest => self.guest,
        }
    }
}

/// Why a model cannot be had now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStages {
    /// Too few cores without a guest and within the threshold, the driver's not counted.
    #[error(
        "model {model} needs {need} free cores beside the driver's, {have} are: allow more cores or use model auto"
    )]
    FreeCores {
        /// The model.
        model: StageModel,
        /// Free cores that it takes.
        need: usize,
        /// Free cores that there are, counted no further than `need`.
        have: usize,
    },
    /// Every model has the guest away from the driver's core.
    #[error(
        "model {model} keeps the guest off core {core}, where the interface's interrupts are, and the guest is pinned there: pin it to another core or move the interrupts"
    )]
    DriversCore {
        /// The model.
        model: StageModel,
        /// The core.
        core: CoreId,
    },
    /// The model puts work on the guest's core.
    #[error(
        "model {model} needs to know the guest's core: pin the guest to a core that is not excluded, or use model c, d or auto"
    )]
    GuestCore {
        /// The model.
        model: StageModel,
    },
}

/// What the models are made of.
struct Cores {
    driver: CoreId,
    guest: Option<CoreId>,
    /// The two best free cores.
    first: Option<CoreId>,
    second: Option<CoreId>,
}

impl Cores {
    fn of(table: &CoreTable, facts: &Facts) -> Self {
        let core = |best: Option<(u32, CoreId)>| best.map(|(_, core)| core);
        let driver = facts.rx_core;
        let best = Best::of(table, facts, &[driver]);
        let first = core(best.free);
        let second = first.and_then(|first| core(Best::of(table, facts, &[driver, first]).free));
        // A guest of several cores: rather not the one that the driver uses.
        let guest = core(best.own.or_else(|| Best::of(table, facts, &[]).own));
        Self { driver, guest, first, second }
    }

    fn stages(&self, model: StageModel, packet: CoreId, vhost: CoreId) -> Stages {
        let (driver, guest) = (self.driver, self.guest);
        Stages { model: Some(model), driver, packet, vhost: Some(vhost), guest }
    }

    fn guest_for(&self, model: StageModel) -> Result<CoreId, NoStages> {
        self.guest.ok_or(NoStages::GuestCore { model })
    }

    fn first_for(&self, model: StageModel, need: usize) -> Result<CoreId, NoStages> {
        self.first.ok_or(NoStages::FreeCores { model, need, have: 0 })
    }

    fn a(&self) -> Result<Stages, NoStages> {
        let guest = self.guest_for(StageModel::A)?;
        Ok(self.stages(StageModel::A, guest, guest))
    }

    fn b(&self) -> Result<Stages, NoStages> {
        let packet = self.first_for(StageModel::B, 1)?;
        Ok(self.stages(StageModel::B, packet, self.guest_for(StageModel::B)?))
    }

    fn c(&self) -> Result<Stages, NoStages> {
        let shared = self.first_for(StageModel::C, 1)?;
        Ok(self.stages(StageModel::C, shared, shared))
    }

    fn d(&self) -> Result<Stages, NoStages> {
        let model = StageModel::D;
        let packet = self.first_for(model, 2)?;
        let vhost = self.second.ok_or(NoStages::FreeCores { model, need: 2, have: 1 })?;
        Ok(self.stages(model, packet, vhost))
    }

    fn auto(&self, is_priority: bool) -> Stages {
        let best = if is_priority { self.d() } else { self.c() };
        best.or_else(|_| self.c()).or_else(|_| self.a()).unwrap_or(self.as_received())
    }

    fn as_received(&self) -> Stages {
        let (driver, guest) = (self.driver, self.guest);
        Stages { model: None, driver, packet: driver, vhost: None, guest }
    }
}

#[cfg(test)]
mod tests;
