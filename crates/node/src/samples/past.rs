//! Flows past the workers: what rungs of the kernel have counted more since it was told last.

use flow::Nanos;
use offload::{FlowLine, FlowName, ProviderName};
use std::collections::HashMap;

/// What has been told of a flow.
#[derive(Clone, Copy, Default)]
struct Told {
    frames: u64,
    bytes: u64,
    /// The rung that it was on when anybody looked.
    rung: &'static str,
}

/// What came of a flow since it was told last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct More {
    /// Which.
    pub name: FlowName,
    /// The rung.
    pub rung: &'static str,
    /// How many frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From when to when they came, at most.
    pub times: (Nanos, Nanos),
}

/// What has been told, of all flows that are known.
#[derive(Default)]
pub struct Past {
    told: HashMap<FlowName, Told>,
    /// When. At first never: what rungs have counted by then, an earlier node has told.
    at: Option<Nanos>,
}

impl Past {
    /// What came since the last time, of all the flows that are known at `now`; the first time nothing.
    pub fn more(&mut self, lines: &[FlowLine], now: Nanos) -> Vec<More> {
        let before = std::mem::take(&mut self.told);
        let mut all = Vec::new();
        for line in lines.iter().filter(|line| line.offloaded.frames > 0) {
            let counted = line.offloaded;
            let told = before.get(&line.name).copied().unwrap_or_default();
            let rung = line.rung.map_or(told.rung, ProviderName::word);
            let is = Told { frames: counted.frames, bytes: counted.bytes, rung };
            self.told.insert(line.name, is);
            let (frames, bytes) =
                (is.frames.saturating_sub(told.frames), is.bytes.saturating_sub(told.bytes));
            if let Some(at) = self.at
                && frames > 0
            {
                let times = (at.min(counted.used), counted.used);
                all.push(More { name: line.name, rung, frames, bytes, times });
            }
        }
        self.at = Some(now);
        all
    }
}
