//! What opening a port gives: its queues, for workers, and its control half, for the node.

use crate::control::PortControl;
use crate::facts::PortFacts;
use crate::queue::{RxQueue, TxQueue};

/// An open port.
pub struct OpenPort {
    /// The state at opening.
    pub facts: PortFacts,
    /// One for each rx queue: any worker may take any of them.
    pub rx: Vec<Box<dyn RxQueue>>,
    /// One for each worker, index = worker.
    pub tx: Vec<Box<dyn TxQueue>>,
    /// What the control thread keeps.
    pub control: Box<dyn PortControl>,
}
