//! What a hostile driver can try, one attack a test, and what it gets: a fault that names it, and nothing else.

use crate::driver::{Driver, INDIRECT, NEXT, WRITE};
use crate::guest::{Buffer, GUEST, Guest, USER};
use vhost::{Base, Chains, Fault, Features, Frame, GuestMemory, Part, Refused, Vring, VringConfig};

const SIZE: u16 = 16;
const PLAIN: Features = Features::VERSION_1;
const PACKED: Features = Features::VERSION_1.union(Features::RING_PACKED);
/// Marks of an available descriptor in a packed ring's first lap.
const AVAIL: u16 = 1 << 7;

fn driver(features: Features) -> Driver {
    Driver::new(SIZE, features)
}

/// Writes a split descriptor by hand.
fn describe(driver: &Driver, index: u64, buffer: Buffer, flags: u16, next: u16) {
    driver.guest.write_descriptor(driver.areas[0] + 16 * index, buffer, flags, next);
}

/// Makes `heads` available by hand.
fn available(driver: &Driver, heads: &[u16]) {
    for (place, head) in heads.iter().enumerate() {
        driver.guest.write_u16(driver.areas[1] + 4 + 2 * place as u64, *head);
    }
    driver.guest.write_u16(driver.areas[1] + 2, heads.len() as u16);
}

fn take(driver: &Driver) -> Result<usize, Fault> {
    driver.device().take(64, &mut Chains::default())
}

fn put(driver: &Driver, len: usize) -> Result<(), Refused> {
    driver.device().put(Frame { head: &vec![1; len], ..Frame::default() })
}

/// A buffer at an offset of the guest's memory; one that wraps around gives any guest address.
fn at(at: u64, len: u32) -> Buffer {
    Buffer { at, len }
}

#[test]
fn a_loop_of_descriptors_ends_after_as_many_as_the_ring_has() {
    let driver = driver(PLAIN);
    describe(&driver, 0, at(0, 10), NEXT, 1);
    describe(&driver, 1, at(0, 10), NEXT, 0);
    available(&driver, &[0]);
    assert_eq!(take(&driver), Err(Fault::ChainTooLong(SIZE.into())));
}

#[test]
fn a_packed_chain_without_end_ends_too() {
    let driver = driver(PACKED);
    (0..u64::from(SIZE)).for_each(|index| describe(&driver, index, at(0, 10), 0, NEXT | AVAIL));
    assert_eq!(take(&driver), Err(Fault::ChainTooLong(SIZE.into())));
}

#[test]
fn an_address_outside_or_a_huge_length_is_unmapped() {
    for buffer in [
        at(0, u32::MAX),
        at(u64::MAX - GUEST, 2),
        at(0_u64.wrapping_sub(GUEST), 60),
        at(1 << 40, 1),
    ] {
        for features in [PLAIN, PACKED] {
            let driver = driver(features);
            if features == PLAIN {
                describe(&driver, 0, Buffer { at: buffer.at, len: buffer.len }, 0, 0);
                available(&driver, &[0]);
            } else {
                describe(&driver, 0, buffer, 0, AVAIL);
            }
            let guest = GUEST.wrapping_add(buffer.at);
            assert_eq!(take(&driver), Err(Fault::Unmapped { guest, len: buffer.len }));
        }
    }
}

#[test]
fn a_buffer_that_crosses_from_one_region_into_the_next_is_unmapped() {
    let driver = driver(PLAIN);
    let border = 1 << 16;
    let rest = 0x8000;
    let regions = [driver.guest.region(0, border), driver.guest.region(border, rest)];
    let memory = GuestMemory::map(&regions).unwrap();
    describe(&driver, 0, at(border - 10, 10), 0, 0);
    describe(&driver, 1, at(border - 10, 11), 0, 0);
    available(&driver, &[0, 1]);
    let mut device = Vring::new(VringConfig { memory, ..driver.config() }).unwrap();
    let mut chains = Chains::default();
    assert_eq!(device.take(1, &mut chains), Ok(1));
    assert_eq!(
        device.take(1, &mut chains),
        Err(Fault::Unmapped { guest: GUEST + border - 10, len: 11 })
    );
}

