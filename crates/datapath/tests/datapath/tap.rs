//! A tap that remembers every lost frame.

use datapath::PortAt;
use port::{LossTap, Lost};
use std::sync::{Arc, Mutex};
use wire::DropReason;

/// A lost frame: where, why, and its bytes; `None` if nobody had them at hand.
pub type Loss = (PortAt, DropReason, Option<Vec<u8>>);

/// The memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Vec<Loss>>>);

impl Seen {
    /// Takes out what was lost since the last call, in no stated order.
    pub fn take(&self) -> Vec<Loss> {
        let mut losses = std::mem::take(&mut *self.0.lock().unwrap());
        losses.sort();
        losses
    }

    /// The tap, for a configuration.
    pub fn tap(&self) -> Option<Arc<dyn LossTap>> {
        Some(Arc::new(self.clone()))
    }
}

impl LossTap for Seen {
    fn lost(&self, at: PortAt, reason: DropReason, lost: &Lost<'_>) {
        let mut losses = self.0.lock().unwrap();
        match lost {
            Lost::Frame { head, body } => {
                let mut bytes = head.to_vec();
                body.append_to(&mut bytes);
                losses.push((at, reason, Some(bytes)));
            }
            Lost::Elsewhere(count) => losses.extend((0..*count).map(|_| (at, reason, None))),
        }
    }
}
