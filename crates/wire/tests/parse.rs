//! The parser against the naive one, on right and on hostile frames.

mod frames;
#[expect(dead_code, reason = "each test uses a part of the oracle")]
mod oracle;

use oracle::naive;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;
use wire::{Field, HEAD_MAX, Head, Key, Layers, parse, parse_into};

fn agrees_with_the_naive_parser(frame: &[u8]) -> Result<(), TestCaseError> {
    let head = Head::copy_of(frame);
    let expected = naive::parse(head.bytes());
    let (key, layers) = parse(&head, 0);
    prop_assert_eq!(key, expected.key);
    prop_assert_eq!(layers, expected.layers);
    for offset in [layers.l3, layers.ip, layers.l4, layers.payload] {
        prop_assert!(usize::from(offset) <= head.bytes().len());
    }
    Ok(())
}

proptest! {
    #[test]
    fn right_frames_parse_as_the_naive_parser_does(recipe in frames::recipe()) {
        agrees_with_the_naive_parser(&recipe.bytes())?;
    }

    #[test]
    fn hostile_frames_parse_as_the_naive_parser_does(frame in frames::hostile()) {
        agrees_with_the_naive_parser(&frame)?;
    }

    #[test]
    fn any_bytes_parse_as_the_naive_parser_does(frame in vec(any::<u8>(), 0..HEAD_MAX + 10)) {
        agrees_with_the_naive_parser(&frame)?;
    }

    #[test]
    fn every_shorter_head_parses_without_a_panic(frame in frames::hostile()) {
        for len in 0..=frame.len().min(HEAD_MAX) {
            agrees_with_the_naive_parser(&frame[..len])?;
        }
    }

    #[test]
    fn a_second_parse_keeps_what_is_not_in_the_frame(frame in frames::hostile(), in_port: u32, metadata: u64, tunnel: u64) {
        let head = Head::copy_of(&frame);
        let (mut key, mut layers) = parse(&head, in_port);
        key.set(Field::Metadata, u128::from(metadata));
        key.set(Field::TunnelId, u128::from(tunnel));
        let before = (key, layers);
        parse_into(&head, &mut key, &mut layers);
        prop_assert_eq!((key, layers), before);
        prop_assert_eq!(key.get(Field::InPort), u128::from(in_port));
    }

    #[test]
    fn bits_outside_every_field_are_zero(frame in frames::hostile(), in_port: u32) {
        let (key, _) = parse(&Head::copy_of(&frame), in_port);
        let mut every = Key::default();
        for &field in Field::ALL {
            every.set(field, field.full());
        }
        prop_assert_eq!(key.masked(&every), key);
    }

    #[test]
    fn stale_key_and_layers_leave_no_trace(first in frames::hostile(), second in frames::hostile()) {
        let (mut key, mut layers): (Key, Layers) = parse(&Head::copy_of(&first), 1);
        let second = Head::copy_of(&second);
        parse_into(&second, &mut key, &mut layers);
        prop_assert_eq!((key, layers), parse(&second, 1));
    }
}
