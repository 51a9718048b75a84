//! The first bytes of a datagram's payload, network order: run 0..4, VM 4..8, number 8..16, when it was due 16..24 (ns of the monotonic
//! clock, which both ends share).

use rustix::time::{ClockId, clock_gettime};

/// Bytes of a stamp; no datagram is shorter.
pub const LENGTH: usize = 24;

/// What a datagram says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The window that it belongs to; late ones of an earlier window are nobody's.
    pub run: u32,
    /// The VM that it is for.
    pub vm: u32,
    /// Counted from 0 in each flow.
    pub number: u64,
    /// When it was due.
    pub due_ns: u64,
}

impl Stamp {
    /// Writes it to the front of a payload.
    pub fn write(self, payload: &mut [u8]) {
        payload[..4].copy_from_slice(&self.run.to_be_bytes());
        payload[4..8].copy_from_slice(&self.vm.to_be_bytes());
        payload[8..16].copy_from_slice(&self.number.to_be_bytes());
        payload[16..LENGTH].copy_from_slice(&self.due_ns.to_be_bytes());
    }

    /// Reads one; `None` of a payload that is too short.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (run, rest) = payload.split_first_chunk()?;
        let (vm, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (due, _) = rest.split_first_chunk()?;
        Some(Self {
            run: u32::from_be_bytes(*run),
            vm: u32::from_be_bytes(*vm),
            number: u64::from_be_bytes(*number),
            due_ns: u64::from_be_bytes(*due),
        })
    }
}

/// Now, in ns of the monotonic clock.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_less_is_nothing() {
        let stamp = Stamp { run: 7, vm: 2, number: u64::MAX - 1, due_ns: 1 << 40 };
        let mut payload = [0xee; 64];
        stamp.write(&mut payload);
        assert_eq!(Stamp::read(&payload), Some(stamp));
        assert_eq!(Stamp::read(&payload[..LENGTH - 1]), None);
        assert_eq!(payload[LENGTH], 0xee);
    }
}