#[test]
fn an_index_that_jumps_ahead_or_back_stops_the_ring() {
    for index in [SIZE + 1, 0xffff, 0x8000] {
        let driver = driver(PLAIN);
        driver.guest.write_u16(driver.areas[1] + 2, index);
        assert_eq!(take(&driver), Err(Fault::IndexJump { index, waiting: index, size: SIZE }));
    }
}

#[test]
fn a_descriptor_number_outside_the_table_stops_the_ring() {
    let driver = driver(PLAIN);
    available(&driver, &[SIZE]);
    assert_eq!(take(&driver), Err(Fault::BadIndex { index: SIZE, size: SIZE }));
    describe(&driver, 0, at(0, 10), NEXT, 0x7fff);
    available(&driver, &[0]);
    assert_eq!(take(&driver), Err(Fault::BadIndex { index: 0x7fff, size: SIZE }));
}

#[test]
fn a_buffer_of_the_wrong_direction_stops_the_ring() {
    for features in [PLAIN, PACKED] {
        let mut sends = driver(features);
        assert!(sends.post(&[100], false));
        let fault = Fault::WrongDirection { queue: "transmit", found: "writable" };
        assert_eq!(take(&sends), Err(fault));
        let mut receives = driver(features);
        assert!(receives.send(&[0; 100], &[100], false));
        let fault = Fault::WrongDirection { queue: "receive", found: "readable" };
        assert_eq!(put(&receives, 60), Err(Refused::Fault(fault)));
    }
}

#[test]
fn an_indirect_table_that_is_not_allowed_stops_the_ring() {
    let allowed = PLAIN | Features::INDIRECT_DESC;
    let cases = [
        (PLAIN, at(0, 16), INDIRECT),
        (allowed, at(0, 0), INDIRECT),
        (allowed, at(0, 17), INDIRECT),
        (allowed, at(0, 16), INDIRECT | NEXT),
    ];
    for (features, table, flags) in cases {
        let driver = driver(features);
        describe(&driver, 0, table, flags, 0);
        available(&driver, &[0]);
        assert_eq!(take(&driver), Err(Fault::BadIndirect(table.len)), "{flags:#x}");
    }
}

/// A driver whose only chain is an indirect table of these descriptors.
fn with_table(table: &[(Buffer, u16, u16)]) -> Driver {
    let mut driver = driver(PLAIN | Features::INDIRECT_DESC);
    let start = driver.guest.allocate(16 * table.len() as u64, 16);
    for (index, (buffer, flags, next)) in table.iter().enumerate() {
        driver.guest.write_descriptor(start + 16 * index as u64, *buffer, *flags, *next);
    }
    describe(&driver, 0, at(start, 16 * table.len() as u32), INDIRECT, 0);
    available(&driver, &[0]);
    driver
}

#[test]
fn a_table_in_a_table_a_loop_in_a_table_and_a_way_out_of_it_stop_the_ring() {
    let nested = with_table(&[(at(0, 16), INDIRECT, 0)]);
    assert_eq!(take(&nested), Err(Fault::BadIndirect(16)));
    let looped = with_table(&[(at(0, 1), NEXT, 1), (at(0, 1), NEXT, 0)]);
    assert_eq!(take(&looped), Err(Fault::ChainTooLong(1024)));
    let leaves = with_table(&[(at(0, 1), NEXT, 2), (at(0, 1), 0, 0)]);
    assert_eq!(take(&leaves), Err(Fault::BadIndex { index: 2, size: 2 }));
}

#[test]
fn a_buffer_of_no_bytes_is_nothing() {
    let driver = driver(PLAIN);
    // Its address is looked at by no one.
    describe(&driver, 0, at(1 << 50, 0), NEXT, 1);
    describe(&driver, 1, at(0, 20), 0, 0);
    describe(&driver, 2, at(0, 0), 0, 0);
    available(&driver, &[0, 2]);
    let (mut device, mut chains) = (driver.device(), Chains::default());
    assert_eq!(device.take(64, &mut chains), Ok(2));
    assert_eq!((chains.remaining(0), chains.slices(0).len()), (20, 1));
    assert_eq!((chains.remaining(1), chains.slices(1).len()), (0, 0));
    chains.read(1, &mut []);
}

#[test]
fn a_receive_buffer_without_room_for_the_header_stops_the_ring() {
    for len in [0, 11] {
        let driver = driver(PLAIN | Features::MRG_RXBUF);
        describe(&driver, 0, at(0, len), WRITE, 0);
        available(&driver, &[0]);
        assert_eq!(put(&driver, 60), Err(Refused::Fault(Fault::NoHeader(len))));
    }
}

