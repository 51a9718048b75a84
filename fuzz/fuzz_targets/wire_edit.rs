//! Any edits on any frame: after each one key and layers equal a fresh parse, a right checksum is right and a partial one
//! partial, and a refused edit changes nothing.
//!
//! Input: one byte that chooses a partial checksum, one byte with the number of edits, four bytes for each edit, then the frame.
#![no_main]

#[path = "../../crates/wire/tests/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;
use oracle::edits::{Op, Subject};
use wire::{Field, Head, PartialChecksum, parse};

const TYPES: [u16; 8] = [0x8100, 0x88a8, 0x8847, 0x8848, 0x88e7, 0x0800, 0x86dd, 0x0806];

fuzz_target!(|input: &[u8]| {
    let Some((&[how, count], rest)) = input.split_first_chunk() else { return };
    let edits = usize::from(count % 32).min(rest.len() / 4);
    let (edits, frame) = rest.split_at(4 * edits);
    let mut subject = Subject::new(frame, partial(how, frame));
    for edit in edits.chunks_exact(4) {
        let _ = subject.edit_and_check(op(edit));
    }
});

/// None, the transport's own, or one that lies anywhere.
fn partial(how: u8, frame: &[u8]) -> Option<PartialChecksum> {
    let (_, layers) = parse(&Head::copy_of(frame), 0);
    let offset = [16, 6, 8, 2][usize::from(how / 4 % 4)];
    match how % 4 {
        0 | 1 => None,
        2 => Some(PartialChecksum { start: layers.l4, offset }),
        _ => Some(PartialChecksum { start: u16::from(how), offset }),
    }
}

fn op(edit: &[u8]) -> Op {
    let [what, a, b, c] = *edit else { unreachable!("chunks of four") };
    let eth_type = if a % 16 < 8 { TYPES[usize::from(a % 8)] } else { u16::from_be_bytes([b, c]) };
    // A value of all widths from three bytes: a pattern, or a small number.
    let pattern = u128::from_be_bytes([b; 16]) ^ u128::from(c);
    let mask = if c % 4 == 0 { pattern.rotate_left(u32::from(c)) } else { u128::MAX };
    match what % 24 {
        0 => Op::PushVlan(eth_type),
        1 => Op::PopVlan,
        2 => Op::PushMpls(eth_type),
        3 => Op::PopMpls(eth_type),
        4 => Op::PushPbb(eth_type),
        5 => Op::PopPbb,
        6 => Op::CopyTtlOut,
        7 => Op::CopyTtlIn,
        8 => Op::SetMplsTtl(b),
        9 => Op::DecMplsTtl,
        10 => Op::SetNwTtl(b),
        11 => Op::DecNwTtl,
        12 => Op::Set(Field::EthType, u128::from(eth_type), u128::MAX),
        _ => Op::Set(Field::ALL[usize::from(a) % Field::ALL.len()], pattern, mask),
    }
}
