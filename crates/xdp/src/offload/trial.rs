//! A rung, run on frames that never were on a wire: what it makes of each, for the test that compares it with the worker.

use super::error::OffloadError;
use super::flows::{Flows, program};
use super::price::{BOTH, TRY};
use super::{value, xdp};
use crate::verified::verified;
use aya::Ebpf;
use aya::programs::{SchedClassifier, TestRun, TestRunOptions, Xdp};
use offload::{Counts, FlowProgram, Frame, Handle, OUTSIDE, ProviderName};
use std::path::Path;
use wire::eth_type;

/// `TC_ACT_REDIRECT`, and `TCX_NEXT`: by the rung, and the worker's.
const REDIRECT: i32 = 7;
const NEXT: i32 = -1;

/// The port whose frames they are.
const PORT: u32 = 0;
/// Addresses and type; a tag lies between them.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

/// Words of `struct __sk_buff` (linux/bpf.h): `cb`, `gso_size`, all.
const CB: usize = 12;
const GSO_SIZE: usize = 44;
const CONTEXT: usize = 48;

/// `XDP_DROP`, `XDP_PASS` and `XDP_REDIRECT`: there is no socket for the worker's, no next stage, by the rung.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_REDIRECT: u32 = 4;

/// A rung without interfaces.
pub struct Trial {
    flows: Flows,
    programs: Ebpf,
    rung: ProviderName,
}

impl Trial {
    /// The rung tc. Makes the maps below `root`; [`Flows::purge`] takes them away.
    ///
    /// # Errors
    /// No permission, or the kernel is too old.
    pub fn tc(root: &Path) -> Result<Self, OffloadError> {
        let flows = Flows::open(root)?;
        let mut programs = flows.load(BOTH, PORT, &[], &[])?;
        let program: &mut SchedClassifier = program(&mut programs, TRY)?;
        verified(|| program.load()).map_err(OffloadError::load("load the programs"))?;
        Ok(Self { flows, programs, rung: ProviderName::Tc })
    }

    /// The rung xdp, likewise; `may_be_unfinished`: whether it completes checksums that were left open.
    ///
    /// # Errors
    /// As of [`Trial::tc`].
    pub fn xdp(root: &Path, may_be_unfinished: bool) -> Result<Self, OffloadError> {
        let flows = Flows::open(root)?;
        let globals = [(xdp::UNFINISHED, u32::from(may_be_unfinished))];
        let mut programs = flows.load(xdp::OBJECT, PORT, &globals, &[])?;
        let stage: &mut Xdp = program(&mut programs, xdp::OFFLOAD)?;
        verified(|| stage.load()).map_err(OffloadError::load("load the stage"))?;
        Ok(Self { flows, programs, rung: ProviderName::Xdp })
    }

    /// Puts a flow on the rung, as its provider does.
    ///
    /// # Panics
    /// All places are taken.
    pub fn install(&self, program: &FlowProgram) -> Handle {
        let place = self
            .flows
            .add(&value::of(PORT, program, 1))
            .ok()
            .flatten()
            .expect("there is room in the maps");
        self.flows.set_done(place);
        self.flows.want_rung(place);
        Handle(place)
    }

    /// What came of a flow's frames.
    pub fn counts(&self, handle: Handle) -> Counts {
        value::counts(&self.flows.flows.get(handle.0 as usize))
    }

    /// Takes a flow away.
    pub fn remove(&self, handle: Handle) {
        let key = self.flows.flows.get(handle.0 as usize).key;
        self.flows.remove(&key, handle.0);
    }

    /// Runs the rung's programs on a frame; true: the rung took it, and the frame is as it leaves.
    ///
    /// # Errors
    /// The kernel refuses the frame: it is shorter than an Ethernet header or longer than a page.
    ///
    /// # Panics
    /// Programs contradict each other, or drop.
    pub fn run(&self, frame: &mut Frame) -> Result<bool, OffloadError> {
        match self.rung {
            ProviderName::Xdp => self.run_stage(frame),
            _ => self.run_filter_and_hook(frame),
        }
    }

