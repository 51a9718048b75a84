//! The thread: when probes go, which end hears which, and who is told.

use super::end::End;
use super::frame::{Came, Probe};
use super::{Board, Holds, INTERFACE, Key, label, lock, unproved};
use crate::feed::Feed;
use crate::ports::Ports;
use crate::roll::Duty;
use api::{CircuitSpec, CircuitState, CircuitView, Happening, News, Noun, StrayView};
use port::PacketSocket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Probes a second that a node sends at most; more circuits than fit are probed more slowly, all alike. Chosen: some percent of a core.
pub const RATE: f64 = 4000.0;
/// Between two judgements. Chosen: what a user sees is this late at most.
const JUDGE: Duration = Duration::from_millis(50);
/// Between two tries to have the interface.
const AGAIN: Duration = Duration::from_millis(250);
/// For how long a stray is told.
const STRAY: Duration = Duration::from_secs(3);
/// Most strays that are told: what comes from outside is bounded.
const STRAYS_MAX: usize = 1024;
/// Probes that are heard in a row. A flood is cut off here, and lost at the socket.
const HEARD_MAX: usize = 1024;

/// What the thread is told.
pub enum Request {
    /// The circuits of a part are these.
    Want(String, Vec<CircuitSpec>),
    /// The socket that it asked for.
    Socket(io::Result<PacketSocket>),
}

/// An end, and what was told of it last.
struct Entry {
    end: End,
    told: CircuitState,
    since: SystemTime,
}

/// The thread's state.
pub struct Prover {
    board: Arc<Board>,
    ports: Arc<Ports>,
    feed: Feed,
    wake: Arc<OwnedFd>,
    answers: Sender<Request>,
    runtime: tokio::runtime::Handle,
    ends: BTreeMap<Key, Entry>,
    strays: Vec<(StrayView, Duration)>,
    socket: Option<PacketSocket>,
    began: Instant,
    asked: Option<Instant>,
    judged: Option<Instant>,
    /// How the circuits of ports are, as the ports' thread was told last.
    held: BTreeMap<String, CircuitState>,
}

impl Prover {
    /// Of no circuit. Answers to what it asks come back by `answers`.
    pub fn new(
        board: Arc<Board>,
        ports: Arc<Ports>,
        feed: Feed,
        wake: Arc<OwnedFd>,
        answers: Sender<Request>,
    ) -> Self {
        Self {
            board,
            ports,
            feed,
            wake,
            answers,
            runtime: tokio::runtime::Handle::current(),
            ends: BTreeMap::new(),
            strays: Vec::new(),
            socket: None,
            began: Instant::now(),
            asked: None,
            judged: None,
            held: BTreeMap::new(),
        }
    }

