//! A packet's way, told.

use super::beyond::{self, Beyond};
use super::question::Question;
use super::watch::Watch;
use super::{near, reasons, words};
use crate::switch::Switch;
use api::{Fault, WhyAnswer, WhyDrop, WhyExit, WhyPlace, WhyStep, WhyVerdict};
use datapath::{Happens, PortAt, Rules, Step, SwitchId, Way};
use flow::{Asked, MeterVerdict, PacketIn, PacketInReason, PortNo};
use openflow::text;
use port::{Ends, Outside};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use wire::{DropReason, Field, Key};

/// Rules that a packet nearly finds, in each table.
const NEAR: usize = 3;
/// Tunnels that are followed within each other. Chosen: more than a path has, and fewer than a loop.
const TUNNELS: u32 = 4;

/// A switch on the way.
pub struct Place {
    /// Its name.
    pub name: String,
    /// Its ports' names.
    pub ports: BTreeMap<u32, String>,
    /// Its rules.
    pub switch: Arc<Switch>,
    /// Fail mode and controllers, in words.
    pub control: String,
}

/// The node's switches.
pub struct Places(pub HashMap<SwitchId, Place>);

impl Rules for Places {
    fn open_field(
        &self,
        switch: SwitchId,
        table: u8,
        of: (&Key, &Key),
        found: Option<&flow::Hit>,
    ) -> Option<Field> {
        self.0.get(&switch)?.switch.open_field(table, of, found)
    }
}

impl Place {
    fn port(&self, number: PortNo) -> String {
        text::print_port(openflow::PortNo(number), &|port| self.ports.get(&port.0).cloned())
    }
}

/// Tells a way, and how it goes on outside of tunnels.
///
/// # Errors
/// A step depends on what was not said of the packet.
pub fn tell(
    way: &Way,
    (question, place): (Question, WhyPlace),
    (Places(places), beyond): (&Places, &dyn Beyond),
    ends: &Ends,
) -> Result<WhyAnswer, Fault> {
    let mut story = Story::new(places, (ends, beyond));
    way.steps.iter().for_each(|step| story.step(step));
    if let Some(field) = way.depends {
        return Err(story.incomplete(field, &question.frame));
    }
    let first = way.steps.first().and_then(|step| places.get(&step.switch));
    let Story { steps, exits, drops, is_told, watch, .. } = story;
    let name = |port: openflow::PortNo| first?.ports.get(&port.0).cloned();
    let Asked { key, known, frame_len, .. } = question.frame;
    Ok(WhyAnswer {
        packet: words::packet(&key, &known, ends, &name),
        bytes: frame_len,
        assumed: question.assumed,
        place,
        verdict: match () {
            () if way.is_cut => WhyVerdict::Storm,
            () if !exits.is_empty() => WhyVerdict::Leaves,
            () if is_told => WhyVerdict::Controller,
            () => WhyVerdict::Dropped,
        },
        steps,
        exits,
        drops,
        watch: watch.told(ends),
    })
}

/// A way told so far.
struct Story<'s> {
    places: &'s HashMap<SwitchId, Place>,
    ends: &'s Ends,
    beyond: &'s dyn Beyond,
    /// Tunnels around the packet.
    depth: u32,
    steps: Vec<WhyStep>,
    exits: Vec<WhyExit>,
    drops: Vec<WhyDrop>,
    is_told: bool,
    watch: Watch,
    /// The table searched last, and what for.
    searched: Option<(u8, Key, Key)>,
}

