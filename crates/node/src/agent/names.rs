//! How are names of controllers looked up without any tenant's name server keeping others from their answers?
//!
//! The system's resolver waits in a thread for as long as its servers do not answer, and cannot be called off. So a thread that still waits counts,
//! also when nobody waits for it any more: few for each switch, and not many for the node.

use crate::bounds::BoundsSpec;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Look-ups of one switch at a time. Chosen: one that hangs does not keep the next one waiting.
const OF_ONE: usize = 2;

/// The look-ups of a node; a clone counts with the others.
#[derive(Clone)]
pub struct Names {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(BoundsSpec::default().name_lookups)
    }
}

impl Names {
    /// So many at a time.
    pub fn new(of_all: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(of_all)), own: Arc::new(Semaphore::new(OF_ONE)) }
    }

    /// The same node's, for one more switch.
    pub fn of_another(&self) -> Self {
        Self { own: Arc::new(Semaphore::new(OF_ONE)), ..self.clone() }
    }

    /// The addresses of a name.
    ///
    /// # Errors
    /// Nobody knows it.
    pub async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let name = name.to_owned();
        self.ask(move || Ok((name.as_str(), port).to_socket_addrs()?.collect())).await
    }

    /// Whether a look-up would wait for others now.
    pub fn is_busy(&self) -> bool {
        self.own.available_permits() == 0 || self.all.available_permits() == 0
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let open = "nobody closes these semaphores";
        let own = self.own.clone().acquire_owned().await.expect(open);
        let all = self.all.clone().acquire_owned().await.expect(open);
        let work = move || {
            let answer = question();
            drop((own, all));
            answer
        };
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;
    use tokio::task::JoinSet;

    /// A server that answers when the other end of the channel is dropped.
    fn hangs(begun: Sender<()>, until: Receiver<()>) -> impl FnOnce() -> io::Result<()> + Send {
        move || {
            begun.send(()).unwrap();
            let _ = until.recv();
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_switch_whose_name_server_hangs_takes_two_threads_and_its_neighbour_is_answered() {
        let greedy = Names::default();
        let (begun, begins) = channel();
        let (mut ends, mut callers) = (Vec::new(), JoinSet::new());
        for _ in 0..100 {
            let (end, until) = channel();
            let (names, begun) = (greedy.clone(), begun.clone());
            let patience = Duration::from_millis(1);
            callers.spawn(tokio::time::timeout(patience, async move {
                names.ask(hangs(begun, until)).await
            }));
            ends.push(end);
        }
        assert!(callers.join_all().await.iter().all(Result::is_err), "nobody had an answer");
        let neighbour = greedy.of_another();
        assert_eq!(neighbour.ask(|| Ok(7)).await.unwrap(), 7);
        // Nobody waits for the first two any more, and they count all the same.
        assert_eq!(greedy.own.available_permits(), 0);
        drop((ends, begun));
        assert_eq!(begins.iter().count(), OF_ONE);
    }

    #[tokio::test]
    async fn a_name_of_this_host_is_found() {
        let found = Names::default().look_up("localhost", 6653).await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 6653));
    }
}
