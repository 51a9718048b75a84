//! Unread frames on their way from one guest's memory to another's.

use super::round::Round;
use crate::engine::Engine;
use crate::exit::Exit;
use crate::frames::ETHERNET_HEADER;
use crate::local::{LocalPort, LocalSwitch, Sink};
use crate::taps::Side;
use crate::touch::{Touch, Touching};
use flow::{PortDecision, Workspace};
use port::{Sent, Unread, UnreadSent};
use wire::Pattern;

/// Unread frames that were sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Forwarded {
    pub(crate) frames: usize,
    /// Time it took, in [`Clock::cycles`](crate::Clock::cycles).
    pub(crate) cycles: u64,
    /// When it was over.
    pub(crate) end: u64,
}

impl Forwarded {
    pub(super) fn since(begin: u64, end: u64, sent: Sent) -> Self {
        Self { frames: sent.frames as usize, cycles: end.wrapping_sub(begin), end }
    }
}

/// Parts of the engine that send unread frames, beside its workspace.
pub(super) struct Direct<'a> {
    worker: usize,
    switch: &'a LocalSwitch,
    ports: &'a mut [Option<LocalPort>],
    touching: &'a Touching,
    in_hand: &'a mut u64,
}

impl<C> Engine<C> {
    /// The workspace, and the rest that sends unread frames of a round.
    #[inline]
    pub(super) fn direct(&mut self, round: &Round<'_>) -> Option<(&mut Workspace, Direct<'_>)> {
        let (switches, ports) = self.world.parts();
        let switch = switches.get(round.switch.0 as usize)?.as_ref()?;
        let (touching, in_hand) = (&self.touching, &mut self.in_hand);
        let direct = Direct { worker: self.number, switch, ports, touching, in_hand };
        Some((&mut self.workspace, direct))
    }
}

impl Direct<'_> {
    /// Sends the first of the frames, up to one that differs from the pattern if there is one, and counts them on their entry and at both ports.
    pub(super) fn send(
        &mut self,
        round: &Round<'_>,
        (decision, workspace): (&PortDecision<'_>, &Workspace),
        frames: Unread<'_>,
        pattern: Option<&Pattern>,
    ) -> Option<UnreadSent> {
        let to = self.switch.ports.get(decision.port())?;
        let port = self.ports.get_mut(to.0 as usize)?.as_mut()?;
        let longest = Exit::of_batches(port)?.surely_takes();
        let LocalPort { shared, sink: Sink::Queue(tx), .. } = port else { return None };
        if shared.is_tapped(Side::Tx) {
            return None;
        }
        *self.in_hand = frames.len() as u64;
        let before = self.touching.replace(Touch::Tx(to));
        let straight = tx.tx_unread(frames, &(ETHERNET_HEADER..=longest as usize), pattern);
        self.touching.set(before);
        *self.in_hand = 0;
        let sent = straight.sent;
        if sent.frames > 0 {
            decision.count(workspace, sent.frames, sent.bytes, round.now);
            round.counters(self.worker).rx.add(sent);
            shared.counters[self.worker].tx.add(sent);
        }
        Some(straight)
    }
}
