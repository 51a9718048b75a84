//! What a driver that lies gets, attack by attack, while its neighbours talk. `cargo test -p suiro-acceptance --test vhost attacks -- --nocapture`
//! prints the table that the guide has.

use super::guest::{PATIENCE, talk};
use super::{Guests, privileged, until};
use serde_json::Value;
use std::time::{Duration, Instant};
use testbed::driver::frontend::{Device, HEADER, Shape, feature};
use testbed::driver::ring::Areas;

/// The liar's address ends in this.
const OWN: u8 = 9;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Slots of the rings.
const SLOTS: u16 = 256;

/// Rings of a device: the one that the switch fills, the one that it empties.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// Where an attack may put a table of its own: behind the rings' areas there are only buffers.
const TABLE: u64 = 1 << 17;

/// A driver that writes into its rings what it likes.
struct Liar {
    device: Device,
    /// Buffers that the switch has used or that were offered in the first place.
    offered: [u16; 2],
}

/// One descriptor: address, length, flags, next.
type Descriptor = (u64, u32, u16, u16);

impl Liar {
    fn connect(guests: &Guests) -> Self {
        let plain = Shape::default();
        let features = plain.features | feature::CSUM | feature::INDIRECT_DESC;
        let device = guests.connect_device(1, &Shape { features, ..plain });
        guests.until(1, "ready");
        Self { device, offered: [SLOTS, 0] }
    }

    fn areas(&self, ring: usize) -> Areas {
        self.device.areas[ring]
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        self.device.memory.copy_in(at, bytes);
    }

    /// Writes descriptors from slot 0 on, or into a table.
    fn describe(&self, at: usize, descriptors: &[Descriptor]) {
        for (slot, (address, len, flags, next)) in descriptors.iter().enumerate() {
            let bytes = [&address.to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes()];
            self.store(at + 16 * slot, &[&bytes.concat()[..], &next.to_le_bytes()].concat());
        }
    }

    /// A frame's header and 60 bytes for everybody in transmit buffer 0; where it is.
    fn frame(&self, header: [u8; HEADER]) -> u64 {
        let at = self.device.transmit.buffers.header(0);
        self.store(at, &header);
        self.store(at + HEADER, &super::guest::frame(OWN, "a liar's frame"));
        at as u64
    }

    /// The same for nobody: to the address that it comes from, which the switch has learned.
    fn frame_for_nobody(&self) -> u64 {
        let at = self.frame([0; HEADER]);
        self.store(at as usize + HEADER, &[2, 0, 0, 0, 0, OWN]);
        at
    }

    /// Offers the chain at a head, and says so.
    fn offer(&mut self, ring: usize, head: u16) {
        let driver = self.areas(ring).driver;
        let slot = usize::from(self.offered[ring] % SLOTS);
        self.store(driver + 4 + 2 * slot, &head.to_le_bytes());
        self.offered[ring] = self.offered[ring].wrapping_add(1);
        self.publish(ring, self.offered[ring]);
    }

    fn publish(&self, ring: usize, index: u16) {
        self.store(self.areas(ring).driver + 2, &index.to_le_bytes());
        let queue = [&self.device.receive, &self.device.transmit][ring];
        queue.kick();
    }

    /// How many the switch has given back of a split ring.
    fn returned(&self, ring: usize) -> u16 {
        let mut index = [0; 2];
        self.device.memory.copy_out(self.areas(ring).device + 2, &mut index);
        u16::from_le_bytes(index)
    }

    /// Offers one chain of these descriptors for transmission.
    fn send(&mut self, descriptors: &[Descriptor]) {
        self.describe(self.areas(TRANSMIT).descriptors, descriptors);
        self.offer(TRANSMIT, 0);
    }

    /// Sends a frame that is right but for its header.
    fn send_with(&mut self, header: [u8; HEADER]) {
        let at = self.frame(header);
        self.send(&[(at, (HEADER + 60) as u32, 0, 0)]);
    }
}

