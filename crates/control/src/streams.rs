//! Connections that nodes open because the controller has a question: what is asked for and not there yet, and how many each tenant has.
//!
//! Nodes are never called. The answer to a node's report names the streams that it shall open; by such a one the controller asks, as a client of HTTP.

use domain::Name;
use hyper::upgrade::Upgraded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Streams that a tenant has at a time. Chosen: a class of students at their consoles.
pub const OF_A_TENANT: usize = 64;

/// All of them.
#[derive(Default)]
pub struct Streams(Mutex<Books>);

#[derive(Default)]
struct Books {
    last: u64,
    awaited: BTreeMap<u64, Awaited>,
    tenants: BTreeMap<String, Arc<Semaphore>>,
}

struct Awaited {
    node: Name,
    opened: oneshot::Sender<Upgraded>,
}

/// A stream that a node is to open. Nobody waits for it any more when this is dropped.
pub struct Stream<'a> {
    number: u64,
    streams: &'a Streams,
    /// The node's end, when it is there.
    pub opened: oneshot::Receiver<Upgraded>,
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.streams.books().awaited.remove(&self.number);
    }
}

impl Streams {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more of a tenant's, as long as the permit is held.
    pub fn room(&self, tenant: &str) -> Option<OwnedSemaphorePermit> {
        let mut books = self.books();
        let all = || Arc::new(Semaphore::new(OF_A_TENANT));
        let room = books.tenants.entry(tenant.into()).or_insert_with(all).clone();
        room.try_acquire_owned().ok()
    }

    /// Asks a node for a stream.
    pub fn ask(&self, node: &Name) -> Stream<'_> {
        let (sender, opened) = oneshot::channel();
        let mut books = self.books();
        books.last += 1;
        let number = books.last;
        books.awaited.insert(number, Awaited { node: node.clone(), opened: sender });
        Stream { number, streams: self, opened }
    }

    /// What a node is to open.
    pub fn wanted(&self, node: &Name) -> BTreeSet<u64> {
        let books = self.books();
        let its = books.awaited.iter().filter(|(_, awaited)| awaited.node == *node);
        its.map(|(number, _)| *number).collect()
    }

    /// Who waits for that stream of a node, once.
    pub fn take(&self, node: &Name, number: u64) -> Option<oneshot::Sender<Upgraded>> {
        let mut books = self.books();
        books.awaited.get(&number).filter(|awaited| awaited.node == *node)?;
        books.awaited.remove(&number).map(|awaited| awaited.opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_opened_once_by_its_node_and_not_when_nobody_waits_any_more() {
        let streams = Streams::default();
        let [t1, t2]: [Name; 2] = ["t1", "t2"].map(|name| name.parse().unwrap());
        let (one, two) = (streams.ask(&t1), streams.ask(&t1));
        assert_eq!(streams.wanted(&t1), BTreeSet::from([1, 2]));
        assert!(streams.wanted(&t2).is_empty() && streams.take(&t2, 1).is_none());
        assert!(streams.take(&t1, 1).is_some() && streams.take(&t1, 1).is_none());
        drop(two);
        assert!(streams.wanted(&t1).is_empty() && streams.take(&t1, 2).is_none());
        drop(one);
    }

    #[test]
    fn a_tenant_has_so_many_at_a_time_and_takes_no_room_of_another() {
        let streams = Streams::default();
        let mut held: Vec<_> = (0..OF_A_TENANT).map(|_| streams.room("red").unwrap()).collect();
        assert!(streams.room("red").is_none() && streams.room("blue").is_some());
        held.pop();
        assert!(streams.room("red").is_some());
    }
}
