use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn put(writer: &mut Writer<4>, number: u64, len: usize) -> bool {
    let Some(bytes) = writer.reserve([number; 4], len) else { return false };
    bytes.fill(number as u8);
    writer.commit();
    true
}

fn is(record: ([u64; 4], &[u8]), (number, len): (u64, usize)) -> bool {
    record.0 == [number; 4]
        && record.1.len() == len
        && record.1.iter().all(|&byte| byte == number as u8)
}

proptest! {
    #[test]
    fn what_is_put_comes_out_once_and_in_order(steps in proptest::collection::vec((0..3u8, 0..900usize), 1..300)) {
        let (mut writer, mut reader) = ring(4096);
        let (mut number, mut expected) = (0, VecDeque::new());
        for (step, len) in steps {
            match step {
                0 | 1 => {
                    if put(&mut writer, number, len) {
                        expected.push_back((number, len));
                    } else {
                        prop_assert!(!expected.is_empty(), "an empty ring has room");
                    }
                    number += 1;
                }
                _ => {
                    writer.publish();
                    reader.look();
                    let mut records = reader.records();
                    let count = records.by_ref().take(len % 8).filter(|record| {
                        is(*record, expected.pop_front().unwrap())
                    }).count();
                    let position = records.position();
                    prop_assert!(expected.is_empty() || count == len % 8);
                    reader.release(position);
                }
            }
        }
    }
}

#[test]
fn what_is_not_published_is_not_seen() {
    let (mut writer, mut reader) = ring(1024);
    assert!(put(&mut writer, 1, 10));
    assert!(!reader.look() && reader.is_empty() && reader.records().next().is_none());
    writer.publish();
    assert!(!reader.is_empty() && reader.records().next().is_none(), "nobody looked");
    assert!(reader.look());
    assert!(is(reader.records().next().unwrap(), (1, 10)));
}

#[test]
fn what_is_reserved_and_not_committed_is_no_record() {
    let (mut writer, mut reader) = ring(1024);
    writer.reserve([7; 4], 100).unwrap().fill(7);
    writer.publish();
    assert!(!reader.look());
    assert!(put(&mut writer, 1, 10));
    writer.publish();
    assert!(reader.look());
    assert!(is(reader.records().next().unwrap(), (1, 10)));
}

#[test]
fn a_full_ring_refuses_until_records_are_given_back() {
    let (mut writer, mut reader) = ring(1024);
    let fitted = (0..).take_while(|&number| put(&mut writer, number, 80)).count();
    assert_eq!(fitted, 8);
    writer.publish();
    reader.look();
    let mut records = reader.records();
    records.next();
    let position = records.position();
    assert!(!put(&mut writer, 9, 80));
    reader.release(position);
    assert!(put(&mut writer, 9, 80) && !put(&mut writer, 10, 80));
    assert_eq!(writer.through(), 0);
    reader.pass_through();
    assert_eq!(writer.through(), position);
}

#[test]
fn two_threads_see_every_record_whole() {
    const RECORDS: u64 = 200_000;
    let (mut writer, mut reader) = ring(1 << 14);
    let putting = std::thread::spawn(move || {
        for number in 0..RECORDS {
            while !put(&mut writer, number, (number % 300) as usize) {
                writer.publish();
                std::thread::yield_now();
            }
            if number % 7 == 0 {
                writer.publish();
            }
        }
        writer.publish();
    });
    let mut next = 0;
    while next < RECORDS {
        if !reader.look() {
            std::thread::yield_now();
            continue;
        }
        let mut records = reader.records();
        for record in records.by_ref() {
            assert!(is(record, (next, (next % 300) as usize)), "record {next}");
            next += 1;
        }
        let position = records.position();
        reader.release(position);
    }
    putting.join().unwrap();
}
