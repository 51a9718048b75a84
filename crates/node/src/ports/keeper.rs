//! The thread itself: one table of wanted ports, and what to do about each piece of news.

use super::closers::Closers;
use super::hold::Held;
use super::openers::{Openers, Opening, Outcome, Wish, open};
use super::quota::LogQuota;
use super::vlink::vlink_facts;
use super::watch::{News, Watch};
use super::{Answer, Board, Directories, Door, OnFailure, Own, PortStatus, RETRY, Request, Wanted};
use crate::host::{self, memory::Shares};
use crate::offload::{Offload, PortNote};
use crate::roll::Duty;
use api::{Fault, Happening, Kind, Noun, PortSpec, chain};
use datapath::{Datapath, PortAt, Queues, QueuesError};
use openflow::{PortConfig, PortNo};
use port::{ControlError, Keep, LinkEvent, NetnsRef, OpenPort, PortControl, PortFacts};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;
use xdp::offload::{Flows, Past};

/// A wanted port and, while it is open, its interface.
pub(super) struct Entry {
    pub(super) wanted: Wanted,
    admin_up: bool,
    pub(super) open: Option<Opened>,
    /// While its interface is being opened.
    opening: Option<Opening>,
    /// What may be said of it.
    quota: LogQuota,
}

/// A port as flows meet it.
fn note(entry: &Entry, facts: &PortFacts, held: Option<Arc<AtomicU64>>) -> PortNote {
    let kind = match &entry.wanted.door {
        Door::Interface(spec) => spec.0.kind.kind().word(),
        Door::Vlink { .. } => "vlink",
    };
    let past = entry.control().and_then(PortControl::past);
    let exit = past.as_ref().map_or(Ok(()), |past| past.as_ref().map_or(Ok(()), Past::exit));
    let (mtu, is_up) = (facts.longest(), entry.admin_up && facts.up);
    let wrapping = entry.control().and_then(PortControl::wrapping);
    let door = entry.control().and_then(PortControl::door);
    let queues = entry.wanted.queues.clone();
    PortNote { kind, past, exit, wrapping, door, mtu, is_up, queues, held }
}

/// What an open port is held by.
pub(super) enum Opened {
    Interface(Box<dyn PortControl>),
    Vlink,
}

impl Entry {
    fn netns(&self) -> Option<NetnsRef> {
        match &self.wanted.door {
            Door::Interface(wanted) => netns_of(&wanted.0),
            Door::Vlink { .. } => None,
        }
    }

    pub(super) fn is_on(&self, netns: Option<&NetnsRef>, interface: &str) -> bool {
        let is_it = |spec: &PortSpec| spec.interface().is_some_and(|name| *name == *interface);
        matches!(&self.wanted.door, Door::Interface(wanted) if is_it(&wanted.0))
            && self.netns().as_ref() == netns
    }

    pub(super) fn number(&self) -> PortNo {
        PortNo(self.wanted.at.port)
    }

    /// Whether flows of its kind of port can go past the workers.
    fn has_rung(&self) -> bool {
        let has_rung = |spec: &PortSpec| matches!(spec.kind, Kind::AfPacket(_) | Kind::AfXdp(_));
        matches!(&self.wanted.door, Door::Interface(wanted) if has_rung(&wanted.0))
    }

    fn has_news(&self) -> bool {
        self.control().is_some_and(PortControl::has_news)
    }

    pub(super) fn control(&self) -> Option<&dyn PortControl> {
        match &self.open {
            Some(Opened::Interface(control)) => Some(&**control),
            Some(Opened::Vlink) | None => None,
        }
    }
}

/// The thread's state.
pub struct Keeper {
    duty: Duty,
    pub(super) datapath: Arc<Datapath>,
    board: Arc<Board>,
    pub(super) watch: Watch,
    pub(super) entries: BTreeMap<PortAt, Entry>,
    pub(super) opener: Arc<port::Opener>,
    openers: Openers,
    /// How often flows were let past the workers, or no more.
    era: u64,
    pub(super) owner: u32,
    /// Who has flows past the workers.
    offload: Arc<Offload>,
    next_retry: Instant,
    pub(super) held: Held,
    closers: Closers,
}

