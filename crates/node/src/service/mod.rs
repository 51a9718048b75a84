//! # The node at work
//!
//! **Question answered**: which switches and ports are in service, how do they come and go, and what is true of them now?
//!
//! [`Node`] is what the API (and so the command line) calls. It joins the parts: the datapath's workers, the ports' thread, the store, and
//! for each switch its control state and its OpenFlow agent.
//!
//! ## Invariants
//!
//! * **One change at a time** of what exists: [`Node::change`] is held across each, and switches take turns. Rules change without it.
//! * **In force, then on disk, then answered**: a change that is in force but could not be saved is answered as such
//!   ([`Why::NotSaved`]) and saved when the disk is back.
//! * A change refused changed nothing.
//! * What the configuration file or a part declares, only that changes ([`Owner::must_be_api`]); rules and port states belong to controllers.
//! * File and parts change what exists by one way: `parts`.

mod arrival;
mod asides;
mod bounds;
mod captures;
mod change;
mod claims;
mod directory;
mod ensure;
mod everything;
mod export;
mod facts;
mod moves;
mod numbers;
mod offload;
mod order;
mod owner;
mod parts;
mod plan;
mod plane;
mod ports;
mod pump;
mod queue_points;
mod queues;
mod reload;
mod rules;
mod samples;
mod sealing;
mod start;
mod steering;
mod switches;
mod taken;
mod things;
mod timing;
mod turns;
mod view;
mod wanted;
mod watch;
mod why;

pub use ensure::{Came, unless_gone};
pub use export::Extent;
pub use facts::Facts;
pub use owner::Owner;
pub use parts::{HowToApply, ports_of_parts};
pub use rules::{FlowLines, RuleVerb};
pub use start::{OnConflict, StartError, StartFault};

use crate::agent::steering::Desk;
use crate::agent::{Lot, Names};
use crate::bounds::BoundsSpec;
use crate::captures::{Captures, Lookouts};
use crate::circuits::Circuits;
use crate::config::{ConfigFile, Host, NodeConfig};
use crate::feed::Feed;
use crate::guests::Guests;
use crate::hits::{Hits, Who};
use crate::host::{self, RunDir, memory};
use crate::offload::Offload;
use crate::ports::Ports;
use crate::refusal::{Refusal, Why};
use crate::roll::Roll;
use crate::room::Room;
use crate::steer::{Controllers, Steer};
use crate::store::Store;
use crate::switch::EntryBudget;
use api::{Bound, Fault, PortName, TlsSpec, chain};
use claims::Claims;
use datapath::{Datapath, Events};
use directory::{Directory, Member, MemberPort};
use port::Keep;
use pump::Pump;
use serve::bodies::Bodies;
use serve::crowd::Crowd;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taken::Taken;

/// How often timeouts of rules are looked at, and what could not be bound is tried again.
const TICK: Duration = Duration::from_millis(250);

/// The parts that a node is put together from.
pub struct Parts {
    /// Its configuration.
    pub config: NodeConfig,
    /// The configuration file.
    pub config_file: ConfigFile,
    /// What is wrong with it, if another one is in force.
    pub config_faults: Vec<Fault>,
    /// Its machine.
    pub host: Host,
    /// Its run directory.
    pub run_dir: Arc<RunDir>,
    /// Its workers.
    pub datapath: Arc<Datapath>,
    /// What they tell.
    pub events: Events,
    /// The ports' thread.
    pub ports: Arc<Ports>,
    /// The steering thread.
    pub steer: Arc<Steer>,
    /// The thread of flows past the workers.
    pub offload: Arc<Offload>,
    /// The guests' thread.
    pub guests: Arc<Guests>,
    /// The thread that proves circuits.
    pub circuits: Arc<Circuits>,
    /// What survives it.
    pub store: Store,
    /// What happens on it.
    pub feed: Feed,
    /// Its control threads.
    pub roll: Roll,
    /// Where a damaged store went at the start.
    pub set_aside: Option<PathBuf>,
    /// Whether it was started to steer, in the background, and is to end with that.
    pub background: bool,
}

/// A dump that nobody has read for so long makes room for another.
const DUMP_STILL: Duration = Duration::from_secs(1);

