//! Who processed how much: frames, bytes and time by core and VM.

use super::VMS;

/// What one core did for one VM.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Frames of the underlay; a datagram in fragments is several.
    pub frames: u64,
    /// Bytes with Ethernet header.
    pub bytes: u64,
    /// Time inside the stage.
    pub ns: u64,
}

impl Count {
    /// From `struct stage_count`.
    pub(super) fn of([frames, bytes, ns, _]: [u64; 4]) -> Self {
        Self { frames, bytes, ns }
    }

    fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            bytes: self.bytes.saturating_sub(before.bytes),
            ns: self.ns.saturating_sub(before.ns),
        }
    }
}

/// Of all cores and VMs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts(Vec<Vec<Count>>);

impl Counts {
    /// For each VM the counts of all cores.
    pub fn by_vm(counts: Vec<Vec<Count>>) -> Self {
        Self(counts)
    }

    /// What came after `before`.
    pub fn since(&self, before: &Self) -> Self {
        let vm = |(now, then): (&Vec<Count>, &Vec<Count>)| {
            now.iter().zip(then).map(|(&now, &then)| now.since(then)).collect()
        };
        Self(self.0.iter().zip(&before.0).map(vm).collect())
    }

    /// What one core did for one VM.
    pub fn of(&self, core: usize, vm: u8) -> Count {
        let cores = self.0.get(usize::from(vm));
        cores.and_then(|cores| cores.get(core)).copied().unwrap_or_default()
    }

    /// Frames of all VMs, by core.
    pub fn frames(&self, cores: usize) -> Vec<u64> {
        let frames = |core| (1..VMS as u8).map(|vm| self.of(core, vm).frames).sum();
        (0..cores).map(frames).collect()
    }

    /// Frames of a VM, by core.
    pub fn frames_of(&self, vm: u8, cores: usize) -> Vec<u64> {
        (0..cores).map(|core| self.of(core, vm).frames).collect()
    }
}

/// Largest over mean of the counts of these cores: 1 is perfectly even.
pub fn max_over_mean(counts: &[u64]) -> f64 {
    let sum: u64 = counts.iter().sum();
    let max = counts.iter().max().copied().unwrap_or(0);
    if sum == 0 { 1.0 } else { max as f64 * counts.len() as f64 / sum as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(frames: u64) -> Count {
        Count { frames, ..Count::default() }
    }

    #[test]
    fn a_difference_is_taken_by_core_and_vm_and_other_traffic_is_no_vms() {
        let before = Counts::by_vm(vec![vec![frames(7), frames(9)], vec![frames(1), frames(2)]]);
        let after = Counts::by_vm(vec![vec![frames(8), frames(9)], vec![frames(5), frames(2)]]);
        let between = after.since(&before);
        assert_eq!(between.frames_of(1, 2), [4, 0]);
        assert_eq!(between.frames(2), [4, 0]);
        assert_eq!(between.of(3, 1), Count::default(), "a core that does not exist did nothing");
    }

    #[test]
    fn evenness_is_largest_over_mean() {
        assert_eq!(max_over_mean(&[10, 10]), 1.0);
        assert_eq!(max_over_mean(&[0, 30, 0]), 3.0);
        assert_eq!(max_over_mean(&[0, 0]), 1.0);
    }
}