impl Keeper {
    /// No port yet.
    pub fn new(
        datapath: Arc<Datapath>,
        board: Arc<Board>,
        wake: Arc<OwnedFd>,
        Own { directories, ends, offload }: Own,
        duty: Duty,
    ) -> Self {
        let (workers, bells) = (datapath.worker_stats().len(), datapath.bells());
        let mut watch = Watch::new(wake.clone());
        watch.add(None);
        let Directories { rings, offloads, ledger, owner, memory, shared } = directories;
        let opener = port::Opener::new(workers)
            .with_records(rings)
            .with_offloads(offloads)
            .with_ledger(ledger)
            .with_owner(owner)
            .with_guest_bounds(guest_bounds(memory, shared))
            .with_confined_guests(host::confine::unprivileged_where_possible)
            .with_ends(ends)
            .with_bells(bells);
        let opener = Arc::new(opener);
        Self {
            duty,
            datapath,
            board,
            watch,
            entries: BTreeMap::new(),
            owner,
            offload,
            openers: Openers::new(opener.clone(), wake),
            era: 0,
            opener,
            next_retry: Instant::now() + RETRY,
            held: Held::default(),
            closers: Closers::default(),
        }
    }

    /// Serves until told to stop.
    pub fn run(mut self, inbox: &Receiver<Request>) {
        loop {
            self.duty.works();
            while let Some(outcome) = self.openers.done() {
                self.opened(outcome);
            }
            match inbox.try_recv() {
                Ok(Request::Stop(keep, done)) => {
                    self.duty.waits();
                    while let Some(outcome) = self.openers.wait() {
                        self.opened(outcome);
                    }
                    self.close_all(keep);
                    drop(self);
                    let _ = done.send(());
                    return;
                }
                Ok(request) => self.take(request),
                Err(TryRecvError::Disconnected) => return self.close_all(Keep::Interface),
                Err(TryRecvError::Empty) => self.wait(),
            }
        }
    }

    fn take(&mut self, request: Request) {
        let at = request.port();
        let opening = at.and_then(|at| self.entries.get_mut(&at)?.opening.as_mut());
        if let Some(opening) = opening {
            return opening.put_off(request);
        }
        // A caller that no longer listens has gone; its request stands.
        let tell = |answer: Answer, result| drop(answer.send(result));
        match request {
            Request::Add(wanted, on_failure, answer) => self.add(*wanted, on_failure, answer),
            Request::Remove(at, keep, detached, answer) => {
                self.remove(at, keep, answer);
                let _ = detached.send(());
            }
            Request::Change(to, keys, answer) => tell(answer, self.change(*to, &keys)),
            Request::Reload(at, answer) => tell(answer, self.reload(at)),
            Request::Discard(spec, answer) => tell(answer, self.discard(&spec)),
            Request::SetAdmin(at, up) => self.set_admin(at, up),
            Request::Faulted(at, error) => self.faulted(at, &error),
            Request::SetFlows(flows, done) => {
                self.set_flows(flows);
                let _ = done.send(());
            }
            Request::ReleaseOthers => self.release_others(),
            Request::Socket(netns, is_v6, answer) => {
                let _ = answer.send(port::tcp_socket(&netns, is_v6));
            }
            Request::PacketSocket(interface, answer) => {
                let _ = answer.send(port::PacketSocket::open(interface));
            }
            Request::Hold(ports) => self.hold(ports),
            Request::Serve(_) | Request::Stop(..) => {}
        }
    }

    fn wait(&mut self) {
        let told = self.entries.values().filter_map(|entry| entry.control()?.news());
        let limit = self.next_retry.saturating_duration_since(Instant::now());
        self.duty.waits();
        let news = self.watch.wait(told, limit);
        self.duty.works();
        news.iter().for_each(|news| self.hear(news));
        let tells = |entry: &Entry| entry.control().is_some_and(|control| control.news().is_some());
        self.refresh_where(|entry| tells(entry) && entry.has_news());
        if Instant::now() >= self.next_retry {
            self.next_retry = Instant::now() + RETRY;
            self.leave_vanished_namespaces();
            self.look(|entry| entry.open.is_none() || entry.has_news());
        }
    }

