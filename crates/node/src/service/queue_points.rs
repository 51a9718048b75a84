//! Points of captures at a port's queues.

use super::Node;
use super::captures::{bad_point, find_port};
use super::directory::Member;
use crate::captures::PointName;
use crate::refusal::Refusal;
use ::capture::pcapng::ETHERNET;
use datapath::Point;

impl Node {
    /// A queue of a port, or all of them.
    pub(super) fn queue_points(
        &self,
        text: &str,
        member: &Member,
        port: &str,
        wanted: Option<&str>,
    ) -> Result<Vec<(Point, PointName)>, Refusal> {
        let missing = |cause: &str| {
            bad_point(text, cause, "see them: suiro queue list; suiro port list".into())
        };
        let state = member.state();
        let Some((name, port)) = find_port(&state, port) else {
            return Err(missing("there is no such port"));
        };
        let mut queues: Vec<u32> = port.spec.queue.iter().map(|queue| queue.id).collect();
        // Where frames wait at all, those of no queue wait in this one.
        if (port.spec.rate.is_some() || !queues.is_empty()) && !queues.contains(&0) {
            queues.push(0);
        }
        queues.retain(|queue| wanted.is_none_or(|wanted| wanted == queue.to_string()));
        queues.sort_unstable();
        if queues.is_empty() {
            return Err(missing("the port has no such queue"));
        }
        let (at, switch) = (member.at(port.number), &state.spec.name);
        let point = |queue: u32| {
            let shown = PointName {
                link: ETHERNET,
                name: format!("queue:{switch}:{name}:{queue}"),
                description: format!(
                    "queue {queue} of port {} of switch {switch}: into it, out of it, dropped",
                    port.number
                ),
                hardware: port.spec.kind.kind().word(),
                queue: Some(queue),
            };
            (Point::Queue(at, queue), shown)
        };
        Ok(queues.into_iter().map(point).collect())
    }
}
