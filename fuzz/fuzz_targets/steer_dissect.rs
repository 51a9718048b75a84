//! Any bytes as a frame for the steering program's dissector, its C compiled for user space with address sanitizer: it reads nothing beside
//! the frame, and sees what the switch's parser sees.
#![no_main]

#[path = "../../crates/xdp/tests/agreement/mod.rs"]
mod agreement;

use agreement::{Words, difference};
use libfuzzer_sys::fuzz_target;

unsafe extern "C" {
    fn suiro_dissect(words: *mut u64, is_ip: *mut u8, data: *const u8, len: usize);
}

fuzz_target!(|bytes: &[u8]| {
    // Of exactly this size, so that the sanitizer sees the first byte too many.
    let frame: Box<[u8]> = bytes.into();
    let (mut words, mut is_ip): (Words, u8) = ([0; 12], 0);
    // SAFETY: the function reads `len` bytes and writes twelve words and a byte, as `native/dissect.c` shows.
    unsafe { suiro_dissect(words.as_mut_ptr(), &mut is_ip, frame.as_ptr(), frame.len()) };
    if frame.len() >= 14 {
        assert_eq!(difference(&frame, &words, is_ip != 0), None);
    }
});
