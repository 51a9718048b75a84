//! The scout: a thread that looks for virtual machines and tells the agent.

use super::Message;
use crate::fault::chain;
use crate::host::privilege;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two looks. Chosen: a machine takes longer than that to boot, and one look costs milliseconds on a busy host.
const EVERY: Duration = Duration::from_secs(2);

/// The thread; it ends when this is dropped.
pub struct Scout {
    _end: Sender<()>,
}

impl Scout {
    /// Starts it. A host that refuses one more thread has machines that must be declared.
    pub fn start(agent: Sender<Message>) -> Self {
        let (end, ended) = channel();
        let look = move || {
            if let Err(error) = privilege::drop_all() {
                tracing::debug!("{}", chain(&error));
            }
            loop {
                let seen = steer::look_around();
                let told = agent.send(Message::Ask(Box::new(move |agent| agent.see(seen))));
                let stay = matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                if told.is_err() || !stay {
                    break;
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("suiro-scout".into()).spawn(look) {
            tracing::warn!("no thread to look for virtual machines: {error}; declare them with suiro steer vm add");
        }
        Self { _end: end }
    }
}
