//! A stage that somebody has.

use super::sys::{ProgramArray, pin};
use super::{Hook, HookError, Stage};
use aya::programs::{ProgramError, Xdp};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How long a lease lasts.
#[derive(Clone, Copy, Debug)]
pub enum Life<'p> {
    /// As long as its value, and so at most as long as the process.
    Process,
    /// Until the stage is [freed](super::free): the hook's link is pinned at this path. Its stages must be pinned too ([`Hook::pin_stages`]).
    Pinned(&'p Path),
}

/// A stage of a hook, with the program that runs there.
pub struct Lease {
    stages: ProgramArray,
    stage: Stage,
    program: u32,
    is_pinned: bool,
    /// The hook is there as long as this.
    _link: OwnedFd,
}

impl Hook {
    /// Puts a loaded program into a stage, in the place of one whose owner is gone.
    ///
    /// # Errors
    /// The program is of another shape than the hook, or the kernel refuses; nothing is pinned then.
    pub fn lease(self, stage: Stage, program: &Xdp, life: Life<'_>) -> Result<Lease, HookError> {
        let failed = |error: ProgramError| {
            HookError::system("know the stage's program")(io::Error::other(error))
        };
        let (fd, info) = (program.fd().map_err(failed)?, program.info().map_err(failed)?);
        let set = self.stages.set(stage as u32, fd.as_fd());
        set.map_err(HookError::system("put the program into its stage"))?;
        let Self { link, stages, .. } = self;
        let mut lease = Lease { stages, stage, program: info.id(), is_pinned: false, _link: link };
        if let Life::Pinned(path) = life {
            pin(lease._link.as_fd(), path).map_err(HookError::system("pin its link"))?;
            lease.is_pinned = true;
        }
        Ok(lease)
    }
}

/// A stage that lasts as long as the process is free again, unless another program has it by now.
impl Drop for Lease {
    fn drop(&mut self) {
        let is_ours = || self.stages.get(self.stage as u32).ok().flatten() == Some(self.program);
        if !self.is_pinned && is_ours() {
            // Refused only where the hook itself is gone.
            let _ = self.stages.clear(self.stage as u32);
        }
    }
}
