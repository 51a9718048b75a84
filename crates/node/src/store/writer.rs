//! The thread that writes behind: it gathers changes for up to [`GROUP`], commits them together, and tries again while the disk refuses.

use super::StoreError;
use super::database::{File, guarded};
use super::pending::{Pending, Record, Thing};
use super::place::Place;
use super::stamp::Clock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long the first change of a group waits for others. With the commit itself a change is on disk within 50 ms on a disk whose
/// flush takes less than 30.
pub const GROUP: Duration = Duration::from_millis(20);
/// Changes of one switch that may wait before its sessions are held back. Chosen: a quarter of a second of the fastest controller.
pub const ROOM: usize = 65_536;
/// The same while the disk refuses: controllers go on working, in bounded memory.
pub const ROOM_WITHOUT_DISK: usize = 1_000_000;
/// Pause between two attempts on a disk that refuses, and between two looks whether the file is still where it belongs.
const RETRY: Duration = Duration::from_secs(1);

/// How far the writer is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Every change up to this number is on disk, or was tried.
    pub tried: u64,
    /// Why the last attempt failed, if it did.
    pub problem: Option<Arc<StoreError>>,
}

/// What the writer shares with those who change things. Lock: `queue`, held for one insertion or one swap.
pub struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    progress: watch::Sender<Progress>,
    /// Things of an earlier process that are not in force.
    left_out: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    pending: Pending,
    /// Changes noted so far.
    noted: u64,
    /// Somebody waits for the disk: do not gather.
    urgent: bool,
    closing: bool,
}

impl Shared {
    /// Nothing noted yet.
    pub fn new() -> Self {
        let progress = watch::Sender::new(Progress::default());
        let left_out = AtomicUsize::default();
        Self { queue: Mutex::default(), wake: Condvar::new(), progress, left_out }
    }

    /// Counts things of an earlier process that are not in force.
    pub fn note_left_out(&self, things: usize) {
        self.left_out.fetch_add(things, Relaxed);
    }

    /// How many were counted.
    pub fn left_out(&self) -> usize {
        self.left_out.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Pending)) {
        let mut queue = self.lock();
        let first = queue.pending.is_empty();
        change(&mut queue.pending);
        queue.noted += 1;
        drop(queue);
        if first {
            self.wake.notify_one();
        }
    }

    /// Notes the latest state of a thing.
    pub fn put(&self, switch: &Arc<str>, thing: Thing, record: Record) {
        self.note(|pending| pending.put(switch, thing, record));
    }

    /// Notes that a switch is gone.
    pub fn forget(&self, switch: Arc<str>) {
        self.note(|pending| pending.forget(switch));
    }

    /// Ready when everything noted so far was tried.
    pub async fn flushed(&self) {
        let target = {
            let mut queue = self.lock();
            queue.urgent = !queue.pending.is_empty();
            queue.noted
        };
        self.wake.notify_one();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.progress.subscribe().wait_for(|progress| progress.tried >= target).await;
    }

    /// Ready when few enough changes of this switch wait.
    pub async fn room(&self, switch: &str) {
        let mut progress = self.progress.subscribe();
        loop {
            let limit = match progress.borrow_and_update().problem {
                None => ROOM,
                Some(_) => ROOM_WITHOUT_DISK,
            };
            if self.lock().pending.waiting(switch) <= limit || progress.changed().await.is_err() {
                return;
            }
        }
    }

    /// How far the writer is.
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Why the state is not being saved, if it is not.
    pub fn problem(&self) -> Option<Arc<StoreError>> {
        self.progress().problem
    }

    /// Lets the writer end when everything is written, or was tried once more.
    pub fn close(&self) {
        self.lock().closing = true;
        self.wake.notify_one();
    }

    /// The disk refuses from the beginning.
    pub fn begin_without_disk(&self, error: StoreError) {
        self.refused(0, Pending::default(), error);
    }

    /// Waits for changes and gathers them, for [`RETRY`] at most: then there may be none. `None` when closed and nothing waits.
    fn next_group(&self) -> Option<(Pending, u64)> {
        let idle = |queue: &mut Queue| queue.pending.is_empty() && !queue.closing;
        let (queue, waited) = self
            .wake
            .wait_timeout_while(self.lock(), RETRY, idle)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && queue.pending.is_empty() {
            return Some((Pending::default(), queue.noted));
        }
        let gathering = |queue: &mut Queue| !queue.urgent && !queue.closing;
        let (mut queue, _) = self
            .wake
            .wait_timeout_while(queue, GROUP, gathering)
            .unwrap_or_else(PoisonError::into_inner);
        queue.urgent = false;
        (!queue.pending.is_empty()).then(|| (std::mem::take(&mut queue.pending), queue.noted))
    }

    fn written(&self, up_to: u64) {
        if self.problem().is_some() {
            tracing::info!("state file: writing works again, nothing was lost");
        }
        self.progress.send_replace(Progress { tried: up_to, problem: None });
    }

    fn refused(&self, up_to: u64, group: Pending, error: StoreError) {
        if self.problem().is_none() {
            let (chain, remedy) = (api::chain(&error), error.remedy());
            tracing::error!(%remedy, "{chain}; switches go on forwarding, changes wait in memory");
        }
        self.lock().pending.restore(group);
        self.progress.send_replace(Progress { tried: up_to, problem: Some(Arc::new(error)) });
    }

    /// Waits before the next attempt; true when there is to be none.
    fn pause(&self) -> bool {
        let open = |queue: &mut Queue| !queue.closing;
        let (queue, _) = self
            .wake
            .wait_timeout_while(self.lock(), RETRY, open)
            .unwrap_or_else(PoisonError::into_inner);
        queue.closing
    }
}

