//! A worker stage whose port was killed, and which another lease has kept.

use super::{Hook, HookError, Stage};
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp, loaded_programs};
use aya_obj::programs::XdpAttachType;
use std::io;

/// `XDP_DROP` of linux/bpf.h.
const DROP: u32 = 1;
/// A frame that no table looks at.
const FRAME: [u8; 60] = [0; 60];

impl Hook {
    /// The program of the worker stage, if no socket is behind its first queue: its port is gone, and what comes is dropped.
    ///
    /// The program itself is asked, by a frame that no wire carried; it counts that one if it drops it.
    ///
    /// # Errors
    /// Another program is on the interface, or the kernel refuses to tell.
    pub fn orphan(index: u32) -> Result<Option<u32>, HookError> {
        let Some(id) = Self::program_at(index, Stage::Worker)? else { return Ok(None) };
        let Some(info) = loaded_programs().flatten().find(|info| info.id() == id) else {
            return Ok(None);
        };
        let failed = |error: ProgramError| {
            HookError::system("ask its worker stage")(io::Error::other(error))
        };
        let program = Xdp::from_program_info(info, "suiro_worker".into(), XdpAttachType::Interface);
        let options = TestRunOptions { data_in: Some(&FRAME), ..TestRunOptions::new() };
        let run = program.and_then(|program| program.test_run(options)).map_err(failed)?;
        Ok((run.return_value == DROP).then_some(id))
    }

    /// Frees the worker stage, if it still has that program.
    ///
    /// # Errors
    /// As of [`Hook::orphan`].
    pub fn free_orphan(index: u32, orphan: u32) -> Result<(), HookError> {
        let Some(found) = Self::look(index)? else { return Ok(()) };
        if found.hook.program_of(Stage::Worker)? != Some(orphan) {
            return Ok(());
        }
        let freed = found.hook.stages.clear(Stage::Worker as u32);
        freed.map_err(HookError::system("free its worker stage"))
    }
}
