//! How often something may be tried: buckets that empty with each try and fill with time.
//!
//! A sign-in takes from three buckets before its password is looked at: that of its name from its network, that of its network, that of its name.
//! The first is small, so nobody guesses; the others are large, so nobody keeps a class behind one address, or a name, out for long.

use crate::crowd::network;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Buckets that are kept. Those that are full again are forgotten first. Chosen: 1 MB.
const BUCKETS_MAX: usize = 10_000;

/// What is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    /// A name from a network.
    NameFrom(String, IpAddr),
    /// A network.
    From(IpAddr),
    /// A name.
    Name(String),
    /// Lines of the audit about failures of a name.
    Line(String),
}

impl Key {
    /// How many tries it has, and the seconds until one more.
    fn measure(&self) -> (u64, u64) {
        match self {
            Self::NameFrom(..) => (10, 30),
            Self::From(_) => (60, 2),
            Self::Name(_) => (100, 6),
            Self::Line(_) => (1, 3600),
        }
    }
}

/// All buckets: until when each would take to be full again, in seconds since 1970.
#[derive(Default)]
pub struct Attempts(BTreeMap<Key, u64>);

/// So many seconds are to be waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait(pub u64);

impl Attempts {
    /// One try more to sign in.
    ///
    /// # Errors
    /// There were too many; none is counted.
    pub fn sign_in(&mut self, name: &str, from: IpAddr, now_s: u64) -> Result<(), Wait> {
        let from = network(from);
        let keys = [Key::NameFrom(name.into(), from), Key::From(from), Key::Name(name.into())];
        let longest = keys.iter().filter_map(|key| self.wait(key, now_s)).max();
        if let Some(wait) = longest {
            return Err(Wait(wait));
        }
        self.make_room(now_s)?;
        keys.into_iter().for_each(|key| self.take(key, now_s));
        Ok(())
    }

    /// The try was a good one: it does not count.
    pub fn good(&mut self, name: &str, from: IpAddr) {
        let from = network(from);
        for key in [Key::NameFrom(name.into(), from), Key::From(from), Key::Name(name.into())] {
            let each = key.measure().1;
            self.0.entry(key).and_modify(|full| *full = full.saturating_sub(each));
        }
    }

    /// Whether a failure of that name is worth a line that is kept: one an hour is.
    pub fn is_line(&mut self, name: &str, now_s: u64) -> bool {
        let key = Key::Line(name.into());
        let is_one = self.wait(&key, now_s).is_none() && self.make_room(now_s).is_ok();
        if is_one {
            self.take(key, now_s);
        }
        is_one
    }

    /// Seconds until that bucket has one.
    fn wait(&self, key: &Key, now_s: u64) -> Option<u64> {
        let (most, each) = key.measure();
        let full = self.0.get(key).copied().unwrap_or(0);
        // With one more taken it may lack all that it holds, and no more.
        (full.max(now_s) + each).checked_sub(now_s + most * each).filter(|wait| *wait > 0)
    }

    fn take(&mut self, key: Key, now_s: u64) {
        let each = key.measure().1;
        let full = self.0.entry(key).or_default();
        *full = (*full).max(now_s) + each;
    }

    fn make_room(&mut self, now_s: u64) -> Result<(), Wait> {
        if self.0.len() + 3 > BUCKETS_MAX {
            self.0.retain(|_, full| *full > now_s);
        }
        if self.0.len() + 3 > BUCKETS_MAX { Err(Wait(30)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_from_one_network_has_ten_tries_and_one_more_each_half_minute() {
        let mut attempts = Attempts::default();
        let mut tries = |name: &str, from: &str, now| attempts.sign_in(name, at(from), now);
        assert!((0..10).all(|_| tries("alice", "192.0.2.1", 1000).is_ok()));
        assert_eq!(tries("alice", "192.0.2.1", 1000), Err(Wait(30)));
        assert_eq!(tries("alice", "192.0.2.1", 1029), Err(Wait(1)));
        assert_eq!(tries("alice", "192.0.2.1", 1030), Ok(()));
        assert_eq!(tries("alice", "192.0.2.1", 1030), Err(Wait(30)));
        assert_eq!(tries("bob", "192.0.2.1", 1030), Ok(()), "another name");
        assert_eq!(tries("alice", "192.0.2.2", 1030), Ok(()), "another network");
    }

    #[test]
    fn a_network_has_sixty_whatever_the_names_and_a_name_a_hundred_whatever_the_networks() {
        let mut attempts = Attempts::default();
        let of_net = (0..100).filter(|n| {
            attempts.sign_in(&format!("u{n}"), at(&format!("2001:db8::{n}")), 1).is_ok()
        });
        assert_eq!(of_net.count(), 60);
        let of_name =
            (0..200).filter(|n| attempts.sign_in("alice", at(&format!("10.0.0.{n}")), 1).is_ok());
        assert_eq!(of_name.count(), 100);
    }

    #[test]
    fn who_signs_in_well_loses_no_try_and_failures_have_a_line_an_hour() {
        let mut attempts = Attempts::default();
        for _ in 0..1000 {
            attempts.sign_in("alice", at("192.0.2.1"), 1).unwrap();
            attempts.good("alice", at("192.0.2.1"));
        }
        let lines = (0..7200).filter(|now| attempts.is_line("alice", 10_000 + now));
        assert_eq!(lines.count(), 2);
    }

    #[test]
    fn strangers_take_bounded_memory_and_what_is_full_again_is_forgotten() {
        let mut attempts = Attempts::default();
        let from = |n: u32| IpAddr::from(n.to_be_bytes());
        let taken = (0..20_000).filter(|n| attempts.sign_in(&n.to_string(), from(*n), 1).is_ok());
        assert!(taken.count() < 4_000 && attempts.0.len() <= BUCKETS_MAX);
        assert!(attempts.sign_in("alice", at("192.0.2.1"), 1000).is_ok());
        assert_eq!(attempts.0.len(), 3);
    }
}
