//! Who of those who call an address stays when more call than there are places?
//!
//! A newcomer is let in while there is a place. When there is none, the host that has the most gives one up: first a connection that has not
//! said hello, then one that behaves as no controller, the oldest of them; at last the newest controller. The master never goes. So a flood of
//! callers costs its own host places, and the controller that calls among them has its turn to claim its role.
//!
//! Places are files, too. All addresses of a node share a [`Lot`] of them, so that files are left for ports, API and store.

use crate::agent::peer::Peer;
use crate::bounds::BoundsSpec;
use crate::switch::Listener;
use openflow::Role;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

/// Connections that each address can have where few files may be open.
const FEWEST: usize = 8;
/// One address may take this part of the node's files, and all connections together half of them.
const PART_OF_ONE: usize = 16;

/// The connections that all switches of a node may have together.
#[derive(Clone)]
pub struct Lot {
    places: Arc<Semaphore>,
    of_one: usize,
}

impl Lot {
    /// For a process that may open so many files. One address has `most` places at most, also where files are many.
    pub fn of_files(files: u64, most: usize) -> Self {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let all = (files / 2).min(Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(all)),
            of_one: (files / PART_OF_ONE).min(most).max(FEWEST),
        }
    }

    /// A place for a connection that the node makes itself, if there is one.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }
}

impl Default for Lot {
    /// As if files had no end.
    fn default() -> Self {
        Self::of_files(u64::MAX, BoundsSpec::default().connections)
    }
}

/// Where somebody calls from: a host of IPv4, a /64 of IPv6, which one host can have, or this host by a socket's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin(Option<IpAddr>);

impl Origin {
    /// By a socket's file.
    pub const HERE: Self = Self(None);
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("management socket"),
            Some(address @ IpAddr::V4(_)) => write!(f, "{address}"),
            Some(network) => write!(f, "{network}/64"),
        }
    }
}

impl From<SocketAddr> for Origin {
    fn from(from: SocketAddr) -> Self {
        Self(Some(match from.ip().to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                IpAddr::V6(network.into())
            }
            address => address,
        }))
    }
}

/// How far a caller has come, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Standing {
    Greeting,
    Visitor,
    Controller,
    Master,
}

/// Where a session leaves its peer once it has one.
pub type Met = Arc<OnceLock<Arc<Peer>>>;

fn standing(met: &Met) -> Standing {
    match met.get() {
        None => Standing::Greeting,
        Some(peer) if peer.role() == Role::Master => Standing::Master,
        Some(peer) if peer.is_controller() => Standing::Controller,
        Some(_) => Standing::Visitor,
    }
}

/// Who gives up his place for a newcomer, of these in the order in which they came; none if the newcomer goes.
fn who_goes(taken: &[(Origin, Standing)], newcomer: Origin) -> Option<usize> {
    let places = |origin| {
        let own = taken.iter().filter(|(other, _)| *other == origin).count();
        own + usize::from(origin == newcomer)
    };
    let most = taken.iter().map(|&(origin, _)| places(origin)).max()?;
    let greedy = taken.iter().enumerate().filter(|(_, taken)| places(taken.0) == most);
    let candidates = greedy.filter(|(_, (_, standing))| *standing != Standing::Master);
    let first = |(index, (_, standing)): &(usize, &(Origin, Standing))| {
        let by_age = if *standing == Standing::Controller { usize::MAX - index } else { *index };
        (*standing, by_age)
    };
    candidates.min_by_key(first).map(|(index, _)| index)
}

/// The places of one address.
pub struct Places {
    lot: Lot,
    taken: Vec<Taken>,
    sessions: JoinSet<()>,
}

struct Taken {
    from: Origin,
    met: Met,
    session: AbortHandle,
    place: OwnedSemaphorePermit,
}

/// A place for one connection.
pub struct Place(OwnedSemaphorePermit);

/// What became of a newcomer.
pub enum Answer {
    /// There is a place.
    Free(Place),
    /// Another, from there, gave his up.
    GivenUp(Place, Origin),
    /// There is none.
    Full,
}

impl Places {
    /// All free.
    pub fn new(lot: Lot) -> Self {
        Self { lot, taken: Vec::new(), sessions: JoinSet::new() }
    }

