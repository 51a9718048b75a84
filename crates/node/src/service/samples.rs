//! What collectors of samples are told of workers, switches and ports.

use super::Node;
use crate::captures::Past;
use api::PortView;
use datapath::SwitchId;
use flow::Nanos;
use offload::FlowLine;
use wire::Key;

impl Node {
    /// The sample of frames that passed a worker from a moment on, the oldest first.
    pub fn passed(&self, worker: usize, since: Nanos) -> Vec<Past> {
        let mut passed = Vec::new();
        self.datapath.passed(worker, since, |seen| passed.push(Past::of(&seen)));
        passed
    }

    /// The flows that are or were past the workers. None if the node ends.
    pub async fn flows_past(&self) -> Vec<FlowLine> {
        let all = (Key::default(), Key::default());
        let mut lines = self.offload.flows(None, all).await.unwrap_or_default();
        lines.retain(|line| line.offloaded.frames > 0);
        lines
    }

    /// Frames that a worker has received.
    pub fn received(&self, worker: usize) -> u64 {
        self.datapath.received(worker)
    }

    /// Cores of the workers, in order of their numbers.
    pub fn cores(&self) -> &[usize] {
        &self.facts.config.cores
    }

    /// A switch's datapath id, if it is there still.
    pub fn datapath_id(&self, switch: SwitchId) -> Option<u64> {
        self.directory.by_id(switch).map(|member| member.switch.datapath_id())
    }

    /// All ports, each with the datapath id of its switch.
    pub fn ports_by_datapath(&self) -> Vec<(u64, PortView)> {
        let ports = self.all_ports().into_iter();
        let with_id = |port: PortView| {
            let member = self.directory.by_name(&port.switch)?;
            Some((member.switch.datapath_id(), port))
        };
        ports.filter_map(with_id).collect()
    }
}
