//! What the thread owns: the engine, the rungs, and what it knows of switches and ports.

use super::tables::Tables;
use super::{Look, Message, PortNote, Seen, State};
use api::{Fault, chain};
use datapath::{CaptureId, Clock, MonotonicClock, PortAt, Steers, SwitchId};
use flow::Nanos;
use offload::{
    Declined, Engine, Explained, FlowLine, FlowName, FlowReason, Moved, Policy, PortReason, Price,
    Provider, ProviderName, TakenUp, Work, World, first_taker, told_apart,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use wire::Head;
use xdp::offload::{
    Cost, Flows, OffloadError, PIN_ROOT, Past, RungPort as _, Tc, TcPort, Xdp, XdpPort,
};

/// What a flow would find if it were tried now.
pub type Verdict = Result<(ProviderName, Price), Declined>;

/// The thread's own.
pub struct Desk {
    /// Where maps and programs are pinned.
    root: PathBuf,
    engine: Engine,
    /// While there are maps.
    kernel: Option<Kernel>,
    tables: Tables,
    state: Arc<State>,
    /// The node ends, and what is on rungs is the next one's.
    has_left: bool,
    /// What workers had done at the last turn.
    work: Work,
    /// Who is told of flows that moved. It must not wait.
    tell: Option<Tell>,
}

/// Hears of a flow that moved.
pub(super) type Tell = Box<dyn Fn(Moved) + Send>;

/// The kernel's rungs, and the maps that they share with ports.
struct Kernel {
    flows: Arc<Flows>,
    tc: Tc,
    xdp: Xdp,
    pricing: Pricing,
}

/// What came of the question what a frame costs on each rung.
enum Pricing {
    Unasked,
    Asked(JoinHandle<[Priced; 2]>),
    Answered,
}

type Priced = Result<Cost, OffloadError>;

impl Kernel {
    fn new(flows: Arc<Flows>) -> Self {
        let (tc, xdp) = (Tc::new(flows.clone()), Xdp::new(flows.clone()));
        Self { flows, tc, xdp, pricing: Pricing::Unasked }
    }

    /// Asks once what a frame costs, when the first flow is seen that may leave. That takes some 100 ms, on a busy host more, most of it the
    /// kernel's look at programs. So a thread of its own asks: nobody waits for it but flows that would leave.
    fn ask_prices(&mut self) {
        if !matches!(self.pricing, Pricing::Unasked) {
            return;
        }
        let flows = self.flows.clone();
        let thread = std::thread::Builder::new().name("suiro-prices".into());
        match thread.spawn(move || [TcPort::measure(&flows), XdpPort::measure(&flows)]) {
            Ok(thread) => {
                self.pricing = Pricing::Asked(thread);
                self.tc.set_cost(None);
                self.xdp.set_cost(None);
            }
            Err(error) => {
                self.pricing = Pricing::Answered;
                tracing::warn!("offload: what a frame costs is assumed, not measured: {error}");
            }
        }
    }

    fn take_prices(&mut self) {
        if matches!(&self.pricing, Pricing::Asked(thread) if thread.is_finished()) {
            self.wait_for_prices();
        }
    }

    /// Nothing of the question stays in the maps.
    fn wait_for_prices(&mut self) {
        let Pricing::Asked(thread) = std::mem::replace(&mut self.pricing, Pricing::Answered) else {
            return;
        };
        // A thread that panicked has said so already.
        let [tc, xdp] = thread.join().unwrap_or([NOT_RUN, NOT_RUN]);
        self.tc.set_cost(Some(measured("tc", tc, TcPort::ASSUMED)));
        self.xdp.set_cost(Some(measured("xdp", xdp, XdpPort::ASSUMED)));
    }

    fn rungs(&mut self) -> [&mut dyn Provider; 2] {
        [&mut self.tc, &mut self.xdp]
    }

    fn port_came(&mut self, at: PortAt, port: &Past) {
        match port {
            Past::Tc(port) => self.tc.port_came(at, port.clone()),
            Past::Xdp(port) => self.xdp.port_came(at, port.clone()),
        }
    }

    /// Only what serves flows stays.
    fn leave(&self) {
        self.tc.leave();
        self.xdp.leave();
    }

    fn port_went(&mut self, at: PortAt) {
        self.tc.port_went(at);
        self.xdp.port_went(at);
    }
}

const NOT_RUN: Priced = Err(OffloadError::NotRun);

fn measured(rung: &str, cost: Priced, assumed: Cost) -> Cost {
    cost.unwrap_or_else(|error| {
        let why = chain(&error);
        tracing::warn!(
            "offload: what a frame costs on rung {rung} is assumed, not measured: {why}"
        );
        assumed
    })
}

impl Desk {
    pub(super) fn new(root: PathBuf, state: Arc<State>) -> Self {
        let mut engine = Engine::default();
        engine.set_slots(&[ProviderName::Tc, ProviderName::Xdp], xdp::offload::SLOTS);
        let (tables, has_left) = (Tables::default(), false);
        let work = Work::default();
        Self { root, engine, kernel: None, tables, state, has_left, work, tell: None }
    }

    /// Whether there is anything to do without being asked.
    pub(super) fn is_at_work(&self) -> bool {
        !self.has_left && (self.engine.is_on() || self.engine.has_stays())
    }

    /// Does something with the engine, its rungs and its world.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Engine, &mut [&mut dyn Provider], &mut Tables, Nanos) -> T,
    ) -> T {
        let now = MonotonicClock.now();
        let mut rungs: Vec<&mut dyn Provider> =
            self.kernel.iter_mut().flat_map(Kernel::rungs).collect();
        let done = work(&mut self.engine, &mut rungs, &mut self.tables, now);
        self.state.has_stays.store(self.engine.has_stays(), Relaxed);
        for moved in self.engine.take_moved() {
            self.tell.iter().for_each(|tell| tell(moved.clone()));
        }
        done
    }

    pub(super) fn tell_moves(&mut self, tell: Tell) {
        self.tell = Some(tell);
    }

    /// Looks at what workers showed, and lets the engine turn.
    pub(super) fn turn(&mut self) {
        self.take_samples();
        let work = self.tables.work();
        self.engine.worked(work - self.work);
        self.work = work;
        self.kernel.iter_mut().for_each(Kernel::take_prices);
        if self.engine.has_left() {
            self.take_up(Engine::take_up);
        } else if let Some(kernel) = self.kernel.as_mut().filter(|_| self.engine.has_candidates()) {
            kernel.ask_prices();
        }
        self.with(|engine, rungs, tables, now| engine.turn(rungs, tables, now));
    }

    fn take_samples(&mut self) {
        let Some(samples) = self.tables.samples() else { return };
        while let Some(sample) = samples.pop() {
            self.tables.saw(sample.at, &sample.head);
            let (key, _) = wire::parse(&Head::copy_of(&sample.head), sample.at.port);
            let name: FlowName = (sample.at, key.masked(&told_apart(&key)));
            let (frames, bytes) = (u64::from(sample.frames), u64::from(sample.frame_len));
            self.engine.saw(name, (frames, frames * bytes), sample.when);
        }
    }

    pub(super) fn take(&mut self, message: Message) {
        // Who waits and has gone needs no answer.
        let tell = |done: std::sync::mpsc::Sender<()>| _ = done.send(());
        match message {
            Message::Serve(datapath) => self.tables.serve(datapath),
            Message::SwitchCame(id, publisher) => self.tables.switch_came(id, publisher),
            Message::SwitchGoes(id) => self.tables.switch_goes(id),
            Message::Steers(switch, change, done) => {
                self.steers(switch, change);
                tell(done);
            }
            Message::CaptureBegins(id, seen, done) => {
                self.capture_begins(id, *seen);
                tell(done);
            }
            Message::CaptureEnded(id) => self.capture_ended(id),
            Message::PortIs(at, note) => self.port_is(at, note),
            Message::PortGoes(at, done) => {
                self.port_goes(at);
                tell(done);
            }
            Message::Published(switch) => self.changed(switch),
            Message::Settle(switch, done) => {
                // No frame runs by what nobody has looked at.
                self.take_up(Engine::judge_left);
                self.changed(switch);
                tell(done);
            }
            Message::Refresh(done) => {
                self.with(|engine, rungs, tables, _| engine.read(rungs, tables));
                tell(done);
            }
            Message::Ask(ask) => ask(self),
            Message::Stop => {}
        }
    }

    /// Tables of a switch are others, or were looked at before.
    fn changed(&mut self, switch: SwitchId) {
        if !self.is_at_work() || !self.tables.is_behind(switch) {
            return;
        }
        // What came by the old tables counts for their entries, which stay as long as their snapshot is held.
        self.with(|engine, rungs, tables, now| {
            engine.read(rungs, tables);
            let _before = tables.renew(switch);
            engine.changed(switch, rungs, tables, now);
        });
    }

    fn steers(&mut self, switch: SwitchId, change: Steers) {
        self.tables.steers(switch, change);
        if !self.has_left {
            self.with(|engine, rungs, tables, now| engine.changed(switch, rungs, tables, now));
        }
    }

    fn capture_begins(&mut self, id: CaptureId, seen: Seen) {
        self.tables.seen.begins(id, seen.clone());
        if self.has_left {
            return;
        }
        self.with(|engine, rungs, tables, now| {
            let why = FlowReason::Captured.into();
            engine.bring_back(|_, program| seen.shows(program), &why, (rungs, tables), now);
        });
    }

    fn capture_ended(&mut self, id: CaptureId) {
        self.tables.seen.ended(id);
        self.with(|engine, _, _, now| engine.try_again(&FlowReason::Captured.into(), now));
    }

    fn port_is(&mut self, at: PortAt, note: PortNote) {
        if let (Some(kernel), Some(Ok(port))) = (&mut self.kernel, &note.past) {
            note.held.iter().for_each(|held| port.set_held(held));
            kernel.port_came(at, port);
        }
        if let (Some(kernel), Some(passage)) = (&mut self.kernel, note.passage()) {
            kernel.xdp.passage_came(at, passage.clone());
        }
        // What ports say as they go is no matter to flows that go on without the node.
        if self.tables.port_is(at, note) && !self.has_left {
            self.with(|engine, rungs, tables, now| engine.changed(at.switch, rungs, tables, now));
        }
    }

    fn port_goes(&mut self, at: PortAt) {
        if self.has_left {
            return;
        }
        self.tables.port_goes(at);
        self.with(|engine, rungs, tables, now| {
            let why = PortReason::Gone.into();
            engine.bring_back(
                |_, program| program.ports().any(|port| port == at),
                &why,
                (rungs, tables),
                now,
            );
        });
        if let Some(kernel) = &mut self.kernel {
            kernel.port_went(at);
        }
    }

    /// The maps that ports and rungs share; made, or taken up from an earlier node.
    pub(super) fn prepare(&mut self) -> Result<Arc<Flows>, Fault> {
        if let Some(kernel) = &self.kernel {
            return Ok(kernel.flows.clone());
        }
        let opened = Flows::open(&self.root).map_err(|error| {
            let remedy = "it takes Linux 6.6 or later, CAP_BPF, CAP_NET_ADMIN and /sys/fs/bpf; see: suiro doctor";
            Fault::new("offload", "make its maps", chain(&error), remedy)
        })?;
        if opened.is_anew() {
            tracing::warn!(
                "offload: an earlier version of suiro left flows past the workers in maps of another layout: they are gone, and the flows come back"
            );
        }
        let flows = Arc::new(opened);
        let mut kernel = Kernel::new(flows.clone());
        // TAPs and tunnels were opened before, and stay as they are.
        for (at, note) in self.tables.notes() {
            let passage = note.passage().cloned();
            passage.into_iter().for_each(|passage| kernel.xdp.passage_came(at, passage));
        }
        self.kernel = Some(kernel);
        self.tables.prepared(flows.clone());
        Ok(flows)
    }

    pub(super) fn set_on(&mut self, on: bool) {
        self.state.is_on.store(on, Relaxed);
        self.engine.set_on(on);
        if on {
            self.tables.renew_all();
        } else {
            let why = offload::PolicyReason::Off.into();
            self.with(|engine, rungs, tables, now| {
                engine.bring_back(|_, _| true, &why, (rungs, tables), now);
            });
            self.tables.forget();
        }
        self.tables.show_one_in(self.engine.samples_one_in());
    }

    pub(super) fn purge(&self) {
        if let Err(error) = purge(&self.root) {
            tracing::warn!("offload: what an earlier node left stays: {}", chain(&error));
        }
    }

    pub(super) fn adopt(&mut self) {
        self.tables.find_ways();
        // What an earlier node left would come back for want of a price: frames may have come since the ports opened, and a price been asked for.
        self.kernel.iter_mut().for_each(Kernel::wait_for_prices);
        self.take_up(Engine::adopt);
    }

    /// Takes up, in one of the engine's ways, what an earlier node left.
    fn take_up(
        &mut self,
        how: fn(&mut Engine, &mut [&mut dyn Provider], &mut Tables, Nanos) -> TakenUp,
    ) {
        let TakenUp { mut stayed, ended } = self.with(how);
        stayed.sort();
        for of_rung in stayed.chunk_by(ProviderName::eq) {
            tracing::info!(
                "offload: {} flows of an earlier node go on, rung {}",
                of_rung.len(),
                of_rung[0]
            );
        }
        for why in ended {
            tracing::info!("offload: a flow of an earlier node comes back: {why}");
        }
        if !self.engine.has_left() {
            self.kernel.iter().for_each(|kernel| kernel.flows.forget_limits());
        }
    }

    /// The node ends: flows on rungs go on without it, as they do when it is killed. What serves none of them leaves the kernel.
    pub(super) fn leave(&mut self) {
        self.kernel.iter_mut().for_each(Kernel::wait_for_prices);
        let up = self.with(|engine, rungs, tables, now| engine.leave(rungs, tables, now));
        self.has_left = true;
        let Some(kernel) = &self.kernel else { return };
        if up == 0 {
            return self.purge();
        }
        kernel.leave();
        tracing::info!(
            "offload: {up} flows go on in the kernel until the node starts again; to end them: suiro node --purge"
        );
    }

    pub(super) fn set_policies(&mut self, policies: Vec<Policy>) {
        self.engine.set_policies(policies);
        self.tables.show_one_in(self.engine.samples_one_in());
    }

    pub(super) fn look(&mut self) -> Look {
        self.with(|engine, rungs, tables, _| engine.read(rungs, tables));
        let (moves, flaps) = self.engine.moves();
        let worker = self.engine.worker_cost();
        Look { worker, is_on: self.engine.is_on(), rungs: self.engine.rungs(), moves, flaps }
    }

    pub(super) fn list(&mut self) -> Vec<FlowLine> {
        self.take_samples();
        self.with(|engine, rungs, tables, _| {
            engine.read(rungs, tables);
            engine.list()
        })
    }

    pub(super) fn why(&mut self, name: &FlowName) -> (Option<Explained>, Verdict) {
        self.take_samples();
        self.with(|engine, rungs, tables, now| {
            engine.read(rungs, tables);
            let program = tables.program(name, now).map_err(|refusal| refusal.why);
            let verdict = program.and_then(|program| {
                let taker = first_taker(rungs.iter().map(|rung| &**rung), &program);
                taker.map(|(at, price)| (rungs[at].name(), price))
            });
            (engine.why(name), verdict)
        })
    }
}

/// Takes away what a node left in the kernel: flows come back to nobody's worker, and nothing is pinned.
///
/// # Errors
/// A pin cannot be removed.
pub fn purge(root: &Path) -> Result<(), OffloadError> {
    Flows::purge(root)?;
    // Other nodes of this host may have theirs beside it.
    let _ = std::fs::remove_dir(PIN_ROOT);
    Ok(())
}
