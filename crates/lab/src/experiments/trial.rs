//! One contender of an experiment, and what all experiments share to measure it.

use super::Settings;
use super::findings::{ByCore, Findings, Goal, OverTime, REORDERED, Sheet};
use super::frame::tunnelled;
use super::hosts::Hosts;
use super::layout::Layout;
use super::paper::{Key, Paper};
use super::quiet::Others;
use super::stage::{Counts, NsPerByte};
use super::steering::{InPlace, Steerer, Steering, Told};
use super::traffic::receiver::Vm;
use super::traffic::{Flow, Outcome};
use super::window::{Measured, Windows};
use anyhow::{Context, Result};
use testbed::driver::flows::Random;

/// Source ports are taken from here on.
const PORTS: u16 = 20_000;
const PORT_RANGE: u32 = 20_000;

/// Ports that are tried until one has the wanted hash; each fits with one of as many as there are cores.
const PORT_TRIES: usize = 200;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// In the words of the tables.
    pub case: &'static str,
    /// Who chooses the cores.
    pub steering: Steering,
    /// What is sent.
    pub flows: Vec<Flow>,
    /// Who receives.
    pub vms: Vec<Vm>,
    /// The VM whose flow has priority.
    pub priority: Option<u8>,
}

impl Trial {
    /// The name of one of its figures.
    pub fn key(&self, quantity: &'static str, vm: Option<u8>) -> Key {
        key(self.case, self.steering, quantity, vm, self.size())
    }

    fn size(&self) -> usize {
        self.flows.first().map_or(0, |flow| flow.size)
    }
}

/// The name of a figure.
pub fn key(
    case: &str,
    steering: Steering,
    quantity: &'static str,
    vm: Option<u8>,
    size: usize,
) -> Key {
    Key { case: case.into(), steering: steering.name().into(), quantity, vm, size: Some(size) }
}

/// An experiment at work.
pub struct Lab<'t> {
    /// What the user asked for.
    pub settings: &'t Settings,
    /// Where it runs.
    pub hosts: &'t Hosts,
    /// Figures so far.
    pub sheet: Sheet,
    /// Rates over time so far.
    pub over_time: Vec<OverTime>,
    others: Others,
    windows: Windows<'t>,
    steerer: Steerer<'t>,
    random: Random,
}

/// A testbed for so many VMs with the stage at the work that the settings ask for.
///
/// # Errors
/// The step that failed.
pub fn prepare(settings: &Settings, vms: u8) -> Result<Hosts> {
    // Another experiment of the same run may have left this thread on one core.
    testbed::sys::unpin();
    let layout = Layout::of(std::thread::available_parallelism().map_or(1, usize::from))?;
    let mut hosts = Hosts::build(vms, &layout, settings.cipher)?;
    // Beside the kernel's encryption as well: flows are to weigh what they do in other experiments, whatever a core's cipher takes.
    let frame = tunnelled(1, 1400);
    // The calibration is done where the work will be: an interrupt's cache is as warm.
    testbed::sys::pin(layout.rx);
    let rounds = hosts.stage.calibrate(settings.work(), &frame);
    // Whatever is started from here on inherits it.
    layout.rest.map_or_else(testbed::sys::unpin, testbed::sys::pin);
    let NsPerByte(work) = settings.work();
    eprintln!("stage: {work:.1} ns a byte, {} rounds; {}", rounds?, layout.describe());
    Ok(hosts)
}

impl<'t> Lab<'t> {
    /// Begins one.
    ///
    /// # Errors
    /// `vse` is among the contenders and its node does not start.
    pub fn new(settings: &'t Settings, hosts: &'t Hosts) -> Result<Self> {
        Ok(Self {
            settings,
            hosts,
            sheet: Sheet::default(),
            over_time: Vec::new(),
            others: Others::default(),
            windows: Windows::new(hosts, settings),
            steerer: Steerer::new(hosts, &settings.steering, settings.cipher)?,
            random: Random(0x5eed),
        })
    }

    /// Whether the user wants this contender.
    pub fn wants(&self, steering: Steering) -> bool {
        self.settings.steering.contains(&steering)
    }

    /// A VM that works `share` of what the stage works for each byte.
    pub fn vm(&self, number: u8, core: Option<usize>, share: f64) -> Vm {
        let NsPerByte(work) = self.settings.work();
        Vm { number, core, work_ns_per_byte: work * share }
    }

    /// A flow as the paper's, to the scale.
    pub fn flow(&self, vm: u8, port: u16, size: usize) -> Flow {
        Flow {
            vm,
            port,
            size,
            rate: self.settings.scale().datagrams(size),
            tos: self.settings.cipher.tos(vm),
        }
    }

    /// Some source port; every run has the same in the same order.
    pub fn any_port(&mut self) -> u16 {
        PORTS + self.random.below(PORT_RANGE) as u16
    }

    /// A source port such that RPS gives the VM's flow to a core that `fits`.
    ///
    /// # Errors
    /// None of many ports does.
    pub fn port_where(&mut self, vm: u8, fits: impl Fn(usize) -> bool) -> Result<u16> {
        let ports: Vec<u16> = (0..PORT_TRIES).map(|_| self.any_port()).collect();
        let _in_place = self.steerer.put(Steering::Rps, Told::default())?;
        for port in ports {
            if fits(self.windows.core_of(self.flow(vm, port, 256))?) {
                return Ok(port);
            }
        }
        anyhow::bail!("VM {vm}: none of {PORT_TRIES} source ports has the wanted hash")
    }

