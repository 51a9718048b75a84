//! Records under a checksum, so that a bit that flipped on its way through a disk puts no other rule in force.
//!
//! ```text
//! record = crc32:4 payload      over table, switch and id, each with a 0 behind it, and the payload
//! ```
//!
//! A CRC finds every single flipped bit and every damaged run of up to 32; it is no protection against somebody who means it.

use super::pending::Kind;
use crc32fast::Hasher;

/// Bytes before the payload.
const LEN: usize = 4;

/// Returns the record of a payload.
pub fn seal(kind: Kind, switch: &str, id: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(LEN + payload.len());
    record.extend(sum(kind, switch, id, payload).to_be_bytes());
    record.extend(payload);
    record
}

/// Returns the payload of a record; `None` if it is damaged, or was written under another key.
pub fn open<'r>(kind: Kind, switch: &str, id: &[u8], record: &'r [u8]) -> Option<&'r [u8]> {
    let (found, payload) = record.split_first_chunk()?;
    (u32::from_be_bytes(*found) == sum(kind, switch, id, payload)).then_some(payload)
}

fn sum(kind: Kind, switch: &str, id: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    for part in [kind.table().as_bytes(), switch.as_bytes(), id] {
        hasher.update(part);
        hasher.update(&[0]);
    }
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_of_key_or_record_is_noticed() {
        let (switch, id, payload) = ("sw0", b"id".as_slice(), b"what is kept".as_slice());
        let record = seal(Kind::Flow, switch, id, payload);
        assert_eq!(open(Kind::Flow, switch, id, &record), Some(payload));
        assert_eq!(open(Kind::Group, switch, id, &record), None);
        assert_eq!(open(Kind::Flow, "sw1", id, &record), None);
        assert_eq!(open(Kind::Flow, switch, b"if", &record), None);
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(Kind::Flow, switch, id, &damaged), None, "bit {bit}");
        }
        assert_eq!(open(Kind::Flow, switch, id, &record[..3]), None);
    }
}