    /// Serves until nobody can ask any more.
    pub fn run(mut self, inbox: &Receiver<Request>, duty: &Duty) {
        loop {
            duty.works();
            match inbox.try_recv() {
                Ok(Request::Want(part, circuits)) => self.want(&part, circuits),
                Ok(Request::Socket(socket)) => self.socket = socket.ok(),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    if !self.ends.is_empty() {
                        self.have_socket();
                    }
                    self.hear();
                    self.judge();
                    self.send();
                    duty.waits();
                    self.wait();
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn want(&mut self, part: &str, circuits: Vec<CircuitSpec>) {
        let now = self.now();
        let is_kept =
            |key: &Key, entry: &Entry| key.0 != part || circuits.contains(entry.end.spec());
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.ends)
            .into_iter()
            .partition(|(key, entry)| is_kept(key, entry));
        self.ends = kept;
        for circuit in circuits {
            let key = (part.to_owned(), circuit.link.clone());
            self.ends.entry(key).or_insert_with(|| Entry {
                end: End::new(part.into(), circuit, now),
                told: CircuitState::Proving,
                since: SystemTime::now(),
            });
        }
        let mut free = Holds::new();
        for (key, Entry { end, .. }) in gone {
            lock(&self.board.ends).remove(&key);
            if let Some(label) = label(end.spec()) {
                self.held.remove(&label);
                free.insert(label, None);
            }
        }
        let ends: Vec<String> =
            self.ends.values().filter_map(|entry| label(entry.end.spec())).collect();
        free.retain(|label, _| !ends.contains(label));
        self.ports.hold(free);
        self.judged = None;
    }

    /// The interface may come later, go and come again.
    fn have_socket(&mut self) {
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= AGAIN);
        if self.socket.is_some() || !is_due {
            return;
        }
        self.asked = Some(Instant::now());
        let (ports, answers, wake) = (self.ports.clone(), self.answers.clone(), self.wake.clone());
        self.runtime.spawn(async move {
            let socket = ports.packet_socket(INTERFACE).await;
            if answers.send(Request::Socket(socket)).is_ok() {
                crate::ports::ring(&wake);
            }
        });
    }

    fn hear(&mut self) {
        let now = self.now();
        let mut bytes = vec![0; 1 << 16];
        for _ in 0..HEARD_MAX {
            let Some(socket) = &self.socket else { return };
            match socket.receive(&mut bytes) {
                Ok(Some(len)) => {
                    if let Some(came) = Probe::of_frame(&bytes[..len]) {
                        self.take(&came, now);
                    }
                }
                Ok(None) => return,
                // The interface is gone or down.
                Err(_) => return self.socket = None,
            }
        }
    }

    fn take(&mut self, came: &Came, now: Duration) {
        let mut ends = self.ends.values_mut().map(|entry| &mut entry.end);
        if let Some(end) = ends.find(|end| end.spec().id == came.by) {
            return end.hear(came, now);
        }
        let Probe { path, part, link, from, long, .. } = &came.probe;
        let mut ends = self.ends.values_mut().map(|entry| &mut entry.end);
        if let Some(end) = ends.find(|end| end.spec().id == *path && end.spec().far == *from) {
            return end.hear_by_no_rule(now);
        }
        let (part, link, from) = (part.clone(), link.clone(), from.clone());
        let stray = StrayView { part, link, from, long: *long };
        if let Some((_, at)) = self.strays.iter_mut().find(|(known, _)| *known == stray) {
            *at = now;
        } else if self.strays.len() < STRAYS_MAX {
            self.strays.push((stray, now));
        }
    }

    fn send(&mut self) {
        let now = self.now();
        let rate: f64 =
            self.ends.values().map(|entry| 2.0 / entry.end.pause(now).as_secs_f64()).sum();
        let stretch = (rate / RATE).max(1.0);
        let mut is_broken = false;
        for Entry { end, .. } in self.ends.values_mut() {
            for frame in end.send(now, stretch) {
                // A frame that is too long for the interface is one that does not arrive.
                let is_gone = |socket: &PacketSocket| {
                    socket.send(&frame).is_err_and(|error| socket.is_gone(&error))
                };
                is_broken |= self.socket.as_ref().is_some_and(is_gone);
            }
        }
        if is_broken {
            self.socket = None;
        }
    }

    fn judge(&mut self) {
        if self.judged.is_some_and(|judged| judged.elapsed() < JUDGE) {
            return;
        }
        self.judged = Some(Instant::now());
        let (now, is_open) = (self.now(), self.socket.is_some());
        let mut news = Holds::new();
        for (key, entry) in &mut self.ends {
            let state = entry.end.judge(now);
            let view = entry.view(key, state, is_open);
            if entry.told != state {
                (entry.told, entry.since) = (state, SystemTime::now());
                let text = told(&view);
                tracing::info!("link {} of part {}: {text}", key.1, key.0);
                self.feed.tell(News::of_node(Noun::Circuit, &key.1, Happening::State, text));
            }
            // Why it is down may change with each probe: that is shown here, and not told on.
            if let Some(label) = label(entry.end.spec())
                && self.held.insert(label.clone(), state) != Some(state)
            {
                let why = if view.why().is_empty() { state.word().into() } else { view.why() };
                news.insert(label, (!state.has_link()).then(|| unproved(entry.end.spec(), &why)));
            }
            lock(&self.board.ends).insert(key.clone(), view);
        }
        if !news.is_empty() {
            self.ports.hold(news);
        }
        self.strays.retain(|(_, at)| now.saturating_sub(*at) < STRAY);
        *lock(&self.board.strays) = self.strays.iter().map(|(stray, _)| stray.clone()).collect();
    }

    fn wait(&self) {
        let now = self.now();
        let due = self.ends.values().map(|entry| entry.end.due().saturating_sub(now)).min();
        let is_told = !self.strays.is_empty();
        let idle = if is_told { STRAY } else { Duration::from_secs(3600) };
        let limit = due.map_or(idle, |due| due.min(JUDGE));
        let mut fds = vec![PollFd::new(&*self.wake, PollFlags::IN)];
        fds.extend(self.socket.as_ref().map(|socket| PollFd::new(socket, PollFlags::IN)));
        // Interrupted by a signal: as if the time were up.
        let _ = poll(&mut fds, Timespec::try_from(limit).ok().as_ref());
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
    }
}

impl Entry {
    fn view(&self, key: &Key, state: CircuitState, is_open: bool) -> CircuitView {
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let [there, back] = self.end.ways().map(Clone::clone);
        let mut view = CircuitView {
            part: key.0.clone(),
            spec: self.end.spec().clone(),
            state,
            since_ns: since.as_nanos() as u64,
            there,
            back,
            round_trip_us: self.end.round_trip().map(|time| time.as_micros() as u64),
        };
        if !is_open {
            let near = &view.spec.near;
            view.back.why = Some(format!("node {near} has no interface {INTERFACE} for probes"));
        }
        view
    }
}

fn told(view: &CircuitView) -> String {
    let ms = |us: u64| format!("up: proved both ways, round trip {:.2} ms", us as f64 / 1000.0);
    match view.state {
        CircuitState::Up => ms(view.round_trip_us.unwrap_or_default()),
        CircuitState::Proving => "proving".into(),
        CircuitState::Down | CircuitState::Lossy => {
            format!("{}: {}", view.state.word(), view.why())
        }
    }
}