/// A name, and what the liar does.
type Attack = (&'static str, fn(&mut Liar));

/// What ends a ring.
const FATAL: [Attack; 17] = [
    ("a chain that loops", |liar| {
        let at = liar.frame([0; HEADER]);
        liar.send(&[(at, 40, NEXT, 1), (at, 40, NEXT, 0)]);
    }),
    ("a chain that leads out of the table", |liar| {
        let at = liar.frame([0; HEADER]);
        liar.send(&[(at, 40, NEXT, 60_000)]);
    }),
    ("a head outside the table", |liar| liar.offer(TRANSMIT, 9999)),
    ("a length of 4 GiB", |liar| {
        let at = liar.frame([0; HEADER]);
        liar.send(&[(at, u32::MAX, 0, 0)]);
    }),
    ("an address that is not mapped", |liar| liar.send(&[(1 << 40, 72, 0, 0)])),
    ("an address whose end wraps around", |liar| liar.send(&[(u64::MAX - 8, 72, 0, 0)])),
    ("a buffer that begins inside and ends outside", |liar| {
        let end = liar.device.memory.bytes() as u64;
        liar.send(&[(end - 16, 72, 0, 0)]);
    }),
    ("an index that jumps", |liar| liar.publish(TRANSMIT, 5000)),
    ("an index that goes back", |liar| liar.publish(TRANSMIT, u16::MAX)),
    ("a buffer to write where one to read is due", |liar| {
        let at = liar.frame([0; HEADER]);
        liar.send(&[(at, 72, WRITE, 0)]);
    }),
    ("a buffer shorter than the header", |liar| {
        let at = liar.frame([0; HEADER]);
        liar.send(&[(at, 5, 0, 0)]);
    }),
    ("an indirect table of 7 bytes", |liar| liar.send(&[(TABLE, 7, INDIRECT, 0)])),
    ("an indirect table in an indirect table", |liar| {
        liar.describe(TABLE as usize, &[(TABLE, 32, INDIRECT, 0), (TABLE, 32, 0, 0)]);
        liar.send(&[(TABLE, 32, INDIRECT, 0)]);
    }),
    ("an indirect chain that loops", |liar| {
        let at = liar.frame([0; HEADER]);
        liar.describe(TABLE as usize, &[(at, 40, NEXT, 1), (at, 40, NEXT, 0)]);
        liar.send(&[(TABLE, 32, INDIRECT, 0)]);
    }),
    ("an indirect table that is not mapped", |liar| liar.send(&[(1 << 40, 32, INDIRECT, 0)])),
    ("a receive buffer that may not be written", |liar| {
        let at = liar.device.receive.buffers.header(0) as u64;
        for slot in 0..usize::from(SLOTS) {
            liar.describe(liar.areas(RECEIVE).descriptors + 16 * slot, &[(at, 1548, 0, 0)]);
        }
    }),
    ("memory withdrawn: its file cut to nothing", |liar| {
        rustix::fs::ftruncate(liar.device.memory.file(), 0).unwrap();
        liar.device.transmit.kick();
    }),
];

/// A header: flags, kind of segments, lengths of headers and of segments, where the checksum begins and where in it its field is.
const fn header(flags: u8, kind: u8, lengths: [u16; 2], sum: [u16; 2]) -> [u8; HEADER] {
    let [[a, b], [c, d]] = [lengths[0].to_le_bytes(), lengths[1].to_le_bytes()];
    let [[e, f], [g, h]] = [sum[0].to_le_bytes(), sum[1].to_le_bytes()];
    [flags, kind, a, b, c, d, e, f, g, h, 0, 0]
}

/// What costs the liar its frame only.
const HARMLESS: [(&str, [u8; HEADER]); 5] = [
    ("csum_start behind the frame's end", header(1, 0, [0, 0], [60_000, 16])),
    ("csum_offset behind the frame's end", header(1, 0, [0, 0], [34, 60_000])),
    ("segments of 0 bytes", header(1, 1, [54, 0], [34, 16])),
    ("a kind of segments that does not exist", header(1, 77, [54, 1460], [34, 16])),
    ("large segments that were not negotiated", header(1, 1, [54, 1460], [34, 16])),
];

/// Rings that are stopped, as they are shown.
fn stopped(shown: &Value) -> Vec<String> {
    let rings = shown["rings"].as_array().unwrap().iter();
    let stopped = rings.filter(|ring| ring["state"] == "stopped");
    stopped.map(|ring| format!("{} ring stopped: {}", ring["direction"], ring["why"])).collect()
}

/// Frames of vm1 that were dropped, by reason.
fn drops(guests: &Guests) -> Value {
    guests.lab.json(&["port", "show", "sw0", "vm1"])["counters"]["rx_drops"].clone()
}

#[test]
fn each_lie_stops_the_liars_ring_with_its_reason_and_nothing_else() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(3);
    let connect = |index| guests.connect(index, Shape::default());
    let mut neighbours = [connect(2), connect(3)];
    (2..=3).for_each(|index| guests.until(index, "ready"));
    let pid = guests.lab.pid();
    for (name, attack) in FATAL {
        let mut liar = Liar::connect(&guests);
        attack(&mut liar);
        // A broadcast: it goes to the liar as well, whose receive ring may be the one that lies.
        talk(&mut neighbours, name);
        until(&format!("{name}: the ring is stopped: {}", guests.shown(1)), || {
            !stopped(&guests.shown(1)).is_empty()
        });
        println!("{name:<48} {}", stopped(&guests.shown(1)).join("; "));
        talk(&mut neighbours, name);
        assert_eq!(guests.lab.pid(), pid, "the node lives");
        drop(liar);
        guests.until(1, "waiting");
    }
}

