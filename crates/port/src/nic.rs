//! Who a network card is: its number, its driver, its abilities.

use crate::abilities::{Abilities, abilities};
use crate::error::OpenError;
use crate::ethtool::Ethtool;
use crate::sys::ioctl::Name;

/// What an interface tells of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NicFacts {
    /// Its number in the kernel; 0 if that was not to be had.
    pub index: u32,
    /// Its driver; empty when it does not tell.
    pub driver: String,
    /// What it can do.
    pub abilities: Abilities,
}

impl NicFacts {
    /// Asks the interface of that name, in the calling thread's namespace.
    ///
    /// # Errors
    /// As [`abilities`].
    pub fn of(name: &str) -> Result<Self, OpenError> {
        let abilities = abilities(name)?;
        let card = Name::new(name).and_then(|name| Ethtool::new(name).ok());
        Ok(Self {
            index: card.as_ref().and_then(|card| card.index(name).ok()).unwrap_or_default(),
            driver: card.and_then(|card| card.driver()).unwrap_or_default(),
            abilities,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_the_first() {
        let facts = NicFacts::of("lo").unwrap();
        assert_eq!((facts.index, facts.abilities.rx_queues), (1, 1));
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert!(NicFacts::of("none-of-this").is_err());
        assert!(NicFacts::of("a/b").is_err());
    }
}
