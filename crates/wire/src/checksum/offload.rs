//! Completing what a source left to do.

use super::{crc32c, fold, sum};
use crate::PartialChecksum;
use std::error::Error;
use std::fmt;

/// The offload state contradicts the frame; becomes [`crate::DropReason::BadOffload`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadOffload;

impl fmt::Display for BadOffload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the offload state contradicts the frame")
    }
}

impl Error for BadOffload {}

/// Completes a partial checksum over the whole frame, from `partial.start` to the end.
///
/// # Errors
/// [`BadOffload`] when the field lies outside the frame; nothing changed then.
pub fn complete(frame: &mut [u8], partial: PartialChecksum) -> Result<(), BadOffload> {
    let covered = frame.get_mut(usize::from(partial.start)..).ok_or(BadOffload)?;
    if partial.is_crc() {
        return complete_crc(covered);
    }
    let checksum = match !fold(sum(covered)) {
        // 0 would say "no checksum" in UDP; 0xffff is the same number in one's complement, and right for every protocol (RFC 768).
        0 => 0xffff,
        checksum => checksum,
    };
    let field = covered
        .get_mut(usize::from(partial.offset)..)
        .and_then(|at| at.first_chunk_mut())
        .ok_or(BadOffload)?;
    *field = checksum.to_be_bytes();
    Ok(())
}

/// SCTP: CRC32c of the packet with the field at zero, least significant byte first (RFC 9260 §6.8).
fn complete_crc(packet: &mut [u8]) -> Result<(), BadOffload> {
    let field: &mut [u8; 4] = packet
        .get_mut(usize::from(PartialChecksum::CRC_OFFSET)..)
        .and_then(|at| at.first_chunk_mut())
        .ok_or(BadOffload)?;
    *field = [0; 4];
    let crc = crc32c(packet).to_le_bytes();
    packet[usize::from(PartialChecksum::CRC_OFFSET)..][..4].copy_from_slice(&crc);
    Ok(())
}