#[test]
fn a_header_that_lies_costs_the_liar_that_frame() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(3);
    let connect = |index| guests.connect(index, Shape::default());
    let mut neighbours = [connect(2), connect(3)];
    (2..=3).for_each(|index| guests.until(index, "ready"));
    let mut liar = Liar::connect(&guests);
    for (frames, (name, header)) in (1..).zip(HARMLESS) {
        liar.send_with(header);
        let dropped = serde_json::json!([{ "frames": frames, "reason": "bad_source" }]);
        until(&format!("{name}: the frame is dropped"), || drops(&guests) == dropped);
        let shown = guests.shown(1);
        assert_eq!((&shown["state"], stopped(&shown).len()), (&"ready".into(), 0), "{name}");
        println!("{name:<48} the ring goes on; rx drops {}", drops(&guests));
        talk(&mut neighbours, name);
    }
    // And the ring goes on.
    liar.send_with([0; HEADER]);
    assert_eq!(
        &neighbours[0].receive(PATIENCE).unwrap().expect("it comes").bytes[6..12],
        [2, 0, 0, 0, 0, OWN]
    );
}

#[test]
fn headers_and_descriptors_that_change_all_the_time_harm_nobody() {
    if !privileged() {
        return;
    }
    /// Chosen: thousands of frames pass meanwhile.
    const SPAN: Duration = Duration::from_millis(500);
    let guests = Guests::called(3);
    let connect = |index| guests.connect(index, Shape::default());
    let mut neighbours = [connect(2), connect(3)];
    (2..=3).for_each(|index| guests.until(index, "ready"));
    let (mut frames, mut stops) = (0, Vec::new());
    let end = Instant::now() + SPAN;
    while Instant::now() < end {
        let mut liar = Liar::connect(&guests);
        let at = liar.frame_for_nobody();
        let table = liar.areas(TRANSMIT).descriptors;
        // Frames whose header and length change after they were offered, until the switch has read a descriptor in its bad moment.
        while stopped_now(&guests, frames) == 0 && Instant::now() < end {
            liar.send(&[(at, (HEADER + 60) as u32, 0, 0)]);
            frames += 1;
            for value in [0xff, 0] {
                liar.store(at as usize, &[value; HEADER]);
                liar.describe(table, &[(at, if value == 0 { 72 } else { u32::MAX }, 0, 0)]);
            }
        }
        stops.extend(stopped(&guests.shown(1)));
        drop(liar);
        guests.until(1, "waiting");
    }
    stops.sort();
    stops.dedup();
    println!(
        "{:<48} of {frames} frames some are dropped ({}); {}",
        "a header and a length that change",
        drops(&guests),
        stops.join("; ")
    );
    talk(&mut neighbours, "after all");
}

#[test]
fn an_address_that_changes_all_the_time_leads_no_frame_astray() {
    if !privileged() {
        return;
    }
    /// Chosen: some hundred thousand frames pass meanwhile.
    const SPAN: Duration = Duration::from_millis(500);
    /// Frames offered before the switch is waited for: less than there are slots.
    const BURST: usize = 64;
    let guests = Guests::called(3);
    guests.part_by_address();
    let connect = |index| guests.connect(index, Shape::default());
    let mut receivers = [(10, connect(2), 0), (11, connect(3), 0)];
    (2..=3).for_each(|index| guests.until(index, "ready"));
    let mut liar = Liar::connect(&guests);
    let at = liar.frame([0; HEADER]);
    let ipv4 = at as usize + HEADER + 12;
    liar.store(ipv4, &[8, 0, 0x45, 0, 0, 46]);
    let mut nets = [10, 11].into_iter().cycle();
    let end = Instant::now() + SPAN;
    while Instant::now() < end {
        (0..BURST).for_each(|_| liar.send(&[(at, (HEADER + 60) as u32, 0, 0)]));
        let deadline = Instant::now() + PATIENCE;
        while liar.returned(TRANSMIT) != liar.offered[TRANSMIT] {
            nets.next().into_iter().for_each(|net| liar.store(ipv4 + 18, &[net]));
            assert!(Instant::now() < deadline, "the switch takes them: {}", guests.lab.log());
        }
        for (net, guest, count) in &mut receivers {
            while let Some(got) = guest.receive(Duration::ZERO).unwrap() {
                assert_eq!(got.bytes[30], *net, "a frame for somebody else: {got:x?}");
                *count += 1;
            }
        }
    }
    let counts = receivers.map(|(_, _, count)| count);
    assert!(counts.iter().all(|&count| count > 0), "both were sent to: {counts:?}");
    println!("{:<48} {counts:?} frames, each where its address says", "an address that changes");
}

/// Looked at now and then: asking takes longer than sending.
fn stopped_now(guests: &Guests, frames: u32) -> usize {
    if frames.is_multiple_of(64) { stopped(&guests.shown(1)).len() } else { 0 }
}
