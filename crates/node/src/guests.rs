//! # The guests' thread
//!
//! **Question answered**: do the guests run that parts and the configuration file declare, and no others?
//!
//! One thread makes, starts, watches and stops them. It keeps the privileges for that ([`privilege::keep_what_guests_need`]). What is wanted is
//! a value for each part; what is there is looked at; the difference is worked off, again and again.
//!
//! ## Invariants
//!
//! * Guests outlive the node: the next one adopts them by their records, and removes those that nobody wants.
//! * One guest's failure delays no other by more than one call of the kernel; only a stop waits, [`GRACE`] for all that stop together.
//! * The table's owner is the thread; others read copies.

use crate::feed::Feed;
use crate::host::privilege;
use crate::roll::{Duty, Roll};
use api::exec::ExecRequest;
use api::{
    Deviation, Fault, GuestCondition, GuestInterface, GuestSpec, GuestView, Happening, News, Noun,
    Restart, chain,
};
use guest::{Guest, GuestError, Life, Next, Places, Process, Program, Seen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// How long a process that is told to end may take before it is killed. Chosen.
const GRACE: Duration = Duration::from_secs(1);
/// How often something that is not there is looked for. Chosen: a port that comes is noticed at once by a user.
const SOON: Duration = Duration::from_millis(100);
/// How often what is there is looked at: an interface that was made anew has no addresses. Chosen.
const CALM: Duration = Duration::from_secs(5);

type Key = (String, String);
type Answer<T> = oneshot::Sender<Result<T, Fault>>;

enum Request {
    Serve(Feed),
    Want(String, Vec<GuestSpec>, Answer<()>),
    Exec(Key, ExecRequest, Answer<Program>),
    ReleaseOthers(oneshot::Sender<()>),
    Compare(oneshot::Sender<Vec<Fault>>),
}

/// The handle of the thread.
pub struct Guests {
    requests: Mutex<Sender<Request>>,
    wake: Arc<OwnedFd>,
    board: Arc<Mutex<BTreeMap<Key, GuestView>>>,
    places: Arc<Places>,
}

impl Guests {
    /// Starts the thread, which reduces its caller's privileges to its own.
    ///
    /// # Errors
    /// The system refuses a thread or an eventfd.
    pub fn start(places: Places, roll: &Roll) -> io::Result<Arc<Self>> {
        let (requests, inbox) = channel();
        let wake = Arc::new(crate::ports::wake_fd()?);
        let (board, places) = (Arc::default(), Arc::new(places));
        let mut keeper = Keeper {
            places: places.clone(),
            board: Arc::clone(&board),
            feed: None,
            guests: BTreeMap::new(),
            began: Instant::now(),
            looked: None,
        };
        let bell = wake.clone();
        let run = move |duty: Duty| {
            if let Err(error) = privilege::keep_what_guests_need() {
                tracing::warn!("guests: {}", chain(&error));
            }
            keeper.run(&inbox, &bell, &duty);
        };
        roll.spawn("suiro-guests", run)?;
        Ok(Arc::new(Self { requests: Mutex::new(requests), wake, board, places }))
    }

    /// Where it tells what happens.
    pub fn serve(&self, feed: Feed) {
        self.send(Request::Serve(feed));
    }

    /// Makes the guests of a part these. Their namespaces are there when this returns.
    ///
    /// # Errors
    /// The host refuses a namespace.
    pub async fn want(&self, part: String, guests: Vec<GuestSpec>) -> Result<(), Fault> {
        self.ask(|answer| Request::Want(part, guests, answer)).await
    }

    /// Starts a program in a guest that runs.
    ///
    /// # Errors
    /// It does not run, or the host refuses.
    pub async fn exec(
        &self,
        part: &str,
        name: &str,
        request: ExecRequest,
    ) -> Result<Program, Fault> {
        let key = (part.to_owned(), name.to_owned());
        self.ask(|answer| Request::Exec(key, request, answer)).await
    }

    /// Removes what earlier nodes left and nobody wants: all that is wanted has been said.
    pub async fn release_others(&self) {
        let (done, told) = oneshot::channel();
        self.send(Request::ReleaseOthers(done));
        // A thread that has ended has nothing to remove.
        let _ = told.await;
    }

    /// What of guests is not as it is declared, looked at anew.
    pub async fn compare(&self) -> Vec<Fault> {
        let (answer, told) = oneshot::channel();
        self.send(Request::Compare(answer));
        told.await.unwrap_or_default()
    }

    /// All guests, as they are now.
    pub fn views(&self) -> Vec<GuestView> {
        let mut views: Vec<_> = lock(&self.board).values().cloned().collect();
        for view in &mut views {
            let guest = Process::new(&view.part, view.spec.clone(), self.places.clone());
            view.uses = guest.uses();
        }
        views
    }

    /// The end of what a guest's command has written.
    pub fn log(&self, view: &GuestView) -> String {
        Process::new(&view.part, view.spec.clone(), self.places.clone()).log()
    }

    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, Fault> {
        let (answer, answered) = oneshot::channel();
        self.send(request(answer));
        let ended = |_| {
            let remedy = "restart suiro; please report its last log lines";
            Err(Fault::new("guests", "asking their thread", "it has ended", remedy))
        };
        answered.await.unwrap_or_else(ended)
    }

    fn send(&self, request: Request) {
        // A thread that has ended takes no requests; `ask` reports that by the missing answer.
        if self.requests.lock().unwrap_or_else(PoisonError::into_inner).send(request).is_ok() {
            crate::ports::ring(&self.wake);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guest that is wanted.
struct Entry {
    guest: Process,
    life: Life,
    /// Interfaces that have what they need.
    plugged: Vec<GuestInterface>,
    fault: Option<Fault>,
    /// The condition that was told last.
    told: Option<GuestCondition>,
}

struct Keeper {
    places: Arc<Places>,
    board: Arc<Mutex<BTreeMap<Key, GuestView>>>,
    feed: Option<Feed>,
    guests: BTreeMap<Key, Entry>,
    began: Instant,
    /// When interfaces were looked at last.
    looked: Option<Instant>,
}

impl Keeper {
    fn run(&mut self, inbox: &Receiver<Request>, wake: &OwnedFd, duty: &Duty) {
        loop {
            duty.works();
            match inbox.try_recv() {
                Ok(request) => self.take(request),
                // Guests go on without a node.
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    let limit = self.look();
                    duty.waits();
                    self.wait(limit, wake);
                }
            }
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Serve(feed) => self.feed = Some(feed),
            Request::Want(part, specs, answer) => {
                let done = self.want(&part, specs);
                // A caller that no longer listens has gone; its request stands.
                let _ = answer.send(done);
            }
            Request::Exec(key, request, answer) => {
                let _ = answer.send(self.exec(&key, request));
            }
            Request::Compare(answer) => {
                let _ = answer.send(self.compare());
            }
            Request::ReleaseOthers(done) => {
                self.release_others();
                let _ = done.send(());
            }
        }
    }

    fn wait(&self, limit: Duration, wake: &OwnedFd) {
        let watched = self.guests.values().filter_map(|entry| entry.guest.watch());
        let watched = watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut fds: Vec<_> =
            std::iter::once(PollFd::new(wake, PollFlags::IN)).chain(watched).collect();
        // Interrupted by a signal: as if the time were up.
        let _ = poll(&mut fds, Timespec::try_from(limit).ok().as_ref());
        let _ = rustix::io::read(wake, &mut [0; 8]);
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn want(&mut self, part: &str, specs: Vec<GuestSpec>) -> Result<(), Fault> {
        let is_wanted = |key: &Key| specs.iter().any(|spec| spec.name == key.1);
        let left: Vec<Key> =
            self.guests.keys().filter(|key| key.0 == part && !is_wanted(key)).cloned().collect();
        let leaving = left.into_iter().filter_map(|key| {
            lock(&self.board).remove(&key);
            self.guests.remove(&key).map(|entry| entry.guest)
        });
        let leaving = leaving.collect();
        self.end(leaving, Process::remove);
        for spec in specs {
            let key = (part.to_owned(), spec.name.clone());
            match self.guests.get(&key).map(|entry| entry.guest.spec().clone()) {
                Some(before) if before == spec => {}
                Some(before) if before.can_become(&spec) => self.change(&key, spec),
                Some(before) => {
                    let Some(entry) = self.guests.remove(&key) else { continue };
                    let moves = before.netns != spec.netns;
                    self.end(
                        vec![entry.guest],
                        if moves { Process::remove } else { Process::stop },
                    );
                    self.add(key, spec)?;
                }
                None => self.add(key, spec)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, key: Key, spec: GuestSpec) -> Result<(), Fault> {
        let mut guest = Process::new(&key.0, spec, self.places.clone());
        let ready = guest.adopt().and_then(|()| guest.make());
        ready.map_err(|error| fault(&key, &error))?;
        let life = Life::new(self.now());
        let entry = Entry { guest, life, plugged: Vec::new(), fault: None, told: None };
        self.guests.insert(key, entry);
        Ok(())
    }

    fn change(&mut self, key: &Key, spec: GuestSpec) {
        let Some(entry) = self.guests.get_mut(key) else { return };
        let left: Vec<_> =
            entry.plugged.iter().filter(|old| !spec.interface.contains(old)).cloned().collect();
        for interface in left {
            // It may have gone with its port.
            let _ = entry.guest.unplug(&interface);
        }
        entry.plugged.clear();
        entry.fault = entry.guest.become_this(spec).err().map(|error| fault(key, &error));
    }

    /// Ends guests together: each is told to, and what is left of them after the grace is killed.
    fn end(&self, mut guests: Vec<Process>, how: fn(&mut Process)) {
        let until = Instant::now() + GRACE;
        guests.iter().for_each(Process::warn);
        for guest in &mut guests {
            let Some(watch) = guest.watch() else { continue };
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::from_borrowed_fd(watch, PollFlags::IN)];
            let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        }
        guests.iter_mut().for_each(how);
    }

    fn release_others(&mut self) {
        let is_other = |guest: &Process| {
            let (part, name) = guest.name();
            !self.guests.contains_key(&(part.to_owned(), name.to_owned()))
        };
        let others: Vec<_> = Process::recorded(&self.places).into_iter().filter(is_other).collect();
        for guest in &others {
            let (part, name) = guest.name();
            tracing::info!("guest {name} of part {part}: nobody wants it any more; removed");
        }
        self.end(others, Process::remove);
    }

    /// What of guests is not as it is declared; and what is there of guests that nobody declares.
    fn compare(&self) -> Vec<Fault> {
        let mut found: Vec<_> =
            self.guests.iter().flat_map(|(key, entry)| compared(key, entry)).collect();
        let is_wanted = |(part, name): (&str, &str)| {
            self.guests.contains_key(&(part.to_owned(), name.to_owned()))
        };
        let remedy = "restart the node: it removes what nobody declares";
        let left = Process::recorded(&self.places).into_iter().filter(|it| !is_wanted(it.name()));
        found.extend(left.map(|guest| {
            let (part, name) = guest.name();
            Deviation::of(label(&(part.into(), name.into())), "nobody declares it", remedy)
        }));
        let groups = guest::groups_there(&self.places).into_iter();
        let left = groups.filter(|name| !name.split_once(':').is_some_and(is_wanted));
        found.extend(left.map(|name| {
            Deviation::of(format!("control group {name}"), "nobody declares a guest of it", remedy)
        }));
        found
    }

    fn exec(&mut self, key: &Key, request: ExecRequest) -> Result<Program, Fault> {
        let found = self.guests.get(key).map(|entry| entry.guest.exec(request));
        let gone =
            || Fault::new(label(key), "run a program in it", "it is gone", "list guests again");
        found.ok_or_else(gone)?.map_err(|error| {
            let mut fault = fault(key, &error);
            if error.source.kind() == io::ErrorKind::NotConnected {
                fault.cause = "its command does not run".into();
                fault.remedy = format!("see why with: suiro guest show {}", key.1);
            }
            fault
        })
    }

    /// Looks at all guests; returns when to look again at the latest.
    fn look(&mut self) -> Duration {
        let (now, clock) = (self.now(), Instant::now());
        let is_due = self.looked.is_none_or(|looked| clock.duration_since(looked) >= CALM);
        if is_due {
            self.looked = Some(clock);
        }
        let mut next = CALM;
        for (key, entry) in &mut self.guests {
            if is_due {
                entry.plugged.clear();
                entry.guest.trim_log();
            }
            next = next.min(look_at(key, entry, now));
            let view = view_of(key, entry, now);
            if entry.told.replace(view.condition) != Some(view.condition) {
                let mut text = view.condition.word().to_owned();
                let details = [view.last_end.clone(), view.fault.as_ref().map(ToString::to_string)];
                details.into_iter().flatten().for_each(|detail| text += &format!("; {detail}"));
                tracing::info!("{}: {text}", label(key));
                let news = News::of_node(Noun::Guest, &key.1, Happening::State, text);
                self.feed.iter().for_each(|feed| feed.tell(news.clone()));
            }
            lock(&self.board).insert(key.clone(), view);
        }
        next
    }
}

/// How one guest differs from what is declared.
fn compared(key: &Key, entry: &Entry) -> Vec<Fault> {
    let fault = |(cause, remedy)| Deviation::of(label(key), cause, remedy);
    let mut found: Vec<_> = entry.guest.differences().into_iter().map(fault).collect();
    let spec = entry.guest.spec();
    let shall_run = !spec.command.is_empty() && spec.restart == Restart::Always;
    if shall_run && entry.life.condition() != GuestCondition::Running {
        let cause = format!("its command does not run: {}", entry.life.condition().word());
        found.push(fault((cause, format!("see why with: suiro guest show {}", key.1))));
    }
    found
}

/// Looks at one guest and does what is to be done; returns when to look again at the latest.
fn look_at(key: &Key, entry: &mut Entry, now: Duration) -> Duration {
    let Entry { guest, life, plugged, fault: shown, .. } = entry;
    match guest.observe() {
        Seen::Runs(_) if life.condition() != GuestCondition::Running => life.runs(now),
        Seen::Ended(end) => life.ended(end, guest.spec().restart, now),
        _ => {}
    }
    let missing = plug(key, guest, plugged).err();
    let is_missing = missing.is_some();
    let has_command = !guest.spec().command.is_empty();
    match (missing, life.next(now)) {
        (Some(missing), _) => *shown = Some(missing),
        (None, Next::Wait(left)) => return left,
        (None, Next::Nothing) => {
            if has_command || life.condition() == GuestCondition::Running {
                *shown = None;
            }
        }
        (None, Next::Start) => match guest.start() {
            Ok(()) => {
                *shown = None;
                life.runs(now);
            }
            Err(error) => {
                *shown = Some(fault(key, &error));
                life.waits(now);
                return Duration::from_secs(1);
            }
        },
    }
    match (is_missing, life.condition()) {
        (false, _) => CALM,
        (true, GuestCondition::Running) => Duration::from_secs(1),
        (true, _) => SOON,
    }
}

/// Gives its interfaces what they need.
fn plug(key: &Key, guest: &mut Process, plugged: &mut Vec<GuestInterface>) -> Result<(), Fault> {
    for interface in guest.spec().interface.clone() {
        if plugged.contains(&interface) {
            continue;
        }
        match guest.plug(&interface) {
            Ok(true) => plugged.push(interface),
            Ok(false) => {
                let cause = format!("its interface {} is not there", interface.name);
                let remedy = "add a tap port with this interface and netns to a switch";
                return Err(Fault::new(label(key), "configure its interfaces", cause, remedy));
            }
            Err(error) => return Err(fault(key, &error)),
        }
    }
    Ok(())
}

fn view_of(key: &Key, entry: &Entry, now: Duration) -> GuestView {
    let Entry { guest, life, fault, .. } = entry;
    let mut spec = guest.spec().clone();
    spec.files.values_mut().for_each(String::clear);
    let since = SystemTime::now().checked_sub(now.saturating_sub(life.since()));
    let since = since.and_then(|since| since.duration_since(UNIX_EPOCH).ok());
    let is_waiting = fault.is_some() && life.condition() != GuestCondition::Running;
    GuestView {
        part: key.0.clone(),
        condition: if is_waiting { GuestCondition::Waiting } else { life.condition() },
        since_ns: since.map_or(0, |since| since.as_nanos() as u64),
        pid: guest.pid(),
        restarts: life.restarts,
        last_end: life.last_end.map(|end| end.to_string()),
        uses: api::GuestUse::default(),
        fault: fault.clone(),
        spec,
    }
}

fn label(key: &Key) -> String {
    format!("guest {} of part {}", key.1, key.0)
}

fn fault(key: &Key, error: &GuestError) -> Fault {
    Fault::new(label(key), error.step, chain(error), error.remedy())
}
