//! The configuration file: TOML in, a checked [`Config`] or every error at once out.
//!
//! Pure but for [`Config::load`], which reads the file and the certificates that it names: what the check must know of the host ([`Host`]) is handed in. Three passes: [`syntax`], which takes
//! broken lines out; the reader ([`read`]), which checks each table alone; and [`cross`], which checks
//! what several tables say together. A file is accepted whole or not at all.

mod bounds;
mod cross;
mod file;
mod policies;
mod problem;
mod read;
mod samples;
mod syntax;
mod tls;
mod write;

use crate::bounds::BoundsSpec;
use api::{
    AUXILIARY_MAX, CircuitSpec, DEFAULT_MISS_SEND_LEN, Dpid, ECHO_INTERVAL_MAX_S, FAIL_AFTER_MAX_S,
    FailMode, Fault, GroupName, GuestSpec, KeyFault, Keys, Listen, OffloadPolicy, PartName,
    PortName, PortSpec, QueueSpec, Reading, Rules, SteeringAccess, SwitchName, SwitchPatch,
    SwitchSpec, TlsSpec,
};
use datapath::{Rung, Rungs};
use files::regular;
use flow::Limits;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cross::Extent;
pub use file::{ConfigFile, Found, Instead};
pub use problem::{Problem, Problems};
pub use read::Located;
use read::{Notes, Scope};
pub use samples::SamplesSpec;
pub use tls::TlsTable;
pub use write::written;

/// What the check must know of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Cores that this process may run on.
    pub cores: Vec<usize>,
    /// What tells this node from others, for derived datapath ids.
    pub node_id: String,
    /// The machine that the state directory was made on, in words, if it is another one.
    pub copied_from: Option<String>,
}

/// The `[node]` table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Sockets and lock; gone after a reboot.
    pub run_dir: PathBuf,
    /// What must survive: switches, ports, flows.
    pub state_dir: PathBuf,
    /// Who may see everything and change nothing, by a socket of its own; nobody when left out.
    pub read_group: Option<GroupName>,
    /// Who may capture, too, by another socket; nobody when left out.
    pub capture_group: Option<GroupName>,
    /// Bytes behind the transport header that the captures of that group keep; all when left out.
    pub capture_payload: Option<u32>,
    /// Where Prometheus may read the node's metrics by TCP; only by the local API's sockets when left out.
    pub metrics: Option<SocketAddr>,
    /// Which collectors are told a sample of the traffic; none when left out.
    pub samples: Option<SamplesSpec>,
    /// Cores of the workers; one core, the highest, when left out.
    pub cores: Vec<usize>,
    /// How long a worker polls without finding a frame before it sleeps.
    pub spin: Option<Duration>,
    /// Rungs of the ladder that workers try; `pass` is always among them.
    pub rungs: Rungs,
    /// Flows that one table of a switch may hold: what a controller can make the node's memory grow to.
    pub flows_per_table: u32,
    /// Bytes of memory that the node may use; what its control group or its machine has when left out.
    pub memory: Option<u64>,
    /// What one address, peer, request or guest may take.
    pub bounds: BoundsSpec,
    /// The log filter, as in `SUIRO_LOG`.
    pub log: Option<String>,
    /// Certificates of switches that have none of their own.
    pub tls: Option<TlsSpec>,
    /// Whether flows may leave the workers at its start; as it was before when left out.
    pub offload: Option<bool>,
    /// Which flows of any switch shall leave the workers.
    pub offload_policy: Vec<OffloadPolicy>,
}

/// One `[[switch]]` table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchConfig {
    /// The switch.
    pub spec: SwitchSpec,
    /// Its line.
    pub line: usize,
    /// The part that declares it, if this one only adds ports and rules; its own keys are that part's.
    pub declared_by: Option<PartName>,
    /// Its ports.
    pub ports: Vec<Located<PortSpec>>,
    /// Rules, in `ovs-ofctl`'s syntax.
    pub flows: Vec<Located<String>>,
    /// Groups.
    pub groups: Vec<Located<String>>,
    /// Meters.
    pub meters: Vec<Located<String>>,
}

