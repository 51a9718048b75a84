//! A front-end takes shared memory away while we use it.

use crate::driver::Driver;
use crate::guest::Guest;
use vhost::{Chains, Fault, Features, Frame, HEADER_MAX, Payload};

const FEATURES: [Features; 2] =
    [Features::VERSION_1, Features::VERSION_1.union(Features::RING_PACKED)];

#[test]
fn a_ring_whose_memory_is_cut_away_stops_and_the_process_lives() {
    for features in FEATURES {
        let mut driver = Driver::new(16, features);
        assert!(driver.send(&[1; 60], &[60], false));
        let mut device = driver.device();
        driver.guest.truncate(0);
        assert_eq!(device.take(64, &mut Chains::default()), Err(Fault::Withdrawn));
    }
}

#[test]
fn a_source_cut_away_in_the_midst_of_a_copy_gives_zeros_and_stops_at_the_next_look() {
    let mut driver = Driver::new(16, Features::VERSION_1);
    assert!(driver.send(&[1; 60], &[60], false));
    assert!(driver.send(&[1; 60], &[60], false));
    let (mut device, mut chains) = (driver.device(), Chains::default());
    assert_eq!(device.take(1, &mut chains), Ok(1));
    // The rings stay, the buffers go.
    driver.guest.truncate(4096);
    let mut bytes = [9; 60];
    chains.read(0, &mut bytes);
    assert_eq!(bytes, [0; 60]);
    device.give_back();
    assert_eq!(device.reserve(1), Err(Fault::Withdrawn));
}

#[test]
fn a_destination_cut_away_leaves_the_source_alone() {
    let (mut from, mut to) =
        (Driver::new(16, Features::VERSION_1), Driver::new(16, Features::VERSION_1));
    let frame: Vec<u8> = (0..3000).map(|at| at as u8).collect();
    for _ in 0..2 {
        assert!(from.send(&frame, &[1000, 2000], false));
        assert!(to.post(&[3000 + HEADER_MAX as u32], false));
    }
    let (mut source, mut destination, mut chains) = (from.device(), to.device(), Chains::default());
    assert_eq!(source.take(1, &mut chains), Ok(1));
    destination.reserve(1).unwrap();
    to.guest.truncate(4096);
    let body = Payload::Guest(chains.slices(0));
    assert!(destination.put(Frame { body, ..Frame::default() }).is_ok());
    source.give_back();
    assert_eq!(destination.reserve(1), Err(Fault::Withdrawn));
    // The source's ring works as ever.
    assert_eq!(source.take(1, &mut chains), Ok(1));
    let mut bytes = vec![0; frame.len()];
    chains.read(0, &mut bytes);
    assert_eq!(bytes, frame);
}

#[test]
fn memory_that_is_dropped_is_no_longer_guarded_and_its_place_is_used_again() {
    // More than the table of guarded mappings has places.
    for _ in 0..10_000 {
        drop(Guest::new(4096).memory());
    }
}
