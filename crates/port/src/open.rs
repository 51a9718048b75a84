//! One entrance for every kind of kernel-backed port.

use crate::control::PortControl;
use crate::error::OpenError;
use crate::facts::PortFacts;
use crate::queue::{RxQueue, TxQueue};
use crate::spec::{PortKind, PortSpec};

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

/// Opens a port for `workers` workers. Blocks for some milliseconds: control thread only.
///
/// # Errors
/// Every one names the interface, the step, the cause and a remedy; nothing is left behind.
pub fn open(spec: &PortSpec, workers: usize) -> Result<OpenPort, OpenError> {
    match spec.kind {
        PortKind::Tap => crate::tap::open(spec, workers),
        PortKind::AfPacket => crate::af_packet::open(spec, workers),
        PortKind::AfXdp => crate::af_xdp::open(spec, workers),
    }
}
