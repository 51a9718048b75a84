//! Encryption of a tunnel: ESP behind a UDP header ([`esp`]), by the keys of a file.
//!
//! * [`Security`] is shared by a port's halves: SAs now in use, changed as a whole when the file is read again. An SA that the new file
//!   has as well goes on with its numbers and its window, so nothing is lost.
//! * Sending: each flow has its SA, and [`tx::Sealer`] seals what leaves together.
//! * Receiving: each SA belongs to one of the port's queues, which the kernel finds by the SPI ([`group`]); [`rx::Opening`] hands on what was
//!   inside. What comes unencrypted is counted and dropped ([`rx::Refuser`]).
//! * [`stage`]: sealing by a thread of the port's own ([`SealOn`]), instead of the worker that forwards.
//! * [`ledger`]: numbers on disk; [`scribe`]: the thread that keeps them there; [`keyfile`]: who may read keys.

mod group;
mod keyfile;
mod ledger;
mod rx;
mod scribe;
mod sealed;
mod stage;
mod tx;

pub(crate) use group::Groups as SpiGroups;
pub(crate) use ledger::Ledger;
pub(super) use rx::Opening;
pub(super) use sealed::{Sealed, refusers};
pub(super) use tx::{SEALED_MOST, Sealer};

use super::any;
use crate::chosen::SealOn;
use crate::common::Common;
use crate::detail::{SaFacts, Sealing};
use crate::error::OpenError;
use crate::vxlan::tunnel::Tunnel;
use arc_swap::{ArcSwap, ArcSwapOption};
use esp::keys::SaPair;
use esp::{
    Counters, Envelope, Inbound, InboundCounts, Inbounds, Mode, Outbound, Refusal, payload_max,
};
use ledger::{Claim, Fingerprint};
use stage::{Counts, Stage};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::tunnel::Vxlan;

/// Packets whose numbers are reserved at a time. Chosen: some seconds of the fastest sender, so that a disk has time; a restart
/// throws away as many of 2⁶⁴.
const BLOCK: u64 = 1 << 24;
/// The same of 2³² without ESN: 4096 restarts.
const SHORT_BLOCK: u64 = 1 << 20;
/// Bytes of the frame's own header, which an MTU does not count.
const ETHERNET: usize = 14;

/// The encryption of one port.
pub(super) struct Security {
    name: String,
    file: PathBuf,
    envelope: Envelope,
    /// Whether datagrams leave one by one: without a checksum outside the kernel cuts no runs.
    is_apart: bool,
    ledger: Arc<Ledger>,
    sas: ArcSwap<Sas>,
    /// Where packets are sealed, if not by who forwards them.
    stage: ArcSwapOption<Stage>,
    seal_on: ArcSwap<SealOn>,
    counts: Arc<Counts>,
}

/// The SAs in use.
#[derive(Default)]
struct Sas {
    senders: Vec<Arc<Sender>>,
    receivers: Vec<Arc<Receiver>>,
    inbounds: Inbounds,
}

/// One that sends.
struct Sender {
    outbound: Outbound,
    key: Fingerprint,
    block: u64,
    _claim: Claim,
}

/// One that receives.
struct Receiver {
    inbound: Arc<Inbound>,
    key: Fingerprint,
    has_esn: bool,
}

impl Security {
    /// Where packets are sealed, and what was sealed there.
    pub(super) fn sealing(&self) -> Sealing {
        self.counts.read(self.seal_on.load().as_ref().clone())
    }

    /// Reads the keys, if there are to be some, and takes them into use. Nothing is received before the SPIs are owned.
    pub(super) fn open(
        spec: &Common,
        tunnel: &Tunnel,
        ledger: &Arc<Ledger>,
    ) -> Result<Option<Arc<Self>>, OpenError> {
        let Some(file) = tunnel.encrypt.clone() else { return Ok(None) };
        let name = spec.interface.clone();
        let pairs = keyfile::read(&name, &file)?;
        let mode = pairs.first().map_or(Mode::Transport, |pair| pair.mode);
        let local = tunnel
            .local
            .first()
            .copied()
            .or((mode == Mode::Transport).then(|| any(tunnel.remote.is_ipv4())));
        let local = local.ok_or_else(|| OpenError::Keys {
            interface: name.clone(),
            file: file.clone(),
            cause: "in tunnel mode this end's address is inside".into(),
            remedy: "give the port `local`, this end's address".into(),
        })?;
        let envelope = Envelope { mode, local, remote: tunnel.remote, port: tunnel.port };
        let security = Self {
            name,
            file,
            envelope,
            is_apart: !tunnel.checksum,
            ledger: ledger.clone(),
            sas: ArcSwap::default(),
            stage: ArcSwapOption::default(),
            seal_on: ArcSwap::default(),
            counts: Arc::default(),
        };
        let sas = security.made(&pairs)?;
        security.sas.store(Arc::new(sas));
        Ok(Some(Arc::new(security)))
    }

    /// Reads the keys again and makes their SAs, of which those that are in use already go on.
    fn reloaded(&self) -> Result<Sas, OpenError> {
        self.made(&keyfile::read(&self.name, &self.file)?)
    }

