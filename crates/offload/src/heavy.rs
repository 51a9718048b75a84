//! How much comes of a flow: from samples of the worker's, or from a rung's counts.

use flow::Nanos;

/// Over how long rates are measured.
pub const WINDOW_NS: u64 = 100_000_000;

/// What is known of a flow's traffic.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    /// Frames so far; on the worker an estimate from samples.
    pub frames: u64,
    /// Bytes so far, likewise.
    pub bytes: u64,
    /// Frames a second, smoothed by a half each window.
    pub pps: f64,
    /// Bits a second, likewise.
    pub rate: f64,
    /// When the first frame was seen.
    pub first: Nanos,
    /// When the last one was.
    pub last: Nanos,
    /// Frames and bytes of this window.
    window: (u64, u64),
    /// When this window began.
    began: Nanos,
}

impl Traffic {
    /// Nothing has come yet.
    pub fn begin(now: Nanos) -> Self {
        Self { first: now, last: now, began: now, ..Self::default() }
    }

    /// So much came, the last of it at `last`.
    pub fn add(&mut self, frames: u64, bytes: u64, last: Nanos) {
        self.frames += frames;
        self.bytes += bytes;
        self.window.0 += frames;
        self.window.1 += bytes;
        self.last = self.last.max(last);
    }

    /// Closes the window if it is over; true then.
    pub fn tick(&mut self, now: Nanos) -> bool {
        let passed = now.since(self.began);
        if passed < WINDOW_NS {
            return false;
        }
        let seconds = passed as f64 / 1e9;
        let (frames, bytes) = std::mem::take(&mut self.window);
        // Several windows at once: the old value has halved once for each.
        let kept = 0.5f64.powf(passed as f64 / WINDOW_NS as f64);
        let smooth = |old: f64, new: f64| old * kept + new * (1.0 - kept);
        self.pps = smooth(self.pps, frames as f64 / seconds);
        self.rate = smooth(self.rate, bytes as f64 * 8.0 / seconds);
        self.began = now;
        true
    }
}
