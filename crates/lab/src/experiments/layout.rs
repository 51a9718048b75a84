//! Who runs on which core.
//!
//! The papers have two hosts; here both are on one. With five cores or more, the receiving host is cores 0 to 3 as in the paper, and the senders have a
//! core of their own. With two, the senders share core 1 with the host: the rates are chosen so low that they hardly count
//! ([`crate::experiments::scale`]).

use anyhow::{Result, ensure};

/// Cores of the papers' receiving host.
const HOST_CORES: usize = 4;

/// The plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Cores of the receiving host, from 0.
    pub host: usize,
    /// The core that is interrupted; the paper's is its last.
    pub rx: usize,
    /// The core that sends.
    pub sender: usize,
    /// The core of all else: commands, the node's own threads. Without one they run anywhere, and are load where they run.
    pub rest: Option<usize>,
}

impl Layout {
    /// For a machine of so many cores.
    ///
    /// # Errors
    /// There is only one.
    pub fn of(cores: usize) -> Result<Self> {
        ensure!(
            cores >= 2,
            "this machine has one core; the experiments need two (or --guest, which emulates six)"
        );
        if cores == 2 {
            return Ok(Self { host: 2, rx: 0, sender: 1, rest: None });
        }
        let host = (cores - 1).min(HOST_CORES);
        let rest = (cores > host + 1).then_some(host + 1);
        Ok(Self { host, rx: host - 1, sender: host, rest })
    }

    /// Cores of the host that are not interrupted.
    pub fn others(&self) -> Vec<usize> {
        (0..self.host).filter(|&core| core != self.rx).collect()
    }

    /// A core for each of `vms` VMs such that the interrupted core stays free; they share cores if there are too few.
    pub fn pinned(&self, vms: usize) -> Vec<usize> {
        self.others().into_iter().cycle().take(vms).collect()
    }

    /// Whether each of `vms` VMs can have a core of its own and another one is left besides the interrupted one.
    pub fn is_roomy(&self, vms: usize) -> bool {
        self.host >= vms + 2
    }

    /// Bit mask of the host's cores, as `rps_cpus` takes it.
    pub fn mask(&self) -> u64 {
        (1 << self.host) - 1
    }

    /// In words, for a report.
    pub fn describe(&self) -> String {
        let shared = if self.sender < self.host { " (shared with the host)" } else { "" };
        let rest = self.rest.map_or(String::new(), |core| format!("; all else: core {core}"));
        format!(
            "receiving host: cores 0..={}, interrupted core {}; senders: core {}{shared}{rest}",
            self.host - 1,
            self.rx,
            self.sender
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_six_cores_the_host_is_the_papers_and_senders_are_apart() {
        let layout = Layout::of(6).unwrap();
        assert_eq!((layout.host, layout.rx, layout.sender, layout.mask()), (4, 3, 4, 0xf));
        assert_eq!(layout.pinned(3), [0, 1, 2]);
        assert!(layout.is_roomy(2) && !layout.is_roomy(3));
        assert_eq!((layout.rest, Layout::of(5).unwrap().rest), (Some(5), None));
    }

    #[test]
    fn with_two_cores_all_vms_share_the_one_that_is_not_interrupted() {
        let layout = Layout::of(2).unwrap();
        assert_eq!((layout.host, layout.rx, layout.sender), (2, 0, 1));
        assert_eq!(layout.pinned(3), [1, 1, 1]);
        assert!(!layout.is_roomy(1) && Layout::of(1).is_err());
    }
}
