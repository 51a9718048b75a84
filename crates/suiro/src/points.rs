//! Points of captures that a node has beside its switches and ports: steered interfaces, and queues.

use api::steer::{InterfaceView, SteerView};
use api::{Client, PortView};
use std::collections::BTreeSet;

/// The interfaces that the kernel steers; none where the node does not say.
pub fn steered(client: &Client) -> Vec<String> {
    let view: Option<SteerView> = client.get("/v1/steer").ok();
    let interfaces = view.into_iter().flat_map(|view| view.interfaces);
    interfaces.filter(InterfaceView::is_in_kernel).map(|view| view.name).collect()
}

/// The queues of a port: where frames wait at all, those of no queue wait in queue 0.
pub fn queues(port: &PortView) -> Vec<u32> {
    let mut queues: BTreeSet<u32> = port.queue.iter().map(|queue| queue.id).collect();
    if port.rate.is_some() || !queues.is_empty() {
        queues.insert(0);
    }
    queues.into_iter().collect()
}
