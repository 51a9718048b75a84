//! A guest that is a command in namespaces of its own.

use crate::groups::Groups;
use crate::holder::WORD;
use crate::order::Order;
use crate::{End, Guest, GuestError, START, Seen, netns, terminal};
use api::exec::ExecRequest;
use api::{GuestInterface, GuestSpec, GuestUse, prefix};
use netlink::{Change, InterfaceAddress, Netlink};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// What a log may grow to before all but its end is forgotten. Chosen.
const LOG_MAX: u64 = 1 << 20;
/// What is kept then, and what is shown at most.
const LOG_KEPT: u64 = 128 << 10;

/// Where things of guests are.
#[derive(Clone, Debug)]
pub struct Places {
    /// Records of what runs; gone after a reboot, as the guests are.
    pub records: PathBuf,
    /// What commands write.
    pub logs: PathBuf,
    /// Where control groups are mounted.
    pub groups: PathBuf,
    /// The node's own group of groups: no other node of the host has it.
    pub group: String,
    /// Directories that guests must not see.
    pub hidden: Vec<PathBuf>,
}

/// What a process is known again by: a number may come to another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Held {
    pid: u32,
    /// When it began, in ticks since the boot.
    began: u64,
}

/// What the next node must know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Record {
    part: String,
    spec: GuestSpec,
    held: Option<Held>,
}

/// A program that runs in a guest, beside its command.
pub struct Program {
    /// Its holder.
    pub child: Child,
    /// Our end of its terminal, if it has one; otherwise its pipes are the holder's.
    pub terminal: Option<OwnedFd>,
}

/// Such a guest.
pub struct Process {
    part: String,
    spec: GuestSpec,
    places: Arc<Places>,
    groups: Groups,
    /// Its holder, if this process started it.
    child: Option<Child>,
    held: Option<Held>,
    watch: Option<OwnedFd>,
}

impl Process {
    /// The guest of a part; nothing is done yet.
    pub fn new(part: &str, spec: GuestSpec, places: Arc<Places>) -> Self {
        let path = format!("{}/{part}:{}", places.group, spec.name);
        let groups = Groups::at(&places.groups, &path);
        let part = part.to_owned();
        Self { part, spec, places, groups, child: None, held: None, watch: None }
    }

    /// Guests that have a record.
    pub fn recorded(places: &Arc<Places>) -> Vec<Self> {
        let files = fs::read_dir(&places.records).into_iter().flatten().flatten();
        let read = |file: fs::DirEntry| {
            let is_record = file.path().extension().is_some_and(|kind| kind == "json");
            let text = is_record.then(|| fs::read(file.path()).ok()).flatten()?;
            let Record { part, spec, held } = serde_json::from_slice(&text).ok()?;
            let mut found = Self::new(&part, spec, places.clone());
            found.hold(held.filter(|held| began(held.pid) == Some(held.began)));
            Some(found)
        };
        files.filter_map(read).collect()
    }

    /// Whose it is, and what it is.
    pub fn name(&self) -> (&str, &str) {
        (&self.part, &self.spec.name)
    }

    /// What it is.
    pub fn spec(&self) -> &GuestSpec {
        &self.spec
    }

    /// Becomes this, which its processes need not notice ([`GuestSpec::can_become`]).
    ///
    /// # Errors
    /// The host cannot keep a limit.
    pub fn become_this(&mut self, spec: GuestSpec) -> Result<(), GuestError> {
        self.spec = spec;
        self.record()?;
        self.groups.limit(&self.spec)
    }

    /// Ready when its holder has ended.
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// What it uses.
    pub fn uses(&self) -> GuestUse {
        self.groups.uses()
    }