impl SwitchConfig {
    /// A switch that no text declares: without ports and rules.
    pub fn bare(spec: SwitchSpec) -> Self {
        let (flows, groups, meters) = (Vec::new(), Vec::new(), Vec::new());
        Self { spec, line: 0, declared_by: None, ports: Vec::new(), flows, groups, meters }
    }
}

/// What an owner declares beside switches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Things {
    /// Guests.
    pub guests: Vec<Located<GuestSpec>>,
    /// Ends of circuits that are to be proved.
    pub circuits: Vec<Located<CircuitSpec>>,
}

/// What a part declares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Declaration {
    /// Its switches, and what it adds to others'.
    pub switches: Vec<SwitchConfig>,
    /// The rest.
    pub things: Things,
}

/// A checked configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The node.
    pub node: NodeConfig,
    /// Its switches, in the file's order.
    pub switches: Vec<SwitchConfig>,
    /// Its guests and circuits.
    pub things: Things,
    /// Where certificates are named.
    pub tls_tables: Vec<TlsTable>,
    /// The text that it was read from.
    pub text: String,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration {}: reading failed", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: regular::ReadError,
    },
    /// The file says something wrong.
    #[error("{0}")]
    Problems(#[from] Problems),
}

/// What a switch may be.
const ON_OFF: &[&str] = &["on", "off"];
/// A node with less memory could hold no rule.
const LEAST_MEMORY: u64 = 64 << 20;

/// No configuration file is longer. Chosen: a hundred thousand rules; reading it takes ten times that of memory.
const LONGEST: u64 = 16 << 20;
/// Where the state is unless told otherwise.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/suiro";
/// More than this and a worker that spins is a worker that never sleeps.
const SPIN_MAX_US: u64 = 1_000_000;
/// `sun_path` holds 108 bytes with its NUL (unix(7)); a socket's name is at most 32 + `.mgmt` and a slash.
const RUN_DIR_MAX: usize = 107 - 38;

impl ConfigError {
    /// The same as faults.
    pub fn faults(&self) -> Vec<Fault> {
        match self {
            Self::Read { path, source } => vec![Fault::new(
                format!("configuration {}", path.display()),
                "read it",
                source.to_string(),
                source
                    .remedy(|_| "check its path and mode; a node without --config is empty".into()),
            )],
            Self::Problems(problems) => problems.faults(),
        }
    }
}

