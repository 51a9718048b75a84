//! Small numbers for the addresses of tunnels' ends, so that a flow key has room for two of them.
//!
//! One table for a node: who adds a rule gives an end its number, ports and dumps look it up. A sender that no rule names has none and is
//! [`Ends::NONE`] to rules; so nobody fills the table but who may add rules.
//!
//! An end keeps its number as long as the node runs: the table is bounded by [`Ends::MOST`] different addresses named in that time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The table. Readers hold its lock for one look.
#[derive(Default, Debug)]
pub struct Ends {
    table: RwLock<Table>,
    /// Ends that have numbers: who found that one has none need not look again until this changes.
    count: AtomicU32,
}

#[derive(Default, Debug)]
struct Table {
    numbers: HashMap<IpAddr, u16>,
    /// The address of number 1, of number 2, and so on.
    addresses: Vec<IpAddr>,
}

/// There are as many ends as there are numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} different ends of tunnels were named, which is the most", Ends::MOST)]
pub struct NoNumber;

impl Ends {
    /// The number of no end, and of one that has no number.
    pub const NONE: u16 = 0;
    /// A number that no end ever has.
    pub const NOBODY: u16 = u16::MAX;
    /// Most ends.
    pub const MOST: usize = Self::NOBODY as usize - 1;

    /// Its number, from now on if it had none.
    ///
    /// # Errors
    /// There is none left.
    pub fn name(&self, end: IpAddr) -> Result<u16, NoNumber> {
        if let Some(number) = self.number(end) {
            return Ok(number);
        }
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let Table { numbers, addresses } = &mut *table;
        let next = u16::try_from(addresses.len() + 1).ok().filter(|next| *next < Self::NOBODY);
        // Another thread may have been first.
        let number = match numbers.get(&end) {
            Some(&number) => return Ok(number),
            None => next.ok_or(NoNumber)?,
        };
        numbers.insert(end, number);
        addresses.push(end);
        self.count.store(number.into(), Ordering::Release);
        Ok(number)
    }

    /// Its number, if it has one.
    pub fn number(&self, end: IpAddr) -> Option<u16> {
        self.read().numbers.get(&end).copied()
    }

    /// Whose number it is.
    pub fn address(&self, number: u16) -> Option<IpAddr> {
        let at = usize::from(number).checked_sub(1)?;
        self.read().addresses.get(at).copied()
    }

    /// Ends that have numbers; it only grows.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn end() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            (0u32..20).prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
            (0u32..20).prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().into()),
        ]
    }

    proptest! {
        #[test]
        fn an_end_keeps_its_number_and_no_other_has_it(named in prop::collection::vec(end(), 0..100)) {
            let (ends, mut oracle) = (Ends::default(), Vec::new());
            for end in named {
                let known = oracle.iter().position(|other| *other == end);
                prop_assert_eq!(ends.number(end), known.map(|at| at as u16 + 1));
                if known.is_none() {
                    oracle.push(end);
                }
                let number = known.unwrap_or(oracle.len() - 1) as u16 + 1;
                prop_assert_eq!(ends.name(end), Ok(number));
                prop_assert_eq!(ends.address(number), Some(end));
                prop_assert_eq!(ends.count() as usize, oracle.len());
            }
            prop_assert_eq!(ends.address(Ends::NONE), None);
            prop_assert_eq!(ends.address(oracle.len() as u16 + 1), None);
        }
    }

    #[test]
    fn a_full_table_refuses_a_new_end_and_keeps_the_others() {
        let ends = Ends::default();
        let end = |at: usize| IpAddr::from(Ipv4Addr::from_bits(at as u32));
        assert!((1..=Ends::MOST).all(|at| ends.name(end(at)) == Ok(at as u16)));
        assert_eq!(ends.name(end(0)), Err(NoNumber));
        assert_eq!(ends.name(end(7)), Ok(7));
        assert_eq!((ends.number(end(0)), ends.address(Ends::NOBODY)), (None, None));
    }
}