    /// Puts a contender in place, for whoever measures in another way than [`Lab::measure`].
    ///
    /// # Errors
    /// The step that failed.
    pub fn put(&self, steering: Steering, told: Told<'_>) -> Result<InPlace<'_>> {
        self.steerer.put(steering, told)
    }

    /// Has a VM's flow go to another core from now on, steered by suiro already.
    ///
    /// # Errors
    /// What suiro says.
    pub fn send_to(&self, vm: u8, core: usize) -> Result<()> {
        self.steerer.send_to(vm, core)
    }

    /// One window of one contender.
    ///
    /// # Errors
    /// The step that failed.
    pub fn measure(&mut self, trial: &Trial) -> Result<Measured> {
        let told = Told { vms: &trial.vms, priority: trial.priority, ..Told::default() };
        let run = |windows: &Windows<'_>| windows.run(&trial.flows, &trial.vms);
        let measured = self.measure_by(trial, told, run)?;
        self.count(&trial.key("frames", None), &measured.counts);
        Ok(measured)
    }

    /// One window of one contender that is told something else, or whose VMs are something else than sockets; counts nothing by core.
    ///
    /// # Errors
    /// The step that failed.
    pub fn measure_by(
        &mut self,
        trial: &Trial,
        told: Told<'_>,
        run: impl FnOnce(&Windows<'_>) -> Result<Measured>,
    ) -> Result<Measured> {
        self.others.look()?;
        let in_place = self.steerer.put(trial.steering, told);
        let in_place = in_place
            .with_context(|| format!("{}: cannot be put in place", trial.steering.name()))?;
        let measured = run(&self.windows)?;
        self.log(trial, &measured);
        self.explain(trial, &measured)?;
        drop(in_place);
        Ok(measured)
    }

    /// Writes into the sheet who processed what.
    pub fn count(&mut self, key: &Key, counts: &Counts) {
        let (cores, vms) = (self.hosts.layout.host, self.hosts.vms.len() as u8);
        self.sheet.add_counts(key, counts, cores, vms);
    }

    /// Writes total, and throughput and loss of each VM, into the sheet.
    pub fn note(&mut self, trial: &Trial, measured: &Measured) {
        let class = measured.class;
        self.sheet.add(trial.key("throughput", None), "Mbit/s", measured.total(), class);
        for outcome in &measured.outcomes {
            let vm = Some(outcome.flow.vm);
            self.sheet.add(trial.key("throughput", vm), "Mbit/s", outcome.throughput(), class);
            self.sheet.add(trial.key("loss", vm), "%", outcome.loss(), class);
            self.sheet.add(trial.key("delay p99", vm), "us", outcome.tally.delay_us(99), class);
        }
        self.sheet.add(trial.key(REORDERED, None), "", measured.late() as f64, class);
    }

    fn log(&self, trial: &Trial, measured: &Measured) {
        let (size, steering) = (trial.size(), trial.steering.name());
        let frames = measured.counts.frames(self.hosts.layout.host);
        let late = measured.late();
        if self.settings.counts {
            eprintln!(
                "  {size} B {}, {steering}: frames by core {frames:?}, {late} late",
                trial.case
            );
            return;
        }
        let one = |outcome: &Outcome| {
            format!(
                "VM {} {:.1} ({:.1} % lost)",
                outcome.flow.vm,
                outcome.throughput(),
                outcome.loss()
            )
        };
        let flows: Vec<_> = measured.outcomes.iter().map(one).collect();
        let unsent: u64 = measured.outcomes.iter().map(|outcome| outcome.unsent).sum();
        let unsent = if unsent > 0 { format!(", {unsent} unsent") } else { String::new() };
        eprintln!(
            "  {size} B {}, {steering}: {:.1} Mbit/s: {}; frames by core {frames:?}, {late} late{unsent}, {}",
            trial.case,
            measured.total(),
            flows.join(", "),
            measured.class,
        );
    }

    /// Where flows met each other or a VM, what the contender says of that. With priority some do.
    fn explain(&self, trial: &Trial, measured: &Measured) -> Result<()> {
        let frames = measured.counts.frames(self.hosts.layout.host);
        let is_met = |vm: &Vm| vm.core.is_some_and(|core| frames[core] > 0);
        let is_odd = measured.shared(frames.len()) > 0.0 || trial.vms.iter().any(is_met);
        if trial.priority.is_some() || !is_odd {
            return Ok(());
        }
        for vm in measured.outcomes.iter().map(|outcome| outcome.flow.vm) {
            let said = self.steerer.why(trial.steering, vm)?.unwrap_or_default();
            said.lines().for_each(|line| eprintln!("    {line}"));
        }
        Ok(())
    }

    /// Everything, for the report.
    ///
    /// # Errors
    /// The paper's file does not know the experiment.
    pub fn findings(self, experiment: &super::Experiment, goals: Vec<Goal>) -> Result<Findings> {
        let scale = self.settings.scale();
        let by_core: Vec<ByCore> = self.sheet.by_core(experiment.name)?;
        Ok(Findings {
            experiment: experiment.name,
            about: experiment.about,
            source: Paper::of(experiment.name)?.source,
            scale: scale.factor(),
            notes: vec![self.hosts.layout.describe()],
            results: self.sheet.rows(experiment.name, scale)?,
            by_core,
            over_time: self.over_time,
            others_percent: self.others.percent(),
            goals,
        })
    }
}
