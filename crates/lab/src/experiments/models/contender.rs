//! The ways to run the watched flow's stages that are compared, and their cores.

use super::super::layout::Layout;
use super::super::steering::Steering;
use super::WATCHED;
use anyhow::Result;
use place::{Core, CoreId, CoreTable, Facts, NoStages, Stage, StageModel, Stages, VmId};

const MODELS: [(StageModel, &str); 4] = [
    (StageModel::A, "model A"),
    (StageModel::B, "model B"),
    (StageModel::C, "model C"),
    (StageModel::D, "model D"),
];

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contender {
    /// In the words of the tables.
    pub case: &'static str,
    /// Who chooses the packet stage's core.
    pub steering: Steering,
    /// The cores that a model names.
    pub stages: Option<Stages>,
}

impl Contender {
    /// The core of one of the watched flow's stages, where a model names it.
    pub fn core(&self, stage: Stage) -> Option<usize> {
        self.stages?.core(stage).map(|CoreId(core)| core.into())
    }

    /// The cores that the thread of a VM's stage may use: its own by the model; the neighbour's, all but the one that the watched guest is pinned to; without a
    /// model, all of the host.
    pub fn cores(&self, vm: u8, stage: Stage, layout: &Layout) -> Vec<usize> {
        let own = if vm == WATCHED { self.core(stage) } else { None };
        let guest = self.core(Stage::Guest);
        let all = (0..layout.host).filter(|&core| Some(core) != guest);
        own.map_or_else(|| all.collect(), |core| vec![core])
    }

    /// The core that nothing else of the flow uses, if the guest has such a one: what sets C and D apart.
    pub fn guests_own(&self) -> Option<usize> {
        let guest = self.core(Stage::Guest)?;
        let others = [Stage::Driver, Stage::Packet, Stage::Vhost];
        others.into_iter().all(|stage| self.core(stage) != Some(guest)).then_some(guest)
    }

    /// For a report.
    pub fn describe(&self) -> Option<String> {
        let stages = self.stages?;
        let core = |stage| stages.core(stage).map_or("any".into(), |core| core.to_string());
        let [driver, packet, vhost, guest] = Stage::ALL.map(core);
        let case = self.case;
        Some(format!(
            "{case}: driver on core {driver}, packet {packet}, vhost {vhost}, guest {guest}"
        ))
    }
}

/// All that this layout has the cores for, and why not the others.
///
/// # Errors
/// More cores than a core table holds.
pub fn all(layout: &Layout) -> Result<(Vec<Contender>, Vec<NoStages>)> {
    let nothing = |case, steering| Contender { case, steering, stages: None };
    let mut contenders = vec![
        nothing("no model", Steering::Default),
        nothing("no model", Steering::Rps),
        nothing("packet only", Steering::Vse),
    ];
    let mut refused = Vec::new();
    let (table, facts) = (table(layout)?, facts(layout));
    for (model, case) in MODELS {
        match model.assign(&table, &facts) {
            Ok(stages) => {
                contenders.push(Contender { stages: Some(stages), ..nothing(case, Steering::Vse) })
            }
            Err(error) => refused.push(error),
        }
    }
    Ok((contenders, refused))
}

/// The host's cores, all idle, with the watched VM pinned beside the interrupted one. No measured load is in it: every run is to choose the same cores.
fn table(layout: &Layout) -> Result<CoreTable> {
    let guest = layout.pinned(1)[0];
    let core = |number: usize| {
        let mut core = Core::new(CoreId(number as u16));
        if number == guest {
            core.pinned.add(VmId::new(WATCHED.into()));
        }
        core
    };
    Ok(CoreTable::new((0..layout.host).map(core).collect())?)
}

fn facts(layout: &Layout) -> Facts {
    let (vm, rx_core) = (VmId::new(WATCHED.into()), CoreId(layout.rx as u16));
    Facts { hash: 0, vm, is_priority: false, wants_own_core: false, rx_core }
}

#[cfg(test)]
mod tests {
    use super::super::NEIGHBOUR;
    use super::*;

    fn named(contenders: &[Contender], case: &str) -> Contender {
        *contenders.iter().find(|contender| contender.case == case).unwrap()
    }

    #[test]
    fn with_six_cores_all_models_are_had_and_only_c_and_d_leave_the_guest_its_core() {
        let layout = Layout::of(6).unwrap();
        let (contenders, refused) = all(&layout).unwrap();
        let told: Vec<_> = contenders.iter().filter_map(Contender::describe).collect();
        assert_eq!(
            told,
            [
                "model A: driver on core 3, packet 0, vhost 0, guest 0",
                "model B: driver on core 3, packet 1, vhost 0, guest 0",
                "model C: driver on core 3, packet 1, vhost 1, guest 0",
                "model D: driver on core 3, packet 1, vhost 2, guest 0",
            ]
        );
        assert!(refused.is_empty());
        let own: Vec<_> = contenders.iter().map(Contender::guests_own).collect();
        assert_eq!(own, [None, None, None, None, None, Some(0), Some(0)]);
    }

    #[test]
    fn with_two_cores_only_a_is_had_and_the_others_say_what_is_missing() {
        let (contenders, refused) = all(&Layout::of(2).unwrap()).unwrap();
        assert_eq!(contenders.last().unwrap().case, "model A");
        let told: Vec<_> = refused.iter().map(NoStages::to_string).collect();
        assert_eq!(told.len(), 3);
        assert!(told[2].starts_with("model d needs 2 free cores beside the driver's, 0 are"));
    }

    #[test]
    fn threads_are_where_the_model_says_and_the_neighbours_off_the_guests_core() {
        let layout = Layout::of(6).unwrap();
        let (contenders, _) = all(&layout).unwrap();
        let d = named(&contenders, "model D");
        assert_eq!(d.cores(WATCHED, Stage::Vhost, &layout), [2]);
        assert_eq!(d.cores(WATCHED, Stage::Guest, &layout), [0]);
        assert_eq!(d.cores(NEIGHBOUR, Stage::Guest, &layout), [1, 2, 3]);
        let free = named(&contenders, "packet only");
        assert_eq!(free.cores(WATCHED, Stage::Guest, &layout), [0, 1, 2, 3]);
    }
}
