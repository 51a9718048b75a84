//! # A node from start to end
//!
//! Order matters, and is all here: the run directory is taken, privileges are reduced, the ports' and the steering thread start with what is left of them,
//! everything else starts with none; the store is read, switches and rules come back, then ports, then connections, then the API; then
//! systemd hears that the node is ready. The end goes the other way round.
//!
//! What a clean end leaves: the state, and the TAPs with their addresses, so that a guest notices nothing but a pause. What it removes: the
//! sockets. `suiro node --purge` removes the rest.

mod check;
mod identify;
mod purge;
mod watch;

pub use check::{Checked, check};
pub use identify::identify;
pub use purge::{Purged, State, purge};

use crate::circuits::Circuits;
use crate::config::{Config, ConfigError, ConfigFile, Host, NodeConfig};
use crate::feed::Feed;
use crate::guests::Guests;
use crate::host::memory::Shares;
use crate::host::{self, LockError, ReadSocketError, Right, RunDir, confine, notify, privilege};
use crate::http;
use crate::member::{self, Membership};
use crate::offload::{self, Offload};
use crate::ports::{Directories, Ports};
use crate::roll::Roll;
use crate::samples;
use crate::service::{Node, OnConflict, Parts, StartError};
use crate::steer::Steer;
use crate::store::{self, Store, StoreError};
use api::{Fault, chain};
use datapath::Datapath;
use guest::Places;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use watch::Watchman;

/// Threads for connections, API and timers. Chosen: one can work while another prints a million rules.
const CONTROL_THREADS: usize = 2;

/// How long the end of a node waits of which a thread has failed. Chosen: the state file's last commit on a slow disk.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);

/// How long the end waits for work aside: look-ups of names, files. Chosen: nothing that must be finished is there.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine, as it was before control threads were kept off the workers' cores.
    pub host: Host,
    /// Where the configuration is.
    pub config_file: ConfigFile,
    /// What is wrong with the configuration file, if the last good one runs.
    pub config_faults: Vec<Fault>,
    /// What to do with what was made through the API and contradicts the file.
    pub on_conflict: OnConflict,
    /// Whether it was started to steer, in the background, and ends with that.
    pub background: bool,
    /// The domain that it is a member of, if any.
    pub membership: Option<Membership>,
}

/// Why a node did not run, or ended.
#[derive(Debug)]
pub enum RunError {
    /// The configuration is wrong.
    Config(ConfigError),
    /// Something else.
    Faults(Vec<Fault>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => f.write_str(&chain(error)),
            Self::Faults(faults) => {
                let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("\n"))
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Read { .. } => Self::Faults(error.faults()),
            ConfigError::Problems(_) => Self::Config(error),
        }
    }
}

impl From<Fault> for RunError {
    fn from(fault: Fault) -> Self {
        Self::Faults(vec![fault])
    }
}

impl From<LockError> for RunError {
    fn from(error: LockError) -> Self {
        Fault::new("node", "start", chain(&error), error.remedy()).into()
    }
}

/// The sockets of groups that may do less than everything.
fn bind_groups(
    run_dir: &RunDir,
    config: &NodeConfig,
) -> Result<Vec<(Right, UnixListener)>, RunError> {
    let mut bound = Vec::new();
    for right in Right::ALL {
        let group = match right {
            Right::Read => &config.read_group,
            Right::Capture => &config.capture_group,
        };
        let Some(group) = group else { continue };
        let refused = |error: ReadSocketError| {
            let thing = format!("[node] {}", right.key());
            Fault::new(thing, "listen to readers", chain(&error), error.remedy())
        };
        bound.push((right, run_dir.bind_for(right, group).map_err(refused)?));
    }
    Ok(bound)
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Fault::new("node", "open its state", chain(&error), error.remedy()).into()
    }
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Contradictions(faults) => Self::Faults(faults.0),
            StartError::Store(error) => error.into(),
        }
    }
}

fn system(step: &'static str) -> impl Fn(io::Error) -> RunError {
    move |error| {
        Fault::new("node", step, error.to_string(), "check the limits of threads and open files")
            .into()
    }
}

/// Whether this process has the rights without which a node could make no interface and take none.
///
/// # Errors
/// It has not.
pub fn has_rights() -> Result<(), RunError> {
    if !privilege::has_no_interfaces() {
        return Ok(());
    }
    let cause = "CAP_NET_ADMIN is missing: it could make no interface and take none";
    let remedy = "run as root, or systemctl start suiro; --unprivileged runs it all the same, for switches without interfaces";
    Err(Fault::new("node", "start", cause, remedy).into())
}

/// Runs a node until SIGTERM or SIGINT.
///
/// # Errors
/// It did not come up, or its API broke.
pub fn run(options: &Options, config: &Config) -> Result<(), RunError> {
    host::give_back_large_buffers();
    Shares::of(config.node.memory).tell();
    store::log_panics_of_redb();
    let run_dir = Arc::new(RunDir::take(&config.node.run_dir)?);
    run_dir.remove_stale_sockets();
    let groups = bind_groups(&run_dir, &config.node)?;
    let files = host::raise_open_files();
    tracing::debug!("up to {files} open files");
    stay_off_worker_cores(&config.node);
    let privileged = start_with_privileges(&run_dir, &config.node, owner_of(&options.host))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .thread_name("suiro-control")
        .enable_all()
        .build()
        .map_err(system("start its control threads"))?;
    let served = runtime.block_on(serve(options, config, run_dir, groups, privileged));
    // Who waits for a name server or a disk that hangs is not waited for.
    runtime.shutdown_timeout(LAST_WAIT);
    served
}

