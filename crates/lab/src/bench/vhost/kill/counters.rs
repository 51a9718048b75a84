//! What a player tells: numbers in a file that it and the bench map, so that a kill -9 loses none of them.

use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use testbed::driver::sys::{Memory, View};

/// A number of a player's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// Of the next frame that it sends; stored before the frame is offered.
    Sequence,
    /// Of the next frame that it expects.
    Expected,
    /// Frames that came as they were sent.
    Good,
    /// Frames that did not come.
    Lost,
    /// Frames that came again.
    Repeated,
    /// Frames that came with other bytes.
    Damaged,
    /// Switches that it was connected to so far, in this life and in earlier ones.
    Session,
    /// The other player's session as of the last frame that came.
    Seen,
    /// When the first frame came of this pair of sessions: nanoseconds of the monotonic clock.
    Since,
}

const CELLS: usize = 9;

/// The numbers of one player.
pub struct Counters(View<AtomicU64>);

impl Counters {
    /// Numbers that are all 0, in a new file.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn create(path: &Path) -> Result<Self> {
        std::fs::write(path, [0; 8 * CELLS])?;
        Self::open(path)
    }

    /// Those in a file.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.with_context(|| format!("{}: cannot be opened", path.display()))?;
        Ok(Self(Memory::shared(file, 8 * CELLS)?.view(0, CELLS)))
    }

    /// A number as it stands.
    pub fn get(&self, cell: Cell) -> u64 {
        self.0[cell as usize].load(Acquire)
    }

    /// Only a player stores.
    pub fn set(&self, cell: Cell, value: u64) {
        self.0[cell as usize].store(value, Release);
    }
}

/// Nanoseconds of the clock that all processes share.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
