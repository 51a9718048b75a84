//! The queues of ports come, change and go, while the ports carry on.

use super::Node;
use super::change::PortChange;
use super::ports::{label, misread};
use crate::refusal::{Refusal, Why};
use api::{Fault, PortQueueView, PortSpec, QueueLimits, QueueSpec};
use datapath::{PortAt, QueueCounters};

impl Node {
    /// The queues of a port, by number.
    ///
    /// # Errors
    /// There is no such switch or port.
    pub fn queues(&self, switch: &str, key: &str) -> Result<Vec<PortQueueView>, Refusal> {
        let member = self.member(switch)?;
        let (_, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        Ok(self.view_port_queues(member.at(port.number), &port.spec))
    }

    /// Gives a port a queue, in place of the one of its number if there is one.
    ///
    /// # Errors
    /// There is no such port, it is the file's, it cannot have such a queue, or it has it but that is not saved.
    pub async fn put_queue(
        &self,
        switch: &str,
        key: &str,
        id: u32,
        limits: QueueLimits,
    ) -> Result<PortQueueView, Refusal> {
        self.with_port(switch, key, |spec| Ok(spec.with_queue(limits.of(id)))).await?;
        let queues = self.queues(switch, key)?;
        queues.into_iter().find(|queue| queue.id == id).ok_or_else(|| no_queue(switch, key, id))
    }

    /// Takes a queue from a port; what waits in it goes to queue 0.
    ///
    /// # Errors
    /// There is none of that number, it is the file's, or it is gone but that is not saved.
    pub async fn remove_queue(&self, switch: &str, key: &str, id: u32) -> Result<(), Refusal> {
        let without = |spec: &PortSpec| {
            let found = spec.queue.iter().any(|queue| queue.id == id);
            found.then(|| spec.without_queue(id)).ok_or_else(|| no_queue(switch, key, id))
        };
        self.with_port(switch, key, without).await
    }

    /// Changes the queues of a port as `change` says, and saves them.
    async fn with_port(
        &self,
        switch: &str,
        key: &str,
        change: impl FnOnce(&PortSpec) -> Result<PortSpec, Refusal>,
    ) -> Result<(), Refusal> {
        let changing = self.change.of(switch).await;
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        let thing = label(switch, &name);
        port.owner.must_be_api(&thing, "change its queues")?;
        let to = PortSpec::read(change(&port.spec)?.keys());
        let to = to.map_err(|faults| misread(&thing, &faults))?;
        let changes = PortChange::of(&port.spec, to);
        self.change_port(&member, (&name, &port), &changes).await?;
        drop(changing);
        self.saved(&thing).await
    }

    pub(super) fn view_port_queues(&self, at: PortAt, spec: &PortSpec) -> Vec<PortQueueView> {
        self.offload.refresh();
        let counters = self.datapath.queue_counters(at);
        let of = |id: u32| counters.iter().find(|counters| counters.id == id);
        let mut views: Vec<_> = spec.queue.iter().map(|queue| view(queue, of(queue.id))).collect();
        views.sort_by_key(|view| view.id);
        views
    }
}

fn view(queue: &QueueSpec, counters: Option<&QueueCounters>) -> PortQueueView {
    let of = |count: fn(&QueueCounters) -> u64| counters.map_or(0, count);
    PortQueueView {
        id: queue.id,
        min_rate: queue.min_rate,
        max_rate: queue.max_rate,
        tx_frames: of(|counters| counters.tx_frames),
        tx_bytes: of(|counters| counters.tx_bytes),
        tx_errors: of(|counters| counters.tx_errors),
        waiting: of(|counters| counters.waiting),
        wait: counters.map(|counters| counters.wait.clone()).unwrap_or_default(),
        age_ns: of(|counters| counters.age_ns),
    }
}

fn no_queue(switch: &str, port: &str, id: u32) -> Refusal {
    let thing = format!("queue {id} of port {port} of switch {switch}");
    let remedy = format!("list its queues with: suiro queue list {switch} {port}");
    Refusal::new(
        Why::NotFound,
        Fault::new(thing, "find it", "the port has no queue of that number", remedy),
    )
}