/// What the writer has open.
pub struct Writing {
    file: Option<Arc<File>>,
    place: Arc<Place>,
}

impl Writing {
    /// A file that was just opened, if it can be written.
    pub fn new(file: &Arc<File>, is_writable: bool) -> Self {
        Self { file: is_writable.then(|| file.clone()), place: file.place().clone() }
    }

    /// Whether there is nothing to do but changes.
    fn is_well(&self) -> bool {
        self.file.is_some() && self.place.is_there()
    }

    fn attempt(&mut self, group: &Pending, clock: &Clock) -> Result<(), StoreError> {
        let open = match self.file.take() {
            Some(open) => open,
            None => Arc::new(File::open_again(&self.place, clock())?),
        };
        let open = match self.place.is_there() {
            true => open,
            false => self.written_anew(&open, clock)?,
        };
        // A file that was damaged under our hands is closed in there, too.
        let written = guarded(self.place.path(), move || {
            if !group.is_empty() {
                open.write(group).map_err(StoreError::Write)?;
            }
            Ok(open)
        })?;
        self.file = Some(written);
        Ok(())
    }

    fn written_anew(&mut self, open: &File, clock: &Clock) -> Result<Arc<File>, StoreError> {
        let new = Arc::new(open.written_anew(clock())?);
        self.place = new.place().clone();
        let path = self.place.path().display();
        tracing::error!(
            remedy = "find out who touches the state directory; nothing was lost",
            "state file {path}: removed or replaced while it was open: written whole again"
        );
        Ok(new)
    }
}

/// Runs until [`Shared::close`].
pub fn run(shared: &Shared, mut writing: Writing, clock: &Clock) {
    while let Some((group, noted)) = shared.next_group() {
        if group.is_empty() && writing.is_well() {
            continue;
        }
        match writing.attempt(&group, clock) {
            Ok(()) => shared.written(noted),
            Err(error) => {
                shared.refused(noted, group, error);
                // After an error redb wants the file opened anew; that also finds out when the disk is back.
                writing.file = None;
                if shared.pause() {
                    let path = writing.place.path().display();
                    tracing::error!("state file {path}: closed with unsaved changes");
                    return;
                }
            }
        }
    }
    if !writing.is_well() && writing.attempt(&Pending::default(), clock).is_err() {
        tracing::error!("state file {}: not where it belongs", writing.place.path().display());
    }
}
