//! What a frame costs on a rung: its own programs, run once before the first flow leaves, on frames that no wire carries.
//!
//! `BPF_PROG_TEST_RUN` repeats a program and tells the mean time of a run. The least of some rounds counts: whatever disturbs a round makes it longer. What the
//! kernel does with a frame behind the program is not seen so; [`RungPort::AFTER_NS`](super::RungPort) stands for it.

use super::abi::{OffloadFlow, PORTS, ZERO_SUM};
use super::error::OffloadError;
use super::flows::{Flows, program};
use super::{key, value, xdp};
use crate::verified::verified;
use aya::programs::{ProgramError, SchedClassifier, TestRun, TestRunOptions, TestRunResult, Xdp};
use offload::{FlowProgram, Price};
use std::time::Duration;
use wire::build::{Frame, Ipv4};
use wire::{Field, Head, checksum, ip_proto};

/// The rung tc in one program: what its socket's filter says, and what the hook does then.
pub(super) static BOTH: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/offload_try.bpf.o"));
pub(super) const TRY: &str = "suiro_try";

/// What programs say of a frame that leaves: `TC_ACT_REDIRECT`, `XDP_REDIRECT`.
const TC_REDIRECT: u32 = 7;
const XDP_REDIRECT: u32 = 4;

/// The flow's port: the last place, which a port has only if there are as many.
const PLACE: u32 = PORTS - 1;
/// Any interface: none is asked.
const EXIT: u32 = 1;
/// Payloads of two frames: the least, and one that fits in a page.
const PAYLOADS: [usize; 2] = [18, 1472];
/// Some 10 ms in all.
const REPEAT: u32 = 2000;
const ROUNDS: usize = 5;

/// Nanoseconds of a frame, and of each of its bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// A frame.
    pub frame_ns: f32,
    /// A byte.
    pub byte_ns: f32,
}

/// Nanoseconds of a rung.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Look-up, new addresses, counts, redirect.
    pub plain: Line,
    /// And a checksum that is summed.
    pub sum: Line,
    /// Whether this host's kernel was asked.
    pub is_measured: bool,
}

impl Cost {
    /// Of a flow, whose frames come with checksums that are open or not.
    pub(super) fn of(&self, flow: &FlowProgram, may_be_open: bool) -> Price {
        let is_summed =
            [ip_proto::TCP, ip_proto::UDP].contains(&(flow.key.get(Field::IpProto) as u8));
        let outside = flow.outside().is_some_and(|outside| outside.has_sum);
        let sums = u8::from(may_be_open && is_summed) + u8::from(outside);
        let both = |plain: f32, sum: f32| plain + f32::from(sums) * sum;
        Price {
            slots: 1,
            insert: super::rung::INSERT,
            per_frame_ns: both(self.plain.frame_ns, self.sum.frame_ns),
            per_byte_ns: both(self.plain.byte_ns, self.sum.byte_ns),
            is_measured: self.is_measured,
        }
    }

    fn measured(plain: Line, open: Line, after_ns: f32) -> Self {
        let more = |open: f32, plain: f32| (open - plain).max(0.0);
        let sum = Line {
            frame_ns: more(open.frame_ns, plain.frame_ns),
            byte_ns: more(open.byte_ns, plain.byte_ns),
        };
        let plain = Line { frame_ns: plain.frame_ns + after_ns, ..plain };
        Self { plain, sum, is_measured: true }
    }
}

/// Of the rung tc, which completes no checksum.
pub(super) fn tc(flows: &Flows, after_ns: f32) -> Result<Cost, OffloadError> {
    let mut programs = flows.load(BOTH, PLACE, &[], &[])?;
    let both: &mut SchedClassifier = program(&mut programs, TRY)?;
    verified(|| both.load()).map_err(OffloadError::load("load the programs"))?;
    let plain = line(flows, PAYLOADS.map(plain), &|options| both.test_run(options), TC_REDIRECT)?;
    Ok(Cost::measured(plain, plain, after_ns))
}

/// Of the rung xdp.
pub(super) fn xdp(flows: &Flows, after_ns: f32) -> Result<Cost, OffloadError> {
    let mut programs = flows.load(xdp::OBJECT, PLACE, &[(xdp::UNFINISHED, 1)], &[])?;
    let stage: &mut Xdp = program(&mut programs, xdp::OFFLOAD)?;
    verified(|| stage.load()).map_err(OffloadError::load("load the stage"))?;
    let run = |options: TestRunOptions<'_>| stage.test_run(options);
    let [plain, open] =
        [plain, open].map(|frame| line(flows, PAYLOADS.map(frame), &run, XDP_REDIRECT));
    Ok(Cost::measured(plain?, open?, after_ns))
}

