//! Small numbers for the addresses of tunnels' ends, so that a flow key has room for two of them.
//!
//! One table for a node: who adds a rule gives an end its number, ports and dumps look it up. A sender that no rule names has none and is
//! [`Ends::NONE`] to rules; so nobody fills the table but who may add rules.
//!
//! Each switch has a [`Share`] of the table, which holds the numbers that its rules and groups name. What no share holds is free, and is
//! given to another end only when no fresh number is left, the longest free first. Until then it still tells its address, which
//! frames under way and news of a rule that went ask for.
//!
//! **Bounds.** A switch takes a new number only while it holds fewer than are left. So one switch takes half of the table at most, two a third
//! each, and there is always room for another.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// The table. Readers hold its lock for one look.
#[derive(Default, Debug)]
pub struct Ends {
    table: RwLock<Table>,
    /// How often an end was given a number: who looked for one need not look again until this changes.
    given: AtomicU32,
    /// How often that was another end's before.
    reused: AtomicU32,
}

#[derive(Default, Debug)]
struct Table {
    numbers: HashMap<IpAddr, u16>,
    /// What number 1 stands for, number 2, and so on.
    places: Vec<Place>,
    /// Numbers that nobody holds, and their [`Place::freed`]; those that were held again since are still among them.
    free: VecDeque<(u16, u32)>,
    /// Numbers that somebody holds.
    held: usize,
}

#[derive(Debug)]
struct Place {
    address: IpAddr,
    /// Shares that hold it.
    holders: u32,
    /// How often it became free.
    freed: u32,
}

/// There is no number for another end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no number is left for another end of a tunnel: a switch names as many as are left for others"
)]
pub struct NoNumber;

impl Ends {
    /// The number of no end, and of one that has no number.
    pub const NONE: u16 = 0;
    /// A number that no end ever has.
    pub const NOBODY: u16 = u16::MAX;
    /// Most ends.
    pub const MOST: usize = Self::NOBODY as usize - 1;

    /// Its number, if it has one.
    pub fn number(&self, end: IpAddr) -> Option<u16> {
        self.read().numbers.get(&end).copied()
    }

    /// Whose number it is, or was last.
    pub fn address(&self, number: u16) -> Option<IpAddr> {
        let at = usize::from(number).checked_sub(1)?;
        self.read().places.get(at).map(|place| place.address)
    }

    /// How often an end was given a number: what [`Ends::number`] says holds until this changes.
    pub fn given(&self) -> u32 {
        self.given.load(Ordering::Acquire)
    }

    /// How often an end was given a number that was another's: what [`Ends::address`] says of a number holds until this changes.
    pub fn reused(&self) -> u32 {
        self.reused.load(Ordering::Acquire)
    }

    /// Numbers that rules hold.
    pub fn held(&self) -> usize {
        self.read().held
    }

    /// Holds the number of this end once more, if `may_take` says of the numbers left that a new one may be taken.
    fn hold(&self, end: IpAddr, may_take: impl FnOnce(usize) -> bool) -> Result<u16, NoNumber> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let known = table.numbers.get(&end).copied();
        let is_held = known.is_some_and(|number| table.place(number).holders > 0);
        if !is_held && !may_take(Self::MOST - table.held) {
            return Err(NoNumber);
        }
        let number = match known {
            Some(number) => number,
            None => {
                let (number, is_reused) = table.give(end).ok_or(NoNumber)?;
                self.given.fetch_add(1, Ordering::Release);
                self.reused.fetch_add(is_reused.into(), Ordering::Release);
                number
            }
        };
        table.hold(number);
        Ok(number)
    }

    fn release(&self, numbers: impl IntoIterator<Item = u16>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        numbers.into_iter().for_each(|number| table.release(number));
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn place(&mut self, number: u16) -> &mut Place {
        &mut self.places[usize::from(number) - 1]
    }

    /// A fresh number for this end, or the one that has been free for longest; whether it was another's.
    fn give(&mut self, end: IpAddr) -> Option<(u16, bool)> {
        let known = self.places.len();
        let given = match known < Ends::MOST {
            true => {
                self.places.push(Place { address: end, holders: 0, freed: 0 });
                (known as u16 + 1, false)
            }
            false => {
                let number = self.longest_free()?;
                let before = std::mem::replace(&mut self.place(number).address, end);
                self.numbers.remove(&before);
                (number, true)
            }
        };
        self.numbers.insert(end, given.0);
        Some(given)
    }

    fn longest_free(&mut self) -> Option<u16> {
        while let Some((number, freed)) = self.free.pop_front() {
            if self.is_free(number, freed) {
                return Some(number);
            }
        }
        None
    }

    /// Whether it has been free since it became so for the `freed`th time.
    fn is_free(&self, number: u16, freed: u32) -> bool {
        let place = &self.places[usize::from(number) - 1];
        place.holders == 0 && place.freed == freed
    }

    fn hold(&mut self, number: u16) {
        let place = self.place(number);
        place.holders += 1;
        self.held += usize::from(place.holders == 1);
    }

    fn release(&mut self, number: u16) {
        let place = self.place(number);
        place.holders -= 1;
        if place.holders > 0 {
            return;
        }
        place.freed = place.freed.wrapping_add(1);
        let freed = place.freed;
        self.held -= 1;
        self.free.push_back((number, freed));
        if self.free.len() > 2 * Ends::MOST {
            let mut free = std::mem::take(&mut self.free);
            free.retain(|&(number, freed)| self.is_free(number, freed));
            self.free = free;
        }
    }
}

/// The numbers that one switch holds; with it they become free.
#[derive(Debug)]
pub struct Share {
    ends: Arc<Ends>,
    held: Mutex<HashSet<u16>>,
    is_bounded: bool,
}

