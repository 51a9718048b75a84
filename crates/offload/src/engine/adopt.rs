//! What a node leaves on a rung, and the next one takes up.
//!
//! Where a tunnel's way is not there yet, for a neighbour has to be found anew, flows go on as they are until it is. A barrier does not wait for that.

use super::stay::{Stage, Stay};
use super::table::ledger_of;
use super::turn::fall;
use super::{Engine, Flow, FlowName, State, World, provider_of};
use crate::declined::{Declined, MoveReason};
use crate::policy::RESIDENCE;
use crate::{FlowProgram, Orphan, Patch, Price, Provider, ProviderName, Side};
use flow::Nanos;

/// How long a flow waits for its way. Chosen: Linux asks for a neighbour three times, at 1 s each.
const WAIT_NS: u64 = 3_000_000_000;

/// A flow that an earlier node left.
pub(super) struct Left {
    pub provider: ProviderName,
    pub orphan: Orphan,
    /// It is judged by then.
    until: Nanos,
}

/// What became of flows that an earlier node left.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TakenUp {
    /// The rungs of those that stay where they are.
    pub stayed: Vec<ProviderName>,
    /// Why others do not.
    pub ended: Vec<Declined>,
}

/// Whether flows may wait for their way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Some,
    None,
}

type Providers<'p, 'r> = &'p mut [&'r mut dyn Provider];

impl Engine {
    /// The node ends: flows that are up go on without it, all others come back. Returns how many go on.
    pub fn leave(
        &mut self,
        providers: &mut [&mut dyn Provider],
        world: &mut impl World,
        now: Nanos,
    ) -> usize {
        self.judge_left(providers, world, now);
        self.read(providers, world);
        let mut up = 0;
        for flow in self.flows.values_mut() {
            match &mut flow.state {
                State::Stay(stay) if matches!(stay.stage, Stage::Up) => up += 1,
                State::Stay(stay) => fall(stay, providers, MoveReason::Adopting.into()),
                State::Worker { .. } | State::Left(_) => {}
            }
        }
        if up < self.handles.len() {
            self.settle(providers, world);
            self.finish_falls(providers, world, now);
        }
        up
    }

    /// Looks at what a dead node left on rungs, and [takes it up](Self::take_up).
    pub fn adopt(
        &mut self,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) -> TakenUp {
        for rung in providers.iter_mut() {
            for orphan in rung.adopt() {
                let (name, provider) = (world.meets(&orphan), rung.name());
                let until = Nanos(now.0 + WAIT_NS);
                let mut flow = Flow::begin(now);
                flow.state = State::Left(Box::new(Left { provider, orphan, until }));
                self.has_left = true;
                let before = self.flows.insert(name, flow);
                if let Some(Flow { state: State::Left(left), .. }) = before {
                    end(&left, &mut **rung);
                }
            }
        }
        self.take_up(providers, world, now)
    }

    /// Takes up what a dead node left: what the tables still say stays where it is and counts on, the rest comes back.
    pub fn take_up(
        &mut self,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) -> TakenUp {
        self.judge(providers, world, (now, Patience::Some))
    }

    /// The same; none waits any longer.
    pub fn judge_left(
        &mut self,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) -> TakenUp {
        self.judge(providers, world, (now, Patience::None))
    }

    fn judge(
        &mut self,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        (now, patience): (Nanos, Patience),
    ) -> TakenUp {
        let mut taken_up = TakenUp::default();
        if !self.has_left {
            return taken_up;
        }
        let is_left = |(name, flow): (&FlowName, &Flow)| {
            matches!(flow.state, State::Left(_)).then_some(*name)
        };
        let names: Vec<FlowName> = self.flows.iter().filter_map(is_left).collect();
        // What a bridge has to know for one of them, it may learn from another.
        for name in &names {
            if let Some(Flow { state: State::Left(left), .. }) = self.flows.get(name) {
                let _taught = world.takes_up(name, &left.orphan, now);
            }
        }
        self.has_left = false;
        for name in names {
            let Some(Flow { state: State::Left(left), .. }) = self.flows.get(&name) else {
                continue;
            };
            let Some(rung) = provider_of(providers, left.provider) else { continue };
            match asked(&name, left, rung, (&mut *world, now)) {
                Ok(found) => {
                    rung.keep(left.orphan.handle, &found.0);
                    taken_up.stayed.push(left.provider);
                    self.stays(&name, found);
                }
                Err(Declined::Move(MoveReason::Adopting))
                    if patience == Patience::Some && now < left.until =>
                {
                    self.has_left = true;
                }
                Err(why) => {
                    end(left, rung);
                    self.flows.remove(&name);
                    taken_up.ended.push(why);
                }
            }
        }
        taken_up
    }

    /// A flow is as if this node had moved it.
    fn stays(&mut self, name: &FlowName, (program, price): (FlowProgram, Price)) {
        let Some(flow) = self.flows.get_mut(name) else { return };
        let State::Left(left) = &flow.state else { return };
        let (provider, handle, slots) = (left.provider, left.orphan.handle, u32::from(price.slots));
        let was_up = left.orphan.side == Side::Rung;
        let stage = match left.orphan.side {
            Side::Rung => Stage::Up,
            Side::Worker => Stage::Falling { why: Declined::Move(MoveReason::Adopting) },
        };
        let residence = RESIDENCE;
        let stay = Stay { provider, handle, program, price, stage, was_up, residence };
        flow.state = State::Stay(Box::new(stay));
        self.handles.insert((provider, handle), *name);
        let ledger = ledger_of(&mut self.tables, provider).into_iter();
        ledger.for_each(|ledger| ledger.take(*name, name.0.switch, slots, 0.0));
    }
}

/// What the tables and the rung say of a flow that was left.
fn asked(
    name: &FlowName,
    left: &Left,
    rung: &dyn Provider,
    (world, now): (&mut impl World, Nanos),
) -> Result<(FlowProgram, Price), Declined> {
    let program = world.takes_up(name, &left.orphan, now)?;
    let price = rung.check(&program)?;
    if is_same(&program, &left.orphan) {
        Ok((program, price))
    } else {
        Err(MoveReason::RulesChange.into())
    }
}

/// A flow comes back. Its last counts are for nobody: its entries are gone or others.
fn end(left: &Left, rung: &mut dyn Provider) {
    let _asked = rung.want(left.orphan.handle, Side::Worker);
    rung.remove(left.orphan.handle);
}

/// Whether a program does what is done already.
fn is_same(program: &FlowProgram, orphan: &Orphan) -> bool {
    Some(program.exit) == orphan.exit
        && Patch::of(program) == orphan.patch
        && program.around() == orphan.around
        && program.limits[..] == orphan.limits[..]
        && program.shapes[..] == orphan.shapes[..]
}