type Run<'r> = dyn Fn(TestRunOptions<'_>) -> Result<TestRunResult, ProgramError> + 'r;

/// The line through the times of a short and a long frame of one flow.
fn line(
    flows: &Flows,
    frames: [Vec<u8>; 2],
    run: &Run<'_>,
    redirect: u32,
) -> Result<Line, OffloadError> {
    let [short, long] = &frames;
    let flow = flow_of(short);
    let refused = |error| OffloadError::load::<aya::maps::MapError>("put a flow in place")(error);
    let place = flows.add(&flow).map_err(refused)?.ok_or(OffloadError::NotRun)?;
    flows.set_done(place);
    flows.want_rung(place);
    let times = [short, long].map(|frame| least(frame, run, redirect));
    flows.remove(&flow.key, place);
    let [short_ns, long_ns] = times;
    let (short_ns, long_ns) = (short_ns?, long_ns?);
    let byte_ns = ((long_ns - short_ns) / (long.len() - short.len()) as f32).max(0.0);
    Ok(Line { frame_ns: (short_ns - byte_ns * short.len() as f32).max(0.0), byte_ns })
}

/// The least of some rounds.
fn least(frame: &[u8], run: &Run<'_>, redirect: u32) -> Result<f32, OffloadError> {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let options =
            TestRunOptions { data_in: Some(frame), repeat: REPEAT, ..TestRunOptions::new() };
        let said = run(options).map_err(OffloadError::load("run the programs"))?;
        if said.return_value != redirect {
            return Err(OffloadError::NotRun);
        }
        least = least.min(said.duration);
    }
    Ok(least.as_nanos() as f32)
}

/// The flow of a frame, whose addresses are put in the place of themselves: the next run meets the same frame.
fn flow_of(frame: &[u8]) -> OffloadFlow {
    let (key, _) = wire::parse(&Head::copy_of(frame), 0);
    let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| frame[4 * at + byte]));
    let mut flow = value::NOTHING;
    for at in 0..3 {
        (flow.keep[at], flow.put[at]) = (0, word(at));
    }
    let (key, exit) = (key::to_kernel(PLACE, &key), EXIT);
    OffloadFlow { key, exit, words: 3, max_len: 4096, flags: ZERO_SUM, l4_at: 34, ..flow }
}

/// A frame with a checksum that is complete.
fn plain(payload: usize) -> Vec<u8> {
    let frame = Frame::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(Ipv4::default());
    frame.udp(5, 9).payload(&vec![0x5a; payload]).finish()
}

/// One whose checksum is open, and the same when it is complete: each run sums it.
fn open(payload: usize) -> Vec<u8> {
    const L4: usize = 34;
    const FIELD: usize = L4 + 6;
    let mut frame = plain(payload);
    let last = frame.len() - 2;
    let udp_len = (frame.len() - L4) as u64;
    let pseudo = checksum::fold(checksum::sum(&frame[26..L4]) + u64::from(ip_proto::UDP) + udp_len);
    [FIELD, last].into_iter().for_each(|at| frame[at..at + 2].fill(0));
    let rest = checksum::fold(checksum::sum(&frame[L4..]));
    let word = checksum::fold(2 * u64::from(!pseudo) + u64::from(!rest));
    frame[FIELD..FIELD + 2].copy_from_slice(&pseudo.to_be_bytes());
    frame[last..].copy_from_slice(&word.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_open_and_complete_at_once_is_summed_each_time() {
        for frame in PAYLOADS.map(open) {
            let udp = checksum::sum(&frame[34..]);
            let pseudo = checksum::sum(&frame[26..34]) + 17 + (frame.len() - 34) as u64;
            let field = u16::from_be_bytes([frame[40], frame[41]]);
            assert_eq!(field, checksum::fold(pseudo), "as a sender leaves it");
            assert_eq!(checksum::fold(pseudo + udp), 0xffff, "as a receiver wants it");
        }
    }

    #[test]
    fn what_a_sum_costs_is_beside_what_a_frame_costs() {
        let line = |frame_ns, byte_ns| Line { frame_ns, byte_ns };
        let cost = Cost::measured(line(100.0, 0.0), line(130.0, 0.25), 80.0);
        assert_eq!((cost.plain, cost.sum), (line(180.0, 0.0), line(30.0, 0.25)));
    }
}
