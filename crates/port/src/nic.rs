//! What a network card can do for the spreading of what it receives, for those who choose where that is processed.

use crate::ethtool::Ethtool;
use crate::sys::ioctl::Name;
use std::io;

/// What an interface tells of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NicFacts {
    /// Its number in the kernel.
    pub index: u32,
    /// Its driver; empty when it does not tell.
    pub driver: String,
    /// Queues that it receives by.
    pub rx_queues: u32,
    /// It hashes frames to queues by a table that can be chosen (RSS).
    pub has_rss_table: bool,
    /// It takes rules for single flows (ntuple, Flow Director).
    pub takes_rules: bool,
    /// The kernel spreads its frames by their hash (RPS).
    pub has_rps: bool,
}

impl NicFacts {
    /// Asks the interface of that name, in the calling thread's namespace.
    ///
    /// # Errors
    /// There is none.
    pub fn of(name: &str) -> io::Result<Self> {
        let kernel_name = Name::new(name).ok_or(io::ErrorKind::InvalidInput)?;
        let card = Ethtool::new(kernel_name)?;
        Ok(Self {
            index: card.index(name)?,
            driver: card.driver().unwrap_or_default(),
            rx_queues: card.rx_queues(),
            has_rss_table: card.has_rss_table(),
            takes_rules: card.takes_rules(),
            has_rps: has_rps(name),
        })
    }
}

/// Whether any of its queues has a core to spread to; a host without `/sys` has none.
fn has_rps(name: &str) -> bool {
    let queues = std::fs::read_dir(format!("/sys/class/net/{name}/queues"));
    let mut masks = queues
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|queue| std::fs::read_to_string(queue.path().join("rps_cpus")).ok());
    masks.any(|mask| mask.chars().any(|c| c.is_ascii_hexdigit() && c != '0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_one_queue_and_no_abilities() {
        let facts = NicFacts::of("lo").unwrap();
        assert_eq!((facts.index, facts.rx_queues), (1, 1));
        assert!(!facts.has_rss_table && !facts.takes_rules);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert!(NicFacts::of("none-of-this").is_err());
        assert!(NicFacts::of("a/b").is_err());
    }
}