impl Config {
    /// An empty node with every default.
    pub fn empty(host: &Host) -> Self {
        Self {
            node: NodeConfig::default_on(host),
            switches: Vec::new(),
            things: Things::default(),
            tls_tables: Vec::new(),
            text: String::new(),
        }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// Unreadable, or wrong: then with every problem in it.
    pub fn load(path: &Path, host: &Host) -> Result<Self, ConfigError> {
        let text = regular::read_text(path, LONGEST)
            .map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let config = Self::read(&text, &path.display().to_string(), host, tls::check_files)?;
        Ok(Self { text, ..config })
    }

    /// Checks a text, but not the files that it names; `file` is its own name in messages.
    ///
    /// # Errors
    /// Every problem in it.
    pub fn parse(text: &str, file: &str, host: &Host) -> Result<Self, Problems> {
        Self::read(text, file, host, |_, _| ())
    }

    fn read(
        text: &str,
        file: &str,
        host: &Host,
        check_files: impl FnOnce(&[TlsTable], &Notes),
    ) -> Result<Self, Problems> {
        let (rest, broken) = syntax::without_broken_lines(text);
        let notes = Notes::of(text, broken);
        let (document, _) = toml::de::DeTable::parse_recoverable(&rest);
        let root = Scope::new(&document, "file", &notes);
        let config = read_root(root, host);
        cross::check(&config, Extent::Node, &notes);
        check_files(&config.tls_tables, &notes);
        notes.unless_wrong(file, config)
    }

    /// Reads what a part declares: the same, without `[node]`; switches have this TLS unless they have their own.
    ///
    /// # Errors
    /// Every problem in it.
    pub fn parse_part(
        text: &str,
        file: &str,
        host: &Host,
        tls: Option<TlsSpec>,
    ) -> Result<Declaration, Problems> {
        let (rest, broken) = syntax::without_broken_lines(text);
        let notes = Notes::of(text, broken);
        let (document, _) = toml::de::DeTable::parse_recoverable(&rest);
        let root = Scope::new(&document, "file", &notes);
        if root.table("node", "node").is_some() {
            let remedy = "move [node] to the node's configuration file; a part has switches";
            root.problem("node", "the table [node] is not a part's", remedy);
        }
        let mut config = Self { node: NodeConfig::default_on(host), ..Self::empty(host) };
        config.node.tls = tls;
        config.switches = read_switches(&root, None, host, &mut config.tls_tables);
        config.things = read_things(&root);
        root.close();
        cross::check(&config, Extent::Part, &notes);
        let Self { switches, things, .. } = config;
        notes.unless_wrong(file, Declaration { switches, things })
    }
}

impl NodeConfig {
    fn default_on(host: &Host) -> Self {
        Self {
            run_dir: api::DEFAULT_RUN_DIR.into(),
            state_dir: DEFAULT_STATE_DIR.into(),
            read_group: None,
            capture_group: None,
            capture_payload: None,
            metrics: None,
            samples: None,
            cores: default_cores(host),
            spin: None,
            rungs: Rungs::ALL,
            flows_per_table: Limits::default().entries_per_table,
            memory: None,
            bounds: BoundsSpec::default(),
            log: None,
            tls: None,
            offload: None,
            offload_policy: Vec::new(),
        }
    }
}

/// One worker on the highest core: core 0 is where most machines handle interrupts.
fn default_cores(host: &Host) -> Vec<usize> {
    vec![host.cores.iter().copied().max().unwrap_or(0)]
}

fn read_root(root: Scope<'_>, host: &Host) -> Config {
    let mut tls_tables = Vec::new();
    let (node, base) = match root.table("node", "node") {
        Some(scope) => read_node(scope, host, &mut tls_tables),
        None => (NodeConfig::default_on(host), None),
    };
    let switches = read_switches(&root, base.as_ref(), host, &mut tls_tables);
    let things = read_things(&root);
    root.close();
    Config { node, switches, things, tls_tables, text: String::new() }
}

fn read_things(root: &Scope<'_>) -> Things {
    let guests = root.tables("guest", "guest").into_iter().filter_map(read_thing);
    let circuits = root.tables("circuit", "circuit").into_iter().filter_map(read_thing);
    Things { guests: guests.collect(), circuits: circuits.collect() }
}

/// A table whose keys are a struct's fields.
fn read_thing<T: DeserializeOwned>(scope: Scope<'_>) -> Option<Located<T>> {
    let remedy = "see docs/how-to/guests.md, which shows every key";
    let read = serde_json::from_value(scope.rest().into());
    let noted = read.map_err(|error| scope.problem("", error.to_string(), remedy));
    noted.ok().map(|value| Located { value, line: scope.line })
}

fn read_switches(
    root: &Scope<'_>,
    base: Option<&Listen>,
    host: &Host,
    tls_tables: &mut Vec<TlsTable>,
) -> Vec<SwitchConfig> {
    let scopes = root.tables("switch", "switch").into_iter();
    let mut switches: Vec<_> = scopes.filter_map(|scope| read_switch(scope, tls_tables)).collect();
    for (index, switch) in switches.iter_mut().enumerate() {
        complete(switch, index, base, host);
    }
    switches
}

fn read_node(
    scope: Scope<'_>,
    host: &Host,
    tls_tables: &mut Vec<TlsTable>,
) -> (NodeConfig, Option<Listen>) {
    let defaults = NodeConfig::default_on(host);
    let config = NodeConfig {
        run_dir: read_dir(&scope, "run_dir", RUN_DIR_MAX).unwrap_or(defaults.run_dir),
        state_dir: read_dir(&scope, "state_dir", usize::MAX).unwrap_or(defaults.state_dir),
        read_group: scope.text_or_number("read_group"),
        capture_group: scope.text_or_number("capture_group"),
        capture_payload: scope
            .number("capture_payload", 0..=u64::from(api::SNAP_MAX))
            .map(|bytes| bytes as u32),
        metrics: read_address(&scope, "metrics"),
        samples: samples::read(&scope),
        cores: read_cores(&scope, host).unwrap_or(defaults.cores),
        spin: scope.number("spin_us", 0..=SPIN_MAX_US).map(Duration::from_micros),
        rungs: scope
            .words("rungs", &Rung::ALL.map(Rung::name), Rung::of_name)
            .map_or(defaults.rungs, |rungs| rungs.into_iter().collect()),
        flows_per_table: scope
            .number("flows_per_table", 1..=u64::from(defaults.flows_per_table))
            .map_or(defaults.flows_per_table, |flows| flows as u32),
        memory: scope.number("memory", LEAST_MEMORY..=u64::MAX >> 1),
        bounds: bounds::read(&scope).unwrap_or_default(),
        log: scope.string("log").map(|found| found.value),
        tls: tls::read(&scope, tls_tables),
        offload: scope.word("offload", ON_OFF, on_or_off),
        offload_policy: policies::read(&scope, "node.offload_policy"),
    };
    let base = scope.text("listen");
    scope.close();
    (config, base)
}

fn on_or_off(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn read_dir(scope: &Scope<'_>, key: &'static str, longest: usize) -> Option<PathBuf> {
    let found = scope.string(key)?;
    let path = PathBuf::from(&found.value);
    if !path.is_absolute() {
        scope.problem(
            key,
            format!("{key} = {:?} is not an absolute path", found.value),
            "begin it with /",
        );
    } else if found.value.len() > longest {
        let cause =
            format!("{key} is {} bytes long, too long for the sockets in it", found.value.len());
        scope.problem(key, cause, format!("choose a path of at most {longest} bytes"));
    }
    Some(path)
}

/// An address with a port.
fn read_address(scope: &Scope<'_>, key: &'static str) -> Option<SocketAddr> {
    let found = scope.string(key)?;
    let read = found.value.parse().map_err(|_| {
        let cause = format!("{key} = {:?} is not an address with a port", found.value);
        scope.problem(key, cause, "write it like 127.0.0.1:9091 or [::1]:9091");
    });
    read.ok()
}

fn read_cores(scope: &Scope<'_>, host: &Host) -> Option<Vec<usize>> {
    let found = scope.numbers("cores", 0..=u64::from(u16::MAX))?;
    let mut cores = Vec::with_capacity(found.len());
    for Located { value, line } in found {
        let core = value as usize;
        let usable = host.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        if !host.cores.contains(&core) {
            let remedy = format!("choose from: {usable}");
            scope.notes().add(
                line,
                &scope.thing,
                format!("core {core} does not exist or is not ours to use"),
                remedy,
            );
        } else if cores.contains(&core) {
            scope.notes().add(
                line,
                &scope.thing,
                format!("core {core} is named twice"),
                "name each core once: one worker runs on it",
            );
        }
        cores.push(core);
    }
    if cores.is_empty() {
        scope.problem(
            "cores",
            "cores names no usable core",
            "name at least one core, or remove the key",
        );
    }
    Some(cores)
}

fn read_switch(mut scope: Scope<'_>, tls_tables: &mut Vec<TlsTable>) -> Option<SwitchConfig> {
    let name = scope.text::<SwitchName>("name");
    if let Some(name) = &name {
        scope.thing = format!("switch {name}");
    }
    scope.missing("name", "the switch has no name", "add name = \"...\"");
    let rest = SwitchPatch {
        fail_mode: scope.word("fail_mode", FailMode::WORDS, FailMode::of),
        controllers: Some(values(scope.texts("controllers"))),
        listen: Some(values(scope.texts("listen"))),
        protocols: Some(values(scope.texts("protocols"))).filter(|list| !list.is_empty()),
        max_packet_in_per_s: scope
            .number("max_packet_in_per_s", 0..=u64::from(u32::MAX))
            .map(|n| n as u32),
        max_flood_copies_per_s: Some(
            scope.number("max_flood_copies_per_s", 0..=u64::from(u32::MAX)).map(|n| n as u32),
        ),
        max_copies_per_s: scope
            .number("max_copies_per_s", 0..=u64::from(u32::MAX))
            .map(|n| n as u32),
        fail_after_s: scope
            .number("fail_after_s", 0..=u64::from(FAIL_AFTER_MAX_S))
            .map(|n| n as u32),
        on_reconnect: scope.word("on_reconnect", Rules::WORDS, Rules::of),
        on_standalone: scope.word("on_standalone", Rules::WORDS, Rules::of),
        echo_interval_s: scope
            .number("echo_interval_s", 1..=u64::from(ECHO_INTERVAL_MAX_S))
            .map(|n| n as u16),
        aux: scope.number("aux", 0..=u64::from(AUXILIARY_MAX)).map(|n| n as u8),
        steering: scope.word("steering", SteeringAccess::WORDS, SteeringAccess::of),
        tls: Some(tls::read(&scope, tls_tables)),
        offload_policy: Some(policies::read(&scope, "switch.offload_policy")),
        session_netns: Some(scope.text("session_netns")),
    };
    let declared_by = scope.text("declared_by");
    let dpid = scope.text("dpid");
    let miss_send_len =
        scope.number("miss_send_len", 0..=0xffff).map_or(DEFAULT_MISS_SEND_LEN, |n| n as u16);
    let ports = scope.tables("port", "switch.port");
    let ports = ports.into_iter().filter_map(|port| read_port(port, &scope.thing)).collect();
    let (flows, groups, meters) =
        (scope.strings("flows"), scope.strings("groups"), scope.strings("meters"));
    let line = scope.line;
    scope.close();
    let spec = rest.applied_to(&SwitchSpec { dpid, miss_send_len, ..SwitchSpec::named(name?) });
    Some(SwitchConfig { spec, line, declared_by, ports, flows, groups, meters })
}

fn read_port(mut scope: Scope<'_>, switch: &str) -> Option<Located<PortSpec>> {
    let mut keys = scope.rest();
    let shown = name_of(&keys).map_or_else(|| scope.thing.clone(), |name| format!("port {name}"));
    scope.thing = format!("{switch} {shown}");
    let queues = scope.tables("queue", "switch.port.queue");
    let queues = queues.into_iter().filter_map(|queue| read_queue(queue, &scope.thing));
    keys.insert("queue".into(), queues.collect::<Vec<_>>().into());
    let Reading { spec, faults } = PortSpec::read_partly(keys);
    for KeyFault { key, cause, remedy } in faults {
        scope.fault(&key, cause, remedy);
    }
    spec.map(|value| Located { value, line: scope.line })
}

/// The name that a port is going to have, if it is to have one.
fn name_of(keys: &Keys) -> Option<PortName> {
    let name = |key: &str| keys.get(key)?.as_str()?.parse().ok();
    name("name").or_else(|| name("interface"))
}

fn read_queue(mut scope: Scope<'_>, port: &str) -> Option<serde_json::Value> {
    scope.thing = format!("{port} {}", scope.thing);
    scope.missing("id", "the queue has no id", "add id = NUMBER, the one that set_queue names");
    let id = scope.number("id", 0..=u64::from(u32::MAX)).map(|n| n as u32);
    let (min_rate, max_rate) = (scope.text_or_number("min_rate"), scope.text_or_number("max_rate"));
    scope.close();
    serde_json::to_value(QueueSpec { id: id?, min_rate, max_rate }).ok()
}

fn values<T>(found: Vec<Located<T>>) -> Vec<T> {
    found.into_iter().map(|found| found.value).collect()
}

/// Gives a switch what the file leaves to the node: its datapath id and, with `[node] listen`, its own TCP port.
fn complete(switch: &mut SwitchConfig, index: usize, base: Option<&Listen>, host: &Host) {
    if switch.declared_by.is_some() {
        return;
    }
    let spec = &mut switch.spec;
    spec.dpid.get_or_insert_with(|| Dpid::derived(&host.node_id, &spec.name));
    if let (Some(base), true) = (base, spec.listen.is_empty()) {
        spec.listen.extend(base.shifted(index));
    }
}

#[cfg(test)]
mod tests;
