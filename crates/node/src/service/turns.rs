//! Whose change of what exists comes next: one at a time, and the changes of one switch have one place in the queue together.
//!
//! So who changes one switch a thousand times keeps another one's change waiting for one of them at most. And a change that waits for the kernel
//! [lets others](Turn::let_others) go on: what it needs of the host it has claimed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{
    Mutex as Turning, MutexGuard, OwnedMutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// The queue.
#[derive(Default)]
pub struct Turns {
    change: Turning<()>,
    /// Read by changes of one switch, written by those of several.
    all: RwLock<()>,
    /// Of switches with changes under way: whose first one may stand in the queue.
    own: Mutex<HashMap<String, Arc<Turning<()>>>>,
}

/// Held across a change. The queue goes on before the next change of the same switch joins it.
pub struct Turn<'t> {
    change: Option<MutexGuard<'t, ()>>,
    _all: All<'t>,
    _own: Option<OwnedMutexGuard<()>>,
}

/// Held as long as a change is under way, for what it holds.
enum All<'t> {
    OfOne { _guard: RwLockReadGuard<'t, ()> },
    OfSeveral { _guard: RwLockWriteGuard<'t, ()> },
}

impl Turn<'_> {
    /// Lets changes of other switches go on; those of this one, and of several, still wait.
    pub fn let_others(&mut self) {
        if matches!(self._all, All::OfOne { .. }) {
            self.change = None;
        }
    }
}

impl Turns {
    /// For a change of this switch.
    pub async fn of(&self, switch: &str) -> Turn<'_> {
        let own = self.own(switch).lock_owned().await;
        let change = self.change.lock().await;
        let all = All::OfOne { _guard: self.all.read().await };
        Turn { change: Some(change), _all: all, _own: Some(own) }
    }

    /// For a change of several, or of what is no switch's.
    pub async fn of_all(&self) -> Turn<'_> {
        let change = self.change.lock().await;
        let all = All::OfSeveral { _guard: self.all.write().await };
        Turn { change: Some(change), _all: all, _own: None }
    }

    /// For a change that can wait, if nobody changes anything now.
    pub fn if_free(&self) -> Option<Turn<'_>> {
        let change = self.change.try_lock().ok()?;
        let all = All::OfSeveral { _guard: self.all.try_write().ok()? };
        Some(Turn { change: Some(change), _all: all, _own: None })
    }

    fn own(&self, switch: &str) -> Arc<Turning<()>> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.retain(|_, turn| Arc::strong_count(turn) > 1);
        own.entry(switch.to_owned()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    /// Changes of these switches, asked for in this order while another one is under way: the order in which they are carried out.
    async fn order(asked: &[&'static str]) -> Vec<&'static str> {
        let turns = Arc::new(Turns::default());
        let done = Arc::new(Mutex::new(Vec::new()));
        let first = turns.of_all().await;
        let mut changes = Vec::new();
        for &switch in asked {
            let (turns, done) = (turns.clone(), done.clone());
            let mut change = Box::pin(async move {
                let _turn = turns.of(switch).await;
                done.lock().unwrap().push(switch);
                tokio::task::yield_now().await;
            });
            // It stands where it shall when it has been asked once.
            std::future::poll_fn(|context| {
                assert!(change.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            changes.push(tokio::spawn(change));
        }
        drop(first);
        for change in changes {
            change.await.unwrap();
        }
        assert!(turns.own("other").try_lock().is_ok());
        assert_eq!(turns.own.lock().unwrap().len(), 1, "who waits for nothing is not remembered");
        std::mem::take(&mut *done.lock().unwrap())
    }

    #[tokio::test]
    async fn one_switchs_change_waits_for_one_change_of_another_however_many_wait() {
        let order = order(&["red", "red", "red", "red", "blue"]).await;
        assert_eq!(order, ["red", "blue", "red", "red", "red"]);
    }

    #[tokio::test]
    async fn switches_that_change_all_the_time_take_turns() {
        let order = order(&["red", "red", "blue", "blue", "green"]).await;
        assert_eq!(order, ["red", "blue", "green", "red", "blue"]);
    }

    #[tokio::test]
    async fn changes_of_one_switch_keep_their_order_and_who_can_wait_waits() {
        let turns = Turns::default();
        let turn = turns.of("red").await;
        assert!(turns.if_free().is_none());
        drop(turn);
        assert!(turns.if_free().is_some());
    }

    #[tokio::test]
    async fn who_waits_for_the_kernel_keeps_back_its_own_switch_and_changes_of_several() {
        let turns = Turns::default();
        let mut turn = turns.of("red").await;
        turn.let_others();
        assert!(turns.own("red").try_lock().is_err());
        drop(turns.of("blue").await);
        assert!(turns.if_free().is_none());
        drop(turn);
        assert!(turns.if_free().is_some());
    }
}
