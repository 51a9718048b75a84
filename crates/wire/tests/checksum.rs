//! Sums and CRCs against one byte, or one bit, at a time.

mod oracle;

use oracle::sums;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, prop_assume, proptest};
use wire::PartialChecksum;
use wire::checksum::{
    BadOffload, append, complete, complete_parts, crc32c, crc32c_append, crc32c_shift, fold,
    pseudo_ipv4, pseudo_ipv6, sum, sum_u128, update, update_partial,
};

proptest! {
    #[test]
    fn a_sum_is_the_sum_byte_by_byte(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(fold(sum(&bytes)), sums::ones_complement(&[&bytes]));
    }

    #[test]
    fn parts_summed_apart_give_the_whole(bytes in vec(any::<u8>(), 0..100), at: usize) {
        let (first, second) = bytes.split_at(at % (bytes.len() + 1));
        prop_assert_eq!(fold(append(sum(first), first.len(), second)), fold(sum(&bytes)));
    }

    #[test]
    fn an_updated_checksum_is_the_recomputed_one(bytes in vec(any::<u8>(), 2..60), at: usize, new: u16) {
        let mut bytes = bytes;
        bytes.truncate(bytes.len() & !1);
        let at = at % (bytes.len() / 2) * 2;
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let before = !fold(sum(&bytes));
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
        // Only a sum of zeros has two forms, and no header is all zeros.
        prop_assume!(bytes.iter().any(|&byte| byte != 0) && before != 0xffff);
        prop_assert_eq!(update(before, u64::from(old), u64::from(new)), !fold(sum(&bytes)));
        prop_assert_eq!(update_partial(!before, u64::from(old), u64::from(new)), fold(sum(&bytes)));
    }

    #[test]
    fn pseudo_headers_sum_as_their_bytes_do(src: u128, dst: u128, proto: u8, len: u16) {
        let tail = [0, proto, (len >> 8) as u8, len as u8];
        let v4 = [&(src as u32).to_be_bytes()[..], &(dst as u32).to_be_bytes(), &tail].concat();
        let v6 = [&src.to_be_bytes()[..], &dst.to_be_bytes(), &tail].concat();
        prop_assert_eq!(fold(pseudo_ipv4(src as u32, dst as u32, proto, len.into())), sums::ones_complement(&[&v4]));
        prop_assert_eq!(fold(pseudo_ipv6(src, dst, proto, len.into())), sums::ones_complement(&[&v6]));
        prop_assert_eq!(fold(sum_u128(src)), sums::ones_complement(&[&src.to_be_bytes()]));
    }

    #[test]
    fn a_crc_is_the_crc_bit_by_bit(bytes in vec(any::<u8>(), 0..100), at: usize) {
        let (first, second) = bytes.split_at(at % (bytes.len() + 1));
        prop_assert_eq!(crc32c(&bytes), sums::crc32c(&bytes));
        prop_assert_eq!(crc32c_append(crc32c(first), second), sums::crc32c(&bytes));
    }

    #[test]
    fn a_crc_follows_changed_bytes_whatever_comes_after(old in vec(any::<u8>(), 1..12), seed: u64, before in 0usize..20, after in 0usize..70_000) {
        let new: Vec<u8> = old.iter().enumerate().map(|(i, byte)| byte ^ (seed >> (5 * i)) as u8).collect();
        let difference: Vec<u8> = old.iter().zip(&new).map(|(a, b)| a ^ b).collect();
        let crc = |bytes: &[u8]| crc32c(&[&vec![3; before][..], bytes, &vec![9; after]].concat());
        prop_assert_eq!(crc(&old) ^ crc32c_shift(&difference, after as u32), crc(&new));
    }

    #[test]
    fn a_body_elsewhere_in_parts_completes_as_the_whole(
        frame in vec(any::<u8>(), 40..400), cuts: (usize, usize), start in 0u16..20, is_crc: bool,
    ) {
        let partial = PartialChecksum { start, offset: if is_crc { 8 } else { 16 } };
        let mut whole = frame.clone();
        complete(&mut whole, partial).unwrap();
        let (head, body) = frame.split_at(38 + cuts.0 % (frame.len() - 38));
        let (first, second) = body.split_at(cuts.1 % (body.len() + 1));
        let mut head = head.to_vec();
        complete_parts(&mut head, [first, second].into_iter(), partial).unwrap();
        prop_assert_eq!([&head[..], body].concat(), whole);
    }

    #[test]
    fn completing_outside_the_frame_is_refused(len in 0usize..60, start in 0u16..70, offset in 0u16..70) {
        let mut frame = vec![1; len];
        let width = if offset == 8 { 4 } else { 2 };
        let lies_inside = usize::from(start) + usize::from(offset) + width <= len;
        let result = complete(&mut frame, PartialChecksum { start, offset });
        prop_assert_eq!(result, if lies_inside { Ok(()) } else { Err(BadOffload) });
        if !lies_inside {
            prop_assert_eq!(frame, vec![1; len]);
        }
    }
}

#[test]
fn the_crc_of_the_published_vectors_is_right() {
    // RFC 3720 appendix B.4, and the check value of the CRC catalogue.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn the_sum_of_rfc_1071_is_right() {
    assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
}
