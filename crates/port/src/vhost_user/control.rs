//! What the node keeps of a vhost-user port: its session with the front-end.

use super::records::RecordFile;
use super::rights;
use crate::chosen::Chosen;
use crate::control::{Keep, PortControl};
use crate::detail::{Details, GuestFacts, PortDetail};
use crate::error::ControlError;
use crate::facts::PortFacts;
use api::{Kind, PortSpec};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use vhost::{Attachment, Connection, Look, Session, SlotState};

pub(super) struct VhostControl {
    pub(super) name: String,
    pub(super) mac: [u8; 6],
    pub(super) mode: String,
    /// A port without an interface is up as long as it is wanted up.
    pub(super) up: AtomicBool,
    pub(super) record: Option<RecordFile>,
    pub(super) session: Session,
}

impl VhostControl {
    pub(super) fn read(&self) -> PortFacts {
        let attachment = self.session.attachment();
        PortFacts {
            interface: self.name.clone(),
            mac: self.mac,
            mtu: attachment.mtu(),
            up: self.up.load(Relaxed),
            carrier: attachment.is_ready(),
            mode: self.mode.clone(),
            notes: notes(&attachment.look()),
            ..PortFacts::default()
        }
    }
}

/// Why no frame reaches the guest, as far as that is not the guest's own business; at most one reason, the nearest.
fn notes(look: &Look) -> Vec<String> {
    let broken = look.slots.iter().enumerate().find_map(|(index, slot)| match slot {
        SlotState::Faulted(fault) => Some(format!("ring {index} is stopped: {fault}")),
        SlotState::Idle | SlotState::Running { .. } | SlotState::Disabled => None,
    });
    match &look.connection {
        Connection::Waiting(why) => vec![why.clone()],
        Connection::Connected { .. } => broken.into_iter().collect(),
    }
}

impl Details for Attachment {
    fn read(&self) -> PortDetail {
        let guest = Some(GuestFacts { look: self.look(), is_ready: self.is_ready() });
        PortDetail { guest, ..PortDetail::default() }
    }
}

impl PortControl for VhostControl {
    fn facts(&self) -> Result<PortFacts, ControlError> {
        Ok(self.read())
    }

    fn has_news(&self) -> bool {
        self.session.attachment().heard_news()
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        Some(self.session.attachment().news())
    }

    fn details(&self) -> Option<Arc<dyn Details>> {
        Some(self.session.attachment().clone())
    }

    fn change(&self, key: &str, to: &PortSpec, _: &Chosen) -> Result<(), ControlError> {
        let ("owner" | "group" | "mode", Kind::VhostUser(guest)) = (key, &to.kind) else {
            return Err(ControlError::Fixed { interface: self.name.clone(), key: key.into() });
        };
        let rights = rights(&self.name, guest).map_err(|source| ControlError::Rights { source })?;
        self.session
            .set_rights(rights)
            .map_err(|source| ControlError::io(&self.name, "give its socket away", source))
    }

    fn set_admin(&self, up: bool) -> Result<(), ControlError> {
        self.up.store(up, Relaxed);
        Ok(())
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError> {
        self.session.attachment().set_mtu(mtu);
        Ok(())
    }

    /// The session ends with `self`: the guest sees its device gone, and a socket of ours is removed. The record stays for a guest that is still
    /// there: it waits for the port to come back, as after a kill.
    fn close(self: Box<Self>, keep: Keep) -> Result<(), ControlError> {
        let Self { name, record, session, .. } = *self;
        let has_guest =
            matches!(session.attachment().look().connection, Connection::Connected { .. });
        drop(session);
        match record {
            Some(record) if keep == Keep::Nothing && !has_guest => record
                .remove()
                .map_err(|source| ControlError::io(&name, "remove its record", source)),
            _ => Ok(()),
        }
    }
}
