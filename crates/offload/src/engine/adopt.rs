//! What a node leaves on a rung, and the next one takes up.

use super::stay::{Stage, Stay};
use super::turn::fall;
use super::{Engine, Flow, State, World};
use crate::declined::{Declined, MoveReason};
use crate::policy::RESIDENCE;
use crate::{FlowProgram, LimitId, Orphan, Patch, Provider, Side};
use flow::Nanos;

impl Engine {
    /// The node ends: flows that are up go on without it, all others come back. Returns how many go on.
    pub fn leave(
        &mut self,
        providers: &mut [&mut dyn Provider],
        world: &mut impl World,
        now: Nanos,
    ) -> usize {
        self.read(providers, world);
        let mut up = 0;
        for flow in self.flows.values_mut() {
            match &mut flow.state {
                State::Stay(stay) if matches!(stay.stage, Stage::Up) => up += 1,
                State::Stay(stay) => fall(stay, providers, MoveReason::Adopting.into()),
                State::Worker { .. } => {}
            }
        }
        if up < self.handles.len() {
            self.settle(providers, world);
            self.finish_falls(providers, world, now);
        }
        up
    }

    /// Takes up what a dead node left on a rung: what the tables still say stays where it is and counts on, the rest comes back.
    /// Returns how many stayed, and why each of the others did not.
    pub fn adopt(
        &mut self,
        provider: &mut dyn Provider,
        world: &mut impl World,
        now: Nanos,
    ) -> (usize, Vec<Declined>) {
        let (mut stayed, mut ended) = (0, Vec::new());
        for orphan in provider.adopt() {
            let name = (orphan.from, orphan.key);
            let before: Vec<LimitId> =
                orphan.limits.iter().chain(&orphan.shapes).copied().collect();
            let asked = world.takes_up(&name, &before, now).and_then(|program| {
                let same = is_same(&program, &orphan);
                let price = provider.check(&program)?;
                if same { Ok((program, price)) } else { Err(MoveReason::RulesChange.into()) }
            });
            let (program, price) = match asked {
                Ok(found) => found,
                Err(why) => {
                    // Its last counts are for nobody: its entries are gone or others.
                    let _asked = provider.want(orphan.handle, Side::Worker);
                    provider.remove(orphan.handle);
                    ended.push(why);
                    continue;
                }
            };
            stayed += 1;
            let (rung, slots) = (provider.name(), u32::from(price.slots));
            self.ledgers
                .entry(rung)
                .and_modify(|ledger| ledger.take(name, name.0.switch, slots, 0.0));
            self.handles.insert((rung, orphan.handle), name);
            let stage = match orphan.side {
                Side::Rung => Stage::Up,
                Side::Worker => Stage::Falling { why: Declined::Move(MoveReason::Adopting) },
            };
            let handle = orphan.handle;
            let (was_up, residence) = (orphan.side == Side::Rung, RESIDENCE);
            let stay = Stay { provider: rung, handle, program, price, stage, was_up, residence };
            let mut flow = Flow::begin(now);
            flow.state = State::Stay(Box::new(stay));
            self.flows.insert(name, flow);
        }
        (stayed, ended)
    }
}

/// Whether a program does what is done already.
fn is_same(program: &FlowProgram, orphan: &Orphan) -> bool {
    Some(program.exit) == orphan.exit
        && Patch::of(program) == orphan.patch
        && !program.is_tunnelled()
        && !orphan.is_tunnelled
        && program.limits[..] == orphan.limits[..]
        && program.shapes[..] == orphan.shapes[..]
}
