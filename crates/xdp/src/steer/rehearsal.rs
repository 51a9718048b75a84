//! The program of an interface, run on a frame that no wire carried: for tests and for measuring what it costs.

use super::attached::Attached;
use super::error::SteerError;
use super::pins::pin_error;
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use aya::sys::{Stats, enable_stats};
use aya_obj::programs::XdpAttachType;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// `struct label`: what the program puts in front of a frame.
const LABEL: usize = 8;

/// The program of an interface, to be run by hand. What it counts and decides is the interface's.
pub struct Rehearsal {
    program: Xdp,
}

impl Attached {
    /// Opens the interface's program.
    ///
    /// # Errors
    /// It is not pinned.
    pub fn rehearsal(&self) -> Result<Rehearsal, SteerError> {
        let path = self.directory.join("steer");
        let program = Xdp::from_pin(&path, XdpAttachType::Interface)
            .map_err(|error| pin_error(&path, "open the program")(io::Error::other(error)))?;
        Ok(Rehearsal { program })
    }
}

impl Rehearsal {
    /// Runs it `repeat` times in a row on a frame, on the calling thread's core; the last run's action (`XDP_…`) and the mean time of one.
    /// Nothing is sent: a redirected frame stays on its way for ever.
    ///
    /// # Errors
    /// The kernel refuses: the frame is shorter than an Ethernet header or longer than a page.
    pub fn run(&self, frame: &[u8], repeat: u32) -> Result<(u32, Duration), SteerError> {
        let options = TestRunOptions { data_in: Some(frame), repeat, ..TestRunOptions::new() };
        let result = self.program.test_run(options).map_err(refused)?;
        Ok((result.return_value, result.duration))
    }

    /// Runs it once; the action, and the frame as the program left it.
    ///
    /// # Errors
    /// As of [`Rehearsal::run`]. A frame may be longer than a page here.
    pub fn see(&self, frame: &[u8]) -> Result<(u32, Vec<u8>), SteerError> {
        let mut left = vec![0; LABEL + frame.len()];
        let (data_in, data_out) = (Some(frame), Some(&mut left[..]));
        let options = TestRunOptions { data_in, data_out, ..TestRunOptions::new() };
        let result = self.program.test_run(options).map_err(refused)?;
        // What is put in front of a frame comes with it.
        let label = (result.data_size_out as usize).saturating_sub(frame.len()).min(LABEL);
        Ok((result.return_value, left[label..label + frame.len()].to_vec()))
    }

    /// The time of all its runs and their number, while somebody has [`count_runs`].
    ///
    /// # Errors
    /// The kernel refuses to tell.
    pub fn spent(&self) -> Result<(Duration, u64), SteerError> {
        let info = self.program.info().map_err(refused)?;
        Ok((info.run_time(), info.run_count()))
    }

    /// Runs it on `count` copies of a frame that are really passed to the stack or sent to their core, as if received by the loopback
    /// interface of the calling thread's namespace, `batch` at a time.
    ///
    /// # Errors
    /// As of [`Rehearsal::run`].
    pub fn run_live(&self, frame: &[u8], count: u32, batch: u32) -> Result<(), SteerError> {
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: count,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::new()
        };
        self.program.test_run(options).map(|_| ()).map_err(refused)
    }
}

/// Has the kernel time every run of every program, which costs some 20 ns each, until the value is dropped.
///
/// # Errors
/// No permission.
pub fn count_runs() -> Result<OwnedFd, SteerError> {
    enable_stats(Stats::RunTime).map_err(|error| SteerError::Load {
        step: "time programs",
        source: Box::new(ProgramError::from(error).into()),
    })
}

fn refused(error: ProgramError) -> SteerError {
    SteerError::Load { step: "run the program", source: Box::new(error.into()) }
}
