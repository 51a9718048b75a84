//! What rules, groups and meters weigh, whatever came and went: the sum that is kept against one over all that is there.

use super::*;
use crate::limits::units;
use crate::{Bucket, GroupKind, GroupMod, MeterConfig, MeterMod, MeterUnit};

/// One change, by small numbers.
#[derive(Clone, Debug)]
enum Step {
    Flow(FlowCommand, u16, usize),
    Group(u8, u32, usize),
    Meter(bool, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let command = prop_oneof![
        6 => Just(Add), 2 => Just(Modify), 2 => Just(ModifyStrict), 1 => Just(Delete), 2 => Just(DeleteStrict)
    ];
    let step = prop_oneof![
        4 => (command, 0..6_u16, 0..40_usize).prop_map(|(command, at, length)| Step::Flow(command, at, length)),
        2 => (0..4_u8, 1..4_u32, 0..30_usize).prop_map(|(what, id, length)| Step::Group(what, id, length)),
        1 => (any::<bool>(), 1..4_u32).prop_map(|(adds, id)| Step::Meter(adds, id)),
    ];
    vec(step, 1..60)
}

fn outputs(length: usize) -> Vec<Action> {
    vec![Action::Output(Output::Port(2)); length]
}

fn apply(pipeline: &mut Pipeline, step: Step) {
    // What is refused changes nothing.
    match step {
        Step::Flow(command, priority, length) => {
            let instructions = Instructions { apply: outputs(length), ..Instructions::default() };
            let change = FlowMod { command, priority, instructions, ..FlowMod::default() };
            let _ = pipeline.flow_mod(&change, Nanos(0));
        }
        Step::Group(what, id, length) => {
            let bucket = Bucket { actions: outputs(length % 10), ..Bucket::default() };
            let (kind, buckets) = (GroupKind::All, vec![bucket; length]);
            let change = match what {
                0 | 1 => GroupMod::Add { id, kind, buckets },
                2 => GroupMod::Modify { id, kind, buckets },
                _ if length == 0 => GroupMod::DeleteAll,
                _ => GroupMod::Delete { id },
            };
            let _ = pipeline.group_mod(change, Nanos(0));
        }
        Step::Meter(true, id) => {
            let _ = pipeline.meter_mod(MeterMod::Add { id, config: meter() }, Nanos(0));
        }
        Step::Meter(false, id) => {
            let _ = pipeline.meter_mod(MeterMod::Delete { id }, Nanos(0));
        }
    }
}

fn meter() -> MeterConfig {
    MeterConfig { unit: MeterUnit::Pktps, burst: false, stats: false, bands: Vec::new() }
}

/// Over everything.
fn weigh(pipeline: &Pipeline) -> u64 {
    let flows: Vec<_> = pipeline.flows(&FlowFilter::default(), Nanos(0)).collect();
    let actions = flows.iter().map(|flow| flow.instructions.apply.len() as u64).sum();
    let groups = pipeline.groups().views();
    let (mut count, mut buckets, mut in_buckets) = (0, 0, 0);
    for group in groups {
        count += 1;
        buckets += group.buckets.len() as u64;
        in_buckets += group.buckets.iter().map(|bucket| bucket.actions.len() as u64).sum::<u64>();
    }
    let meters = pipeline.meters().len() as u64;
    flows.len() as u64 + units(actions) + count + buckets + units(in_buckets) + meters
}

proptest! {
    #[test]
    fn the_weight_is_that_of_all_that_is_there(steps in steps()) {
        let mut pipeline = pipeline(32);
        for step in steps {
            apply(&mut pipeline, step);
            prop_assert_eq!(pipeline.weight(), weigh(&pipeline));
        }
        pipeline.group_mod(GroupMod::DeleteAll, Nanos(0)).unwrap();
        let all = FlowMod { command: FlowCommand::Delete, table: None, ..FlowMod::default() };
        pipeline.flow_mod(&all, Nanos(0)).unwrap();
        prop_assert_eq!(pipeline.weight(), pipeline.meters().len() as u64);
    }
}
