//! Where captures hear a session: each message that is read, and each that is written.

use crate::captures::Wire;
use crate::switch::Switch;
use ::capture::Direction;
use openflow::next_frame;
use std::sync::Arc;

/// One session's.
pub struct Tap {
    switch: Arc<Switch>,
    wire: Wire,
}

impl Tap {
    /// Of a session of this switch.
    pub fn new(switch: Arc<Switch>, wire: Wire) -> Arc<Self> {
        Arc::new(Self { switch, wire })
    }

    /// A message came.
    pub fn came(&self, message: &[u8]) {
        self.switch.heard(&self.wire, Direction::In, message);
    }

    /// Whole messages go.
    pub fn went(&self, mut messages: &[u8]) {
        if !self.switch.is_heard() {
            return;
        }
        while let Ok(Some(message)) = next_frame(messages) {
            self.switch.heard(&self.wire, Direction::Out, message);
            messages = &messages[message.len()..];
        }
    }
}
