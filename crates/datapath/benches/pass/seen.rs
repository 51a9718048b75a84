//! A capture beside the traffic: which frames it sees, and a thread that reads its records as fast as they come.

use crate::cases::five_tuple;
use crate::ports::LEN;
use datapath::{Capture, Datapath, Filter, Point, PortAt, Share, Sides, Wanted};
use flow::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use wire::{Field, Key};

/// Bytes of a worker's ring, and of a frame: as captures have them when nothing is said.
const RING: usize = 4 << 20;
const SNAP: usize = 1 << 16;
/// The destination port of one frame in a hundred, and one that no frame has.
const RARE: u16 = 7;
const NONE: u16 = 9;

/// Flows of which one in a hundred goes to a port of its own.
pub fn one_in_100(flow: u64, frame: &mut [u8; LEN]) {
    five_tuple(flow, frame);
    let port = if flow.is_multiple_of(100) { RARE } else { 2 };
    frame[36..38].copy_from_slice(&port.to_be_bytes());
}

/// No capture, and captures of ever more frames.
pub fn shares() -> [(&'static str, Option<Filter>); 4] {
    let to = |port: u16| {
        let (mut key, mut mask) = (Key::default(), Key::default());
        for (field, value) in
            [(Field::EthType, 0x0800), (Field::IpProto, 17), (Field::TpDst, port.into())]
        {
            key.set(field, value);
            mask.set(field, field.full());
        }
        Some(Filter::of(&key, &mask))
    };
    [("nothing: none runs", None), ("none", to(NONE)), ("1 %", to(RARE)), ("all", all())]
}

fn all() -> Option<Filter> {
    Some(Filter::default())
}

/// A thread that reads.
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Capture, u64)>,
}

/// Begins a capture of what comes in at a port.
pub fn begin(datapath: &Datapath, at: PortAt, filter: Filter) -> Reader {
    let points = [Point::Port(at, Sides::RX)];
    let wanted =
        Wanted { points: &points, filter, snap: SNAP, ring: RING, share: Share::default() };
    let mut capture = datapath.capture(&wanted).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let read = move || {
        let mut taken = 0;
        while !seen.load(Relaxed) {
            taken += capture.take(Nanos(u64::MAX), 4096, |record| {
                std::hint::black_box(record.bytes.first());
            }) as u64;
        }
        (capture, taken)
    };
    Reader { stop, thread: std::thread::spawn(read) }
}

impl Reader {
    /// Ends it, and says whether every record is accounted for.
    pub fn end(self, datapath: &Datapath) -> String {
        self.stop.store(true, Relaxed);
        let (mut capture, mut taken) = self.thread.join().unwrap();
        datapath.end_capture(&capture);
        taken += capture.take(Nanos(u64::MAX), usize::MAX, |_| {}) as u64;
        let counted = capture.counted(0);
        assert_eq!(counted.matched, taken + counted.lost, "every record is accounted for");
        format!("records: {} = {taken} read + {} lost", counted.matched, counted.lost)
    }
}