/// A node in service.
pub struct Node {
    facts: Facts,
    run_dir: Arc<RunDir>,
    datapath: Arc<Datapath>,
    ports: Arc<Ports>,
    steer: Arc<Steer>,
    offload: Arc<Offload>,
    /// Policies of offload that are no switch's.
    policies: Mutex<offload::Policies>,
    /// Where controllers that may ask for steering are answered.
    desk: Arc<Desk>,
    /// What is wrong with the configuration file as it was last read.
    config_faults: Mutex<Vec<Fault>>,
    store: Store,
    feed: Feed,
    hits: Hits,
    /// Memory for what waits for somebody.
    room: Arc<Room>,
    bodies: Bodies,
    directory: Arc<Directory>,
    /// What ports that come or go have of the host.
    claims: Claims,
    /// What owners declare.
    parts: parts::Shelf,
    guests: Arc<Guests>,
    circuits: Arc<Circuits>,
    captures: Captures,
    /// Interfaces whose steered frames captures see.
    lookouts: Lookouts,
    /// Guests and circuits in force.
    things: things::Shelf,
    /// Held by whoever changes what exists.
    change: turns::Turns,
    /// Certificates of switches without their own; a reload may change them.
    tls: Mutex<Option<TlsSpec>>,
    pump: Mutex<Option<Pump>>,
    secret: [u64; 2],
    /// What it may use.
    memory: memory::Shares,
    /// How many entries its switches may hold together.
    entries: Arc<EntryBudget>,
    serials: flow::Serials,
    background: bool,
    /// How many OpenFlow connections its switches may have together.
    lot: Lot,
    /// Who looks up controllers' names.
    names: Names,
    /// Dumps of rules on their way to whoever reads them.
    dumps: Crowd,
    /// Rung when the node is to end by itself.
    end: tokio::sync::Notify,
}

