//! One measurement: all flows at once for a while, and both ends of each side by side.

use super::Settings;
use super::hosts::{Hosts, address, peer};
use super::stage::Counts;
use super::traffic::generator::{self, Pace, Sent, Source, Times};
use super::traffic::receiver::{self, PORT, Vm};
use super::traffic::{Flow, Outcome, Tally, Work};
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testbed::machine::placement_class;

/// From the threads' start to the first datagram: what it took to put a contender in place is no longer in the cores' loads. Chosen: five of the agent's looks at an idle
/// host. On slow cores the loads were half of that work after 20 ms, a core was above the threshold for it, and both flows went to the other.
const LEAD: Duration = Duration::from_millis(250);

/// After the last one is due: what waits in queues still comes; fragments whose others are lost are given up after a second.
const DRAIN: Duration = Duration::from_millis(300);
const DRAIN_FRAGMENTS: Duration = Duration::from_millis(1300);

/// Longest way of a datagram through an idle testbed. Chosen: far above what an emulated core needs.
pub const ARRIVED: Duration = Duration::from_secs(5);

/// Largest datagram that the tunnel takes through an MTU of 1500 whole.
const WHOLE: usize = 1500 - 20 - 8 - 8 - 14 - 20 - 8;

/// What came of a window.
#[derive(Clone, Debug)]
pub struct Measured {
    /// In the order of the flows.
    pub outcomes: Vec<Outcome>,
    /// Who processed what, warm-up included.
    pub counts: Counts,
    /// Placement class of the first two cores just before.
    pub class: &'static str,
}

impl Measured {
    /// Mbit/s of all flows.
    pub fn total(&self) -> f64 {
        self.outcomes.iter().map(Outcome::throughput).sum()
    }

    /// Percent of the VMs' frames that were processed on another core than most of the same VM's.
    pub fn strays(&self, cores: usize) -> f64 {
        let (mut all, mut strays) = (0, 0);
        for outcome in &self.outcomes {
            let frames = self.counts.frames_of(outcome.flow.vm, cores);
            let sum: u64 = frames.iter().sum();
            all += sum;
            strays += sum - frames.iter().max().copied().unwrap_or(0);
        }
        if all == 0 { 0.0 } else { strays as f64 / all as f64 * 100.0 }
    }

    /// Percent of the VMs' frames that were processed on a core which processed another VM's as well.
    pub fn shared(&self, cores: usize) -> f64 {
        let of_vms: Vec<_> = self
            .outcomes
            .iter()
            .map(|outcome| self.counts.frames_of(outcome.flow.vm, cores))
            .collect();
        let frames: Vec<u64> =
            (0..cores).map(|core| of_vms.iter().map(|of_vm| of_vm[core]).sum()).collect();
        let is_shared = |core: &usize| of_vms.iter().filter(|of_vm| of_vm[*core] > 0).count() > 1;
        let shared: u64 = (0..cores).filter(is_shared).map(|core| frames[core]).sum();
        shared as f64 / frames.iter().sum::<u64>().max(1) as f64 * 100.0
    }

    /// Datagrams that came behind later ones.
    pub fn late(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.tally.late).sum()
    }
}

/// A VM and what it does in its thread with a window's datagrams: takes those of the window's number into the tally until the window is over.
pub type Receiver<'r> = (u8, Box<dyn FnOnce(u32, Tally, &AtomicBool) -> Result<Tally> + Send + 'r>);

/// Runs windows on a testbed.
pub struct Windows<'t> {
    /// The testbed.
    pub hosts: &'t Hosts,
    /// How fast VMs work.
    pub work: Work,
    /// The counted time.
    pub length: Duration,
    /// What comes before it.
    pub pace: Pace,
    /// Says how far apart the first two cores are.
    pub class: fn() -> &'static str,
    /// Numbers the windows, so that datagrams of an earlier one are told.
    next: AtomicU32,
}

impl<'t> Windows<'t> {
    /// On this testbed.
    pub fn new(hosts: &'t Hosts, settings: &Settings) -> Self {
        let (work, next) = (Work::measure(), AtomicU32::new(1));
        let length = Duration::from_secs_f64(settings.seconds);
        let class = if settings.counts { || "-" } else { placement_class };
        Self { hosts, work, length, pace: settings.pace(), class, next }
    }

