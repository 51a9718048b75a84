//! A hostile driver against both directions of a ring, split and packed: it writes anything anywhere in its memory, before, between and after
//! what the device does, also while the device holds its buffers. The device must end each step with a result: no panic, no access outside the
//! memory (address sanitizer), no endless walk (libFuzzer's timeout).
//!
//! Input: one byte of features, one of the ring's size, one of where the areas lie, then commands of four bytes.
#![no_main]

#[path = "vhost_ring/memory.rs"]
mod memory;

use libfuzzer_sys::fuzz_target;
use memory::{Memory, USER};
use vhost::{
    Base, Chains, Features, Frame, GuestSlice, HEADER_MAX, NetHeader, Payload, Refused, Unread, Vring,
    VringConfig,
};
use wire::Pattern;

/// Where a ring's three areas may lie: apart; on top of each other; at the end of a region; across two.
const AREAS: [[u64; 3]; 6] = [
    [0, 0x800, 0x1000],
    [0, 0, 0],
    [0x400, 0x402, 0x404],
    [0x7c00, 0x7f00, 0x7000],
    [0x7ff0, 0x7ffe, 0x7ff8],
    [0x8000, 0x9000, 0xa000],
];

fuzz_target!(|input: &[u8]| {
    let Some((&[features, size, places], commands)) = input.split_first_chunk() else { return };
    let mut device = Device::new(features, size, places);
    for &[what, a, b, c] in commands.as_chunks().0 {
        device.step(what, a, b, c);
    }
});

/// Both directions on rings of one kind, in one memory.
struct Device {
    memory: Memory,
    features: Features,
    size: u16,
    /// The driver's transmit queue, and its receive queue.
    rings: [Option<Vring>; 2],
    areas: [[u64; 3]; 2],
    /// Descriptors that a driver in its right mind would have written.
    offered: [u16; 2],
    chains: Chains,
    /// The driver is taken for one on a far core.
    is_far: bool,
}

impl Device {
    fn new(features: u8, size: u8, places: u8) -> Self {
        let bits = [
            Features::RING_PACKED,
            Features::IN_ORDER,
            Features::EVENT_IDX,
            Features::MRG_RXBUF,
            Features::INDIRECT_DESC,
            Features::CSUM,
        ];
        let chosen = bits.iter().enumerate().filter(|(bit, _)| features >> bit & 1 == 1);
        let is_far = features >> bits.len() & 1 == 1;
        let features = chosen.fold(Features::VERSION_1, |all, (_, one)| all | *one);
        let packed = features.contains(Features::RING_PACKED);
        let size = if packed { 1 + u16::from(size % 64) } else { 1 << (size % 7) };
        let area = |place: u8| AREAS[usize::from(place) % AREAS.len()];
        let mut device = Self {
            memory: Memory::new(),
            features,
            size,
            rings: [None, None],
            areas: [area(places), area(places / 16).map(|at| at ^ 0x2000)],
            offered: [0; 2],
            chains: Chains::default(),
            is_far,
        };
        let base = Base::from_bits(0x8000_8000, packed);
        (0..2).for_each(|which| device.start(which, base));
        device
    }

    fn start(&mut self, which: usize, base: Base) {
        let [desc, driver, device] = self.areas[which].map(|at| USER + at);
        let config = VringConfig {
            features: self.features,
            size: self.size,
            desc,
            driver,
            device,
            base,
            log_used_at: None,
            memory: self.memory.table(),
            kick: None,
            call: None,
            inflight: None,
            record: None,
            log: None,
        };
        let mut ring = Vring::new(config).ok();
        ring.iter_mut().filter(|_| self.is_far).for_each(Vring::take_for_far);
        self.rings[which] = ring;
    }

    fn step(&mut self, what: u8, a: u8, b: u8, c: u8) {
        let (word, which) = (u16::from_le_bytes([b, c]), usize::from(a & 1));
        match what % 12 {
            0 => self.memory.poke(u64::from(a) << 8 | u64::from(b), &[c]),
            1 => self.memory.poke(u64::from(a) * 2 + self.areas[0][1], &word.to_le_bytes()),
            2 => self.memory.poke(u64::from(a) * 2 + self.areas[1][1], &word.to_le_bytes()),
            3 => self
                .memory
                .poke(u64::from(a) * 2 + self.areas[usize::from(b & 1)][0], &word.to_le_bytes()),
            4 | 5 => self.offer(which, a, b, c),
            6 | 7 => self.take(usize::from(a % 65), c),
            8 => self.put(usize::from(word % 5000), b),
            9 => {
                if let Some(ring) = &mut self.rings[which] {
                    if b & 1 == 0 { ring.publish() } else { drop(ring.arm()) }
                }
            }
            10 => {
                let base = self.rings[which].take().map(|ring| ring.base());
                let packed = self.features.contains(Features::RING_PACKED);
                self.start(
                    which,
                    base.unwrap_or(Base::from_bits(
                        u32::from(word) << 16 | u32::from(word),
                        packed,
                    )),
                );
            }
            _ => self.memory.exchange(a),
        }
    }

