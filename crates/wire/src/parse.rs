//! What is in a frame.

use crate::{Field, Head, Key, Layers};

/// Parses the head of a frame that came in at `in_port`.
pub fn parse(head: &Head, in_port: u32) -> (Key, Layers) {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    key.set(Field::InPort, u128::from(in_port));
    parse_into(head, &mut key, &mut layers);
    (key, layers)
}

/// Parses anew into `key` and `layers`; `in_port`, `metadata` and `tunnel_id` stay.
pub fn parse_into(head: &Head, key: &mut Key, layers: &mut Layers) {
    let _ = (head, key, layers);
}