    fn add(&mut self, wanted: Wanted, on_failure: OnFailure, answer: Answer) {
        let at = wanted.at;
        let admin_up = !wanted.config.contains(PortConfig::PORT_DOWN);
        wanted.switch.set_queues(PortNo(at.port), wanted.queues.clone());
        let (door, label) = (wanted.door.clone(), wanted.label.clone());
        let quota = LogQuota::default();
        let mut entry = Entry { wanted, admin_up, open: None, opening: None, quota };
        let Door::Interface(wanted) = door else {
            self.entries.insert(at, entry);
            // The other end of a vlink cannot be there before this one: that is no failure.
            let _ = self.try_open(at);
            return drop(answer.send(Ok(())));
        };
        entry.opening = Some(Opening::new(on_failure, answer));
        self.entries.insert(at, entry);
        let (spec, chosen) = *wanted;
        self.watch.add(netns_of(&spec).as_ref());
        self.openers.open(Wish { at, label, spec, chosen, era: self.era });
    }

    /// The interface of a new port is open, or cannot be had.
    fn opened(&mut self, Outcome { at, era, opened }: Outcome) {
        let Some(entry) = self.entries.get_mut(&at) else { return };
        let Some(opening) = entry.opening.take() else { return };
        let entry = &self.entries[&at];
        let is_of_before = era != self.era && entry.has_rung();
        let opened = opened.and_then(|open| self.attach(entry, open));
        let result = self.show(at, opened);
        if is_of_before && result.is_ok() {
            self.reopen(at, "flows go past the workers, or no more");
        }
        if result.is_err() && opening.on_failure() == OnFailure::Forget {
            if let Some(entry) = self.entries.remove(&at) {
                entry.wanted.switch.remove_port(entry.number());
            }
            self.board.lock().remove(&at);
        }
        opening.end(result).into_iter().for_each(|request| self.take(request));
    }

    /// Opens a port that is not open; the board and the switch show what came of it.
    fn try_open(&mut self, at: PortAt) -> Result<(), Fault> {
        let Some(entry) = self.entries.get(&at) else { return Ok(()) };
        let opened = match &entry.wanted.door {
            Door::Interface(wanted) => {
                let open = open(&self.opener, &entry.wanted.label, (&wanted.0, &wanted.1));
                open.and_then(|open| self.attach(entry, open))
            }
            Door::Vlink { .. } => self.join(at),
        };
        self.show(at, opened)
    }

    /// The board and the switch show what came of opening a port.
    fn show(
        &mut self,
        at: PortAt,
        opened: Result<(Opened, PortFacts), Fault>,
    ) -> Result<(), Fault> {
        let fault = opened.as_ref().err().cloned();
        match opened {
            Ok((opened, facts)) => self.came_up(at, opened, facts),
            Err(fault) => self.show_fault(at, fault),
        }
        fault.map_or(Ok(()), Err)
    }

    /// Hands an open port to the workers.
    fn attach(&self, entry: &Entry, open: OpenPort) -> Result<(Opened, PortFacts), Fault> {
        let label = &entry.wanted.label;
        let OpenPort { facts, rx, tx, control } = open;
        let attached =
            self.datapath.attach(entry.wanted.at, Queues { rx, tx, mtu: facts.longest() });
        attached
            .map_err(|error| Fault::new(label, "hand it to the workers", chain(&error), REPORT))?;
        if !entry.wanted.queues.is_empty() {
            let set = self.datapath.set_queues(entry.wanted.at, &entry.wanted.queues);
            if let Err(error) = set {
                self.datapath.detach(entry.wanted.at);
                return Err(queues_fault(label, &error));
            }
        }
        Ok((Opened::Interface(control), facts))
    }

    pub(super) fn came_up(&mut self, at: PortAt, opened: Opened, facts: PortFacts) {
        let Some(entry) = self.entries.get_mut(&at) else { return };
        if !entry.admin_up
            && let Opened::Interface(control) = &opened
            && let Err(error) = control.set_admin(false)
        {
            tracing::warn!("{}: {}", entry.wanted.label, chain(&error));
        }
        if let Opened::Interface(control) = &opened {
            self.board.details().extend(control.details().map(|details| (at, details)));
        }
        entry.open = Some(opened);
        tracing::info!("{}: open, {}", entry.wanted.label, facts.mode);
        facts.notes.iter().for_each(|note| tracing::info!("{}: {note}", entry.wanted.label));
        self.show_facts(at, facts);
    }

