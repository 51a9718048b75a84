//! A partial checksum that lost its mark.

use crate::{Head, Layers, PartialChecksum};

/// Whether the transport checksum is only the pseudo-header's sum.
pub fn is_partial(head: &Head, layers: &Layers) -> Option<PartialChecksum> {
    let _ = (head, layers);
    None
}
