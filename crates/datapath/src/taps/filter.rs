//! Which frames a capture wants: those whose key has these bits, as a rule's match says it, and that a program of libpcap's takes.

use super::{Captured, What};
use crate::id::PortAt;
use capture::bpf::{Packet, Program};
use port::Body;
use std::sync::Arc;
use wire::{Field, Key, WORDS};

/// Bits of a key, and their values, and a program. The default takes every frame and looks at none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    key: Key,
    mask: Key,
    program: Option<Arc<Program>>,
}

impl Filter {
    /// Frames that have the bits of `key` which `mask` names. Of what is not in a frame, `in_port` alone is known: the port that sees it.
    pub fn of(key: &Key, mask: &Key) -> Self {
        Self { key: *key, mask: *mask, program: None }
    }

    /// Of those, the ones that a program takes.
    #[must_use]
    pub fn and(self, program: Program) -> Self {
        Self { program: Some(Arc::new(program)), ..self }
    }

    /// Whether it may take frames of which it is known that they have the bits of `key` which `known` names; a program may take any.
    pub fn may_take(&self, key: &Key, known: &Key) -> bool {
        let mut known = *known;
        // That of whoever sees them.
        known.set(Field::InPort, 0);
        (0..WORDS)
            .all(|word| (key.0[word] ^ self.key.0[word]) & self.mask.0[word] & known.0[word] == 0)
    }

    /// Whether it takes every frame.
    pub(super) fn takes_all(&self) -> bool {
        self.mask == Key::default() && self.program.is_none()
    }

    /// Whether it wants a frame.
    pub(super) fn takes(&self, at: PortAt, head: &[u8], body: Body<'_>) -> bool {
        self.matches(at, head)
            && self.program.as_ref().is_none_or(|program| program.takes(&Whole { head, body }))
    }

    /// Whether it wants a tunnel's packet as it is outside: the match is of the frame inside, as rules see it, the program of what is on the wire.
    pub(super) fn takes_outer(
        &self,
        at: PortAt,
        inside: &[u8],
        (head, body): (&[u8], Body<'_>),
    ) -> bool {
        self.matches(at, inside)
            && self.program.as_ref().is_none_or(|program| program.takes(&Whole { head, body }))
    }

    /// Whether it wants what was noted, of which so much is known.
    pub(crate) fn takes_noted(&self, seen: &Captured<'_>) -> bool {
        match seen.what {
            What::LostElsewhere(..) | What::Unread(_) => self.takes_all(),
            _ => self.takes(seen.port, seen.bytes, Body::default()),
        }
    }

    fn matches(&self, at: PortAt, head: &[u8]) -> bool {
        if self.mask == Key::default() {
            return true;
        }
        let mut key = wire::parse_bytes(head).0;
        key.set(Field::InPort, u128::from(at.port));
        (0..WORDS).all(|word| (key.0[word] ^ self.key.0[word]) & self.mask.0[word] == 0)
    }
}

/// A frame in its two parts.
struct Whole<'f> {
    head: &'f [u8],
    body: Body<'f>,
}

impl Packet for Whole<'_> {
    fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    fn copy_to(&self, at: usize, into: &mut [u8]) {
        let of_head = self.head.len().saturating_sub(at).min(into.len());
        let (first, rest) = into.split_at_mut(of_head);
        first.copy_from_slice(&self.head[self.head.len().min(at)..][..of_head]);
        if !rest.is_empty() {
            self.body.copy_to((at + of_head) - self.head.len(), rest);
        }
    }
}
