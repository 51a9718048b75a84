//! What captures take from outside: any program of a filter is refused or ends on any packet, and any file is read or refused.
#![no_main]

use capture::bpf::{Instruction, MOST, Program};
use capture::{Blocks, pick};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    filter(input);
    let mut blocks = Blocks::default();
    blocks.push(input);
    while let Ok(Some(block)) = blocks.next_block() {
        let _ = block.content();
    }
    let number = input.last().map_or(1, |&byte| u64::from(byte % 4));
    if let Ok(picked) = pick(input, number) {
        assert!(picked.bytes.len() <= input.len());
    }
});

/// The first byte says how many instructions of eight bytes follow; the rest is the packet.
fn filter(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let (code, packet) = rest.split_at(rest.len().min(usize::from(count % 32) * 8));
    let instruction = |&[low, high, jt, jf, ref k @ ..]: &[u8; 8]| {
        let code = u16::from_le_bytes([low, high]);
        Instruction { code, jt, jf, k: u32::from_le_bytes(*k) }
    };
    let code: Vec<_> = code.as_chunks().0.iter().map(instruction).collect();
    assert!(code.len() <= MOST);
    if let Ok(program) = Program::new(&code) {
        program.takes(packet);
    }
}
