//! Frames to the controllers: shown to whoever listens, kept for whoever wants to decide about them later.

use crate::switch::Switch;
use crate::switch::buffers::{Kept, PacketBuffers};
use crate::switch::listener::{Event, PacketInEvent};
use datapath::{HeldFrame, Punt};
use openflow::Fault;
use std::sync::{MutexGuard, PoisonError};

impl Switch {
    /// A frame for the controllers; returned unless it is kept.
    ///
    /// It is kept if it came whole and somebody listens who gets only its beginning. All listeners hear of the same buffer: the first who
    /// uses it sends the frame. While no buffer is free they get the frame in full (OpenFlow 1.3.5 §7.4.1).
    pub fn on_packet_in(&self, punt: Punt) -> Option<HeldFrame> {
        let Punt { in_port, frame, total_len, why, metadata, tunnel_id, .. } = punt;
        let [tun_src, tun_dst] = [punt.tun_src, punt.tun_dst].map(|end| self.ends.address(end));
        let data = frame.bytes();
        let mut event = PacketInEvent {
            in_port,
            data,
            total_len,
            why,
            metadata,
            tunnel_id,
            tun_src,
            tun_dst,
            buffer_id: None,
        };
        if !frame.is_whole() || !self.listeners.any(|listener| listener.wants_buffer(&event)) {
            self.listeners.tell(Event::PacketIn(&event));
            return Some(frame);
        }
        let now = self.now();
        // Held until the frame is in its place: a controller may answer at once.
        let mut buffers = self.buffers();
        event.buffer_id = buffers.has_room(frame.memory(), now).then(|| buffers.next_id());
        self.listeners.tell(Event::PacketIn(&event));
        if event.buffer_id.is_none() {
            return Some(frame);
        }
        buffers.keep(Kept { frame, in_port }, now);
        None
    }

    /// Whether `id` names a kept frame.
    ///
    /// # Errors
    /// `OFPBRC_BUFFER_EMPTY` or `OFPBRC_BUFFER_UNKNOWN`.
    pub(crate) fn check_buffer(&self, id: u32) -> Result<(), Fault> {
        self.buffers().check(id, self.now())
    }

    /// Takes a kept frame; its buffer is used up then.
    ///
    /// # Errors
    /// As [`Switch::check_buffer`].
    pub(crate) fn take_buffer(&self, id: u32) -> Result<Kept, Fault> {
        self.buffers().take(id, self.now())
    }

    /// Gives back the memory of frames that nobody asked for in time.
    pub(crate) fn expire_buffers(&self) {
        self.buffers().expire(self.now());
    }

    /// A listener came or went: with none, no frame is kept nor brought along whole.
    pub(crate) fn listeners_changed(&self) {
        let mut buffers = self.buffers();
        let anybody = self.listeners.any(|_| true);
        self.plane.keep_frames(anybody);
        if !anybody {
            buffers.clear();
        }
    }

    fn buffers(&self) -> MutexGuard<'_, PacketBuffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