/// The threads that keep privileges.
struct Privileged {
    guests: Arc<Guests>,
    ports: Arc<Ports>,
    steer: Arc<Steer>,
    offload: Arc<Offload>,
    roll: Roll,
}

fn start_with_privileges(
    run_dir: &RunDir,
    config: &NodeConfig,
    owner: u32,
) -> Result<Privileged, RunError> {
    let log = |error: privilege::PrivilegeError| tracing::warn!("{}", chain(&error));
    let roll = Roll::default();
    let guests = Guests::start(guests_places(run_dir, config), &roll)
        .map_err(system("start its guests' thread"))?;
    privilege::keep_what_ports_need().unwrap_or_else(log);
    for (capability, purpose) in privilege::missing() {
        tracing::warn!("{capability} is missing: suiro cannot {purpose}");
    }
    let directories = Directories {
        rings: run_dir.ring_records(),
        offloads: run_dir.offload_notes(),
        ledger: config.state_dir.join("esp"),
        owner,
        memory: Shares::of(config.memory),
        shared: config.bounds.guest_memory,
    };
    let offload = Offload::start(offload::root(&config.state_dir), &roll)
        .map_err(system("start its offload thread"))?;
    let ports = Ports::start(directories, offload.clone(), &roll)
        .map_err(system("start its ports' thread"))?;
    let steer = Steer::start(&roll).map_err(system("start its steering thread"))?;
    privilege::drop_all().unwrap_or_else(log);
    confine::unprivileged_where_possible();
    Ok(Privileged { guests, ports, steer: Arc::new(steer), offload, roll })
}

/// Where guests' things are: what is gone after a reboot in the run directory, and in control groups that no other node of the host has.
fn guests_places(run_dir: &RunDir, config: &NodeConfig) -> Places {
    let own = wire::checksum::crc32c(run_dir.path().as_os_str().as_encoded_bytes());
    Places {
        records: run_dir.path().join("guests"),
        logs: config.state_dir.join("guests"),
        groups: "/sys/fs/cgroup".into(),
        group: format!("suiro/{own:08x}"),
        hidden: vec![run_dir.path().into(), config.state_dir.clone(), "/etc/suiro".into()],
    }
}

/// By which number a node knows the interfaces again that it keeps from the host's stack.
fn owner_of(host: &Host) -> u32 {
    wire::checksum::crc32c(host.node_id.as_bytes())
}

/// Control threads leave the workers' cores alone where there are others; workers pin themselves.
fn stay_off_worker_cores(config: &NodeConfig) {
    let Ok(mut cores) = sched_getaffinity(None) else { return };
    config.cores.iter().for_each(|&core| cores.unset(core));
    let any_left = (0..CpuSet::MAX_CPU).any(|core| cores.is_set(core));
    if any_left && let Err(error) = sched_setaffinity(None, &cores) {
        tracing::debug!("control threads may share the workers' cores: {error}");
    }
}

async fn serve(
    options: &Options,
    config: &Config,
    run_dir: Arc<RunDir>,
    groups: Vec<(Right, UnixListener)>,
    Privileged { guests, ports, steer, offload, roll }: Privileged,
) -> Result<(), RunError> {
    let (store, kept) = Store::open(&config.node.state_dir, ports.ends())?;
    let feed = Feed::after_block(kept.event_block()?, store.event_block());
    // Nobody reads a number that the store might give again.
    store.flushed().await;
    let (datapath, events) = start_datapath(&config.node)?;
    let circuits = Circuits::start(ports.clone(), feed.clone(), &roll)
        .map_err(system("start its circuits' thread"))?;
    let node = Node::new(Parts {
        config: config.node.clone(),
        config_file: options.config_file.clone(),
        config_faults: options.config_faults.clone(),
        host: options.host.clone(),
        run_dir: run_dir.clone(),
        datapath: Arc::new(datapath),
        events,
        ports,
        steer,
        offload,
        guests,
        circuits,
        store,
        feed,
        roll: roll.clone(),
        set_aside: kept.set_aside.clone(),
        background: options.background,
    })
    .map_err(system("start its event thread"))?;
    if let Err(error) = node.restore(config, &kept, options.on_conflict).await {
        node.stop().await;
        return Err(error.into());
    }
    drop(kept);
    if options.config_faults.is_empty() && options.config_file.path.is_some() {
        node.keep_as_good(&config.text);
    }
    let timekeeper = tokio::spawn(node.clone().keep_time());
    let watchman = {
        let node = node.clone();
        Watchman::new(roll, timekeeper.abort_handle(), move || node.has_lost_its_store())
    };
    let served = serve_api(options, &node, &run_dir, groups, (&config.node, watchman)).await;
    timekeeper.abort();
    notify::stopping();
    match &served {
        Ok(()) => node.stop().await,
        // A thread that has failed may be what is waited for.
        Err(_) => drop(tokio::time::timeout(STOPPED_WITHIN, node.stop()).await),
    }
    served
}

