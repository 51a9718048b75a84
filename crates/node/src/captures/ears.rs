//! Who listens to the OpenFlow sessions of a switch, and what they hear: whole messages, as they are before TLS and behind it.
//!
//! While nobody listens a message costs one load. Lock: one mutex a switch, held while a message is handed to each capture.

use super::Look;
use super::aside::{Aside, Note};
use ::capture::{Direction, upper};
use api::Transport;
use flow::Nanos;
use openflow::{HEADER_LEN, Header, Message};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;

/// What carries a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wire {
    /// Our end and the peer's; none on a socket of this host.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Nobody on the way can read it.
    pub is_tls: bool,
}

impl Wire {
    /// Of a session over this stream.
    pub fn over(stream: &TcpStream, transport: Transport) -> Self {
        let ends = stream.local_addr().ok().zip(stream.peer_addr().ok());
        Self { ends, is_tls: transport == Transport::Tls }
    }
}

/// A message of a session.
#[derive(Clone, Copy, Debug)]
pub struct Spoken<'m> {
    /// Of which switch.
    pub switch: &'m str,
    /// What carried it.
    pub wire: &'m Wire,
    /// To the switch, or from it.
    pub direction: Direction,
    /// All of it.
    pub message: &'m [u8],
}

/// A capture that listens.
pub struct Ear {
    /// Where it keeps what it hears.
    pub aside: Arc<Aside>,
    /// As which point.
    pub point: usize,
    /// Most bytes of a message that it keeps.
    pub snap: usize,
    /// Bytes that it keeps of a packet in a message, behind the packet's headers; `None` for all.
    pub payload: Option<u32>,
    /// Whether it may hear what TLS hides from others.
    pub hears_tls: bool,
}

/// Those who listen to a switch's sessions.
#[derive(Default)]
pub struct Ears {
    is_open: AtomicBool,
    ears: Mutex<Vec<Arc<Ear>>>,
}

impl Ears {
    /// Lets one listen until what is returned is dropped.
    pub fn open(self: &Arc<Self>, ear: Ear) -> Listening {
        let ear = Arc::new(ear);
        let mut ears = self.lock();
        ears.push(ear.clone());
        self.is_open.store(true, Relaxed);
        Listening { ears: self.clone(), ear }
    }

    /// Whether anybody listens.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Relaxed)
    }

    /// Hands a message to those who listen and may hear it.
    pub fn hear(&self, at: Nanos, spoken: &Spoken<'_>) {
        let ears = self.lock();
        for ear in ears.iter().filter(|ear| ear.hears_tls || !spoken.wire.is_tls) {
            ear.aside.put(ear.note(at, spoken));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Ear>>> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody listens; no longer when this is dropped.
pub struct Listening {
    ears: Arc<Ears>,
    ear: Arc<Ear>,
}

impl Look for Listening {}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut ears = self.ears.lock();
        ears.retain(|ear| !Arc::ptr_eq(ear, &self.ear));
        self.ears.is_open.store(!ears.is_empty(), Relaxed);
    }
}

impl Ear {
    fn note(&self, at: Nanos, spoken: &Spoken<'_>) -> Note {
        let Spoken { switch, wire, direction, message } = *spoken;
        let ends = wire.ends.map(|(here, there)| match direction {
            Direction::In => (there, here),
            Direction::Out => (here, there),
        });
        let mut bytes = upper::tags("openflow", ends);
        let original = (bytes.len() + message.len()) as u32;
        bytes.extend(&message[..self.kept(message)]);
        let comment = format!("switch={switch}{}", said(message, wire));
        Note {
            at,
            point: self.point,
            direction: Some(direction),
            bytes,
            original,
            comment,
            id: None,
            lost_before: 0,
        }
    }

    /// Bytes of a message that are kept.
    fn kept(&self, message: &[u8]) -> usize {
        let snap = self.snap.min(message.len());
        let Some(payload) = self.payload else { return snap };
        let packet = match Message::decode(message) {
            Ok((_, Message::PacketIn(told))) => told.data,
            Ok((_, Message::PacketOut(told))) => told.data,
            // An error repeats what it refuses, and what is not understood may be a packet.
            Ok((_, Message::Error(_))) | Err(_) => return snap.min(HEADER_LEN),
            Ok(_) => return snap,
        };
        let packet_at = message.len() - packet.len();
        snap.min(packet_at + super::file::headers(&packet) + payload as usize)
    }
}

/// Version, kind and transaction of a message, and the peer.
fn said(message: &[u8], wire: &Wire) -> String {
    let mut text = match wire.ends {
        Some((_, there)) => format!(" peer={there}"),
        None => " peer=socket".to_owned(),
    };
    if wire.is_tls {
        text += " tls=yes";
    }
    let Some(header) = Header::peek(message) else { return text };
    let kind = header.kind_name().map_or_else(|| header.kind.to_string(), str::to_owned);
    let version = header
        .known_version()
        .map_or_else(|| header.version.to_string(), |known| known.name().to_owned());
    text + &format!(" message={kind} version={version} xid={:#x}", header.xid)
}
