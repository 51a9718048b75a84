//! The node's look at its host, shared by all who want to hear of it.

use super::{Host, Refused};
use openflow::steering::{HostInfo, Vm};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Between two looks. Chosen: machines are looked for every two seconds, and a controller shall not wait much longer.
const EVERY: Duration = Duration::from_millis(250);

/// The host at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Cores and interfaces.
    pub host: HostInfo,
    /// Virtual machines.
    pub vms: Vec<Vm>,
}

/// The host, and what was last seen of it.
pub struct Desk {
    host: Arc<dyn Host>,
    seen: watch::Sender<Option<Arc<Facts>>>,
    /// Whether a task is looking.
    is_looking: AtomicBool,
    /// Somebody new wants what is there, changed or not.
    is_awaited: AtomicBool,
    /// Rung with `is_awaited`.
    awaited: Notify,
}

impl Desk {
    /// A desk at this host.
    pub fn new(host: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            host,
            seen: watch::Sender::new(None),
            is_looking: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
            awaited: Notify::new(),
        })
    }

    /// The host itself.
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }

    /// What will be seen: first what is there, soon, then every change. Must be called inside a tokio runtime.
    pub fn watch(self: &Arc<Self>) -> watch::Receiver<Option<Arc<Facts>>> {
        let receiver = self.seen.subscribe();
        self.is_awaited.store(true, SeqCst);
        self.awaited.notify_one();
        if !self.is_looking.swap(true, SeqCst) {
            tokio::spawn(self.clone().look());
        }
        receiver
    }

    /// Looks until nobody is watching.
    async fn look(self: Arc<Self>) {
        while self.is_watched() {
            let is_awaited = self.is_awaited.swap(false, SeqCst);
            match self.see().await {
                Ok(facts) => self.show(facts, is_awaited),
                Err(refused) => {
                    self.is_awaited.fetch_or(is_awaited, SeqCst);
                    tracing::debug!("looking at the host: {refused}");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = self.awaited.notified() => {}
            }
        }
    }

    fn is_watched(&self) -> bool {
        if self.seen.receiver_count() > 0 {
            return true;
        }
        self.is_looking.store(false, SeqCst);
        // Somebody may have come in between and found a task that looks.
        self.seen.receiver_count() > 0 && !self.is_looking.swap(true, SeqCst)
    }

    async fn see(&self) -> Result<Facts, Refused> {
        Ok(Facts { host: self.host.info().await?, vms: self.host.vms().await? })
    }

    fn show(&self, facts: Facts, is_awaited: bool) {
        self.seen.send_if_modified(|seen| {
            let is_news = seen.as_deref() != Some(&facts);
            if is_news {
                *seen = Some(Arc::new(facts));
            }
            is_news || is_awaited
        });
    }
}
