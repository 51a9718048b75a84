//! Completing what a source left to do.

use super::{append, crc32c, crc32c_append, fold, sum};
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
    complete_parts(frame, std::iter::empty(), partial)
}

/// The same for a frame whose body lies elsewhere, in parts. The checksum field must lie in the head.
///
/// # Errors
/// [`BadOffload`] when it does not; nothing changed then.
pub fn complete_parts<'a>(
    head: &mut [u8],
    body: impl Iterator<Item = &'a [u8]>,
    partial: PartialChecksum,
) -> Result<(), BadOffload> {
    let covered = head.get_mut(usize::from(partial.start)..).ok_or(BadOffload)?;
    let at = usize::from(partial.offset);
    if partial.is_crc() {
        // CRC32c of the packet with the field at zero, least significant byte first (RFC 9260 §6.8).
        *field(covered, at)? = [0; 4];
        let crc = body.fold(crc32c(covered), crc32c_append);
        *field(covered, at)? = crc.to_le_bytes();
    } else {
        let (sum, _) = body.fold((sum(covered), covered.len()), |(before, len), part| {
            (append(before, len, part), len + part.len())
        });
        // 0 would say "no checksum" in UDP; 0xffff is the same number in one's complement, and right for every protocol (RFC 768).
        let checksum = Some(!fold(sum)).filter(|&checksum| checksum != 0).unwrap_or(0xffff);
        *field(covered, at)? = checksum.to_be_bytes();
    }
    Ok(())
}

fn field<const N: usize>(covered: &mut [u8], at: usize) -> Result<&mut [u8; N], BadOffload> {
    covered.get_mut(at..).and_then(|rest| rest.first_chunk_mut()).ok_or(BadOffload)
}
