//! What a frame costs here when no line has to come from another cache: ring in, copy, ring out. `suiro bench vhost` measures the rest.
//!
//! `cargo test --release -p suiro-vhost --test ring -- --ignored --nocapture speed`

use crate::driver::{Driver, WRITE};
use crate::guest::Buffer;
use std::time::{Duration, Instant};
use vhost::{Chains, Features, Frame, HEADER_MAX, Payload, Vring};

const SIZE: u16 = 4096;
const ROUND: usize = 32;
const LAPS: usize = 400;
/// From one buffer to the next.
const STRIDE: u64 = 16384 + 5 * 64;
/// Bytes of a head in private memory, as the switch has it.
const HEAD: usize = 256;

/// A ring whose descriptors all point to a few buffers, so that everything stays in the nearest cache.
struct Endless {
    driver: Driver,
    device: Vring,
    packed: bool,
    lap: u16,
}

impl Endless {
    fn new(features: Features, flags: u16, len: u32) -> Self {
        let mut driver = Driver::new(SIZE, features);
        let packed = features.contains(Features::RING_PACKED);
        // Apart by an odd number of lines, and elsewhere for each ring: places in the cache that do not collide.
        driver.guest.allocate(if flags == WRITE { 2112 } else { 64 }, 64);
        let buffers = driver.guest.allocate(ROUND as u64 * STRIDE, 64);
        for index in 0..u64::from(SIZE) {
            let buffer = Buffer { at: buffers + index % ROUND as u64 * STRIDE, len };
            let at = driver.areas[0] + 16 * index;
            if packed {
                driver.guest.write_descriptor(at, buffer, index as u16, flags);
            } else {
                driver.guest.write_descriptor(at, buffer, flags, 0);
                driver.guest.write_u16(driver.areas[1] + 4 + 2 * index, index as u16);
            }
        }
        driver.wake();
        let device = driver.device();
        Self { driver, device, packed, lap: 0 }
    }

    /// Makes every descriptor available once more.
    fn refill(&mut self, len: u32, flags: u16) {
        self.lap += 1;
        if !self.packed {
            return self
                .driver
                .guest
                .write_u16(self.driver.areas[1] + 2, SIZE.wrapping_mul(self.lap));
        }
        let mark = if self.lap % 2 == 1 { 1_u64 << 7 } else { 1 << 15 };
        for index in 0..u64::from(SIZE) {
            let word = u64::from(len) | index << 32 | (u64::from(flags) | mark) << 48;
            self.driver.guest.write(self.driver.areas[0] + 16 * index + 8, &word.to_le_bytes());
        }
    }
}

/// A batch's heads.
type Heads = [[u8; HEAD]; ROUND];

fn forward(
    source: &mut Vring,
    destination: &mut Vring,
    chains: &mut Chains,
    heads: &mut Heads,
) -> usize {
    let count = source.take(ROUND, chains).unwrap();
    let mut lens = [0; ROUND];
    let mut places: Vec<_> = heads.iter_mut().zip(&mut lens).take(count).collect();
    let plain = chains.take_plain(
        0,
        Features::VERSION_1,
        &mut places,
        |(head, _)| head,
        |(_, len), _, head, _| **len = head,
    );
    assert_eq!(plain, count);
    destination.reserve(count).unwrap();
    let frames = (0..count).map(|index| Frame {
        head: &heads[index][..lens[index]],
        body: Payload::Guest(chains.slices(index)),
        ..Frame::default()
    });
    let (outlines, bodies) =
        (frames.clone().map(|frame| frame.outline()), frames.map(|frame| frame.body));
    assert_eq!(destination.put_run(outlines, bodies).frames, count);
    destination.publish();
    source.give_back();
    count
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    for (name, features) in
        [("split", Features::VERSION_1), ("packed", Features::VERSION_1 | Features::RING_PACKED)]
    {
        for len in [64, 256, 1518, 9000_u32] {
            let len = len + HEADER_MAX as u32;
            let mut from = Endless::new(features, 0, len);
            let mut to = Endless::new(features | Features::MRG_RXBUF, WRITE, 16384);
            let (mut chains, mut best) = (Chains::default(), Duration::MAX);
            let mut heads = [[0; HEAD]; ROUND];
            for _ in 0..LAPS {
                from.refill(len, 0);
                to.refill(16384, WRITE);
                let (begin, mut left) = (Instant::now(), usize::from(SIZE));
                while left > 0 {
                    left -= forward(&mut from.device, &mut to.device, &mut chains, &mut heads);
                }
                best = best.min(begin.elapsed());
            }
            let ns = best.as_nanos() as f64 / f64::from(SIZE);
            println!(
                "{name} {} B: {ns:.1} ns a frame, {:.1} cycles at 2.596 GHz",
                len - 12,
                ns * 2.596
            );
        }
    }
}