impl Node {
    /// Puts a node together; it has no switches yet.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(parts: Parts) -> io::Result<Arc<Self>> {
        parts.offload.serve(parts.datapath.clone());
        parts.guests.serve(parts.feed.clone());
        parts.ports.serve(parts.datapath.clone());
        let directory = Arc::new(Directory::default());
        let switches = directory.clone();
        let find = move |name: &str| switches.by_name(name).map(|member| member.id);
        let offload = parts.offload.clone();
        let tell = move |switch, change| offload.steers(switch, change);
        parts.steer.serve(parts.datapath.clone(), find, tell);
        let (ports, feed) = (parts.ports.clone(), parts.feed.clone());
        let pump = Pump::start(parts.events, directory.clone(), ports, feed, &parts.roll)?;
        let tls = Mutex::new(parts.config.tls.clone());
        let (memory, bounds) = (memory::Shares::of(parts.config.memory), parts.config.bounds);
        Ok(Arc::new(Self {
            facts: Facts::new(parts.config, parts.config_file, parts.host, parts.set_aside),
            run_dir: parts.run_dir,
            datapath: parts.datapath,
            ports: parts.ports,
            desk: Desk::new(Arc::new(Controllers(parts.steer.clone()))),
            steer: parts.steer,
            offload: parts.offload,
            policies: Mutex::default(),
            config_faults: Mutex::new(parts.config_faults),
            store: parts.store,
            hits: Hits::new(parts.feed.clone()),
            feed: parts.feed,
            directory,
            parts: parts::Shelf::default(),
            guests: parts.guests,
            circuits: parts.circuits,
            captures: Captures::default(),
            lookouts: Lookouts::default(),
            things: things::Shelf::default(),
            change: turns::Turns::default(),
            claims: Claims::default(),
            tls,
            pump: Mutex::new(Some(pump)),
            secret: start::random_secret(),
            entries: Arc::new(EntryBudget::new(memory.entries())),
            room: Arc::new(Room::new(memory.waiting(), bounds.unread)),
            bodies: Bodies::new(memory.bodies()),
            memory,
            serials: flow::Serials::default(),
            background: parts.background,
            lot: Lot::of_files(host::open_files(), bounds.connections),
            names: Names::new(bounds.name_lookups),
            dumps: Crowd::new(bounds.rule_lists, DUMP_STILL),
            end: tokio::sync::Notify::new(),
        }))
    }

    /// Looks after timeouts and addresses that could not be bound; runs as long as the node.
    pub async fn keep_time(self: Arc<Self>) {
        let (mut watch, mut counted) = (watch::Watch::default(), bounds::Counted::default());
        let mut ticks = tokio::time::interval(TICK);
        let began = tokio::time::Instant::now();
        let mut before = 0;
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            let second = (ticks.tick().await - began).as_secs();
            let mut due = Vec::new();
            for member in self.directory.all() {
                if member.switch.tick() {
                    due.push(member.clone());
                }
                if before != second {
                    member.switch.keep_uses_due(before..second);
                }
                member.switch.watch_controllers();
                if member.state().fault.is_some() {
                    self.retry_agent(&member).await;
                }
            }
            while !due.is_empty() {
                due.retain(|member| member.switch.expire());
                tokio::task::yield_now().await;
            }
            self.tell_changes(&mut watch);
            if before != second {
                self.note_hits(&mut counted);
            }
            before = second;
        }
    }

    /// Who hit its bounds.
    pub(crate) fn hits(&self) -> &Hits {
        &self.hits
    }

    /// Memory for what waits for somebody.
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// What one address, peer, request or guest may take.
    pub(crate) fn bounds(&self) -> BoundsSpec {
        self.facts.config.bounds
    }

    /// Bodies of requests that are under way, at all sockets.
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// A list of rules found no place, or no memory.
    pub(crate) fn hit_lists(&self, text: &str) {
        self.hits.tell(Bound::RuleLists, Who::caller("API"), 1, text);
    }

    /// Whether the state file's thread has failed: nothing is saved any more.
    pub fn has_lost_its_store(&self) -> bool {
        self.store.has_failed()
    }

    /// Dumps of rules on their way.
    pub fn dumps(&self) -> &Crowd {
        &self.dumps
    }

    /// Ready when the node has decided to end.
    pub async fn wants_to_end(&self) {
        self.end.notified().await;
    }

    /// Ends everything in order: connections, ports, events. TAPs stay, with their addresses, for the next start; steering, and flows past
    /// the workers, go on in the kernel.
    pub async fn stop(&self) {
        let _change = self.change.of_all().await;
        for member in self.directory.all() {
            member.stop_agent().await;
        }
        self.offload.leave().await.unwrap_or_else(|fault| tracing::warn!("{fault}"));
        self.ports.stop(Keep::Interface).await;
        self.steer.stop().await;
        self.offload.stop().await;
        self.directory.all().iter().for_each(|member| self.keep_last(member));
        drop(self.pump.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.store.flushed().await;
    }

    /// Keeps what a switch's rules and ports have at the end.
    fn keep_last(&self, member: &Member) {
        member.switch.keep_last_uses();
        member.switch.keep_counts();
        let numbers: Vec<u32> = member.state().ports.values().map(|port| port.number).collect();
        let counters =
            |number: u32| Some((number, self.datapath.port_counters(member.at(number))?));
        let counted: Vec<_> = numbers.into_iter().filter_map(counters).collect();
        let ports = counted.iter().map(|(number, counters)| (*number, counters));
        self.store.put_port_counts(&member.name(), ports);
    }

    /// Certificates of switches without their own.
    fn tls(&self) -> Option<TlsSpec> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_tls(&self, tls: Option<TlsSpec>) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    fn member(&self, name: &str) -> Result<Arc<Member>, Refusal> {
        self.directory.by_name(name).ok_or_else(|| Refusal::no_switch(name))
    }

    /// What is taken by the switches and ports in service.
    fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        for member in self.directory.all() {
            let (state, owner) = (member.state(), member.owner());
            taken.add_switch(&state.spec, owner.slice(), &owner.place());
            for (name, port) in &state.ports {
                taken.add_port(&state.spec.name, name, &port.spec, &port.owner.place());
            }
        }
        self.claims.add_to(&mut taken);
        taken
    }

    /// What is taken by others than this owner, which takes some over.
    fn taken_from(&self, owner: &Owner, taken_over: &parts::TakenOver) -> Taken {
        let mut taken = Taken::default();
        for member in self.directory.all() {
            let (state, has) = (member.state(), member.owner());
            if has != *owner && !taken_over.has(&state.spec.name) {
                taken.add_switch(&state.spec, has.slice(), &has.place());
            }
            let is_others = |(name, port): &(&PortName, &MemberPort)| {
                port.owner != *owner && !taken_over.has_port(&state.spec.name, name)
            };
            for (name, port) in state.ports.iter().filter(is_others) {
                taken.add_port(&state.spec.name, name, &port.spec, &port.owner.place());
            }
        }
        taken
    }

    /// Waits until what was changed is on disk.
    async fn saved(&self, thing: &str) -> Result<(), Refusal> {
        self.store.flushed().await;
        let Some(problem) = self.store.problem() else { return Ok(()) };
        let step = "save the change, which is in force";
        Err(Refusal::new(
            Why::NotSaved,
            Fault::new(thing, step, chain(&*problem), problem.remedy()),
        ))
    }
}
