//! One overload: a steady flow, what takes its core away, and when its next core had the first frame.

use super::super::hosts::{Hosts, address, peer};
use super::super::traffic::generator::{self, Source, Times};
use super::super::traffic::receiver::{self, PORT, Vm};
use super::super::traffic::{Flow, Tally, Work, now_ns};
use super::super::trial::Lab;
use super::witness::{Held, Witness};
use anyhow::Result;
use rustix::process::setpriority_process;
use std::cell::Cell;
use std::fmt;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::driver::flows::Random;

/// The VM of the flow that is watched, of the flow that overloads its core, and of one that is where the first shall not be: a rule holds it there.
pub const FLOW: u8 = 1;
/// See [`FLOW`].
pub const OTHER: u8 = 2;
/// See [`FLOW`].
pub const NEIGHBOUR: u8 = 3;

/// The flows' loads, as parts of a core. The first one's datagrams are small, so that the next is never far.
const LOAD: f64 = 0.2;
const SIZE: usize = 512;
const TOO_MUCH: f64 = 1.3;
const NEIGHBOURS_LOAD: f64 = 0.25;
const OTHER_SIZE: usize = 1400;

/// The flow runs so long before; and up to so much longer, so that overloads begin at any moment of the agent's own time.
const STEADY: Duration = Duration::from_millis(120);
const PHASE_US: u32 = 20_000;
/// So long before an overload by another flow that one's rule is set. Chosen: three times what the command takes.
const AIM: Duration = Duration::from_millis(60);
/// An overload lasts so long, also when the flow has left.
pub const OVERLOAD: Duration = Duration::from_millis(100);
/// What is in queues behind it comes in this time.
const DRAIN: Duration = Duration::from_millis(50);
/// What others take of the other cores counts from an overload's begin on for so long: the promise's time.
const CHANCE: Duration = Duration::from_millis(10);
/// Others hold a core that they take so much of that. Chosen: a tenth.
const TAKEN_BY_OTHERS: Duration = Duration::from_millis(1);
/// Between two looks where the flow is.
const LOOK: Duration = Duration::from_millis(1);

/// What takes the core away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A thread that never rests, pinned to the core.
    Thread,
    /// Another flow, sent there by a rule, of more than a core carries.
    Flow,
}

impl Kind {
    /// In the tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "a busy thread",
            Self::Flow => "a flow too many",
        }
    }
}

/// What came of one overload.
#[derive(Clone, Default, Debug)]
pub struct Taken {
    /// The core that was overloaded.
    pub from: usize,
    /// When it began, on the monotonic clock.
    pub begun_ns: u64,
    /// From its begin to the flow's first frame on another core; `None`: there was none.
    pub ns: Option<u64>,
    /// How often the flow changed core.
    pub changes: u32,
    /// Its datagrams behind later ones, and those that never came.
    pub late: u64,
    /// See `late`.
    pub lost: u64,
    /// The name of a program that held the other cores meanwhile, if none was free.
    pub held_by: Option<String>,
}

/// For the log; with when it began, to be found again in `suiro steer why --json`.
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, begun_ns, changes, late, lost, .. } = self;
        write!(f, "core {from} from {begun_ns} ns on: ")?;
        match self.ns {
            Some(ns) => write!(f, "left after {:.2} ms", ns as f64 / 1e6)?,
            None => write!(f, "stayed")?,
        }
        write!(f, ", {changes} changes of core, {late} late, {lost} lost")?;
        self.held_by.as_ref().map_or(Ok(()), |by| write!(f, "; no other core free: {by}"))
    }
}

impl Taken {
    /// Milliseconds that the flow stayed.
    pub fn ms(&self) -> f64 {
        self.ns.map_or(OVERLOAD.as_secs_f64(), |ns| ns as f64 / 1e9) * 1e3
    }
}

/// Makes overloads.
pub struct Bench<'l, 't> {
    lab: &'l Lab<'t>,
    flow: Flow,
    other: Flow,
    neighbour: Flow,
    sockets: [UdpSocket; 3],
    work: Work,
    witness: Witness,
    /// Where the other flow's rule sends it.
    sent_to: Cell<usize>,
    run: u32,
    random: Random,
}

impl<'l, 't> Bench<'l, 't> {
    /// With VMs that listen; the flows have these source ports, and the other one's rule sends it to `away`.
    pub fn new(lab: &'l Lab<'t>, ports: [u16; 3], away: usize) -> Result<Self> {
        let capacity = lab.settings.capacity * 1e6 / 8.0;
        let flow = |vm, port, size: usize, load| {
            let rate = capacity / size as f64 * load;
            Flow { vm, port, size, rate, tos: 0 }
        };
        let listen =
            |vm: u8| lab.hosts.vms[usize::from(vm) - 1].enter(|| receiver::open(&address(vm)));
        Ok(Self {
            flow: flow(FLOW, ports[0], SIZE, LOAD),
            other: flow(OTHER, ports[1], OTHER_SIZE, TOO_MUCH),
            neighbour: flow(NEIGHBOUR, ports[2], OTHER_SIZE, NEIGHBOURS_LOAD),
            sockets: [listen(FLOW)?, listen(OTHER)?, listen(NEIGHBOUR)?],
            work: Work::measure(),
            witness: Witness::start()?,
            sent_to: Cell::new(away),
            run: 0,
            random: Random(0x10ad),
            lab,
        })
    }

    /// The core that processed the flow's last frame.
    pub fn home(&self) -> Result<usize> {
        Ok(self.lab.hosts.stage.home(FLOW)?.core)
    }

