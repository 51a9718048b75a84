//! The thread that keeps the ledger: no worker waits for a disk.

use super::Security;
use crate::unprivileged::drop_privileges;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two entries. Chosen: what comes twice after a crash was received in so long before; a block of numbers lasts much longer.
const PERIOD: Duration = Duration::from_secs(1);

/// The thread of one port. It ends with this, after a last entry.
pub(in crate::vxlan) struct Scribe {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Why the last entry could not be made.
    fault: Arc<Mutex<Option<String>>>,
}

impl Scribe {
    /// Begins.
    pub(in crate::vxlan) fn start(security: Arc<Security>) -> io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let fault = Arc::new(Mutex::new(None));
        let shown = fault.clone();
        let work = move || {
            drop_privileges();
            loop {
                let ended = stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
                let noted = security.note().err().map(|error| error.to_string());
                *shown.lock().unwrap_or_else(PoisonError::into_inner) = noted;
                if ended {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("suiro-esp".into()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), fault })
    }

    /// Why the last entry could not be made.
    pub(in crate::vxlan) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Scribe {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
