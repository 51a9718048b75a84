//! The way out of a switch by one port, read once for all frames that leave by it.

use crate::heads::{fits, surely_fits};
use crate::local::LocalPort;
use std::sync::atomic::Ordering::Relaxed;
use wire::{DropReason, Head, Offload};

/// State of a port that sends, as frames meet it.
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    mtu: u32,
    is_plain: bool,
}

impl Exit {
    /// Reads the port's state.
    ///
    /// # Errors
    /// Why nothing leaves by it now.
    #[inline]
    pub(crate) fn of(port: &LocalPort) -> Result<Self, DropReason> {
        let mtu = port.shared.mtu.load(Relaxed);
        port.shut().map_or(Ok(Self { mtu, is_plain: port.is_plain() }), Err)
    }

    /// Returns the exit if whole batches can leave by it: it sends now, without queues of its own, and is no vlink.
    #[inline]
    pub(crate) fn of_batches(port: &LocalPort) -> Option<Self> {
        Self::of(port).ok().filter(|exit| exit.is_plain)
    }

    /// The length up to which every frame leaves; some longer ones may.
    #[inline]
    pub(crate) fn surely_takes(&self) -> u32 {
        surely_fits(self.mtu)
    }

    /// Checks a frame of this head and length.
    ///
    /// # Errors
    /// Why it does not leave.
    #[inline]
    pub(crate) fn check(
        &self,
        head: &Head,
        offload: &Offload,
        frame_len: u32,
    ) -> Result<(), DropReason> {
        if fits(head, offload, frame_len, self.mtu) { Ok(()) } else { Err(DropReason::TooBig) }
    }
}
