//! The half of a port that the node keeps.

use crate::bypass::{Door, Wrapping};
use crate::chosen::Chosen;
use crate::detail::Details;
use crate::error::ControlError;
use crate::facts::PortFacts;
use api::PortSpec;
use offload::{Declined, PortReason};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use xdp::offload::Past;

/// What becomes of an interface that suiro made (a TAP) when its port closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// It stays, with its addresses, for the next start.
    Interface,
    /// It goes.
    Nothing,
}

/// Looks at and changes a port's interface; used by the node's control thread only.
pub trait PortControl: Send {
    /// The state now.
    ///
    /// # Errors
    /// The interface is gone, or the kernel refuses to tell.
    fn facts(&self) -> Result<PortFacts, ControlError>;

    /// Whether the facts changed since the last question in a way that no [`crate::LinkEvent`] tells.
    fn has_news(&self) -> bool {
        false
    }

    /// Readable when there is news, for who does not want to ask again and again; asking [`PortControl::has_news`] ends that.
    fn news(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Reason to open the port again: its interface has more than the port can serve.
    fn outgrown(&self) -> Option<String> {
        None
    }

    /// What only its kind of port has to show.
    fn details(&self) -> Option<Arc<dyn Details>> {
        None
    }

    /// What takes flows past the worker on this port, or why nothing does; `None` where ports of its kind, or this node, have no such thing.
    fn past(&self) -> Option<Result<Past, PortReason>> {
        None
    }

    /// How flows that leave by it are wrapped, if nothing differs from frame to frame, or why they cannot be; `None` where it wraps none.
    fn wrapping(&self) -> Option<Result<Arc<Wrapping>, Declined>> {
        None
    }

    /// Of a TAP: where tunnels' packets come in that do not go through the kernel.
    fn door(&self) -> Option<Arc<Door>> {
        None
    }

    /// Reads again what the port has from files: a tunnel's keys. What goes on using the same keys does not notice.
    ///
    /// # Errors
    /// They cannot be used; the port goes on as it was.
    fn reload(&self) -> Result<(), ControlError> {
        Ok(())
    }

    /// Brings a key that only ports of its kind have to what `to` says and the node chose; the port carries on.
    ///
    /// # Errors
    /// The key does not change on an open port, or the system refuses; it is as it was.
    fn change(&self, key: &str, to: &PortSpec, _: &Chosen) -> Result<(), ControlError> {
        Err(ControlError::Fixed { interface: to.name.to_string(), key: key.into() })
    }

    /// Sets the interface administratively up or down.
    ///
    /// # Errors
    /// The interface is gone, or the kernel refuses.
    fn set_admin(&self, up: bool) -> Result<(), ControlError>;

    /// Sets the MTU.
    ///
    /// # Errors
    /// Out of the interface's or the port type's bounds, or the interface is gone.
    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError>;

    /// Gives the interface back. The queues must be dropped before.
    ///
    /// # Errors
    /// The kernel refuses to remove the interface.
    fn close(self: Box<Self>, keep: Keep) -> Result<(), ControlError>;
}
