//! What a frame is and what an action makes of it, written from the RFCs and OpenFlow 1.3.5 and sharing no line with suiro.
//!
//! A [`Frame`] is a value: headers as fields, no bytes. An action changes the value ([`act`]), and [`Frame::bytes`] writes all
//! headers, lengths and checksums anew. So an incremental update that suiro gets wrong shows as a different byte.

mod act;
mod emit;
mod field;
mod frame;
mod samples;
mod sums;

pub use act::act;
pub use frame::{Extension, Frame, Payload, Transport};
pub use samples::{Framing, Sample};
pub use sums::known_answers;
