//! Connections that nodes open because the controller has a question: what is asked for and not there yet, which are kept for the next
//! question, and how many each tenant uses.
//!
//! Nodes are never called. The answer to a node's report names the streams that it shall open; by such a one the controller asks, as a client of HTTP.

use domain::Name;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::upgrade::Upgraded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Streams that a tenant uses at a time. Chosen: a class of students at their consoles.
pub const OF_A_TENANT: usize = 64;
/// Streams of a node that are kept for the next question. Chosen: what one page asks at a time.
const KEPT: usize = 4;
/// For how long. Chosen: longer than a page waits between two looks.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// A stream to a node, by which one question at a time is asked.
pub type Sender = SendRequest<Full<Bytes>>;

/// All of them.
#[derive(Default)]
pub struct Streams(Mutex<Books>);

#[derive(Default)]
struct Books {
    last: u64,
    awaited: BTreeMap<u64, Awaited>,
    kept: BTreeMap<Name, Vec<(Instant, Sender)>>,
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

    /// Keeps a stream whose question has been answered, as of now. Those that were kept for too long are closed, whosever they are.
    pub fn keep(&self, node: &Name, sender: Sender, now: Instant) {
        let mut books = self.books();
        books.kept.retain(|_, its| {
            its.retain(|(since, _)| now.duration_since(*since) < KEPT_FOR);
            !its.is_empty()
        });
        let its = books.kept.entry(node.clone()).or_default();
        if its.len() < KEPT {
            its.push((now, sender));
        }
    }

    /// A stream of a node that was kept and stands.
    pub fn kept(&self, node: &Name, now: Instant) -> Option<Sender> {
        let mut books = self.books();
        let its = books.kept.get_mut(node)?;
        its.retain(|(since, sender)| now.duration_since(*since) < KEPT_FOR && !sender.is_closed());
        its.pop().map(|(_, sender)| sender)
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

    #[tokio::test]
    async fn what_is_kept_is_bounded_by_number_and_time_and_one_that_is_closed_is_not_given() {
        let streams = Streams::default();
        let t1: Name = "t1".parse().unwrap();
        let mut connections = Vec::new();
        let now = Instant::now();
        for _ in 0..=KEPT {
            let (near, far) = tokio::io::duplex(64);
            let io = hyper_util::rt::TokioIo::new(near);
            let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            connections.push((tokio::spawn(connection), far));
            streams.keep(&t1, sender, now);
        }
        assert_eq!(streams.books().kept[&t1].len(), KEPT);
        assert!(streams.kept(&"t2".parse().unwrap(), now).is_none());
        assert!(streams.kept(&t1, now + KEPT_FOR / 2).is_some());
        for (connection, far) in connections.drain(1..) {
            drop(far);
            let _ = connection.await;
        }
        assert!(streams.kept(&t1, now).is_some(), "the first one's end is there");
        assert!(streams.kept(&t1, now).is_none(), "the others' are gone");
        let (near, _far) = tokio::io::duplex(64);
        let io = hyper_util::rt::TokioIo::new(near);
        let (sender, _connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        streams.keep(&t1, sender, now);
        assert!(streams.kept(&t1, now + KEPT_FOR).is_none(), "it is too old");
    }
}
