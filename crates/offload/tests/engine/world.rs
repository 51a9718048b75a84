//! The rung, the switch, and traffic between them.

use flow::{Nanos, Pipeline, PortAt, PortState, Serials, SwitchId};
use offload::{
    CardReason, Counts, Declined, Edit, Engine, Facts, FlowName, FlowProgram, FlowReason, Handle,
    LimitId, MAX_LIMITS, MoveReason, NotSettled, Order, Orphan, PortReason, Price, Provider,
    ProviderName, Refusal, Side, World, known,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::build::{Frame, Ipv4, Tcp};
use wire::{Head, Key};

pub const MS: u64 = 1_000_000;
pub const SWITCH: SwitchId = SwitchId(1);

/// What the rung holds: shared with the test, which plays the kernel.
#[derive(Default)]
pub struct Slot {
    side: Option<Side>,
    wanted: Option<Side>,
    counts: Counts,
}

pub type Slots = Arc<Mutex<HashMap<Handle, (FlowName, Slot)>>>;

pub struct Double {
    slots: Slots,
    next: u32,
    size: usize,
    pub left: Vec<Orphan>,
    /// Whether the exit is down.
    pub is_down: bool,
}

impl Provider for Double {
    fn name(&self) -> ProviderName {
        ProviderName::Tc
    }
    fn check(&self, _: &FlowProgram) -> Result<Price, Declined> {
        if self.is_down {
            return Err(PortReason::Down.into());
        }
        Ok(Price {
            slots: 1,
            insert: Duration::from_micros(50),
            per_frame_ns: 100.0,
            per_byte_ns: 0.0,
            is_measured: true,
        })
    }
    fn install(&mut self, flow: &FlowProgram) -> Result<Handle, Declined> {
        let mut slots = self.slots.lock().unwrap();
        if slots.len() == self.size {
            return Err(CardReason::Full { slots: self.size as u32 }.into());
        }
        self.next += 1;
        slots.insert(
            Handle(self.next),
            ((flow.from, flow.key), Slot { side: Some(Side::Worker), ..Slot::default() }),
        );
        Ok(Handle(self.next))
    }
    fn want(&mut self, handle: Handle, side: Side) -> Result<(), Declined> {
        let mut slots = self.slots.lock().unwrap();
        let slot = &mut slots.get_mut(&handle).unwrap().1;
        slot.wanted = Some(side);
        if side == Side::Worker {
            slot.side = Some(side);
        }
        Ok(())
    }
    fn side(&mut self, handle: Handle) -> Side {
        self.slots.lock().unwrap()[&handle].1.side.unwrap()
    }
    fn order(&self) -> Order {
        Order::Counted
    }
    fn remove(&mut self, handle: Handle) -> Counts {
        let (_, slot) = self.slots.lock().unwrap().remove(&handle).unwrap();
        assert_eq!(slot.side, Some(Side::Worker), "removed from its rung");
        slot.counts
    }
    fn read(&mut self, out: &mut Vec<(Handle, Counts)>, budget: usize) {
        out.extend(
            self.slots
                .lock()
                .unwrap()
                .iter()
                .take(budget)
                .map(|(handle, (_, slot))| (*handle, slot.counts)),
        );
    }
    fn settle(&mut self, _: Duration) -> Result<(), NotSettled> {
        Ok(())
    }
    fn adopt(&mut self) -> Vec<Orphan> {
        std::mem::take(&mut self.left)
    }
    fn keep(&mut self, _: Handle, _: &FlowProgram) {}
}

/// A switch that sends all by port 2.
pub struct Switch {
    pipeline: Pipeline,
    credited: HashMap<FlowName, u64>,
    /// Which tables hold.
    pub version: u64,
    made: HashMap<FlowName, u64>,
    pub has_way: bool,
    /// Why its flows have no program.
    pub refusal: Option<Refusal>,
    /// The switch of the port that they leave by.
    pub exit: SwitchId,
}

impl Facts for Switch {
    fn mtu(&self, _: u32) -> Result<u32, Declined> {
        Ok(1500)
    }
    fn limits(
        &self,
        _: u32,
        _: &mut arrayvec::ArrayVec<LimitId, MAX_LIMITS>,
    ) -> Result<(), Declined> {
        Err(FlowReason::Limits.into())
    }
}

impl World for Switch {
    fn program(&mut self, flow: &FlowName, now: Nanos) -> Result<FlowProgram, Refusal> {
        self.refusal.clone().map_or(Ok(()), Err)?;
        self.made.insert(*flow, self.version);
        let resolved = self.pipeline.snapshot().resolve(&flow.1, &known(&flow.1), now);
        let mut program = FlowProgram::of(flow.0, &flow.1, &resolved, self)?;
        program.exit.switch = self.exit;
        if self.version > 0 {
            program.edits.push(Edit::PushVlan { tpid: 0x8100, tci: self.version as u16 & 0xfff });
        }
        Ok(program)
    }
    fn meets(&mut self, orphan: &Orphan) -> FlowName {
        (orphan.from, orphan.key)
    }
    fn takes_up(
        &mut self,
        flow: &FlowName,
        _: &Orphan,
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        if !self.has_way {
            return Err(MoveReason::Adopting.into());
        }
        self.program(flow, now).map_err(|refusal| refusal.why)
    }
    fn share(&mut self, _: &FlowProgram) {}
    fn holds(&mut self, program: &FlowProgram, _: Nanos) -> bool {
        self.refusal.is_none() && self.made[&(program.from, program.key)] == self.version
    }
    fn credit(&mut self, program: &FlowProgram, counts: Counts) {
        *self.credited.entry((program.from, program.key)).or_default() += counts.frames;
    }
    fn quiesce(&mut self) {}
}

pub struct Test {
    pub engine: Engine,
    pub rung: Double,
    pub slots: Slots,
    pub switch: Switch,
    pub now: u64,
    sent: HashMap<FlowName, u64>,
    by_worker: HashMap<FlowName, u64>,
}

pub fn name(at: u16) -> FlowName {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
    let bytes = frame.tcp(Tcp { src: at, ..Tcp::default() }).finish();
    let (key, _): (Key, _) = wire::parse(&Head::copy_of(&bytes), 1);
    (PortAt { switch: SWITCH, port: 1 }, key.masked(&offload::told_apart(&key)))
}

impl Test {
    pub fn new(size: usize) -> Self {
        let mut pipeline = Pipeline::new(flow::Limits::default(), &Serials::default());
        pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
        let apply = vec![flow::Action::Output(flow::Output::Port(2))];
        let instructions = flow::Instructions { apply, ..flow::Instructions::default() };
        pipeline
            .flow_mod(&flow::FlowMod { instructions, ..flow::FlowMod::default() }, Nanos(0))
            .unwrap();
        let slots = Slots::default();
        let mut engine = Engine::default();
        engine.set_slots(&[ProviderName::Tc], size as u32);
        engine.set_on(true);
        Self {
            engine,
            rung: Double { slots: slots.clone(), next: 0, size, left: Vec::new(), is_down: false },
            slots,
            switch: Switch {
                pipeline,
                credited: HashMap::new(),
                version: 0,
                made: HashMap::new(),
                has_way: true,
                refusal: None,
                exit: SWITCH,
            },
            now: 1000 * MS,
            sent: HashMap::new(),
            by_worker: HashMap::new(),
        }
    }

    /// Frames of one flow come: by the rung if they may, else to the worker, which tells of them.
    pub fn send(&mut self, at: u16, frames: u64) {
        let name = name(at);
        *self.sent.entry(name).or_default() += frames;
        let mut slots = self.slots.lock().unwrap();
        let slot = slots.values_mut().find(|(of, _)| *of == name).map(|(_, slot)| slot);
        // None is under way in this test's worker: a wish is met at once.
        if let Some(slot) = slot {
            slot.side = slot.wanted.or(slot.side);
            if slot.side == Some(Side::Rung) {
                slot.counts += Counts {
                    frames,
                    bytes: 1000 * frames,
                    used: Nanos(self.now),
                    ..Counts::default()
                };
                return;
            }
        }
        drop(slots);
        *self.by_worker.entry(name).or_default() += frames;
        self.engine.saw(name, (frames, 1000 * frames), Nanos(self.now));
    }

    pub fn turn(&mut self) {
        self.now += 20 * MS;
        self.engine.turn(&mut [&mut self.rung], &mut self.switch, Nanos(self.now));
    }

    pub fn rung_of(&self, at: u16) -> Option<ProviderName> {
        self.engine.why(&name(at)).and_then(|told| told.line.rung)
    }

    /// Tables of a switch changed, or whether it is steered.
    pub fn changed(&mut self, switch: SwitchId) {
        self.engine.changed(switch, &mut [&mut self.rung], &mut self.switch, Nanos(self.now));
    }

    pub fn declined(&self, at: u16) -> Option<Declined> {
        self.engine.why(&name(at)).and_then(|told| told.line.declined)
    }

    /// Ends all stays and compares what was sent with what was counted.
    pub fn assert_conserved(&mut self) {
        self.engine.set_on(false);
        (0..20).for_each(|_| self.turn());
        assert!(self.slots.lock().unwrap().is_empty(), "all came back");
        for (name, sent) in &self.sent {
            let of = |counts: &HashMap<FlowName, u64>| counts.get(name).copied().unwrap_or(0);
            assert_eq!(of(&self.by_worker) + of(&self.switch.credited), *sent);
        }
    }
}
