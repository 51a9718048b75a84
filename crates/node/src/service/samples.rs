//! What collectors of samples are told of workers, switches and ports.

use super::Node;
use super::directory::Member;
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

    /// The datapath id by which collectors know a switch, if it is there still.
    pub fn sampled_id(&self, switch: SwitchId) -> Option<u64> {
        self.directory.by_id(switch).map(|member| self.sampled_as(&member))
    }

    /// A slice's switch is known by the id that it would have by default: two slices may have chosen one.
    fn sampled_as(&self, member: &Member) -> u64 {
        match member.owner().slice() {
            Some(_) => self.facts.derived_dpid(&member.name()).get(),
            None => member.switch.datapath_id(),
        }
    }

    /// All ports, each with the datapath id by which collectors know its switch.
    pub fn sampled_ports(&self) -> Vec<(u64, PortView)> {
        let ports = self.all_ports().into_iter();
        let with_id = |port: PortView| {
            let member = self.directory.by_name(&port.switch)?;
            Some((self.sampled_as(&member), port))
        };
        ports.filter_map(with_id).collect()
    }
}
