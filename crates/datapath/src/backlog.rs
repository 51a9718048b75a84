//! The ports of a worker where frames wait in queues, and when to look at them again.

use crate::id::PortIx;
use crate::local::LocalPort;
use crate::shape::{Sending, Shaper, depart};
use flow::Nanos;

/// Ports with frames that wait.
pub(crate) struct Backlog {
    ports: Vec<PortIx>,
    /// When the first of them must be looked at.
    next: Nanos,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { ports: Vec::new(), next: Nanos(u64::MAX) }
    }
}

impl Backlog {
    /// Makes sure that so many ports fit; when a port gets queues only.
    pub(crate) fn reserve(&mut self, ports: usize) {
        self.ports.reserve(ports.saturating_sub(self.ports.len()));
    }

    /// When to look at it, if there is any; [`Nanos`] in the past is now.
    #[inline]
    pub(crate) fn next(&self) -> Option<Nanos> {
        (!self.ports.is_empty()).then_some(self.next)
    }

    /// The port has frames that wait.
    pub(crate) fn list(&mut self, ix: PortIx, shaper: &mut Shaper) {
        if !std::mem::replace(&mut shaper.listed, true) {
            self.ports.push(ix);
        }
        self.next = self.next.min(shaper.wake);
    }

    /// The port is gone, or its shaper.
    pub(crate) fn forget(&mut self, ix: PortIx) {
        self.ports.retain(|&other| other != ix);
    }

    /// After a panic nothing that was noted of times counts.
    pub(crate) fn look_again(&mut self) {
        self.next = Nanos(0);
    }

    /// Sends what may leave by now.
    pub(crate) fn depart(&mut self, ports: &mut [Option<LocalPort>], cx: &mut Sending<'_>) {
        self.next = Nanos(u64::MAX);
        let mut at = 0;
        while let Some(&ix) = self.ports.get(at) {
            let port = ports.get_mut(ix.0 as usize).and_then(Option::as_mut);
            let wake = port.and_then(|port| look(port, ix, cx));
            match wake {
                Some(wake) => {
                    self.next = self.next.min(wake);
                    at += 1;
                }
                None => drop(self.ports.swap_remove(at)),
            }
        }
    }
}

/// Serves one port if its time has come; `None` when no frame waits there any more.
fn look(port: &mut LocalPort, ix: PortIx, cx: &mut Sending<'_>) -> Option<Nanos> {
    let (mut departure, shaper) = port.departure(ix)?;
    if shaper.wake <= cx.now {
        depart(shaper, &mut departure, cx);
    }
    shaper.listed = !shaper.is_idle();
    shaper.listed.then_some(shaper.wake)
}