    /// How many there are, at most.
    pub fn most(&self) -> usize {
        self.lot.of_one
    }

    /// Finds a place for a newcomer.
    pub fn find(&mut self, newcomer: Origin) -> Answer {
        if self.taken.len() < self.lot.of_one
            && let Some(place) = self.lot.take()
        {
            return Answer::Free(Place(place));
        }
        let taken: Vec<_> =
            self.taken.iter().map(|taken| (taken.from, standing(&taken.met))).collect();
        let Some(index) = who_goes(&taken, newcomer) else { return Answer::Full };
        let gone = self.taken.remove(index);
        gone.session.abort();
        Answer::GivenUp(Place(gone.place), gone.from)
    }

    /// Lets a session begin in its place.
    pub fn begin(
        &mut self,
        place: Place,
        from: Origin,
        met: Met,
        session: impl Future<Output = ()> + Send + 'static,
    ) {
        let session = self.sessions.spawn(session);
        self.taken.push(Taken { from, met, session, place: place.0 });
    }

    /// Waits until a session ends, for ever if there is none, and frees its place.
    pub async fn wait_for_end(&mut self) {
        match self.sessions.join_next_with_id().await {
            None => std::future::pending().await,
            Some(ended) => {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                self.taken.retain(|taken| taken.session.id() != id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Standing::{Controller, Greeting, Master, Visitor};
    use super::*;

    fn host(number: u8) -> Origin {
        Origin::from(SocketAddr::from(([192, 0, 2, number], 1000)))
    }

    fn alike(of: u8, standing: Standing, count: usize) -> Vec<(Origin, Standing)> {
        vec![(host(of), standing); count]
    }

    #[test]
    fn the_greedy_host_gives_up_its_least_and_oldest_connection() {
        let flood = [alike(2, Visitor, 1), alike(1, Visitor, 3), alike(1, Greeting, 2)].concat();
        assert_eq!(who_goes(&flood, host(3)), Some(4), "the first that has not said hello");
        let flood = [alike(2, Visitor, 1), alike(1, Visitor, 3)].concat();
        assert_eq!(who_goes(&flood, host(2)), Some(1), "the oldest of the greedy");
        assert_eq!(who_goes(&flood, host(1)), Some(1), "also for one of its own");
    }

    #[test]
    fn among_controllers_the_newest_goes_and_the_master_never() {
        let flood = [alike(1, Controller, 3), alike(1, Master, 1)].concat();
        assert_eq!(who_goes(&flood, host(1)), Some(2));
        assert_eq!(who_goes(&alike(1, Master, 1), host(1)), None);
        assert_eq!(who_goes(&[], host(1)), None);
    }

    #[test]
    fn of_hosts_that_have_as_much_nobody_is_spared_by_his_address() {
        let taken = [alike(1, Visitor, 1), alike(2, Greeting, 1), alike(3, Visitor, 1)].concat();
        assert_eq!(who_goes(&taken, host(4)), Some(1));
    }

    #[test]
    fn one_network_of_ipv6_is_one_host_and_mapped_addresses_are_ipv4() {
        let origin = |text: &str| Origin::from(text.parse::<SocketAddr>().unwrap());
        assert_eq!(origin("[2001:db8::1]:5"), origin("[2001:db8::ffff:2]:6"));
        assert_ne!(origin("[2001:db8::1]:5"), origin("[2001:db8:0:1::1]:5"));
        assert_eq!(origin("[::ffff:192.0.2.1]:5"), host(1));
        assert_ne!(host(1), host(2));
    }

    #[tokio::test]
    async fn a_place_comes_back_with_the_end_of_its_session() {
        let lot = Lot::of_files(16, 256);
        let mut places = Places::new(lot.clone());
        for _ in 0..8 {
            let Answer::Free(place) = places.find(host(1)) else { panic!("all were free") };
            places.begin(place, host(1), Met::default(), std::future::pending());
        }
        assert!(lot.take().is_none(), "half of 16 files");
        let Answer::GivenUp(place, _) = places.find(host(2)) else { panic!("one goes") };
        places.begin(place, host(2), Met::default(), async {});
        // One was sent away, and one is done.
        places.wait_for_end().await;
        places.wait_for_end().await;
        assert_eq!(places.taken.len(), 7);
        assert!(lot.take().is_some());
    }
}
