//! What the program sees in a frame, asked of the program itself.

use super::abi::Packet;
use super::error::SteerError;
use super::maps::access;
use aya::maps::Array;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError};
use place::steering::FlowKey;

pub(crate) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/dissect.bpf.o"));
const PROGRAM: &str = "suiro_dissect";
/// The kernel runs no program on less than an Ethernet header.
const SHORTEST: usize = 14;

/// The dissector, loaded and on no interface.
pub struct Dissector {
    ebpf: Ebpf,
}

/// What is in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dissected {
    /// Its key.
    pub key: FlowKey,
    /// There is an IP header: the frame can be steered.
    pub is_ip: bool,
    /// The IP identification of a fragment.
    pub fragment_id: u32,
    /// The packet around the tunnel is the first of several pieces, with this identification.
    pub outer_fragment: Option<u32>,
}

impl Dissector {
    /// Loads it.
    ///
    /// # Errors
    /// No permission.
    pub fn new() -> Result<Self, SteerError> {
        let load = |source: EbpfError| SteerError::Load {
            step: "load the dissector",
            source: Box::new(source),
        };
        let mut ebpf = crate::object::load(OBJECT).map_err(load)?;
        let program = ebpf.program_mut(PROGRAM).and_then(|program| program.try_into().ok());
        let program: &mut Xdp = program.ok_or(SteerError::BrokenBuild(PROGRAM))?;
        program.load().map_err(|error| load(error.into()))?;
        Ok(Self { ebpf })
    }

    /// Runs it on a frame in a VXLAN's default port's sense; nothing is in a frame of less than an Ethernet header.
    ///
    /// # Errors
    /// The kernel refuses to run it.
    pub fn dissect(&self, frame: &[u8]) -> Result<Dissected, SteerError> {
        let nothing = Dissected {
            key: FlowKey::default(),
            is_ip: false,
            fragment_id: 0,
            outer_fragment: None,
        };
        if frame.len() < SHORTEST {
            return Ok(nothing);
        }
        let program: Option<&Xdp> =
            self.ebpf.program(PROGRAM).and_then(|program| program.try_into().ok());
        let options = TestRunOptions { data_in: Some(frame), ..TestRunOptions::new() };
        program.ok_or(SteerError::BrokenBuild(PROGRAM))?.test_run(options).map_err(|error| {
            SteerError::Load { step: "run the dissector", source: Box::new(error.into()) }
        })?;
        let map = self.ebpf.map("dissected").ok_or(SteerError::BrokenBuild(PROGRAM))?;
        let found: Array<_, Packet> = Array::try_from(map).map_err(access("dissected"))?;
        let packet = found.get(&0, 0).map_err(access("dissected"))?;
        Ok(Dissected {
            key: FlowKey(packet.words),
            is_ip: packet.is_ip != 0,
            fragment_id: packet.fragment_id,
            outer_fragment: (packet.is_outer_fragment != 0).then_some(packet.outer_id),
        })
    }
}