    /// Sends these flows to these VMs' sockets for a window; a VM has one flow at most.
    ///
    /// # Errors
    /// A socket that cannot be opened.
    pub fn run(&self, flows: &[Flow], vms: &[Vm]) -> Result<Measured> {
        let open = |vm: &Vm| {
            let space = &self.hosts.vms[usize::from(vm.number) - 1];
            space.enter(|| receiver::open(&address(vm.number)))
        };
        let sockets = vms.iter().map(open).collect::<Result<Vec<_>>>()?;
        let work = self.work;
        let receiver = |(&vm, socket)| -> Receiver<'_> {
            let receive = move |run, tally, over: &AtomicBool| {
                Ok(receiver::receive(vm, socket, run, work, tally, over))
            };
            (vm.number, Box::new(receive))
        };
        self.run_to(flows, vms.iter().zip(&sockets).map(receiver).collect())
    }

    /// Sends these flows for a window, whoever receives them.
    ///
    /// # Errors
    /// A socket that cannot be opened, or what a receiver says.
    pub fn run_to(&self, flows: &[Flow], receivers: Vec<Receiver<'_>>) -> Result<Measured> {
        let class = (self.class)();
        let sources = self.open(flows)?;
        let before = self.hosts.counts()?;
        let (sent, tallies, times) = self.exchange(sources, flows, receivers)?;
        let counts = self.hosts.counts()?.since(&before);
        let seconds = Duration::from_nanos(times.end - times.begin).as_secs_f64();
        let outcome = |((&flow, sent), tally): ((&Flow, Sent), Tally)| Outcome {
            flow,
            due: sent.due,
            unsent: sent.unsent,
            tally,
            seconds,
        };
        let outcomes = flows.iter().zip(sent).zip(tallies).map(outcome).collect();
        Ok(Measured { outcomes, counts, class })
    }

    /// Sends a few datagrams of a flow and says which core of the host processed the most of them.
    ///
    /// # Errors
    /// None of them arrived.
    pub fn core_of(&self, flow: Flow) -> Result<usize> {
        const DATAGRAMS: u64 = 4;
        let before = self.hosts.counts()?;
        self.probe(flow, DATAGRAMS)?;
        let frames = self.arrived(flow.vm, DATAGRAMS, &before)?;
        let most = frames.iter().copied().enumerate().max_by_key(|&(_, frames)| frames);
        Ok(most.map_or(0, |(core, _)| core))
    }

    /// Sends so many datagrams of a flow at once, which are no window's.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub fn probe(&self, flow: Flow, datagrams: u64) -> Result<()> {
        self.hosts.sender.enter(|| {
            self.open_one(&flow)?.probe(datagrams);
            Ok(())
        })
    }

    /// Frames of a VM by core, once so many have been processed.
    fn arrived(&self, vm: u8, wanted: u64, before: &Counts) -> Result<Vec<u64>> {
        const LOOK: Duration = Duration::from_millis(1);
        let deadline = Instant::now() + ARRIVED;
        loop {
            let counts = self.hosts.counts()?.since(before);
            let frames = counts.frames_of(vm, self.hosts.layout.host);
            let sum: u64 = frames.iter().sum();
            if sum >= wanted {
                return Ok(frames);
            }
            ensure!(
                Instant::now() < deadline,
                "VM {vm}: {sum} of {wanted} datagrams have reached the host within {ARRIVED:?}"
            );
            std::thread::sleep(LOOK);
        }
    }

    fn open(&self, flows: &[Flow]) -> Result<Vec<Source>> {
        self.hosts.sender.enter(|| flows.iter().map(|flow| self.open_one(flow)).collect())
    }

    /// In the sender's namespace.
    fn open_one(&self, flow: &Flow) -> Result<Source> {
        let to = format!("{}:{PORT}", address(flow.vm));
        Source::open(*flow, &peer(flow.vm), &to)
    }

    fn exchange(
        &self,
        sources: Vec<Source>,
        flows: &[Flow],
        receivers: Vec<Receiver<'_>>,
    ) -> Result<(Vec<Sent>, Vec<Tally>, Times)> {
        let times = self.times();
        let over = AtomicBool::new(false);
        let tally = |vm| {
            let flow = flows.iter().enumerate().find(|(_, flow)| flow.vm == vm);
            let first =
                flow.map_or(0, |(place, flow)| generator::first_counted(flow, &times.of(place)));
            Tally::new(first, times.begin, times.end)
        };
        let (sent, mut tallies) = std::thread::scope(|scope| {
            let threads: Vec<_> = receivers
                .into_iter()
                .map(|(vm, receive)| {
                    let (over, tally) = (&over, tally(vm));
                    (vm, scope.spawn(move || receive(times.run, tally, over)))
                })
                .collect();
            let core = self.hosts.layout.sender;
            let sender = scope.spawn(move || {
                testbed::sys::pin(core);
                generator::send(sources, &times)
            });
            let sent = sender.join().expect("the sender does not panic");
            std::thread::sleep(drain(flows));
            over.store(true, Ordering::Relaxed);
            let tallies = threads
                .into_iter()
                .map(|(vm, thread)| Ok((vm, thread.join().expect("a VM does not panic")?)))
                .collect::<Result<Vec<_>>>()?;
            anyhow::Ok((sent, tallies))
        })?;
        let of = |flow: &Flow| {
            let at = tallies.iter().position(|&(vm, _)| vm == flow.vm);
            at.map_or_else(|| Tally::new(0, 0, 0), |at| tallies.swap_remove(at).1)
        };
        Ok((sent, flows.iter().map(of).collect(), times))
    }

    fn times(&self) -> Times {
        let start = super::traffic::now_ns() + LEAD.as_nanos() as u64;
        let begin = start + self.pace.warm_up.as_nanos() as u64;
        let end = begin + self.length.as_nanos() as u64;
        let step = self.pace.step.as_nanos() as u64;
        Times { run: self.next.fetch_add(1, Ordering::Relaxed), start, begin, end, step }
    }
}

fn drain(flows: &[Flow]) -> Duration {
    if flows.iter().any(|flow| flow.size > WHOLE) { DRAIN_FRAGMENTS } else { DRAIN }
}
