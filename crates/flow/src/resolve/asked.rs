//! A frame that somebody asks about, whole: its bytes beside its key.

use super::sketch::Edited;
use crate::action::{Action, PortNo};
use crate::exec;
use crate::packet::Packet;
use std::sync::Arc;
use wire::{EditError, Field, HEAD_MAX, Head, Key, Layers, Offload, WORDS};

/// A frame that is there whole, and which bits of its key whoever asks has said; all others may be different ones.
///
/// So an edit is made as a worker makes it, and yet nothing is told of what was only filled in.
#[derive(Clone)]
pub struct Asked {
    /// Its first bytes.
    pub head: Head,
    /// Its key, in step with `head`.
    pub key: Key,
    /// Bits of `key` that are known.
    pub known: Key,
    /// Where its headers are.
    pub layers: Layers,
    /// What is still to be done to it.
    pub offload: Offload,
    /// Bytes of all of it.
    pub frame_len: u32,
    /// What lies behind the head.
    pub body: Arc<[u8]>,
}

impl Asked {
    /// Every bit known.
    pub const ALL: Key = Key([u64::MAX; WORDS]);

    /// A frame that comes in by `in_port`, no bit of which is left open.
    pub fn whole(frame: &[u8], in_port: PortNo) -> Self {
        let head = Head::copy_of(frame);
        let (key, layers) = wire::parse(&head, in_port);
        let (offload, frame_len) = (Offload::default(), frame.len() as u32);
        let body = frame.get(HEAD_MAX..).unwrap_or_default().into();
        Self { head, key, known: Self::ALL, layers, offload, frame_len, body }
    }

    /// All of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.bytes(), &self.body].concat()
    }

    /// It has waited as bytes, so its head begins anew, with all the room in front of it that a head has.
    #[must_use]
    pub fn received_again(self) -> Self {
        let anew = Self::whole(&self.bytes(), self.key.get(Field::InPort) as PortNo);
        Self { head: anew.head, layers: anew.layers, body: anew.body, ..self }
    }

    /// It comes in by `in_port` of another switch, over a vlink: metadata and tunnel stay behind.
    pub fn cross(&mut self, in_port: PortNo) {
        self.key.set(Field::InPort, in_port.into());
        self.key.set(Field::Metadata, 0);
        self.key.clear_tunnel();
        for field in [Field::InPort, Field::Metadata, Field::TunnelId, Field::TunSrc, Field::TunDst]
        {
            self.known.set(field, field.full());
        }
    }

    pub(super) fn is_all_known(&self) -> bool {
        self.known == Self::ALL
    }

    /// Makes an edit.
    pub(super) fn edit(&mut self, action: &Action) -> Edited {
        let Self { head, key, layers, offload, frame_len, .. } = self;
        let mut packet = Packet {
            head,
            key: *key,
            layers: *layers,
            offload: *offload,
            frame_len: *frame_len,
            queue: 0,
        };
        let done = exec::edit(&mut packet, action);
        (*key, *layers, *offload) = (packet.key, packet.layers, packet.offload);
        *frame_len = packet.frame_len;
        match done {
            Ok(()) | Err(EditError::NotPresent) => Edited::Done,
            Err(EditError::TtlExpired) => Edited::Expired,
            Err(EditError::NoRoom | EditError::Malformed) => Edited::Malformed,
        }
    }
}
