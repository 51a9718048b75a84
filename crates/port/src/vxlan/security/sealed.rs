//! What an encrypted port's control half does.

use super::Security;
use super::group::Membership;
use super::rx::{Opening, Refuser};
use super::scribe::Scribe;
use super::stage::Running;
use super::tx::Sealer;
use crate::bypass::Inbox;
use crate::chosen::SealOn;
use crate::error::{ControlError, OpenError};
use crate::queue::RxQueue;
use crate::vxlan::path::Path;
use crate::vxlan::senders::Senders;
use crate::vxlan::tunnel::Tunnel;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// What an encrypted port's control half keeps.
pub(in crate::vxlan) struct Sealed {
    membership: Membership,
    scribe: Scribe,
    senders: Arc<Senders>,
    path: Arc<Path>,
    stage: Mutex<Option<Running>>,
}

impl Sealed {
    /// Begins to keep the ledger.
    pub(in crate::vxlan) fn new(
        name: &str,
        seal_on: SealOn,
        membership: Membership,
        senders: Arc<Senders>,
        path: Arc<Path>,
    ) -> Result<Self, OpenError> {
        let scribe = Scribe::start(membership.security.clone()).map_err(|source| {
            OpenError::io(name, "start the thread that notes sequence numbers", source)
        })?;
        let sealed = Self { membership, scribe, senders, path, stage: Mutex::default() };
        sealed
            .seal_on(seal_on)
            .map_err(|source| OpenError::io(name, "start the thread that seals", source))?;
        Ok(sealed)
    }

    /// Has packets sealed there from now on. What was given to a thread before leaves before.
    pub(in crate::vxlan) fn seal_on(&self, seal_on: SealOn) -> io::Result<()> {
        let security = self.security();
        let mut running = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match (seal_on.core, &*running) {
            (Some(core), Some(running)) => running.go_to(core),
            (Some(core), None) => {
                let shared = (security.counts.clone(), self.path.clone());
                let begun = Running::start(core, shared, self.sealer(), self.senders.clone())?;
                security.stage.store(Some(begun.stage.clone()));
                *running = Some(begun);
            }
            (None, _) => {
                drop(running.take());
                security.stage.store(None);
            }
        }
        security.seal_on.store(Arc::new(seal_on));
        Ok(())
    }

    /// The sockets of the port's receiving halves.
    pub(in crate::vxlan) fn sockets(&self) -> Vec<Arc<OwnedFd>> {
        self.membership.sockets.clone()
    }

    /// What comes past the kernel, by receiving half; none if nothing does.
    pub(in crate::vxlan) fn inboxes(&self) -> Vec<Arc<Inbox>> {
        self.membership.inboxes.clone()
    }

    /// A receiving half's.
    pub(in crate::vxlan) fn opening(&self) -> Opening {
        Opening::new(self.security().clone())
    }

    /// A sending half's.
    pub(in crate::vxlan) fn sealer(&self) -> Sealer {
        Sealer::new(self.security().clone())
    }

    /// What the halves share.
    pub(in crate::vxlan) fn security(&self) -> &Arc<Security> {
        &self.membership.security
    }

    /// Takes the keys of the file as it is now into use.
    pub(in crate::vxlan) fn reload(&self) -> Result<(), ControlError> {
        self.membership.reload().map_err(|source| ControlError::Keys { source })
    }

    /// What users should know.
    pub(in crate::vxlan) fn notes(&self) -> impl Iterator<Item = String> {
        let strays = self.membership.strays();
        let fault = self.scribe.fault();
        let fault = fault
            .map(|fault| format!("sequence numbers cannot be noted, sending will stop: {fault}"));
        let strays = (strays > 0).then(|| {
            format!("{strays} datagrams came to UDP port {} whose SPI no port has", esp::udp::PORT)
        });
        fault.into_iter().chain(strays)
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // Without a thread nothing is refused.
        let _ = self.seal_on(SealOn::default());
    }
}

/// The queues of what comes to the plain sockets of an encrypted port.
pub(in crate::vxlan) fn refusers(
    sockets: Vec<Arc<OwnedFd>>,
    tunnel: &Tunnel,
) -> impl Iterator<Item = Box<dyn RxQueue>> {
    let is_v4 = tunnel.remote.is_ipv4();
    sockets.into_iter().map(move |socket| Box::new(Refuser::new(socket, is_v4)) as _)
}
