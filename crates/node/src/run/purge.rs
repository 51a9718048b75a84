//! `suiro node --purge`: removes what a node leaves behind on purpose, guests included.

use super::RunError;
use crate::config::Config;
use crate::host::{IDENTITY_FILE, RunDir, privilege};
use crate::member;
use crate::offload;
use crate::service::ports_of_parts;
use crate::store::{FILE_NAME, Store};
use api::{Kind, PortSpec, chain};
use guest::{Guest, Process};
use port::Keep;
use std::path::PathBuf;
use std::sync::Arc;

/// What was removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Purged {
    /// Guests, with their namespaces.
    pub guests: Vec<String>,
    /// TAP interfaces.
    pub taps: Vec<String>,
    /// Interfaces that the host's own stack receives from again.
    pub released: Vec<String>,
    /// Interfaces that were steered.
    pub steered: Vec<String>,
    /// Files.
    pub files: Vec<PathBuf>,
}

/// What becomes of a purged node's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It goes too.
    Removed,
    /// It stays for the node's next start: only what the host sees of the node goes.
    Kept,
}

/// Removes TAPs, steering and state of a node that does not run.
///
/// # Errors
/// The node runs, or the system refuses.
pub fn purge(config: &Config, state: State) -> Result<Purged, RunError> {
    let run_dir = RunDir::take(&config.node.run_dir)?;
    run_dir.remove_stale_sockets();
    let mut purged = Purged::default();
    let mut guests = Process::recorded(&Arc::new(super::guests_places(&run_dir, &config.node)));
    // While privileges over their processes are there.
    guests.iter_mut().for_each(Process::stop);
    if let Err(error) = privilege::keep_what_ports_need() {
        tracing::warn!("{}", chain(&error));
    }
    for spec in wanted_ports(config)? {
        match spec.kind {
            Kind::Tap(_) => remove_tap(&spec, &mut purged),
            Kind::AfPacket(_) | Kind::AfXdp(_) => release(&spec, &mut purged),
            _ => {}
        }
    }
    // Now that nothing of ours is in their namespaces.
    for mut guest in guests {
        guest.remove();
        purged.guests.push(guest.name().1.to_owned());
    }
    match xdp::steer::Kernel::new().purge() {
        Ok(interfaces) => purged.steered = interfaces,
        Err(error) => tracing::warn!("steering: {}", chain(&error)),
    }
    if let Err(error) = offload::purge(&offload::root(&config.node.state_dir)) {
        tracing::warn!("offload: {}", chain(&error));
    }
    let offloads = run_dir.offload_notes();
    port::put_back(&offloads).map_err(super::system("put offloads of interfaces back"))?;
    let records = run_dir.ring_records();
    if records.exists() {
        std::fs::remove_dir_all(&records).map_err(super::system("remove its rings' records"))?;
        purged.files.push(records);
    }
    let files: &[&str] = match state {
        State::Removed => &[FILE_NAME, IDENTITY_FILE],
        State::Kept => &[],
    };
    let of_member: &[&str] = if state == State::Removed { &member::FILES } else { &[] };
    for name in files.iter().chain(of_member) {
        let path = config.node.state_dir.join(name);
        if path.exists() {
            std::fs::remove_file(&path).map_err(super::system("remove its state"))?;
            purged.files.push(path);
        }
    }
    Ok(purged)
}

/// Ports of the file, of parts and of the API.
fn wanted_ports(config: &Config) -> Result<Vec<PortSpec>, RunError> {
    let mut ports: Vec<PortSpec> = config
        .switches
        .iter()
        .flat_map(|switch| switch.ports.iter().map(|port| port.value.clone()))
        .collect();
    if config.node.state_dir.join(FILE_NAME).exists() {
        let (_store, kept) = Store::open(&config.node.state_dir, &Arc::default())?;
        ports.extend(kept.all_ports()?);
        ports.extend(ports_of_parts(&kept, config.node.tls.as_ref())?);
    }
    Ok(ports)
}

/// An interface that is not there has nothing to give back.
fn release(spec: &PortSpec, purged: &mut Purged) {
    match port::release(spec) {
        Ok(true) => purged.released.extend(spec.interface().map(String::from)),
        Ok(false) => {}
        Err(error) => tracing::warn!("{}", chain(&error)),
    }
}

/// A TAP is removed by taking it over and letting it go for good. One that cannot be taken over is gone, or another program's.
fn remove_tap(spec: &PortSpec, purged: &mut Purged) {
    let opened = match port::open(spec, 1) {
        Ok(opened) => opened,
        Err(error) => return tracing::warn!("{}", chain(&error)),
    };
    let port::OpenPort { rx, tx, control, .. } = opened;
    drop((rx, tx));
    match control.close(Keep::Nothing) {
        Ok(()) => purged.taps.extend(spec.interface().map(String::from)),
        Err(error) => tracing::warn!("{}", chain(&error)),
    }
}
