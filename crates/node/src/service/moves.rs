//! Flows that came to another rung, as events. A thousand a second may move; the feed hears of some, and how many the others were.

use super::directory::Directory;
use crate::feed::Feed;
use crate::offload;
use crate::ports::Ports;
use ::offload::Moved;
use api::{Happening, News, Noun};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// Events a second. Chosen: what a person reads, and an hour of it does not push all other events out of the feed.
const TOLD: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// Tells of moves until the offload thread ends.
pub(super) async fn tell(
    mut moved: UnboundedReceiver<Moved>,
    (directory, ports, feed): (Arc<Directory>, Arc<Ports>, Feed),
) {
    let (mut told, mut others, mut until) = (0, 0, Instant::now());
    loop {
        let next = match others {
            0 => moved.recv().await.map(Some),
            _ => tokio::time::timeout_at(until, moved.recv())
                .await
                .map_or(Some(None), |next| next.map(Some)),
        };
        let Some(next) = next else { return };
        if Instant::now() >= until {
            if others > 0 {
                let text = format!("{others} more flows came to other rungs within a second");
                feed.tell(News::of_node(Noun::Node, "offload", Happening::State, text));
            }
            (told, others, until) = (0, 0, Instant::now() + SECOND);
        }
        match next.and_then(|moved| news(&moved, &directory, &ports)) {
            Some(news) if told < TOLD => {
                told += 1;
                feed.tell(news);
            }
            Some(_) => others += 1,
            None => {}
        }
    }
}

/// `None`: its switch is gone.
fn news(
    Moved { name: (at, key), to, why }: &Moved,
    directory: &Directory,
    ports: &Ports,
) -> Option<News> {
    let member = directory.by_id(at.switch)?;
    let (switch, state) = (member.name(), member.state());
    let port = state.ports.iter().find(|(_, port)| port.number == at.port);
    let port = port.map_or_else(|| at.port.to_string(), |(name, _)| name.to_string());
    let place = to.map_or_else(|| "on the worker".into(), |rung| format!("on rung {rung}"));
    let flow = offload::words(key, ports.ends());
    let text = format!("from {port}: {place}: {why}");
    Some(News::inside((Noun::Flow, &switch, &flow), Happening::State, text))
}
