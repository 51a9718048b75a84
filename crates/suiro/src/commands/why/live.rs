//! The real packets of a flow: which come in, and where they are seen then.

use crate::commands::Context;
use crate::commands::capture::{bad_block, line};
use crate::failure::Failure;
use api::{CaptureSpec, Stop, WhyAnswer, WhyWatch};
use capture::pcapng::{ETHERNET, Packet};
use capture::{Blocks, Content, Direction};
use serde::Serialize;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

/// Packets that are followed at a time. Chosen: their ids take a few MiB.
const PACKETS: usize = 100_000;
/// Bytes of each that are looked at: ids come from these.
const SNAP: u32 = 256;

/// What was seen.
#[derive(Serialize, Default)]
pub struct Live {
    /// Packets that came in.
    pub came: u64,
    /// Where those were seen.
    pub seen: Vec<Seen>,
    /// The first, in words.
    pub first: Option<String>,
    /// Those that found no room in a ring.
    pub lost: u64,
}

/// A place at which packets were seen.
#[derive(Serialize)]
pub struct Seen {
    /// Where: `sw0:vm2 tx`, `sw0 drop=by_rule`.
    pub at: String,
    /// How many.
    pub packets: u64,
    /// Whether the answer has said so.
    pub foretold: bool,
}

/// Looks for so long, at every port of the switches on the way, for what came in.
pub fn look(context: &Context, answer: &WhyAnswer, time: Duration) -> Result<Live, Failure> {
    let WhyWatch { switches, matching, .. } = &answer.watch;
    let drops = switches.iter().map(|switch| format!("drops:{switch}"));
    let spec = CaptureSpec {
        points: switches.iter().cloned().chain(drops).collect(),
        matching: matching.clone(),
        snap: Some(SNAP),
        ..CaptureSpec::default()
    };
    let mut watch = Watch {
        answer,
        blocks: Blocks::default(),
        names: Vec::new(),
        ids: HashSet::new(),
        live: Live::default(),
    };
    let ended =
        context.client.capture(&spec, Stop { after: Some(time) }, |bytes| watch.hear(bytes));
    match ended {
        Ok(()) | Err(Failure::Closed) => Ok(watch.live),
        Err(failure) => Err(failure),
    }
}

struct Watch<'a> {
    answer: &'a WhyAnswer,
    blocks: Blocks,
    /// Names of the interfaces.
    names: Vec<String>,
    /// Of packets that came in.
    ids: HashSet<u64>,
    live: Live,
}

impl Watch<'_> {
    fn hear(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, Failure> {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.push(bytes);
        while let Some(block) = blocks.next_block().map_err(bad_block)? {
            match block.content().map_err(bad_block)? {
                Content::Interface { name, .. } => self.names.push(name.to_owned()),
                Content::Packet(packet) => self.see(&packet),
                Content::Statistics(counts) => {
                    self.live.lost += counts.lost + counts.over_budget;
                }
                _ => {}
            }
        }
        self.blocks = blocks;
        let is_enough = self.ids.len() >= PACKETS;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn see(&mut self, packet: &Packet<'_>) {
        let name = self.names.get(packet.interface as usize).map_or("?", String::as_str);
        let Some(id) = packet.id.map(|id| id.0) else { return };
        let at = match packet.direction {
            Some(Direction::In) => format!("{name} rx"),
            Some(Direction::Out) => format!("{name} tx"),
            None => lost(packet.comment),
        };
        if at == self.answer.watch.entry {
            self.live.came += 1;
            self.ids.insert(id);
            self.live.first.get_or_insert_with(|| line(ETHERNET, packet));
        }
        if !self.ids.contains(&id) {
            return;
        }
        match self.live.seen.iter_mut().find(|seen| seen.at == at) {
            Some(seen) => seen.packets += 1,
            None => {
                let foretold = self.answer.watch.seen.contains(&at);
                self.live.seen.push(Seen { at, packets: 1, foretold });
            }
        }
    }
}

/// Where a packet was lost, and why.
fn lost(comment: &str) -> String {
    let said = |key: &str| {
        comment.split(' ').find_map(|word| word.strip_prefix(key)).unwrap_or("?").to_owned()
    };
    format!("{} drop={}", said("switch="), said("drop="))
}

/// In words.
pub fn page(live: &Live, answer: &WhyAnswer, time: Duration) -> String {
    let WhyWatch { matching, entry, .. } = &answer.watch;
    let matching = if matching.is_empty() { "all" } else { matching };
    let mut text = format!("LIVE {time:?}: {} packets of {matching} at {entry}\n", live.came);
    let width = live.seen.iter().map(|seen| seen.packets.to_string().len()).max().unwrap_or(1);
    for Seen { at, packets, foretold } in &live.seen {
        let not = if *foretold { "" } else { "  not foretold" };
        text += &format!("  {packets:>width$}  {at}{not}\n");
    }
    if let Some(first) = &live.first {
        text += &format!("  first  {first}\n");
    }
    if live.lost > 0 {
        text += &format!("  {} more found no room\n", live.lost);
    }
    if answer.place.rung != "worker" && !answer.place.rung.is_empty() {
        text += &format!(
            "  the flow is on rung {}: what passes there is not shown\n",
            answer.place.rung
        );
    }
    text
}
