//! vhost-user: a virtual machine's own memory, without a system call on the way.
//!
//! The session with the front-end ([`vhost::Session`], a thread of its own) puts rings into slots and takes them out; the queues here serve
//! whatever is in their slots. So a port opens at once, with or without a guest, and never has to be opened again.
//!
//! `rx` and `tx` are the switch's, as on every port: [`rx`] takes from the guest's transmit queues, [`tx`] fills its receive queues.

mod announce;
mod control;
mod header;
mod records;
mod rx;
mod spread;
#[cfg(test)]
mod tests;
mod tx;

use crate::chosen::Chosen;
use crate::common::Common;
use crate::error::OpenError;
use crate::opened::OpenPort;
use crate::queue::{RxQueue, TxQueue};
use api::{FileMode, VhostUser};
use control::VhostControl;
use records::RecordFile;
use rx::VhostRx;
use std::path::Path;
use std::sync::Arc;
use tx::VhostTx;
use vhost::{GuestBounds, Rights, Role, Session, Settings};

/// A message names a ring by 8 bits, and a pair has two ("Vring descriptor").
pub(crate) const PAIRS_MAX: u16 = 128;

/// What there is around a port.
pub(crate) struct Around<'a> {
    pub(crate) workers: usize,
    /// Where it is noted where rings stand.
    pub(crate) records: Option<&'a Path>,
    /// What guests may cost.
    pub(crate) bounds: Option<&'a Arc<GuestBounds>>,
    /// What the session's thread does first.
    pub(crate) confine: fn(),
}

/// Opens a port. It has a guest as soon as one is there.
pub(crate) fn open(
    (common, guest): (&Common, &VhostUser),
    chosen: &Chosen,
    Around { workers, records, bounds, confine }: Around<'_>,
) -> Result<OpenPort, OpenError> {
    let name = &common.interface;
    let pairs = common.queues.max(1);
    if pairs > PAIRS_MAX {
        let interface = name.clone();
        return Err(OpenError::Queues { interface, asked: pairs, available: PAIRS_MAX });
    }
    let file = records.map(|directory| RecordFile::new(directory, Path::new(&*guest.socket)));
    let records = file.as_ref().map(|file| file.open(2 * pairs)).transpose();
    let records = records.map_err(|source| {
        OpenError::io(name, "note where its rings stand", std::io::Error::other(source))
    })?;
    let settings = Settings {
        name: name.clone(),
        socket: (&*guest.socket).into(),
        role: role(name, guest)?,
        pairs,
        mtu: common.mtu.unwrap_or(0),
        records,
        guest_bounds: bounds.cloned(),
        confine,
    };
    let session = Session::start(settings)
        .map_err(|source| OpenError::io(name, "start the vhost-user session", source))?;
    let attachment = session.attachment();
    let rx = (0..pairs).map(|pair| Box::new(VhostRx::new(attachment, pair)) as Box<dyn RxQueue>);
    let tx = (0..workers)
        .map(|worker| Box::new(VhostTx::new(attachment, worker, workers)) as Box<dyn TxQueue>);
    let (rx, tx) = (rx.collect(), tx.collect());
    let control = VhostControl {
        name: name.clone(),
        mac: common.mac.unwrap_or(chosen.mac),
        mode: mode(guest, pairs),
        up: true.into(),
        record: file,
        session,
    };
    Ok(OpenPort { facts: control.read(), rx, tx, control: Box::new(control) })
}

fn role(name: &str, guest: &VhostUser) -> Result<Role, OpenError> {
    let is_server = guest.is_server();
    is_server.then(|| rights(name, guest)).map_or(Ok(Role::Client), |own| own.map(Role::Server))
}

/// Who may open a socket of ours.
fn rights(name: &str, guest: &VhostUser) -> Result<Rights, OpenError> {
    let VhostUser { owner, group, mode, .. } = guest;
    Rights::of(owner.as_deref(), group.as_deref(), mode.as_ref().map(FileMode::bits))
        .map_err(|source| OpenError::Account { interface: name.into(), source })
}

/// How frames are exchanged, in words.
fn mode(guest: &VhostUser, pairs: u16) -> String {
    let role = if guest.is_server() { "server" } else { "client" };
    let plural = if pairs == 1 { "" } else { "s" };
    format!("vhost-user {role} at {}, {pairs} queue pair{plural}", guest.socket)
}