impl Share {
    /// A share that holds nothing yet.
    pub fn new(ends: Arc<Ends>) -> Self {
        Self { ends, held: Mutex::default(), is_bounded: true }
    }

    /// One that takes what there is, for what was admitted before.
    pub fn unbounded(ends: Arc<Ends>) -> Self {
        Self { ends, held: Mutex::default(), is_bounded: false }
    }

    /// The number of this end, held from now on.
    ///
    /// # Errors
    /// As many are held as are left, or all.
    pub fn name(&self, end: IpAddr) -> Result<u16, NoNumber> {
        let mut held = self.held();
        if let Some(number) = self.ends.number(end).filter(|number| held.contains(number)) {
            return Ok(number);
        }
        let may_take = |left| left > if self.is_bounded { held.len() } else { 0 };
        let number = self.ends.hold(end, may_take)?;
        held.insert(number);
        Ok(number)
    }

    /// Holds a number that another share holds, too.
    pub fn adopt(&self, number: u16) {
        if self.ends.address(number).is_some() && self.held().insert(number) {
            self.ends.table.write().unwrap_or_else(PoisonError::into_inner).hold(number);
        }
    }

    /// Lets go of all numbers but these.
    pub fn keep(&self, used: &HashSet<u16>) {
        let mut held = self.held();
        self.ends.release(held.extract_if(|number| !used.contains(number)));
    }

    fn held(&self) -> MutexGuard<'_, HashSet<u16>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Share {
    type Target = Ends;

    fn deref(&self) -> &Ends {
        &self.ends
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.ends.release(self.held().drain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn end(at: usize) -> IpAddr {
        Ipv4Addr::from_bits(at as u32).into()
    }

    fn an_end() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            (0u32..20).prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
            (0u32..20).prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().into()),
        ]
    }

    proptest! {
        #[test]
        fn an_end_keeps_its_number_and_no_other_has_it(named in prop::collection::vec(an_end(), 0..100)) {
            let ends = Arc::new(Ends::default());
            let (share, mut oracle) = (Share::new(ends.clone()), Vec::new());
            for end in named {
                let known = oracle.iter().position(|other| *other == end);
                prop_assert_eq!(ends.number(end), known.map(|at| at as u16 + 1));
                if known.is_none() {
                    oracle.push(end);
                }
                let number = known.unwrap_or(oracle.len() - 1) as u16 + 1;
                prop_assert_eq!(share.name(end), Ok(number));
                prop_assert_eq!(ends.address(number), Some(end));
                prop_assert_eq!((ends.held(), ends.given() as usize), (oracle.len(), oracle.len()));
            }
            prop_assert_eq!(ends.address(Ends::NONE), None);
            prop_assert_eq!(ends.address(oracle.len() as u16 + 1), None);
        }
    }

    #[test]
    fn one_switch_takes_half_of_the_table_and_leaves_room_for_others() {
        let ends = Arc::new(Ends::default());
        let [greedy, other] = [(); 2].map(|()| Share::new(ends.clone()));
        let taken = (0..).take_while(|&at| greedy.name(end(at)).is_ok()).count();
        assert_eq!(taken, Ends::MOST / 2);
        assert_eq!(greedy.name(end(taken)), Err(NoNumber));
        assert_eq!(greedy.name(end(7)), Ok(8));
        let last = end(usize::MAX);
        assert!(other.name(last).is_ok());
        assert_eq!(greedy.name(last), other.name(last), "it takes no new one");
    }

    #[test]
    fn what_nobody_holds_is_free_and_tells_its_address_until_another_end_has_it() {
        let ends = Arc::new(Ends::default());
        let [one, other] = [(); 2].map(|()| Share::new(ends.clone()));
        assert_eq!((one.name(end(1)), one.name(end(2)), other.name(end(2))), (Ok(1), Ok(2), Ok(2)));
        one.keep(&HashSet::new());
        assert_eq!((ends.held(), ends.address(1)), (1, Some(end(1))));
        drop(other);
        assert_eq!((ends.held(), ends.number(end(2))), (0, Some(2)));
        // The rest, which was never used, comes first.
        let all = Share::unbounded(ends.clone());
        let fresh = 3..=Ends::MOST;
        assert!(fresh.clone().all(|at| all.name(end(at)) == Ok(at as u16)));
        let given = ends.given();
        assert_eq!(ends.reused(), 0);
        assert_eq!(all.name(end(0)), Ok(1), "the longest free");
        assert_eq!((ends.number(end(1)), ends.address(1)), (None, Some(end(0))));
        assert_eq!((ends.given(), ends.reused()), (given + 1, 1));
        assert_eq!((all.name(end(2)), all.name(end(1))), (Ok(2), Err(NoNumber)));
    }

    #[test]
    fn an_end_that_comes_and_goes_takes_no_memory() {
        let ends = Arc::new(Ends::default());
        for _ in 0..5 * Ends::MOST {
            Share::new(ends.clone()).name(end(1)).unwrap();
        }
        assert!(ends.read().free.len() <= 2 * Ends::MOST);
        assert_eq!((ends.held(), ends.given()), (0, 1));
    }

    #[test]
    fn a_share_adopts_what_another_one_named() {
        let ends = Arc::new(Ends::default());
        let [kept, switch] = [(); 2].map(|()| Share::new(ends.clone()));
        let number = kept.name(end(1)).unwrap();
        switch.adopt(number);
        switch.adopt(Ends::NONE);
        switch.adopt(Ends::NOBODY);
        drop(kept);
        assert_eq!(ends.held(), 1);
    }
}