    /// Lets the flows run for as long as an overload, without one: the policy finds places for them.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn rest(&mut self) -> Result<()> {
        self.run += 1;
        let start = now_ns();
        let times = Times { run: self.run, start, begin: start, end: start + ns(STEADY), step: 0 };
        let steady = vec![open(self.lab.hosts, self.flow)?, open(self.lab.hosts, self.neighbour)?];
        let core = self.lab.hosts.layout.sender;
        std::thread::scope(|scope| {
            scope.spawn(move || send(core, steady, &times));
        });
        Ok(())
    }

    /// Lets the flow run, overloads the core that it is on, and waits until all is over. `None`: it left that core by itself in the moment before.
    pub fn overload(&mut self, kind: Kind) -> Result<Option<Taken>> {
        self.run += 1;
        let phase = Duration::from_micros(self.random.below(PHASE_US).into());
        let start = now_ns() + LOOK.as_nanos() as u64;
        let begin = start + (STEADY + phase).as_nanos() as u64;
        let times =
            Times { run: self.run, start, begin: start, end: begin + ns(OVERLOAD), step: 0 };
        self.exchange(kind, begin, times)
    }

    /// Has the other flow's rule send it where the watched flow is.
    fn aim(&self) -> Result<()> {
        let home = self.home()?;
        if home != self.sent_to.get() {
            self.lab.send_to(OTHER, home)?;
            self.sent_to.set(home);
        }
        Ok(())
    }

    fn exchange(&self, kind: Kind, begin: u64, times: Times) -> Result<Option<Taken>> {
        let hosts = self.lab.hosts;
        let steady = vec![open(hosts, self.flow)?, open(hosts, self.neighbour)?];
        let other = open(hosts, self.other)?;
        let over = AtomicBool::new(false);
        let vms = [FLOW, OTHER, NEIGHBOUR].map(|vm| self.lab.vm(vm, None, 0.0));
        std::thread::scope(|scope| {
            let receive = |at: usize| {
                let tally = Tally::new(0, times.begin, times.end);
                let (vm, socket, work, over): (Vm, _, _, _) =
                    (vms[at], &self.sockets[at], self.work, &over);
                scope.spawn(move || receiver::receive(vm, socket, times.run, work, tally, over))
            };
            let (receiver, _others) = (receive(0), (receive(1), receive(2)));
            let core = hosts.layout.sender;
            let sender = scope.spawn(move || send(core, steady, &times));
            if kind == Kind::Flow {
                sleep_until(begin - ns(AIM));
                self.aim()?;
            }
            sleep_until(begin);
            let before = hosts.stage.home(FLOW)?;
            let overload = scope.spawn(move || match kind {
                Kind::Thread => spin(before.core, times.end),
                Kind::Flow => flood(core, other, times),
            });
            let held = self.witness.look()?;
            let (mut first, mut held_by) = (None, None);
            let mut chance = Some(begin + ns(CHANCE));
            while now_ns() < times.end {
                std::thread::sleep(LOOK);
                let now = hosts.stage.home(FLOW)?;
                first = first.or((now.changes != before.changes).then_some(now.since_ns));
                if chance.take_if(|end| now_ns() >= *end).is_some() {
                    held_by = self.held_by(&held, before.core)?;
                }
            }
            let sent = sender.join().expect("the sender does not panic");
            let begun = overload.join().expect("the overload does not panic");
            std::thread::sleep(DRAIN);
            over.store(true, Ordering::Relaxed);
            let tally = receiver.join().expect("a VM does not panic");
            let changes = hosts.stage.home(FLOW)?.changes;
            let is_beside = kind == Kind::Flow && before.core != self.sent_to.get();
            Ok((!is_beside).then(|| Taken {
                from: before.core,
                begun_ns: begun,
                ns: first.map(|at| at.saturating_sub(begun)),
                changes: changes.wrapping_sub(before.changes),
                late: tally.late,
                lost: sent[0].due.saturating_sub(tally.received),
                held_by,
            }))
        })
    }

    /// Who held the cores but one since then, if none was free.
    fn held_by(&self, since: &Held, overloaded: usize) -> Result<Option<String>> {
        let others: Vec<_> =
            (0..self.lab.hosts.layout.host).filter(|&core| core != overloaded).collect();
        Ok(self.witness.look()?.all_since(since, &others, ns(TAKEN_BY_OTHERS)))
    }
}

fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

fn open(hosts: &Hosts, flow: Flow) -> Result<Source> {
    let to = format!("{}:{PORT}", address(flow.vm));
    hosts.sender.enter(|| Source::open(flow, &peer(flow.vm), &to))
}

fn sleep_until(at: u64) {
    std::thread::sleep(Duration::from_nanos(at.saturating_sub(now_ns())));
}

/// Sends from the senders' core. On a machine of two it is the very core that is overloaded, and a queue's thread gives it up only at the scheduler's tick (up to 4 ms later):
/// then nothing would come in meanwhile, and no wire waits for the host that it leads to. So the sender is before all others; it needs a tenth of the core.
fn send(core: usize, sources: Vec<Source>, times: &Times) -> Vec<generator::Sent> {
    testbed::sys::pin(core);
    testbed::sys::be_urgent();
    generator::send(sources, times)
}

/// Takes a core's time until `end`, with no more right to it than any other thread; when it began to.
fn spin(core: usize, end: u64) -> u64 {
    testbed::sys::pin(core);
    // Of the calling thread alone. Without the privilege it stays as it is, which is no more.
    let _ = setpriority_process(None, 0);
    let begun = now_ns();
    while now_ns() < end {
        std::hint::spin_loop();
    }
    begun
}

/// Sends a flow from the senders' core until the end; when its first datagram was sent.
fn flood(core: usize, source: Source, times: Times) -> u64 {
    let begun = now_ns();
    send(core, vec![source], &Times { start: begun, begin: begun, ..times });
    begun
}