    /// Makes a descriptor available, with bytes of the input for its address, length and flags.
    fn offer(&mut self, which: usize, a: u8, b: u8, c: u8) {
        let index = self.offered[which] % self.size;
        let at = self.areas[which][0] + 16 * u64::from(index);
        let (guest, len) = memory::buffer(b, c);
        let direction = if which == 1 { 2 } else { 0 };
        // Its next one, a table, or the other direction now and then.
        let flags = direction ^ [0, 0, 1, 4, 2, 5, 1, 0][usize::from(a >> 1) % 8];
        let next = (index + 1 + u16::from(a >> 5)) % self.size.max(2);
        if self.features.contains(Features::RING_PACKED) {
            let lap = if self.offered[which] / self.size % 2 == 0 { 1 << 7 } else { 1 << 15 };
            self.memory.descriptor(at, guest, len, index, flags | lap);
        } else {
            self.memory.descriptor(at, guest, len, flags, next);
            let entry = self.areas[which][1] + 4 + 2 * u64::from(index);
            self.memory.poke(entry, &index.to_le_bytes());
            let offered = self.offered[which].wrapping_add(1);
            self.memory.poke(self.areas[which][1] + 2, &offered.to_le_bytes());
        }
        self.offered[which] = self.offered[which].wrapping_add(1);
    }

    /// Takes a round; every other time the driver changes its memory before the frames are read. They go into the receive queue, sometimes the first ones as they are.
    fn take(&mut self, most: usize, how: u8) {
        let [Some(source), destination] = &mut self.rings else { return };
        let Ok(count) = source.take(most, &mut self.chains) else {
            self.rings[0] = None;
            return;
        };
        assert!(count <= most && count == self.chains.len());
        if how & 1 == 1 {
            (0..64).for_each(|word| self.memory.poke(word * 16 + u64::from(how), &[how; 8]));
        }
        let (mut fault, mut sent) = (false, 0);
        if how & 2 == 2
            && let Some(ring) = destination
        {
            fault |= ring.reserve(count).is_err();
            let unread = Unread::new(&self.chains, self.features);
            let lengths = usize::from(how)..=2000;
            sent = match how & 4 {
                0 => ring.put_unread(unread, &lengths),
                _ => ring.put_alike(unread, &lengths, &like(how)),
            }
            .frames;
        }
        for index in sent..count {
            let total = self.chains.remaining(index);
            let mut head = [0; 268];
            let len = total.min(head.len());
            self.chains.read(index, &mut head[..len]);
            let slices = self.chains.slices(index);
            assert_eq!(slices.iter().map(|slice| slice.len()).sum::<usize>(), total - len);
            if let Some(ring) = destination {
                let (header, body) = (NetHeader::of(&[how; HEADER_MAX]), Payload::Guest(slices));
                let frame = Frame { header, head: &head[..len], body };
                let put = ring.put_run([frame.outline(); 2].into_iter(), [body; 2].into_iter());
                fault |= put.frames < 2 && is_fault(ring.put(frame));
            }
        }
        source.give_back();
        match destination {
            Some(_) if fault => self.rings[1] = None,
            Some(ring) => ring.publish(),
            None => {}
        }
    }

    /// A frame from elsewhere.
    fn put(&mut self, len: usize, ahead: u8) {
        let Some(ring) = &mut self.rings[1] else { return };
        let fault = ring.reserve(ahead.into()).is_err()
            || is_fault(ring.put(Frame {
                head: &[1; 60],
                body: Payload::Private(&vec![2; len]),
                ..Frame::default()
            }));
        if fault {
            self.rings[1] = None;
        }
    }
}

/// Some bits of the third word are as in `how`, and of these and each byte's lowest one is set.
fn like(how: u8) -> Pattern {
    let mut like = Pattern { value: [0; 64], mask: [0; 64], some: [0; 64] };
    like.mask[16..24].fill(how >> 3);
    like.value[16..24].fill(how & how >> 3);
    like.some[16..24].fill(how | 1);
    like
}

fn is_fault(put: Result<(), Refused>) -> bool {
    matches!(put, Err(Refused::Fault(_)))
}

/// Only here so that the type stays what it must be: bytes that can be copied and nothing else.
const _: fn(GuestSlice<'_>, &mut [u8]) = |slice, into| slice.read(into);
