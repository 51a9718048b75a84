//! A port whose flows can go past its worker, on whichever rung.

use super::seat::RungPort;
use super::tc::TcPort;
use super::xdp::XdpPort;
use offload::{PortReason, ProviderName};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What takes flows past a port's worker.
#[derive(Clone)]
pub enum Past {
    /// Programs at the tc hook.
    Tc(Arc<TcPort>),
    /// A stage of the XDP hook.
    Xdp(Arc<XdpPort>),
}

impl Past {
    /// The rung.
    pub fn rung(&self) -> ProviderName {
        match self {
            Self::Tc(_) => TcPort::RUNG,
            Self::Xdp(_) => XdpPort::RUNG,
        }
    }

    /// Why flows cannot leave by the port now, if they cannot.
    pub fn exit(&self) -> Result<(), PortReason> {
        match self {
            Self::Tc(port) => port.seat().exit(),
            Self::Xdp(port) => port.seat().exit(),
        }
    }

    /// Tells it by which number the worker says how many frames wait in the port's queues: until none does, no flow to it goes up.
    pub fn set_held(&self, held: &Arc<AtomicU64>) {
        match self {
            Self::Tc(port) => port.seat().set_held(held),
            Self::Xdp(port) => port.seat().set_held(held),
        }
    }

    /// Frames for the worker that nobody received: an earlier process had been killed.
    pub fn orphans(&self) -> u64 {
        match self {
            Self::Tc(port) => port.seat().orphans(),
            Self::Xdp(port) => port.seat().orphans(),
        }
    }
}