#[test]
fn what_changes_after_it_was_checked_changes_nothing() {
    let mut driver = driver(PLAIN);
    assert!(driver.send(&[7; 100], &[100], false));
    let (mut device, mut chains) = (driver.device(), Chains::default());
    assert_eq!(device.take(64, &mut chains), Ok(1));
    (0..SIZE.into()).for_each(|index| describe(&driver, index, at(1 << 50, u32::MAX), NEXT, 0));
    available(&driver, &[9; 16]);
    let mut bytes = [0; 100];
    chains.read(0, &mut bytes);
    assert_eq!(bytes, [7; 100]);
    device.give_back();
    assert_eq!(driver.reap(), Some(Vec::new()));
}

#[test]
fn chains_that_share_a_long_tail_make_a_short_round() {
    let driver = Driver::new(256, PLAIN);
    for index in 0..200 {
        describe(&driver, index, at(0, 0x8000), NEXT, index as u16 + 1);
    }
    describe(&driver, 200, at(0, 0x8000), 0, 0);
    available(&driver, &[0; 64]);
    let (mut device, mut chains) = (driver.device(), Chains::default());
    // 201 × 32 KiB are more than a round has, so the round is that one frame.
    assert_eq!(device.take(64, &mut chains), Ok(1));
    assert_eq!(chains.remaining(0), 201 * 0x8000);
}

#[test]
fn packed_descriptors_offered_again_before_they_were_given_back_are_left_alone() {
    let driver = driver(PACKED);
    (0..u64::from(SIZE))
        .for_each(|index| describe(&driver, index, at(0, 100), index as u16, WRITE | AVAIL));
    let mut device = driver.device();
    device.reserve(64).unwrap();
    assert_eq!(device.waiting(), SIZE);
    // As the next lap would have them.
    (0..u64::from(SIZE))
        .for_each(|index| describe(&driver, index, at(0, 100), index as u16, WRITE | 1 << 15));
    assert_eq!(device.has_buffers(usize::from(SIZE) + 1), Ok(false));
}

#[test]
fn a_ring_that_is_nowhere_misaligned_or_of_no_size_does_not_start() {
    let driver = driver(PLAIN);
    let start = |config| Vring::new(config).err();
    let unplaced = |part, user| Some(Fault::Unplaced { part, user });
    let config = || driver.config();
    assert_eq!(start(VringConfig { desc: 4, ..config() }), unplaced(Part::Descriptors, 4));
    assert_eq!(
        start(VringConfig { desc: USER + 8, ..config() }),
        unplaced(Part::Descriptors, USER + 8)
    );
    assert_eq!(
        start(VringConfig { driver: u64::MAX, ..config() }),
        unplaced(Part::Driver, u64::MAX)
    );
    assert_eq!(
        start(VringConfig { device: USER + 2, ..config() }),
        unplaced(Part::Device, USER + 2)
    );
    for size in [0, 3, 48, 0xffff] {
        assert_eq!(start(VringConfig { size, ..config() }), Some(Fault::Size(size)));
    }
    let base = Base::Packed { avail: SIZE, avail_wrap: true, used: 0, used_wrap: true };
    let packed = VringConfig { features: PACKED, base, ..config() };
    assert_eq!(start(packed), Some(Fault::BadIndex { index: SIZE, size: SIZE }));
}

#[test]
fn regions_that_make_no_sense_are_refused() {
    let guest = Guest::new(0x4000);
    let map =
        |regions: &[_]| GuestMemory::map(regions).map(|_| ()).map_err(|error| error.to_string());
    assert!(map(&[guest.region(0, 0x2000), guest.region(0x2000, 0x2000)]).is_ok());
    assert!(
        map(&[guest.region(0, 0x3000), guest.region(0x2000, 0x1000)])
            .unwrap_err()
            .contains("overlaps")
    );
    assert!(map(&[guest.region(0, 0)]).unwrap_err().contains("empty"));
    assert!(map(&[guest.region(0x1000, 0x4000)]).unwrap_err().contains("which has 16384"));
    let wrapped = vhost::RegionSpec { guest: u64::MAX - 1, ..guest.region(0, 0x1000) };
    assert!(map(&[wrapped]).unwrap_err().contains("passes the end"));
}
