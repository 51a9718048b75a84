//! The papers' rates, made smaller by one factor.
//!
//! The testbed has fewer and other cores than the papers' hosts, and on two cores the senders live there, too. So everything is slowed
//! down together: the stage is made so heavy that a core carries [`Scale::capacity`] where the paper's carried 954.9 Mbit/s (two flows on
//! one core, 1400 bytes: table 4), and flows offer what the paper's offered times the same factor. What is compared is then rates over that factor, shares
//! of loss, and counts.

use super::stage::NsPerByte;

/// Mbit/s of one core of the paper's host, datagrams of 1400 bytes (table 4, "flow-collision").
const PAPER_CAPACITY: f64 = 954.9;

/// Mbit/s that one flow of the paper offers: table 4's flows without collision. The fragmented flow of the paper offers 880.1, more than its host carries
/// even when nothing collides (14.8 % are lost, table 6); here it offers what the unfragmented one does, so that the two can be compared.
const PAPER_OFFERED: [(usize, f64); 3] = [(64, 19.8), (1400, 754.6), (8192, 754.6)];

/// Headers of the tunnel around a datagram: Ethernet, IPv4, UDP, VXLAN, Ethernet, IPv4, UDP.
pub const HEADERS: usize = 14 + 20 + 8 + 8 + 14 + 20 + 8;

/// A run's factor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    /// Mbit/s of datagrams of 1400 bytes that one core carries here.
    pub capacity: f64,
}

impl Scale {
    /// Ours over the paper's.
    pub fn factor(self) -> f64 {
        self.capacity / PAPER_CAPACITY
    }

    /// Work of the stage for each byte of a frame.
    pub fn work(self) -> NsPerByte {
        let NsPerByte(payload) = NsPerByte::of_capacity(self.capacity);
        NsPerByte(payload * 1400.0 / (1400 + HEADERS) as f64)
    }

    /// Mbit/s that one flow of datagrams of so many bytes offers.
    pub fn offered(self, size: usize) -> f64 {
        let known = PAPER_OFFERED.iter().rev().find(|&&(at, _)| at <= size);
        known.unwrap_or(&PAPER_OFFERED[0]).1 * self.factor()
    }

    /// Datagrams a second of such a flow.
    pub fn datagrams(self, size: usize) -> f64 {
        self.offered(size) * 1e6 / 8.0 / size as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_papers_own_capacity_nothing_is_scaled() {
        let scale = Scale { capacity: PAPER_CAPACITY };
        assert_eq!(scale.offered(1400), 754.6);
        assert_eq!(scale.offered(64), 19.8);
        assert_eq!(scale.datagrams(1400).round(), 67_375.0);
    }

    #[test]
    fn two_flows_are_more_than_a_core_carries_and_one_is_less() {
        let scale = Scale { capacity: 95.49 };
        let NsPerByte(work) = scale.work();
        let busy =
            |flows: f64| flows * scale.datagrams(1400) * work * (1400 + HEADERS) as f64 / 1e9;
        assert!((busy(1.0) - 0.79).abs() < 0.01, "{}", busy(1.0));
        assert!(busy(2.0) > 1.5);
    }
}
