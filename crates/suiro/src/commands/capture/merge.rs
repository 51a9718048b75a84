//! Captures of several nodes as one file: one row of interfaces, and packets in the order of time.
//!
//! A packet waits for [`WINDOW`] for what another node saw before it. All nodes make ids with one key, so that a packet has the same id everywhere.

use super::bad_block;
use crate::failure::Failure;
use crate::points;
use api::{CaptureSpec, Client, PortKind, PortView, Stop, SwitchView};
use capture::{Block, Blocks, Content, pcapng};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Chosen: a node sends what it saw after 20 ms, and a network adds some.
const WINDOW: Duration = Duration::from_millis(200);
/// A node that is silent for so long is not there.
const PATIENCE: Duration = Duration::from_secs(15);
/// Chunks that may wait.
const AHEAD: usize = 16;

/// What a node sent: its bytes, or how it ended.
type News = (usize, Result<Vec<u8>, Result<(), Failure>>);

/// Captures at the points of a specification that each node has. `hear` gets the blocks of one file.
pub fn capture(
    sockets: &[PathBuf],
    spec: &CaptureSpec,
    stop: Stop,
    mut hear: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    let spec = CaptureSpec { id_key: Some(key()?), ..spec.clone() };
    let clients: Vec<_> = sockets.iter().map(|at| Client::new(at.clone(), PATIENCE)).collect();
    let asked: Vec<_> = clients.iter().map(things).collect::<Result<_, _>>()?;
    let (sender, news) = sync_channel(AHEAD);
    let mut nodes = Vec::new();
    for (at, (client, socket)) in clients.into_iter().zip(sockets).enumerate() {
        let is_here = |point: &&String| is_at(point, at, &asked);
        let points: Vec<String> = spec.points.iter().filter(is_here).cloned().collect();
        if points.is_empty() {
            continue;
        }
        let (spec, sender) = (CaptureSpec { points, ..spec.clone() }, sender.clone());
        let place = nodes.len();
        nodes.push(Node { label: socket.display().to_string(), ..Node::default() });
        // It ends with the command.
        std::thread::spawn(move || follow((place, &client), &spec, stop, &sender));
    }
    drop(sender);
    Merge { nodes, names: Vec::new(), has_begun: false }.run(&news, &mut hear)
}