    /// New facts, for everybody who can see them.
    pub(super) fn show_facts(&mut self, at: PortAt, mut facts: PortFacts) {
        let Some(entry) = self.entries.get(&at) else { return };
        let fault = self.held.apply(&entry.wanted.label, &mut facts);
        self.datapath.set_mtu(at, facts.longest());
        self.datapath.set_up(at, entry.admin_up && facts.up);
        tell_switch(entry, &facts);
        self.board.lock().insert(at, PortStatus { facts, fault });
        self.tell_offload(at);
    }

    /// How flows past the workers meet a port now.
    pub(super) fn tell_offload(&self, at: PortAt) {
        let Some(entry) = self.entries.get(&at).filter(|entry| entry.open.is_some()) else {
            return;
        };
        let facts = self.board.lock().get(&at).map(|status| status.facts.clone());
        if let Some(facts) = facts {
            self.offload.port_is(at, note(entry, &facts, self.datapath.held(at)));
        }
    }

    /// Opens ports anew whose flows can go past the workers, so that they can, or can no more.
    fn set_flows(&mut self, flows: Option<Arc<Flows>>) {
        let keep = if flows.is_some() { Keep::Interface } else { Keep::Nothing };
        self.opener.set_flows(flows);
        self.era += 1;
        let concerned: Vec<PortAt> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.open.is_some() && entry.has_rung())
            .map(|(&at, _)| at)
            .collect();
        for at in concerned {
            if let Err(fault) = self.close(at, keep) {
                tracing::warn!("{fault}");
            }
            // The board shows what came of it.
            let _ = self.try_open(at);
        }
    }

    /// A port is not open, and why: told once, until it changes.
    pub(super) fn show_fault(&mut self, at: PortAt, fault: Fault) {
        let Some(entry) = self.entries.get(&at) else { return };
        let mut board = self.board.lock();
        let status = board.entry(at).or_default();
        if status.fault.as_ref().is_some_and(|shown| is_known(shown, &fault)) {
            return;
        }
        tracing::warn!(
            remedy = fault.remedy,
            "{}: {}: {}; trying on",
            fault.thing,
            fault.step,
            fault.cause
        );
        let text = format!("{}: {}; {}", fault.step, fault.cause, fault.remedy);
        let port = (Noun::Port, &*entry.wanted.name);
        entry.wanted.switch.tell(port, Happening::Fault, text);
        status.facts.carrier = false;
        status.facts.up = false;
        status.fault = Some(fault);
        let mut facts = status.facts.clone();
        drop(board);
        if let Door::Vlink { .. } = entry.wanted.door {
            facts = vlink_facts(entry, false);
        }
        tell_switch(entry, &facts);
    }

    /// Takes a port from its switch; `answer` hears when its interface is let go, which takes the kernel its time.
    fn remove(&mut self, at: PortAt, keep: Keep, answer: Answer) {
        if keep == Keep::Nothing {
            self.release_unopened(at);
        }
        let control = self.detach(at);
        self.datapath.forget_port(at);
        let entry = self.entries.remove(&at);
        entry.iter().for_each(|entry| entry.wanted.switch.remove_port(entry.number()));
        self.board.lock().remove(&at);
        let (Some(control), Some(entry)) = (control, entry) else {
            return drop(answer.send(Ok(())));
        };
        self.closers.close(Box::new(move || {
            let closed = control.close(keep);
            let _ = answer.send(closed.map_err(|error| control_fault(&entry.wanted.label, &error)));
        }));
    }

    /// A TAP is removed by taking it over and letting it go for good.
    fn discard(&self, spec: &PortSpec) -> Result<(), Fault> {
        let label = format!("port {}", spec.name);
        let opened = self.opener.open(spec);
        let OpenPort { rx, tx, control, .. } = opened
            .map_err(|error| Fault::new(&label, error.step(), chain(&error), error.remedy()))?;
        drop((rx, tx));
        control.close(Keep::Nothing).map_err(|error| control_fault(&label, &error))
    }

    /// Takes a port out of the datapath and lets go of its interface; the port stays wanted.
    fn close(&mut self, at: PortAt, keep: Keep) -> Result<(), Fault> {
        let Some(control) = self.detach(at) else { return Ok(()) };
        let label = &self.entries[&at].wanted.label;
        control.close(keep).map_err(|error| control_fault(label, &error))
    }

    /// Takes a port out of the datapath; returns what holds its interface, if one is open.
    fn detach(&mut self, at: PortAt) -> Option<Box<dyn PortControl>> {
        let opened = self.entries.get_mut(&at)?.open.take()?;
        self.offload.port_goes(at);
        // The queues end here, on the thread that may close them.
        self.datapath.detach(at);
        self.board.details().remove(&at);
        match opened {
            Opened::Interface(control) => Some(control),
            Opened::Vlink => {
                self.part(at);
                None
            }
        }
    }

    fn set_admin(&mut self, at: PortAt, up: bool) {
        let Some(entry) = self.entries.get_mut(&at) else { return };
        entry.admin_up = up;
        match &entry.open {
            Some(Opened::Interface(control)) => {
                if let Err(error) = control.set_admin(up) {
                    tracing::warn!("{}: {}", entry.wanted.label, chain(&error));
                }
                self.refresh(at);
            }
            Some(Opened::Vlink) => {
                let facts = vlink_facts(&self.entries[&at], true);
                self.show_facts(at, facts);
            }
            None => {}
        }
    }

    /// A port that is not open reads them when it is.
    fn reload(&mut self, at: PortAt) -> Result<(), Fault> {
        let Some(entry) = self.entries.get(&at) else { return Ok(()) };
        if let Some(Opened::Interface(control)) = &entry.open {
            control.reload().map_err(|error| control_fault(&entry.wanted.label, &error))?;
            tracing::info!("{}: its keys are read again", entry.wanted.label);
        }
        self.refresh(at);
        Ok(())
    }

    fn faulted(&mut self, at: PortAt, error: &io::Error) {
        let Some(entry) = self.entries.get(&at) else { return };
        let label = entry.wanted.label.clone();
        let fault = Fault::new(
            label,
            "receive",
            error.to_string(),
            "create the interface again; suiro is waiting for it",
        );
        self.lose(at, fault);
    }

    /// The interface of an open port is gone.
    fn lose(&mut self, at: PortAt, fault: Fault) {
        // There is nothing left to remove.
        let _ = self.close(at, Keep::Interface);
        self.show_fault(at, fault);
    }

    /// Reads a port's facts again, and opens it again if its interface has outgrown it.
    pub(super) fn refresh(&mut self, at: PortAt) {
        let control = self.entries.get(&at).and_then(Entry::control);
        if let Some(why) = control.and_then(PortControl::outgrown) {
            return self.reopen(at, &why);
        }
        let Some(Entry { open: Some(Opened::Interface(control)), wanted, quota, .. }) =
            self.entries.get_mut(&at)
        else {
            return;
        };
        match control.facts() {
            Ok(mut facts) => {
                self.held.apply(&wanted.label, &mut facts);
                let known = self.board.lock().get(&at).map(|status| status.facts.clone());
                if known.as_ref() != Some(&facts) {
                    for line in changes(&known.unwrap_or_default(), &facts) {
                        log(&wanted.label, &line, quota.admit(Instant::now()));
                    }
                    self.show_facts(at, facts);
                }
            }
            Err(error) => {
                let fault = control_fault(&wanted.label, &error);
                self.lose(at, fault);
            }
        }
    }

    fn reopen(&mut self, at: PortAt, why: &str) {
        let Some(entry) = self.entries.get(&at) else { return };
        tracing::info!("{}: opened again: {why}", entry.wanted.label);
        if let Err(fault) = self.close(at, Keep::Interface) {
            tracing::warn!("{fault}");
        }
        // What is wrong is shown, and tried again.
        let _ = self.try_open(at);
    }

    fn hear(&mut self, news: &News) {
        let netns = news.netns.as_ref();
        for event in &news.events {
            match event {
                LinkEvent::Changed(link) => self.look(|entry| entry.is_on(netns, &link.name)),
                LinkEvent::Gone { name, .. } => self.look(|entry| entry.is_on(netns, name)),
                LinkEvent::Missed => self.look(|entry| entry.netns().as_ref() == netns),
            }
        }
    }

    /// Reads the facts of open ports again, and tries the others.
    fn look(&mut self, which: impl Fn(&Entry) -> bool) {
        self.refresh_where(&which);
        self.open_where(which);
    }

    fn refresh_where(&mut self, which: impl Fn(&Entry) -> bool) {
        let open = |entry: &Entry| entry.open.is_some() && which(entry);
        let found: Vec<PortAt> =
            self.entries.iter().filter(|(_, entry)| open(entry)).map(|(&at, _)| at).collect();
        found.into_iter().for_each(|at| self.refresh(at));
    }

    fn open_where(&mut self, which: impl Fn(&Entry) -> bool) {
        let waiting =
            |entry: &Entry| entry.open.is_none() && entry.opening.is_none() && which(entry);
        let found: Vec<PortAt> =
            self.entries.iter().filter(|(_, entry)| waiting(entry)).map(|(&at, _)| at).collect();
        for at in found {
            let netns = self.entries.get(&at).and_then(Entry::netns);
            self.watch.add(netns.as_ref());
            // The board shows what came of it.
            let _ = self.try_open(at);
        }
    }

    fn leave_vanished_namespaces(&mut self) {
        for netns in self.watch.drop_vanished() {
            let inside =
                |entry: &Entry| entry.netns().as_ref() == Some(&netns) && entry.open.is_some();
            let lost: Vec<PortAt> =
                self.entries.iter().filter(|(_, entry)| inside(entry)).map(|(&at, _)| at).collect();
            for at in lost {
                let label = self.entries[&at].wanted.label.clone();
                let cause = format!("network namespace {netns} is gone");
                let remedy =
                    format!("create it again (ip netns add {netns}); suiro is waiting for it");
                self.lose(at, Fault::new(label, "watch its namespace", cause, remedy));
            }
        }
    }

    fn close_all(&mut self, keep: Keep) {
        let all: Vec<PortAt> = self.entries.keys().copied().collect();
        for at in all {
            if let Err(fault) = self.close(at, keep) {
                tracing::warn!("{fault}");
            }
        }
    }
}

