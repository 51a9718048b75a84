//! The scout: a thread that looks for virtual machines and tells the agent. While nothing is steered it looks rarely.

use super::Message;
use crate::host::{look_around, privilege};
use crate::roll::{Duty, Roll};
use api::chain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use steer::Agent;

/// Between two looks. Chosen: a machine takes longer than that to boot, and one look costs milliseconds on a busy host.
const EVERY: Duration = Duration::from_secs(2);
/// While nothing is steered, one look for so many times [`EVERY`]: half a minute.
const RARELY: usize = 15;

/// The thread; it ends when this is dropped.
pub struct Scout {
    _end: Sender<()>,
}

impl Scout {
    /// Starts it. A host that refuses one more thread has machines that must be declared.
    pub fn start(agent: Sender<Message>, roll: &Roll) -> Self {
        let (end, ended) = channel();
        let look = move |_duty: Duty| {
            if let Err(error) = privilege::drop_all() {
                tracing::debug!("{}", chain(&error));
            }
            let steers = Arc::new(AtomicBool::new(false));
            for turn in 0.. {
                let looks = turn % RARELY == 0 || steers.load(Relaxed);
                let seen = looks.then(look_around);
                let steers = steers.clone();
                let tell = move |agent: &mut Agent| {
                    seen.into_iter().for_each(|seen| agent.see(seen));
                    steers.store(!agent.interface_names().is_empty(), Relaxed);
                };
                let told = agent.send(Message::Ask(Box::new(tell)));
                let stay = matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                if told.is_err() || !stay {
                    break;
                }
            }
        };
        if let Err(error) = roll.spawn("suiro-scout", look) {
            tracing::warn!(
                "no thread to look for virtual machines: {error}; declare them with suiro steer vm add"
            );
        }
        Self { _end: end }
    }
}
