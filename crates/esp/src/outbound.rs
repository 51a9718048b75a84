//! The sending side of an SA.

use crate::cipher::Cipher;
use crate::key::Key;
use crate::packet::{HEADER, ICV, TRAILER, sealed_len};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The next unused numbers of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Sequence number; the first packet has 1 (RFC 4303 §3.3.3).
    pub sequence: u64,
    /// IV.
    pub iv: u64,
}

impl Counters {
    /// Where a sender goes on who finds `kept` on disk, and whose clock shows so many ns since 1970.
    pub fn resume(kept: Option<Self>, clock_ns: u64) -> Self {
        let kept = kept.unwrap_or(Self { sequence: 1, iv: 0 });
        Self { sequence: kept.sequence.max(1), iv: kept.iv.max(clock_ns) }
    }
}

/// No number is left that the packet could have: the SA is at its end, or what comes next is not on disk yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no sequence number is left")]
pub struct Exhausted;

/// The sending side, which workers share.
pub struct Outbound {
    spi: u32,
    has_esn: bool,
    cipher: Cipher,
    /// What it began with: an IV is as far from the first one as the sequence number is from its first.
    first: Counters,
    next: AtomicU64,
    /// The first sequence number that may not be used yet.
    limit: AtomicU64,
}

impl Outbound {
    /// Begins with these numbers. Nothing can be sealed before [`Outbound::allow`].
    pub fn new(spi: u32, key: &Key, has_esn: bool, first: Counters) -> Self {
        let (next, limit) = (first.sequence.into(), first.sequence.into());
        Self { spi, has_esn, cipher: Cipher::new(key), first, next, limit }
    }

    /// The security parameters index.
    pub fn spi(&self) -> u32 {
        self.spi
    }

    /// Packets sealed.
    pub fn packets(&self) -> u64 {
        self.next.load(Relaxed) - self.first.sequence
    }

    /// The sequence number of the next packet.
    pub fn next(&self) -> u64 {
        self.next.load(Relaxed)
    }

    /// Packets that may be sealed before more is allowed.
    pub fn left(&self) -> u64 {
        self.limit.load(Relaxed).saturating_sub(self.next.load(Relaxed))
    }

    /// Where the counters are after `count` more packets; the SA's end is not passed. To be put on disk, then to be allowed.
    pub fn after(&self, count: u64) -> Counters {
        let end = if self.has_esn { u64::MAX } else { 1 << 32 };
        // Neither counter may wrap, and the IV's is the further one.
        let end = end.min(self.first.sequence.saturating_add(u64::MAX - self.first.iv));
        // A key that was used with ESN has no number left without it.
        let end = end.max(self.first.sequence);
        let sequence = self.next.load(Relaxed).saturating_add(count).min(end);
        Counters { sequence, iv: self.iv(sequence) }
    }

    /// Lets packets be sealed as far as these counters, which are on disk: after a restart the key goes on from there.
    pub fn allow(&self, kept: Counters) {
        self.limit.fetch_max(kept.sequence, Relaxed);
    }

    /// Makes an ESP packet of a payload in place. `packet` has the length of [`sealed_len`]`(payload)`; the payload is behind [`HEADER`] bytes.
    ///
    /// # Errors
    /// No sequence number is left. The packet is as it was.
    ///
    /// # Panics
    /// `packet` has another length.
    pub fn seal(
        &self,
        packet: &mut [u8],
        payload: usize,
        next_header: u8,
    ) -> Result<(), Exhausted> {
        assert_eq!(packet.len(), sealed_len(payload), "the packet has room for header and trailer");
        let sequence = self.take()?;
        packet[..4].copy_from_slice(&self.spi.to_be_bytes());
        packet[4..8].copy_from_slice(&(sequence as u32).to_be_bytes());
        packet[8..HEADER].copy_from_slice(&self.iv(sequence).to_be_bytes());
        let end = packet.len() - ICV;
        let trailer = &mut packet[HEADER + payload..end];
        let padding = trailer.len() - TRAILER;
        (1..).zip(&mut trailer[..padding]).for_each(|(number, byte)| *byte = number);
        trailer[padding..].copy_from_slice(&[padding as u8, next_header]);
        self.cipher.seal(packet, (self.spi, sequence, self.has_esn));
        Ok(())
    }

