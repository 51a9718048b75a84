//! What a change costs its neighbours is compared with what the whole graph says, looked at anew: an obvious, slow oracle.

use super::*;
use crate::action::{Action, Output};
use crate::limits::MAX_CHAIN;
use crate::ports::PortState;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Ids are few, so that loops and long chains come up; more than a chain may have.
const GROUPS: u32 = 12;

/// A bucket: a port or a group to send to, and a group to watch.
#[derive(Clone, Copy, Debug)]
enum Leads {
    Port(u32),
    Forward(u32),
    Watch(u32),
}

#[derive(Clone, Debug)]
enum Step {
    Put(u32, Vec<Leads>),
    Delete(u32),
    Ports(Vec<u32>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let leads = prop_oneof![
        2 => (1..4_u32).prop_map(Leads::Port),
        4 => (1..=GROUPS).prop_map(Leads::Forward),
        2 => (1..=GROUPS).prop_map(Leads::Watch),
    ];
    let step = prop_oneof![
        12 => (1..=GROUPS, prop::collection::vec(leads, 0..4)).prop_map(|(id, to)| Step::Put(id, to)),
        2 => (1..=GROUPS).prop_map(Step::Delete),
        1 => prop::collection::vec(1..4_u32, 0..3).prop_map(Step::Ports),
    ];
    prop::collection::vec(step, 1..80)
}

fn bucket(leads: &Leads) -> Bucket {
    let to = |port| vec![Action::Output(Output::Port(port))];
    match *leads {
        Leads::Port(port) => Bucket { actions: to(port), ..Bucket::default() },
        Leads::Forward(id) => Bucket { actions: vec![Action::Group(id)], ..Bucket::default() },
        Leads::Watch(id) => Bucket { actions: to(1), watch_group: Some(id), ..Bucket::default() },
    }
}

fn ports(live: &[u32]) -> PortTable {
    let state = |port| PortState { live: live.contains(&port), ..PortState::up(port) };
    PortTable::new((1..4).map(state).collect())
}

type Model = BTreeMap<u32, Vec<Leads>>;

fn next(model: &Model, id: u32) -> BTreeSet<u32> {
    let to = |leads: &Leads| match *leads {
        Leads::Port(_) => None,
        Leads::Forward(id) | Leads::Watch(id) => Some(id),
    };
    model.get(&id).into_iter().flatten().filter_map(to).collect()
}

/// Groups on the longest way from `id`; `None` when a way comes back to where it was.
fn height(model: &Model, id: u32, way: &mut Vec<u32>) -> Option<usize> {
    if way.contains(&id) {
        return None;
    }
    way.push(id);
    let below = next(model, id).into_iter().map(|below| height(model, below, way));
    let height = below.collect::<Option<Vec<_>>>()?.into_iter().max().unwrap_or(0) + 1;
    way.pop();
    Some(height)
}

fn expected(model: &Model, id: u32, leads: &[Leads]) -> Result<(), &'static str> {
    let exists = |other: u32| other == id || model.contains_key(&other);
    if leads
        .iter()
        .any(|leads| matches!(*leads, Leads::Forward(id) | Leads::Watch(id) if !exists(id)))
    {
        return Err("unknown");
    }
    let mut changed = model.clone();
    changed.insert(id, leads.to_vec());
    let heights = changed.keys().map(|&id| height(&changed, id, &mut Vec::new()));
    let heights = heights.collect::<Option<Vec<_>>>().ok_or("loop")?;
    let fits = heights.iter().all(|&height| height <= usize::from(MAX_CHAIN));
    fits.then_some(()).ok_or("long")
}

fn is_live(model: &Model, id: u32, ports: &PortTable) -> bool {
    let usable = |leads: &Leads| match *leads {
        Leads::Port(port) => ports.is_live(port),
        Leads::Forward(id) | Leads::Watch(id) => is_live(model, id, ports),
    };
    model.get(&id).is_some_and(|leads| leads.iter().any(usable))
}

fn word(result: Result<Vec<u32>, GroupModError>) -> Result<(), &'static str> {
    match result {
        Ok(_) => Ok(()),
        Err(GroupModError::Loop(_)) => Err("loop"),
        Err(GroupModError::ChainTooLong(_)) => Err("long"),
        Err(GroupModError::BadWatch(_) | GroupModError::Action { .. }) => Err("unknown"),
        Err(_) => Err("other"),
    }
}

fn forwarders(model: &Model, id: u32) -> Vec<u32> {
    let forwards = |leads: &Leads| matches!(*leads, Leads::Forward(to) if to == id);
    let by = model.iter().filter(|(_, leads)| leads.iter().any(forwards));
    by.map(|(&by, _)| by).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_change_among_its_neighbours_is_what_the_whole_graph_says(steps in steps()) {
        let (mut table, mut model, mut live) = (GroupTable::default(), Model::new(), ports(&[1]));
        for step in steps {
            match step {
                Step::Put(id, leads) => {
                    let buckets = leads.iter().map(bucket).collect();
                    let kind = GroupKind::All;
                    let change = match model.contains_key(&id) {
                        true => GroupMod::Modify { id, kind, buckets },
                        false => GroupMod::Add { id, kind, buckets },
                    };
                    let wanted = expected(&model, id, &leads);
                    prop_assert_eq!(word(table.apply(change, &live, Nanos(0))), wanted);
                    if wanted.is_ok() {
                        model.insert(id, leads);
                    }
                }
                Step::Delete(id) => {
                    let held = forwarders(&model, id).first().map(|&by| GroupModError::Chained { id, by });
                    let done = table.apply(GroupMod::Delete { id }, &live, Nanos(0));
                    prop_assert_eq!(done.err(), held.clone());
                    if held.is_none() {
                        model.remove(&id);
                    }
                }
                Step::Ports(up) => {
                    live = ports(&up);
                    table.set_ports(&live);
                }
            }
            for (&id, leads) in &model {
                let group = table.get(id).unwrap();
                prop_assert_eq!(group.is_live(), is_live(&model, id, &live));
                prop_assert!(group.still_holds(|bucket| table.is_usable(bucket, &live)), "{:?}", leads);
                prop_assert_eq!(table.graph.forwarders_to(id) as usize, forwarders(&model, id).len());
            }
        }
    }
}