    /// The process that holds it.
    pub fn pid(&self) -> Option<u32> {
        self.held.map(|held| held.pid)
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Tells its processes to end.
    pub fn warn(&self) {
        let holders: Vec<u32> = self.pid().into_iter().chain(self.first_process()).collect();
        self.groups.signal(Signal::TERM, &holders);
    }

    /// The first process of its process namespace: the holder's only child.
    pub(crate) fn first_process(&self) -> Option<u32> {
        let pid = self.pid()?;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Starts a program in it, beside its command. In a guest that has no command the program has namespaces of its own but for the network.
    ///
    /// # Errors
    /// Its command does not run, or the host refuses.
    pub fn exec(&self, request: ExecRequest) -> Result<Program, GuestError> {
        let ExecRequest { command, terminal } = request;
        let inside = match self.spec.command.is_empty() {
            true => {
                self.groups.make()?;
                self.groups.limit(&self.spec)?;
                None
            }
            false => Some(self.first_process().ok_or_else(|| {
                let gone = io::Error::from(io::ErrorKind::NotConnected);
                GuestError::of("entering it", netns::path(&self.spec.netns))(gone)
            })?),
        };
        let has_terminal = terminal.is_some();
        let order = Order { command, inside, terminal: has_terminal, beside: true, ..self.order() };
        let opened = terminal.map(terminal::open).transpose();
        let opened = opened.map_err(GuestError::of("opening a terminal", "/dev/ptmx"))?;
        let (own, [input, output, errors]) = match opened {
            Some((own, its)) => (Some(own), its.map(Stdio::from)),
            None => (None, [Stdio::piped(), Stdio::piped(), Stdio::piped()]),
        };
        let child = self.hand_over(&order, "exec", |holder| {
            holder.stdin(input).stdout(output).stderr(errors).spawn()
        })?;
        Ok(Program { child, terminal: own })
    }

    fn order(&self) -> Order {
        let spec = &self.spec;
        Order {
            name: spec.name.clone(),
            netns: netns::path(&spec.netns),
            groups: self.groups.doors(),
            command: spec.command.clone(),
            hosts: spec.hosts.clone(),
            files: spec.files.clone(),
            hidden: self.places.hidden.clone(),
            inside: None,
            terminal: false,
            beside: false,
        }
    }

    /// Starts a holder with an order.
    fn hand_over(
        &self,
        order: &Order,
        kind: &str,
        spawn: impl FnOnce(&mut Command) -> io::Result<Child>,
    ) -> Result<Child, GuestError> {
        let program = order.command.first().map(String::as_str).unwrap_or_default();
        let at = |step| GuestError::of(step, program);
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let tag = nanos.map_or(0, |nanos| nanos.as_nanos());
        let file = self.file(&format!("{kind}-{tag}"));
        let text = serde_json::to_vec(order).map_err(io::Error::from).map_err(at(START))?;
        write_private(&file, &text).map_err(at("writing its order"))?;
        let mut holder = Command::new("/proc/self/exe");
        let started = spawn(holder.arg(WORD).arg(&file));
        if started.is_err() {
            let _ = fs::remove_file(&file);
        }
        started.map_err(at(START))
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.places.records.join(format!("{}:{}.{kind}", self.part, self.spec.name))
    }

    fn log_file(&self) -> PathBuf {
        self.places.logs.join(format!("{}:{}.log", self.part, self.spec.name))
    }

    fn record(&self) -> Result<(), GuestError> {
        let Self { part, spec, held, .. } = self;
        let record = Record { part: part.clone(), spec: spec.clone(), held: *held };
        let (file, new) = (self.file("json"), self.file("new"));
        let at = GuestError::of("writing its record", &file);
        let text = serde_json::to_vec(&record).map_err(io::Error::from);
        text.and_then(|text| write_private(&new, &text))
            .and_then(|()| fs::rename(&new, &file))
            .map_err(at)
    }

    fn hold(&mut self, held: Option<Held>) {
        let pid = held.and_then(|held| Pid::from_raw(held.pid as i32));
        self.watch = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        self.held = held;
    }

    /// The end of what its command has written.
    pub fn log(&self) -> String {
        tail(&self.log_file()).unwrap_or_default()
    }

    /// Keeps the log short.
    pub fn trim_log(&self) {
        let file = self.log_file();
        if fs::metadata(&file).is_ok_and(|found| found.len() > LOG_MAX) {
            // The command appends, so it goes on after what is kept.
            let kept = tail(&file).unwrap_or_default();
            let _ = fs::write(&file, kept);
        }
    }
}

impl Guest for Process {
    fn make(&mut self) -> Result<(), GuestError> {
        let directory = &self.places.records;
        fs::create_dir_all(directory).map_err(GuestError::of("making a directory", directory))?;
        self.record()?;
        netns::make(&self.spec.netns)
    }

    fn adopt(&mut self) -> Result<(), GuestError> {
        let is_it = |other: &Self| other.name() == self.name();
        let Some(other) = Self::recorded(&self.places).into_iter().find(is_it) else {
            return Ok(());
        };
        if other.held.is_none() || !other.spec.can_become(&self.spec) {
            let mut other = other;
            other.stop();
            if other.spec.netns != self.spec.netns {
                netns::remove(&other.spec.netns);
            }
            return Ok(());
        }
        let (old, new) = (&other.spec.interface, self.spec.interface.clone());
        for interface in old.iter().filter(|old| !new.contains(old)) {
            // It may have gone.
            let _ = self.unplug(interface);
        }
        self.hold(other.held);
        if let Some(held) = other.held.filter(|_| !netns::is_there(&self.spec.netns)) {
            netns::name_again(&self.spec.netns, held.pid)?;
        }
        self.groups.limit(&self.spec)
    }

    fn observe(&mut self) -> Seen {
        let Some(held) = self.held else { return Seen::Nothing };
        let end = match &mut self.child {
            Some(child) => child.try_wait().ok().flatten().map(end_of),
            None => (began(held.pid) != Some(held.began)).then_some(End::Unseen),
        };
        let Some(end) = end else { return Seen::Runs(held.pid) };
        self.child = None;
        self.hold(None);
        Seen::Ended(end)
    }

    fn plug(&mut self, interface: &GuestInterface) -> Result<bool, GuestError> {
        within_link(&self.spec.netns, interface, |netlink, link| {
            if !link.up {
                netlink.change(link.index, Change::Up(true))?;
            }
            addresses(interface, link.index).try_for_each(|address| netlink.add_address(address))
        })
    }

    fn unplug(&mut self, interface: &GuestInterface) -> Result<(), GuestError> {
        let unplugged = within_link(&self.spec.netns, interface, |netlink, link| {
            addresses(interface, link.index).for_each(|address| {
                // Somebody else took it already.
                let _ = netlink.del_address(address);
            });
            Ok(())
        });
        unplugged.map(drop)
    }

    fn start(&mut self) -> Result<(), GuestError> {
        if self.spec.command.is_empty() {
            return Ok(());
        }
        self.groups.make()?;
        self.groups.limit(&self.spec)?;
        // What an earlier one left.
        self.groups.signal(Signal::KILL, &[]);
        self.trim_log();
        let log = self.log_file();
        let at = |step| GuestError::of(step, &log);
        fs::create_dir_all(&self.places.logs).map_err(at("making a directory"))?;
        let log = OpenOptions::new().append(true).create(true).mode(0o640).open(&log);
        let log = log.map_err(at("opening its log"))?;
        let errors = log.try_clone().map_err(at("opening its log"))?;
        let child = self.hand_over(&self.order(), "order", |holder| {
            holder.stdin(Stdio::null()).stdout(log).stderr(errors).spawn()
        })?;
        let pid = child.id();
        self.child = Some(child);
        self.hold(began(pid).map(|began| Held { pid, began }));
        self.record()
    }

    fn stop(&mut self) {
        if let Some(first) = self.first_process() {
            // All of its process namespace goes with it.
            let _ = Pid::from_raw(first as i32)
                .map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        }
        if !self.groups.remove() {
            tracing::warn!(
                "guest {} of part {}: its control group stays",
                self.spec.name,
                self.part
            );
        }
        let _ = self.child.take().map(|mut child| child.wait());
        self.hold(None);
    }

    fn remove(&mut self) {
        self.stop();
        netns::remove(&self.spec.netns);
        for file in [self.file("json"), self.log_file()] {
            let _ = fs::remove_file(file);
        }
    }
}

fn write_private(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    io::Write::write_all(&mut file, text)
}

fn tail(file: &Path) -> io::Result<String> {
    let mut file = File::open(file)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(LOG_KEPT)))?;
    let mut bytes = Vec::new();
    file.take(LOG_KEPT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn end_of(status: ExitStatus) -> End {
    match status.code() {
        Some(code @ 129..=192) => End::Signal((code - 128) as u8),
        Some(code) => End::Status(code as u8),
        None => End::Unseen,
    }
}

/// When a process began, in ticks since the boot: field 22 of its `stat` (proc(5)). None of one that has ended.
fn began(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let is_there = fields.next()? != "Z";
    fields.nth(18).filter(|_| is_there)?.parse().ok()
}

fn addresses(interface: &GuestInterface, index: u32) -> impl Iterator<Item = InterfaceAddress> {
    let parsed = interface.addresses.iter().filter_map(|text| prefix(text));
    parsed.map(move |(address, prefix_len)| InterfaceAddress {
        interface: index,
        address,
        prefix_len,
    })
}

/// Does something to an interface in a namespace; false if it is not there.
fn within_link(
    name: &str,
    interface: &GuestInterface,
    work: impl FnOnce(&Netlink, &netlink::Link) -> io::Result<()> + Send,
) -> Result<bool, GuestError> {
    let done = netns::within(name, || {
        let netlink = Netlink::new()?;
        let Some(link) = netlink.link(&interface.name)? else { return Ok(false) };
        work(&netlink, &link).map(|()| true)
    });
    done.map_err(GuestError::of("configuring its interface", &*interface.name))
}