    /// A sequence number that no one else has.
    fn take(&self) -> Result<u64, Exhausted> {
        let limit = self.limit.load(Relaxed);
        let one_more = |next| (next < limit).then(|| next + 1);
        self.next.fetch_update(Relaxed, Relaxed, one_more).map_err(|_| Exhausted)
    }

    fn iv(&self, sequence: u64) -> u64 {
        self.first.iv + (sequence - self.first.sequence)
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbound(SPI {:#x}, {} packets)", self.spi, self.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(has_esn: bool, first: Counters) -> Outbound {
        Outbound::new(0x1001, &Key::new(&[7; 20]).unwrap(), has_esn, first)
    }

    fn seal(outbound: &Outbound) -> Result<(u32, u64), Exhausted> {
        let mut packet = [0; 36];
        outbound.seal(&mut packet, 0, 17)?;
        let iv = u64::from_be_bytes(packet[8..16].try_into().unwrap());
        Ok((u32::from_be_bytes(packet[4..8].try_into().unwrap()), iv))
    }

    #[test]
    fn nothing_is_sealed_that_the_disk_does_not_know_of() {
        let outbound = sender(true, Counters::resume(None, 500));
        assert_eq!(seal(&outbound), Err(Exhausted));
        let kept = outbound.after(2);
        assert_eq!(kept, Counters { sequence: 3, iv: 502 });
        outbound.allow(kept);
        assert_eq!([seal(&outbound), seal(&outbound)], [Ok((1, 500)), Ok((2, 501))]);
        assert_eq!((seal(&outbound), outbound.left(), outbound.packets()), (Err(Exhausted), 0, 2));
        outbound.allow(Counters { sequence: 1, iv: 0 });
        assert_eq!(seal(&outbound), Err(Exhausted), "what was allowed stays");
    }

    #[test]
    fn after_a_restart_no_number_comes_again_if_either_disk_or_clock_is_right() {
        let before = Counters { sequence: 90, iv: 5000 };
        let clock_went_back = Counters::resume(Some(before), 10);
        assert_eq!(clock_went_back, before);
        let disk_forgot = Counters::resume(None, 5001);
        assert_eq!(disk_forgot, Counters { sequence: 1, iv: 5001 });
    }

    #[test]
    fn without_esn_the_last_sequence_number_is_the_largest_of_32_bits() {
        let outbound = sender(false, Counters { sequence: u64::from(u32::MAX), iv: 0 });
        outbound.allow(outbound.after(100));
        assert_eq!(seal(&outbound), Ok((u32::MAX, 0)));
        outbound.allow(outbound.after(100));
        assert_eq!(seal(&outbound), Err(Exhausted));
    }

    #[test]
    fn a_key_that_had_esn_and_many_packets_has_no_number_left_without() {
        let outbound = sender(false, Counters { sequence: 5 << 32, iv: 9 });
        outbound.allow(outbound.after(100));
        assert_eq!(seal(&outbound), Err(Exhausted));
    }

    #[test]
    fn neither_counter_wraps() {
        for first in
            [Counters { sequence: u64::MAX - 1, iv: 0 }, Counters { sequence: 1, iv: u64::MAX - 1 }]
        {
            let outbound = sender(true, first);
            outbound.allow(outbound.after(u64::MAX));
            assert!(seal(&outbound).is_ok());
            assert_eq!(seal(&outbound), Err(Exhausted));
        }
    }

    #[test]
    fn workers_share_a_counter_and_no_number_is_given_twice() {
        let outbound = sender(true, Counters { sequence: 1, iv: 0 });
        outbound.allow(outbound.after(4000));
        let mut numbers: Vec<u64> = std::thread::scope(|scope| {
            let work = || (0..1000).map(|_| seal(&outbound).unwrap().1).collect::<Vec<_>>();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..4000));
    }
}