    fn run_stage(&self, frame: &mut Frame) -> Result<bool, OffloadError> {
        let mut left = vec![0; frame.bytes.len() + 2 * TAG + OUTSIDE];
        let (data_in, data_out) = (Some(&frame.bytes[..]), Some(&mut left[..]));
        let options = TestRunOptions { data_in, data_out, ..TestRunOptions::new() };
        let orphans = || self.flows.ports.get(PORT as usize).orphans;
        let before = orphans();
        let stage: Option<&Xdp> =
            self.programs.program(xdp::OFFLOAD).and_then(|program| program.try_into().ok());
        let run = stage.ok_or(OffloadError::BrokenBuild(xdp::OFFLOAD))?.test_run(options);
        let run = run.map_err(OffloadError::load("run the stage"))?;
        left.truncate(run.data_size_out as usize);
        match run.return_value {
            XDP_REDIRECT => frame.bytes = left,
            XDP_PASS => assert_eq!(left, frame.bytes, "nothing has changed"),
            // Of its flow, and the worker's: there is none.
            XDP_DROP if orphans() > before => assert_eq!(left, frame.bytes, "nothing has changed"),
            XDP_DROP => panic!("no limit and no worker takes a frame, yet it is gone: {frame:?}"),
            other => panic!("the stage says {other} of {frame:?}"),
        }
        Ok(run.return_value == XDP_REDIRECT)
    }

    fn run_filter_and_hook(&self, frame: &mut Frame) -> Result<bool, OffloadError> {
        let mut context = [0u32; CONTEXT];
        let bytes = untagged(&frame.bytes, &mut context[CB..CB + 2]);
        context[GSO_SIZE] = frame.segment.unwrap_or(0).into();
        let (context_in, mut context_out) = (bytes_of(&context), [0; 4 * CONTEXT]);
        let mut left = vec![0; bytes.len() + TAG];
        let options = TestRunOptions {
            data_in: Some(&bytes),
            data_out: Some(&mut left),
            ctx_in: Some(&context_in),
            ctx_out: Some(&mut context_out),
            ..TestRunOptions::new()
        };
        let program: &SchedClassifier = self
            .programs
            .program(TRY)
            .and_then(|program| program.try_into().ok())
            .ok_or(OffloadError::BrokenBuild(TRY))?;
        let run = program.test_run(options).map_err(OffloadError::load("run the programs"))?;
        left.truncate(run.data_size_out as usize);
        let [tpid, tci, is_refused] = [0, 1, 2].map(|at| word(&context_out, CB + at));
        match (run.return_value as i32, is_refused) {
            (REDIRECT, 1) => frame.bytes = tagged(left, tpid, tci),
            (NEXT, 0) => assert_eq!(tagged(left, tpid, tci), frame.bytes, "nothing has changed"),
            other => panic!("hook and filter say {other:?} of {frame:?}"),
        }
        Ok(is_refused == 1)
    }
}

/// The frame as the kernel has it: the outermost tag beside it.
fn untagged(bytes: &[u8], beside: &mut [u32]) -> Vec<u8> {
    let word = |at: usize| bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let (Some(tpid), Some(tci), Some(_)) =
        (word(ADDRESSES), word(ADDRESSES + 2), word(ADDRESSES + TAG))
    else {
        return bytes.to_vec();
    };
    if !eth_type::is_vlan(tpid) {
        return bytes.to_vec();
    }
    beside.copy_from_slice(&[tpid.into(), tci.into()]);
    [&bytes[..ADDRESSES], &bytes[ADDRESSES + TAG..]].concat()
}

fn tagged(mut bytes: Vec<u8>, tpid: u32, tci: u32) -> Vec<u8> {
    if tpid != 0 {
        bytes.splice(ADDRESSES..ADDRESSES, (tpid << 16 | tci).to_be_bytes());
    }
    bytes
}

fn bytes_of(words: &[u32; CONTEXT]) -> [u8; 4 * CONTEXT] {
    std::array::from_fn(|at| words[at / 4].to_ne_bytes()[at % 4])
}

fn word(bytes: &[u8; 4 * CONTEXT], at: usize) -> u32 {
    bytes.as_chunks().0.get(at).map_or(0, |word| u32::from_ne_bytes(*word))
}