/// 128 bits that nobody knows, as the API takes them.
fn key() -> Result<String, Failure> {
    use std::io::Read;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What points of a node may name: switches, and tunnels, vlinks and steered interfaces with their kind in front.
fn things(client: &Client) -> Result<Vec<String>, Failure> {
    let views: Vec<SwitchView> = client.get("/v1/switches")?;
    let mut things: Vec<String> = views.iter().map(|view| view.name.to_string()).collect();
    let ports: Vec<PortView> = client.get("/v1/ports")?;
    let named = |port: &PortView| match port.kind {
        PortKind::Vxlan => Some(format!("tunnel:{}", port.name)),
        PortKind::Vlink => Some(format!("link:{}", port.name)),
        _ => None,
    };
    things.extend(ports.iter().filter_map(named));
    things.extend(points::steered(client).into_iter().map(|name| format!("steer:{name}")));
    Ok(things)
}

/// Whether a node is asked for a point: one that has its switch, tunnel or vlink, the first if none has, or each for those that name none.
fn is_at(point: &str, node: usize, things: &[Vec<String>]) -> bool {
    let parts: Vec<&str> = point.split(':').collect();
    let thing = match parts[..] {
        ["drops" | "passed"] => return true,
        ["drops" | "passed" | "controller" | "openflow" | "queue", switch, ..] => switch.to_owned(),
        [kind @ ("tunnel" | "link" | "steer"), name, ..] => format!("{kind}:{name}"),
        _ => parts[0].to_owned(),
    };
    let has = |names: &Vec<String>| names.contains(&thing);
    has(&things[node]) || (node == 0 && !things.iter().any(has))
}

/// Hands on what a node sends.
fn follow(
    (node, client): (usize, &Client),
    spec: &CaptureSpec,
    stop: Stop,
    news: &SyncSender<News>,
) {
    let told = |bytes: &[u8]| -> Result<_, Failure> {
        let is_heard = news.send((node, Ok(bytes.to_vec()))).is_ok();
        Ok(if is_heard { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    let ended = client.capture(spec, stop, told);
    let _nobody_hears = news.send((node, Err(ended)));
}

/// What came of one node.
#[derive(Default)]
struct Node {
    label: String,
    blocks: Blocks,
    /// Numbers of its interfaces in the file.
    interfaces: Vec<u32>,
    /// Packets and events: when, when they came here, and the block.
    waiting: VecDeque<(u64, Instant, Vec<u8>)>,
    /// What it counted.
    counts: Vec<Vec<u8>>,
    has_ended: bool,
}

struct Merge {
    nodes: Vec<Node>,
    /// Names of all interfaces.
    names: Vec<String>,
    has_begun: bool,
}

impl Merge {
    fn run(
        mut self,
        news: &Receiver<News>,
        hear: &mut impl FnMut(&[u8]) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        while self.nodes.iter().any(|node| !node.has_ended) {
            let mut out = Vec::new();
            match news.recv_timeout(WINDOW / 4) {
                Ok((node, Ok(bytes))) => self.take(node, &bytes, &mut out)?,
                Ok((node, Err(ended))) => {
                    ended?;
                    self.nodes[node].has_ended = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.put(&mut out, Instant::now());
            if hear(&out)?.is_break() {
                return Ok(());
            }
        }
        let mut end = Vec::new();
        self.nodes.iter_mut().for_each(|node| node.has_ended = true);
        self.put(&mut end, Instant::now());
        end.extend(self.nodes.into_iter().flat_map(|node| node.counts).flatten());
        hear(&end).map(drop)
    }

    /// Takes what a node sent; what comes before packets is in the file at once.
    fn take(&mut self, at: usize, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let Self { nodes, names, has_begun } = self;
        let node = &mut nodes[at];
        node.blocks.push(bytes);
        let now = Instant::now();
        while let Some(block) = node.blocks.next_block().map_err(bad_block)? {
            match block.content().map_err(bad_block)? {
                Content::Section if *has_begun => {}
                Content::Section => {
                    *has_begun = true;
                    out.extend(block.bytes());
                }
                Content::Interface { link, name, description } => {
                    node.interfaces.push(names.len() as u32);
                    let is_known = names.iter().any(|known| known == name);
                    let name =
                        if is_known { format!("{name}@{}", node.label) } else { name.into() };
                    let (snap, filter, hardware) = (0, "", "");
                    let told = pcapng::Interface {
                        link,
                        snap,
                        name: &name,
                        description,
                        filter,
                        hardware,
                    };
                    pcapng::interface(out, &told);
                    names.push(name);
                }
                Content::Packet(packet) => {
                    let block = renumbered(&block, packet.interface, &node.interfaces);
                    node.waiting.push_back((packet.at_ns, now, block));
                }
                Content::Journal(seen) => {
                    node.waiting.push_back((seen.at_ns, now, block.bytes().to_vec()));
                }
                Content::Statistics(counts) => {
                    node.counts.push(renumbered(&block, counts.interface, &node.interfaces));
                }
                Content::Other => {}
            }
        }
        Ok(())
    }

    /// Puts down what no node can come before any more.
    fn put(&mut self, out: &mut Vec<u8>, now: Instant) {
        loop {
            let is_open = |node: &Node| !node.has_ended && node.waiting.is_empty();
            let may_come = self.nodes.iter().any(is_open);
            let heads = self.nodes.iter_mut().filter(|node| !node.waiting.is_empty());
            let Some(first) = heads.min_by_key(|node| node.waiting[0].0) else { return };
            if may_come && now.saturating_duration_since(first.waiting[0].1) < WINDOW {
                return;
            }
            out.extend(first.waiting.pop_front().into_iter().flat_map(|(.., block)| block));
        }
    }
}

/// A block of an interface, by its number in the file. It stands at the beginning of such a block's body.
fn renumbered(block: &Block<'_>, of: u32, interfaces: &[u32]) -> Vec<u8> {
    let mut bytes = block.bytes().to_vec();
    let number = interfaces.get(of as usize).copied().unwrap_or_default();
    bytes[8..12].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_asked_for_what_it_has_and_the_first_for_what_nobody_has() {
        let names = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let things = [
            names(&["u0", "k0", "link:a", "tunnel:tun0"]),
            names(&["k1", "tunnel:tun0", "steer:eth0"]),
        ];
        for (point, asked) in [
            ("drops", [true, true]),
            ("drops:k1", [false, true]),
            ("controller:k1", [false, true]),
            ("openflow:k1", [false, true]),
            ("queue:k1:tap1:2", [false, true]),
            ("steer:eth0:after", [false, true]),
            ("u0:vm1:rx", [true, false]),
            ("k1:tun0:outside", [false, true]),
            ("tunnel:tun0:outside", [true, true]),
            ("link:a", [true, false]),
            ("link:b", [true, false]),
            ("nobody:has", [true, false]),
        ] {
            assert_eq!([0, 1].map(|node| is_at(point, node, &things)), asked, "{point}");
        }
    }
}