impl<'s> Story<'s> {
    fn new(
        places: &'s HashMap<SwitchId, Place>,
        (ends, beyond): (&'s Ends, &'s dyn Beyond),
    ) -> Self {
        let (steps, exits, drops) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            places,
            ends,
            beyond,
            depth: 0,
            steps,
            exits,
            drops,
            is_told: false,
            watch: Watch::default(),
            searched: None,
        }
    }

    fn step(&mut self, step: &Step) {
        let Some(place) = self.places.get(&step.switch) else { return };
        match &step.what {
            Happens::Enters(port, frame) => {
                self.searched = None;
                if self.depth == 0 {
                    self.watch.enters(&place.name, &place.port(*port), frame);
                }
                self.note(step, format!("{} rx", place.port(*port)), "comes in");
            }
            Happens::Search(table, of) => self.searched = Some((*table, of.0, of.1)),
            Happens::Hit(hit) => self.hit(step, place, hit),
            Happens::Miss(table) => self.miss(step, place, *table),
            Happens::Meter(meter, verdict) => {
                self.note(step, format!("meter {meter}"), metered(*verdict));
            }
            Happens::Group(group, chosen) => {
                self.note(step, format!("group {group}"), buckets(chosen));
            }
            Happens::Bucket(..) => {}
            Happens::Bridge => self.note(step, "NORMAL", "the switch decides as a learning bridge"),
            Happens::Nowhere(reason) if is_said_before(*reason) => {}
            Happens::Nowhere(reason) => {
                self.note(step, "output", format!("leads nowhere: {}", reason.name()));
            }
            Happens::Controller(why) => {
                self.is_told = true;
                self.note(step, "controller", format!("{}; {}", told(why), place.control));
            }
            Happens::Crosses(port, far) => {
                if self.depth == 0 {
                    self.watch.leaves(&place.name, &place.port(*port), None);
                }
                let to = self.places.get(&far.switch);
                let to =
                    to.map_or_else(String::new, |to| format!("{}:{}", to.name, to.port(far.port)));
                self.note(
                    step,
                    format!("{} tx", place.port(*port)),
                    format!("over the link to {to}"),
                );
            }
            Happens::Leaves(port, queue, frame) => self.leaves(step, place, (*port, *queue), frame),
            Happens::Refused(port, reason) => {
                let rx = format!("{} rx", place.port(*port));
                let is_rx = self.steps.last().is_some_and(|last| last.at == rx);
                let at = if is_rx { rx } else { format!("{} tx", place.port(*port)) };
                self.note(step, &*at, format!("not taken: {}", reason.name()));
                self.lose(place, at, *reason);
            }
            Happens::Lost(reason) => {
                let at = self
                    .searched
                    .map_or_else(|| "ingress".into(), |(table, ..)| format!("table {table}"));
                self.lose(place, at, *reason);
            }
        }
    }

    fn note(&mut self, step: &Step, at: impl Into<String>, what: impl Into<String>) {
        let switch = self.places.get(&step.switch).map(|place| place.name.clone());
        self.steps.push(WhyStep {
            switch: switch.unwrap_or_default(),
            hops: step.hops,
            at: at.into(),
            what: what.into(),
            rule: None,
            nearly: Vec::new(),
            others: None,
        });
    }

    fn hit(&mut self, step: &Step, place: &Place, hit: &flow::Hit) {
        let name = |port: openflow::PortNo| place.ports.get(&port.0).cloned();
        let Some(entry) = place.switch.found(hit) else {
            return self.note(
                step,
                format!("table {}", hit.table),
                "finds a rule that has gone since",
            );
        };
        self.note(step, format!("table {}", hit.table), "finds a rule");
        self.nearly(place, Some(entry.priority));
        if let Some(told) = self.steps.last_mut() {
            told.rule = Some(near::rule(&entry, self.ends, &name));
        }
    }

    fn miss(&mut self, step: &Step, place: &Place, table: u8) {
        self.note(step, format!("table {table}"), "no rule matches");
        self.nearly(place, None);
    }

    /// Adds to the last step which rules the packet nearly finds there, of those above a priority.
    fn nearly(&mut self, place: &Place, above: Option<u16>) {
        let (Some((table, key, known)), Some(told)) = (self.searched, self.steps.last_mut()) else {
            return;
        };
        let name = |port: openflow::PortNo| place.ports.get(&port.0).cloned();
        let (found, looked) = place.switch.near(table, (key, known), above, NEAR);
        told.nearly = found.iter().map(|miss| near::near(miss, &key, self.ends, &name)).collect();
        told.others = Some(looked);
    }

    fn leaves(&mut self, step: &Step, place: &Place, (port, queue): (PortNo, u32), frame: &Asked) {
        let name = |port: openflow::PortNo| place.ports.get(&port.0).cloned();
        let mut key = frame.key;
        // What the switch noted of it stays behind.
        for field in [Field::InPort, Field::Metadata, Field::TunSrc] {
            key.set(field, 0);
        }
        let at = PortAt { switch: step.switch, port };
        if self.depth == 0 {
            self.watch.leaves(&place.name, &place.port(port), Some(frame));
        }
        let (port, bytes) = (place.port(port), frame.frame_len);
        let packet = words::packet(&key, &frame.known, self.ends, &name);
        let by = if queue == 0 { String::new() } else { format!(" by queue {queue}") };
        self.note(step, format!("{port} tx"), format!("leaves{by} with {bytes} bytes"));
        let is_seen = match self.beyond.outside(at, beyond::end(frame, self.ends)) {
            Some(outside) if self.depth < TUNNELS => self.outside(step, at, &outside, frame),
            _ => false,
        };
        if !is_seen {
            let (switch, wait) = (place.name.clone(), self.beyond.wait(at, queue));
            self.exits.push(WhyExit { switch, port, queue, packet, bytes, wait });
        }
    }

    /// Follows the packet of a tunnel around a frame; whether that has told where it ends.
    fn outside(&mut self, step: &Step, at: PortAt, outside: &Outside, frame: &Asked) -> bool {
        let Some(place) = self.places.get(&at.switch) else { return false };
        let port = place.port(at.port);
        let around = format!("{port} outside");
        let words = beyond::words(outside, frame);
        if frame.frame_len as usize > outside.longest {
            let longest = outside.longest;
            let what =
                format!("{words}: the path takes frames of {longest} bytes; who sends it is told");
            self.note(step, around, what);
            self.lose(place, format!("{port} tx"), DropReason::TooBig);
            return true;
        }
        let hop = match &outside.hop {
            Ok(hop) => hop,
            Err(none) => {
                self.note(step, around, format!("{words}: {none}"));
                return false;
            }
        };
        let from = hop.headers.from;
        self.note(step, around, format!("{words} from {from}, by interface {}", hop.name));
        let entrance = self.beyond.entrance(at, outside);
        let Some((below, packet)) =
            entrance.and_then(|below| Some((below, beyond::outer(outside, below.port, frame)?)))
        else {
            return false;
        };
        let way = self.beyond.follow(below, packet);
        self.depth += 1;
        way.steps.iter().for_each(|step| self.step(step));
        self.depth -= 1;
        if let Some(field) = way.depends {
            let name = words::name(field);
            self.note(step, port, format!("flows differ outside: it depends on {name}"));
        }
        true
    }

    fn lose(&mut self, place: &Place, at: String, reason: DropReason) {
        if self.depth == 0 {
            self.watch.lost(&place.name, reason);
        }
        let (cause, remedy) = reasons::said(reason);
        let cause = match reason {
            DropReason::NoMatch => format!("{cause}; {}", place.control),
            _ => cause.to_owned(),
        };
        let (at, reason) = (format!("{} {at}", place.name), reason.name().into());
        self.drops.push(WhyDrop { at, reason, cause, remedy: remedy.into() });
    }

    /// A step depends on a field.
    fn incomplete(&self, field: Field, asked: &Asked) -> Fault {
        let switch = self.steps.last().map_or("switch", |step| &step.switch);
        let at = self.searched.map_or_else(String::new, |(table, ..)| format!(" table {table}"));
        let name = words::name(field);
        let cause = format!("its way depends on {name}, which is not said");
        let remedy = match asked.known.get(field) == field.full() {
            true => {
                "a header that is taken off hides it: give the whole packet with --packet".into()
            }
            false => format!("add {}", words::say(field)),
        };
        Fault::new(format!("switch {switch}{at}"), "follow the packet", cause, remedy)
    }
}

/// Whether the step before has said why the way ends.
fn is_said_before(reason: DropReason) -> bool {
    matches!(reason, DropReason::NoMatch | DropReason::Meter | DropReason::NoBucket)
}

fn metered(verdict: MeterVerdict) -> &'static str {
    match verdict {
        MeterVerdict::Pass => "has room for it now (not taken)",
        MeterVerdict::Drop => "is over its rate now: drops it",
        MeterVerdict::Remark(_) => "is over its rate now: raises its drop precedence",
    }
}

fn buckets(chosen: &Range<usize>) -> String {
    match chosen.len() {
        0 => "has no bucket for it".into(),
        1 => format!("bucket {}", chosen.start),
        _ => format!("buckets {} to {}", chosen.start, chosen.end - 1),
    }
}

fn told(why: &PacketIn) -> &'static str {
    match why.reason {
        PacketInReason::NoMatch | PacketInReason::SilentMiss => "told of a table miss",
        PacketInReason::Action => "told by an action",
        PacketInReason::InvalidTtl => "told that its TTL ran out; it goes no further",
    }
}