/// The namespace of a port's interface; `None` is the node's own.
/// An interface that is away is one trouble, from its going until one is there.
fn is_known(shown: &Fault, fault: &Fault) -> bool {
    shown == fault || (shown.step == port::AWAY && fault.step == port::AWAY)
}

fn netns_of(spec: &PortSpec) -> Option<NetnsRef> {
    spec.netns().map(NetnsRef::from)
}

/// What guests may cost the node: by memory of theirs that it touches first, and by page tables. A machine that boots costs some MiB, a GiB of small
/// pages 2 MiB of tables.
fn guest_bounds(memory: Shares, shared: u64) -> Arc<port::GuestBounds> {
    let [each, all] = memory.guest_pages();
    port::GuestBounds::new(each, all, memory.guest_tables(), shared)
}

pub(super) const REPORT: &str = "this is a fault of suiro: please report it with the log";

fn tell_switch(entry: &Entry, facts: &PortFacts) {
    let (switch, number) = (&entry.wanted.switch, entry.number());
    if switch.has_port(number) {
        switch.port_changed(number, facts);
    } else {
        switch.add_port(number, &entry.wanted.name, facts, entry.wanted.config);
    }
}

/// One line for each change.
fn changes(before: &PortFacts, now: &PortFacts) -> Vec<String> {
    let PortFacts { up, carrier, mtu, .. } = *now;
    let changed = (before.up, before.carrier, before.mtu) != (up, carrier, mtu);
    let state = changed.then(|| format!("up {up}, carrier {carrier}, MTU {mtu}"));
    let notes = now.notes.iter().filter(|note| !before.notes.contains(note)).cloned();
    state.into_iter().chain(notes).collect()
}

fn log(label: &str, line: &str, admitted: Option<u64>) {
    match admitted {
        Some(0) => tracing::info!("{label}: {line}"),
        Some(left_out) => {
            tracing::info!("{label}: {line} ({left_out} lines about this port were left out)")
        }
        None => tracing::debug!("{label}: {line}"),
    }
}

/// A specification's queues are checked before they come here.
pub(super) fn queues_fault(label: &str, error: &QueuesError) -> Fault {
    Fault::new(label, "set its queues", chain(error), REPORT)
}

pub(super) fn control_fault(label: &str, error: &ControlError) -> Fault {
    Fault::new(label, error.step(), chain(error), error.remedy())
}
