//! The receiving side of an SA, and all of one end.

use crate::cipher::Cipher;
use crate::envelope::Mode;
use crate::key::Key;
use crate::packet::{HEADER, ICV, TRAILER, spi};
use crate::refusal::Refusal;
use crate::window::Window;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a packet held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// What the payload is: an IP protocol number (RFC 4303 §2.6); 59 for a packet that only hides that there is none.
    pub next_header: u8,
    /// Where in the packet the payload is.
    pub payload: Range<usize>,
    /// What its SA carries.
    pub mode: Mode,
}

/// What an SA has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InboundCounts {
    /// Packets opened.
    pub packets: u64,
    /// Packets refused: index = [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
}

/// The receiving side, which workers may share.
pub struct Inbound {
    spi: u32,
    has_esn: bool,
    mode: Mode,
    cipher: Cipher,
    window: Mutex<Window>,
    packets: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
}

impl Inbound {
    /// Refuses what is numbered `top` or less: 0 at first, after a restart what was noted before.
    pub fn new(spi: u32, key: &Key, has_esn: bool, mode: Mode, top: u64) -> Self {
        Self {
            spi,
            has_esn,
            mode,
            cipher: Cipher::new(key),
            window: Mutex::new(Window::new(top)),
            packets: AtomicU64::new(0),
            refused: Default::default(),
        }
    }

    /// The security parameters index.
    pub fn spi(&self) -> u32 {
        self.spi
    }

    /// The highest sequence number accepted.
    pub fn top(&self) -> u64 {
        self.window().top()
    }

    /// What was opened and refused so far.
    pub fn counts(&self) -> InboundCounts {
        let refused = std::array::from_fn(|reason| self.refused[reason].load(Relaxed));
        InboundCounts { packets: self.packets.load(Relaxed), refused }
    }

    /// Counts a packet that was opened, and whose contents were refused.
    pub fn refuse(&self, reason: Refusal) {
        self.refused[reason as usize].fetch_add(1, Relaxed);
    }

    /// Verifies and decrypts a packet in place. What is refused is counted, and leaves the packet in no particular state.
    ///
    /// # Errors
    /// It is not authentic, not new, or not ESP.
    pub fn open(&self, packet: &mut [u8]) -> Result<Opened, Refusal> {
        let opened = self.verify(packet);
        match &opened {
            Ok(_) => self.packets.fetch_add(1, Relaxed),
            Err(reason) => self.refused[*reason as usize].fetch_add(1, Relaxed),
        };
        opened
    }

    fn verify(&self, packet: &mut [u8]) -> Result<Opened, Refusal> {
        if packet.len() < HEADER + TRAILER + ICV {
            return Err(Refusal::Truncated);
        }
        let low = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
        let sequence = {
            let window = self.window();
            let sequence = if self.has_esn { window.extend(low)? } else { low.into() };
            window.check(sequence)?;
            sequence
        };
        if !self.cipher.open(packet, (self.spi, sequence, self.has_esn)) {
            return Err(Refusal::BadIcv);
        }
        self.window().accept(sequence)?;
        let (next_header, payload) = trailer(packet)?;
        Ok(Opened { next_header, payload, mode: self.mode })
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Next header and payload of a decrypted packet; the padding is checked as RFC 4303 §2.4 wants.
fn trailer(packet: &[u8]) -> Result<(u8, Range<usize>), Refusal> {
    let [rest @ .., padding, next_header] = &packet[HEADER..packet.len() - ICV] else {
        return Err(Refusal::Truncated);
    };
    let payload = rest.len().checked_sub(usize::from(*padding)).ok_or(Refusal::BadPadding)?;
    let is_counting = (1..=u8::MAX).zip(&rest[payload..]).all(|(number, byte)| *byte == number);
    if !is_counting {
        return Err(Refusal::BadPadding);
    }
    Ok((*next_header, HEADER..HEADER + payload))
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbound(SPI {:#x}, {:?})", self.spi, self.counts())
    }
}

/// All SAs of one end; few, so that a search through them is no cost.
#[derive(Clone, Debug, Default)]
pub struct Inbounds(Vec<Arc<Inbound>>);

impl Inbounds {
    /// These.
    pub fn new(all: Vec<Arc<Inbound>>) -> Self {
        Self(all)
    }

    /// The one of that SPI.
    pub fn find(&self, spi: u32) -> Option<&Arc<Inbound>> {
        self.0.iter().find(|inbound| inbound.spi == spi)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Inbound>> {
        self.0.iter()
    }

    /// Verifies and decrypts a packet in place, by the SA that it names.
    ///
    /// # Errors
    /// As [`Inbound::open`], or there is no such SA.
    pub fn open(&self, packet: &mut [u8]) -> Result<Opened, Refusal> {
        let spi = spi(packet).ok_or(Refusal::Truncated)?;
        self.find(spi).ok_or(Refusal::UnknownSpi)?.open(packet)
    }
}
