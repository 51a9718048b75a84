//! Whether looking in the cache first pays, for one switch.
//!
//! A lookup costs about [`LOOKUP`] probes; a hit saves the probes that tracing costs. Both the hit rate and those
//! probes are measured over windows of packets. A switch for which it did not pay passes the cache by for a while, then
//! tries one window again.

/// Packets per window.
const WINDOW: u32 = 1024;
/// Windows passed by before the next try.
const REST: u32 = 64;
/// Cost of a lookup, in probes: as long as one, and a copy.
const LOOKUP: f32 = 1.5;

/// The state of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policy {
    looked_up: u32,
    hits: u32,
    traced: u32,
    probes: u32,
    /// Packets to pass by yet.
    rest: u32,
}

impl Policy {
    /// Whether to look up this batch.
    pub fn is_on(&mut self, packets: usize) -> bool {
        if self.rest > 0 {
            self.rest = self.rest.saturating_sub(packets as u32);
            return false;
        }
        if self.looked_up >= WINDOW {
            let pays = self.pays();
            *self = Self { rest: if pays { 0 } else { WINDOW * REST }, ..Self::default() };
            return pays;
        }
        true
    }

    /// A batch was looked up.
    pub fn looked_up(&mut self, packets: usize, hits: u32) {
        self.looked_up += packets as u32;
        self.hits += hits;
    }

    /// Packets were traced.
    pub fn traced(&mut self, packets: u32, probes: u32) {
        self.traced += packets;
        self.probes += probes;
    }

    /// With everything hit there is nothing to compare with: it pays.
    fn pays(&self) -> bool {
        let rate = self.hits as f32 / self.looked_up as f32;
        self.traced == 0 || rate * (self.probes as f32 / self.traced as f32) > LOOKUP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(policy: &mut Policy, hits: u32, probes: u32) {
        for _ in 0..WINDOW / 32 {
            assert!(policy.is_on(32));
            policy.looked_up(32, hits);
            policy.traced(32 - hits, probes * (32 - hits));
        }
    }

    #[test]
    fn a_switch_whose_flows_do_not_come_again_passes_by_and_tries_later() {
        let mut policy = Policy::default();
        window(&mut policy, 1, 5);
        let passed = (0..).take_while(|_| !policy.is_on(32)).count() as u32;
        assert_eq!(passed, WINDOW * REST / 32 + 1);
    }

    #[test]
    fn it_stays_on_while_hits_save_probes() {
        let mut policy = Policy::default();
        (0..10).for_each(|_| window(&mut policy, 24, 5));
        assert!(policy.is_on(32));
    }
}