async fn serve_api(
    options: &Options,
    node: &Arc<Node>,
    run_dir: &RunDir,
    groups: Vec<(Right, UnixListener)>,
    (config, watchman): (&NodeConfig, Watchman),
) -> Result<(), RunError> {
    let listener = run_dir.bind_api()?;
    let listening = |(right, listener)| {
        tokio::net::UnixListener::from_std(listener).map(|listener| (right, listener))
    };
    let groups = groups.into_iter().map(listening).collect::<io::Result<_>>();
    let groups = groups.map_err(system("listen to readers"))?;
    let (end, ended) = tokio::sync::watch::channel(());
    serve_metrics(config.metrics, node, ended.clone()).await;
    if let Some(spec) = &config.samples {
        tokio::spawn(samples::serve(spec.clone(), node.clone(), ended.clone()));
    }
    let mut server = tokio::spawn(http::serve(listener, groups, node.clone(), ended));
    let status = format!("serving {}", run_dir.api_socket().display());
    tracing::info!("{status}");
    notify::ready(&status);
    if let Some(membership) = &options.membership {
        let answers = member::Answers::new(node.clone());
        member::start(
            membership,
            run_dir.api_socket(),
            &config.state_dir,
            (answers, watchman.roll()),
        )
        .map_err(system("start its membership's thread"))?;
    }
    let fault = tokio::select! {
        _ = &mut server => {
            Some(Fault::new("API", "serve", "it ended by itself", "please report this with the log"))
        }
        signals = wait_for_the_end(node) => {
            signals.map_err(system("listen to signals"))?;
            None
        }
        () = node.wants_to_end() => None,
        name = watchman.watch() => {
            let cause = format!("its thread {name} has failed");
            let remedy = "start it again, as its service does; please report this with the log";
            Some(Fault::new("node", "go on", cause, remedy))
        }
    };
    if let Some(fault) = &fault {
        tracing::error!("{fault}");
    }
    let _ = end.send(());
    node.feed().close();
    node.end_captures();
    // Gone already, or not ours to remove: either way nothing is left to do.
    let _ = std::fs::remove_file(run_dir.api_socket());
    for right in Right::ALL {
        let _ = std::fs::remove_file(run_dir.socket_of(right));
    }
    match fault {
        Some(fault) => Err(fault.into()),
        None => {
            // Answers under way are finished; a client that never reads is not waited for.
            let _ = tokio::time::timeout(Duration::from_secs(1), server).await;
            Ok(())
        }
    }
}

/// Serves metrics by TCP. Guests are not cut off because a port is taken: the log says so.
async fn serve_metrics(
    address: Option<SocketAddr>,
    node: &Arc<Node>,
    ended: tokio::sync::watch::Receiver<()>,
) {
    let Some(address) = address else { return };
    match tokio::net::TcpListener::bind(address).await {
        Ok(listener) => {
            tracing::info!("metrics at http://{address}/metrics");
            tokio::spawn(http::serve_metrics(listener, node.clone(), ended));
        }
        Err(error) => {
            let remedy = "give [node] metrics an address of this host and a port that is free, and restart suiro";
            tracing::error!(remedy, "metrics: listen at {address}: {error}");
        }
    }
}

/// Serves signals; returns when the node is to end, whatever a reload does meanwhile.
async fn wait_for_the_end(node: &Arc<Node>) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let hangup = signal(SignalKind::hangup())?;
    let reloads = tokio::spawn(reload_at_each(hangup, node.clone()));
    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending"),
    }
    // What it has not put in force yet, the next start does.
    reloads.abort();
    Ok(())
}

/// Reads the configuration again at each SIGHUP; those that come meanwhile are one more.
async fn reload_at_each(mut hangup: Signal, node: Arc<Node>) {
    while hangup.recv().await.is_some() {
        // What is wrong is said there.
        if node.reload_file().await.is_ok() {
            tracing::info!("SIGHUP: the configuration is read again");
        }
    }
}

/// What a wake-up costs on the first worker's core.
fn wake_up(config: &NodeConfig) -> Duration {
    let cost = datapath::wake_up_cost(config.cores.first().copied().unwrap_or_default());
    tracing::debug!("a wake-up takes {} us", cost.as_micros());
    cost
}

fn start_datapath(config: &NodeConfig) -> Result<(Datapath, datapath::Events), RunError> {
    let wanted = datapath::Config {
        cores: config.cores.clone(),
        spin: config.spin.unwrap_or_else(|| wake_up(config)),
        learns: config.spin.is_none(),
        rungs: config.rungs,
        confine: confine::worker_where_possible,
        ..datapath::Config::default()
    };
    Datapath::start(wanted).map_err(|error| {
        Fault::new("node", "start its workers", chain(&error), "choose other [node] cores").into()
    })
}
