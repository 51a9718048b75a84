//! The programs of a port, run on frames that no wire carried: for tests.

use super::error::OffloadError;
use super::tc::{CHOOSE, OBEY, TcPort};
use aya::programs::{ProgramError, SchedClassifier, SocketFilter, TestRun, TestRunOptions};

/// What the hook says of a frame that leaves by the rung (`TC_ACT_REDIRECT`).
const REDIRECT: u32 = 7;
/// And of one that a limit drops (`TC_ACT_SHOT`).
const SHOT: u32 = 2;
/// Filters see a frame from its Ethernet header on, but this one is run on what follows one.
const BEFORE: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xb5];

/// Where a frame went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The worker has it.
    Worker,
    /// It left.
    Rung,
    /// A limit dropped it.
    Limited,
}

impl TcPort {
    /// Runs filter and hook on a frame, as the kernel does, on the calling thread's core, which must not change meanwhile.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn rehearse(&self, frame: &[u8]) -> Result<Way, OffloadError> {
        let choose = self.filter.program(CHOOSE).and_then(|program| program.try_into().ok());
        let choose: &SocketFilter = choose.ok_or(OffloadError::BrokenBuild(CHOOSE))?;
        let data = [&BEFORE[..], frame].concat();
        let said =
            choose.test_run(TestRunOptions { data_in: Some(&data), ..TestRunOptions::new() });
        said.map_err(OffloadError::load::<ProgramError>("run the filter"))?;
        self.rehearse_hook(frame, 1)
    }

    /// Runs the hook alone `repeat` times, as when the node is dead, or after the filter; where the last one went.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn rehearse_hook(&self, frame: &[u8], repeat: u32) -> Result<Way, OffloadError> {
        let obey = self.filter.program(OBEY).and_then(|program| program.try_into().ok());
        let obey: &SchedClassifier = obey.ok_or(OffloadError::BrokenBuild(OBEY))?;
        let options = TestRunOptions { data_in: Some(frame), repeat, ..TestRunOptions::new() };
        let said = obey.test_run(options);
        let said = said.map_err(OffloadError::load::<ProgramError>("run the hook"))?;
        Ok(match said.return_value {
            REDIRECT => Way::Rung,
            SHOT => Way::Limited,
            _ => Way::Worker,
        })
    }
}