    fn made(&self, pairs: &[SaPair]) -> Result<Sas, OpenError> {
        let failed = |step| move |source| OpenError::io(&self.name, step, source);
        if let Some(other) = pairs.iter().find(|pair| pair.mode != self.envelope.mode) {
            return Err(OpenError::Keys {
                interface: self.name.clone(),
                file: self.file.clone(),
                cause: format!("SA {:#x} is of another mode than the port's others", other.spi_in),
                remedy:
                    "give all the same mode; another one needs the port removed and added again"
                        .into(),
            });
        }
        let receivers =
            pairs.iter().map(|pair| self.receiver(pair)).collect::<io::Result<Vec<_>>>();
        let receivers = receivers.map_err(failed("read what was received with these keys"))?;
        let sending = pairs.iter().filter(|pair| pair.sends);
        let senders = sending
            .filter_map(|pair| self.sender(pair).transpose())
            .collect::<io::Result<Vec<_>>>();
        let senders = senders.map_err(failed("reserve sequence numbers"))?;
        let inbounds = receivers.iter().map(|receiver| receiver.inbound.clone()).collect();
        Ok(Sas { senders, receivers, inbounds: Inbounds::new(inbounds) })
    }

    fn receiver(&self, pair: &SaPair) -> io::Result<Arc<Receiver>> {
        let (key, has_esn) = (pair.key_in.fingerprint(), pair.has_esn);
        let sas = self.sas.load();
        let is_same = |old: &&Arc<Receiver>| {
            (old.inbound.spi(), old.key, old.has_esn) == (pair.spi_in, key, has_esn)
        };
        if let Some(old) = sas.receivers.iter().find(is_same) {
            return Ok(old.clone());
        }
        let inbound =
            Inbound::new(pair.spi_in, &pair.key_in, has_esn, pair.mode, self.ledger.top(key)?);
        Ok(Arc::new(Receiver { inbound: Arc::new(inbound), key, has_esn }))
    }

    fn sender(&self, pair: &SaPair) -> io::Result<Option<Arc<Sender>>> {
        let Some((spi, key)) = &pair.out else { return Ok(None) };
        let (fingerprint, has_esn) = (key.fingerprint(), pair.has_esn);
        let block = if has_esn { BLOCK } else { SHORT_BLOCK };
        let sas = self.sas.load();
        let is_same = |old: &&Arc<Sender>| {
            (old.outbound.spi(), old.key, old.block) == (*spi, fingerprint, block)
        };
        if let Some(old) = sas.senders.iter().find(is_same) {
            return Ok(Some(old.clone()));
        }
        let claim = self.ledger.claim(fingerprint)?;
        let first = Counters::resume(self.ledger.counters(fingerprint)?, now_ns());
        let outbound = Outbound::new(*spi, key, has_esn, first);
        let sender = Sender { outbound, key: fingerprint, block, _claim: claim };
        sender.reserve(&self.ledger)?;
        Ok(Some(Arc::new(sender)))
    }

    /// The SA of a flow.
    fn sender_of(&self, sas: &Sas, flow: usize) -> Option<Arc<Sender>> {
        let count = sas.senders.len();
        (count > 0).then(|| sas.senders[flow % count].clone())
    }

    /// SPIs that are received, in the file's order.
    fn spis(&self) -> Vec<u32> {
        self.sas.load().spis()
    }

    /// Bytes of the longest frame, without its Ethernet header, in a packet of `path` bytes.
    pub(super) fn fits(&self, path: u32) -> u32 {
        let ip = if self.envelope.remote.is_ipv4() { 20 } else { 40 };
        let sealed = (path as usize).saturating_sub(ip + 8);
        let frame = payload_max(sealed).saturating_sub(self.envelope.len() + Vxlan::LEN);
        frame.saturating_sub(ETHERNET) as u32
    }

    /// Notes on disk what changed since the last time.
    fn note(&self) -> io::Result<()> {
        let sas = self.sas.load_full();
        for sender in sas.senders.iter().filter(|sender| sender.outbound.left() < sender.block / 2)
        {
            sender.reserve(&self.ledger)?;
        }
        for receiver in sas.receivers.iter().filter(|receiver| receiver.inbound.top() > 0) {
            self.ledger.note(receiver.key, receiver.inbound.top())?;
        }
        Ok(())
    }

    /// In words, for the port's mode.
    pub(super) fn words(&self) -> String {
        let sas = self.sas.load();
        let (sending, receiving) = (sas.senders.len(), sas.receivers.len());
        format!("esp {} mode, SAs: {sending} out, {receiving} in", self.envelope.mode.name())
    }

    /// All SAs, those that send first.
    pub(super) fn facts(&self) -> Vec<SaFacts> {
        let sas = self.sas.load();
        let sent = sas.senders.iter().map(|sender| sender.facts());
        sent.chain(sas.receivers.iter().map(|receiver| receiver.facts())).collect()
    }
}

impl Sas {
    fn spis(&self) -> Vec<u32> {
        self.inbounds.iter().map(|inbound| inbound.spi()).collect()
    }
}

impl Sender {
    /// Puts the next block on disk, then allows it.
    fn reserve(&self, ledger: &Ledger) -> io::Result<()> {
        let below = self.outbound.after(self.block);
        ledger.reserve(self.key, below)?;
        self.outbound.allow(below);
        Ok(())
    }

    fn facts(&self) -> SaFacts {
        let Self { outbound, .. } = self;
        let (packets, sequence) = (outbound.packets(), outbound.next());
        SaFacts { sends: true, spi: outbound.spi(), packets, sequence, ..SaFacts::default() }
    }
}

impl Receiver {
    fn facts(&self) -> SaFacts {
        let InboundCounts { packets, refused } = self.inbound.counts();
        let sum =
            |reasons: &[Refusal]| reasons.iter().map(|reason| refused[*reason as usize]).sum();
        SaFacts {
            sends: false,
            spi: self.inbound.spi(),
            packets,
            sequence: self.inbound.top(),
            replayed: sum(&[Refusal::Replayed, Refusal::TooOld]),
            bad_icv: sum(&[Refusal::BadIcv]),
            malformed: sum(&[Refusal::Truncated, Refusal::BadPadding, Refusal::BadContents]),
        }
    }
}

/// Since 1970: the second guard of IVs ([`Counters::resume`]).
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
