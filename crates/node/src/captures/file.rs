//! A capture's file: its blocks, and what is said of each frame.

use super::{Note, Shown};
use crate::feed::{Feed, Portion};
use api::{CaptureSpec, Event, Revision};
use capture::{Direction, IdKey, pcapng};
use datapath::{Captured, Counted, PortAt, Verdict, What, Whither};
use flow::Nanos;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of Ethernet's header, and of VXLAN's.
const ETHERNET: u16 = 14;
const VXLAN: usize = 8;
/// UDP port of ESP.
const ESP_IN_UDP: u16 = 4500;

/// Tells the names of a switch and of its port.
pub type Names = Box<dyn Fn(PortAt) -> Option<(String, String)> + Send>;

/// How a point is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointName {
    /// What its packets begin with.
    pub link: u16,
    /// What it is called.
    pub name: String,
    /// For people.
    pub description: String,
    /// Kind of port.
    pub hardware: &'static str,
    /// The queue of a port that it is.
    pub queue: Option<u32>,
}

/// A file under way.
pub(super) struct File {
    shown: Shown,
    began_ns: u64,
    /// From the workers' clock to time since 1970.
    offset: u64,
    /// Events that are to come between frames: where the feed was read to, and those that wait.
    read: Revision,
    waiting: VecDeque<Arc<Event>>,
    /// What was seen elsewhere than at workers and is to come, in the order of time.
    notes: VecDeque<Note>,
    /// Names that were asked for.
    names: HashMap<PortAt, (String, String)>,
    comment: String,
}

impl File {
    pub(super) fn new(shown: Shown) -> Self {
        let (names, comment) = (HashMap::new(), String::new());
        let (waiting, notes) = (VecDeque::new(), VecDeque::new());
        let read = shown.events.as_ref().map_or(Revision(0), Feed::newest);
        Self { shown, began_ns: 0, offset: 0, read, waiting, notes, names, comment }
    }

    /// The beginning, with a block for each point.
    pub(super) fn begin(&mut self, at_ns: u64) -> Vec<u8> {
        self.began_ns = at_ns;
        let mut out = Vec::new();
        let application = concat!("suiro ", env!("CARGO_PKG_VERSION"));
        let comment = &format!("suiro capture {}", self.shown.spec.points.join(" "));
        pcapng::section(&mut out, &pcapng::Section { application, os: "Linux", comment });
        let filter = &words(&self.shown.spec);
        for PointName { link, name, description, hardware, .. } in &self.shown.points {
            let (link, snap) = (*link, self.shown.snap);
            // Messages are taken whole: filters are of frames.
            let filter = if link == pcapng::ETHERNET { filter } else { "" };
            let interface = pcapng::Interface { link, snap, name, description, filter, hardware };
            pcapng::interface(&mut out, &interface);
        }
        out
    }

    /// Takes notice of the clocks at one moment, of what has happened, and of what was seen elsewhere until then.
    pub(super) fn look(&mut self, real_ns: u64, workers: Nanos, until: Nanos) {
        self.offset = real_ns.saturating_sub(workers.0);
        self.notes.extend(self.shown.aside.take_until(until));
        let Some(feed) = &self.shown.events else { return };
        match feed.after(self.read) {
            Portion::Events(events) => {
                self.read = events.last().map_or(self.read, |last| last.revision);
                self.waiting.extend(events);
            }
            Portion::Gone(gone) => self.read = gone.newest,
        }
    }

    /// Appends what happened and was seen elsewhere up to a moment of the workers' clock.
    pub(super) fn tell_until(&mut self, out: &mut Vec<u8>, until: Nanos) {
        while self.notes.front().is_some_and(|note| note.at <= until)
            && let Some(note) = self.notes.pop_front()
        {
            self.tell_events(out, note.at);
            self.put_note(out, &note);
        }
        self.tell_events(out, until);
    }

    fn put_note(&self, out: &mut Vec<u8>, note: &Note) {
        let packet = pcapng::Packet {
            interface: note.point as u32,
            at_ns: note.at.0 + self.offset,
            original: note.original,
            bytes: &note.bytes,
            comment: &note.comment,
            direction: note.direction,
            dropped: note.lost_before,
            id: note.id,
            queue: None,
        };
        pcapng::packet(out, &packet);
    }

    fn tell_events(&mut self, out: &mut Vec<u8>, until: Nanos) {
        let until_ns = until.0.saturating_add(self.offset);
        while self.waiting.front().is_some_and(|event| event.at_ns <= until_ns)
            && let Some(event) = self.waiting.pop_front()
        {
            let revision = event.revision.to_string();
            let fields = [("SUIRO_REVISION", &*revision)];
            pcapng::journal(out, event.at_ns, &event.news.to_string(), &fields);
        }
    }

    /// Appends a frame.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, seen: &Captured<'_>) {
        if !self.waiting.is_empty() || !self.notes.is_empty() {
            self.tell_until(out, seen.at);
        }
        self.say(seen);
        let key = IdKey(self.shown.key);
        let elsewhere = match seen.what {
            What::LostElsewhere(_, count) => count,
            What::Received | What::Sent | What::Lost(_) | What::Unread(_) => 0,
        };
        let packet = pcapng::Packet {
            interface: seen.point as u32,
            at_ns: seen.at.0 + self.offset,
            original: seen.len,
            bytes: &seen.bytes[..self.kept(seen)],
            comment: &self.comment,
            direction: match seen.what {
                What::Received | What::Unread(_) => Some(Direction::In),
                What::Sent => Some(Direction::Out),
                What::Lost(_) | What::LostElsewhere(..) => None,
            },
            dropped: u64::from(seen.lost_before) + u64::from(elsewhere),
            id: id_of(seen).map(|bytes| key.id(bytes)),
            queue: self.queue_of(seen.point),
        };
        pcapng::packet(out, &packet);
    }

    fn queue_of(&self, point: usize) -> Option<u32> {
        self.shown.points.get(point).and_then(|point| point.queue)
    }

    /// Bytes of a frame that are shown.
    fn kept(&self, seen: &Captured<'_>) -> usize {
        let snap = seen.bytes.len().min(self.shown.snap as usize);
        let Some(payload) = self.shown.spec.payload else { return snap };
        snap.min(headers_of(seen).saturating_add(payload as usize))
    }

    /// Says what is known of a frame.
    fn say(&mut self, seen: &Captured<'_>) {
        self.comment.clear();
        let queue = self.queue_of(seen.point);
        let text = &mut self.comment;
        // A String takes every text.
        if let What::Lost(reason) | What::LostElsewhere(reason, _) = seen.what {
            let _ = write!(text, "drop={} ", reason.name());
        }
        if let What::LostElsewhere(_, count) | What::Unread(count) = seen.what {
            let _ = write!(text, "frames={count} ");
        }
        let names = &self.shown.names;
        let named = self.names.entry(seen.port);
        let (switch, port) =
            named.or_insert_with(|| names(seen.port).unwrap_or_else(|| number(seen.port)));
        let _ = write!(text, "switch={switch} port={port}");
        if let Some(queue) = queue {
            let _ = write!(text, " queue={queue}");
        }
        if let Some(core) = self.shown.cores.get(seen.worker) {
            let _ = write!(text, " core={core}");
        }
        if let Some(verdict) = seen.verdict {
            say_entry(text, &verdict);
        }
        if let Some(rung) = seen.rung {
            let _ = write!(text, " rung={rung}");
        }
        if seen.wait > Nanos::default() {
            let _ = write!(text, " wait={}.{:03}us", seen.wait.0 / 1000, seen.wait.0 % 1000);
        }
        if let Some(Verdict { to, .. }) = seen.verdict {
            let name = |port| names(PortAt { port, ..seen.port }).map(|(_, port)| port);
            say_whither(text, to, name);
        }
        if seen.piece > 0 {
            let _ = write!(text, " gso={}", seen.piece);
        }
        if seen.is_partial {
            text.push_str(" checksum=partial");
        }
        if seen.is_outside {
            text.push_str(" outer=made");
            if let Some((spi, sequence)) = esp_of(seen.bytes) {
                let _ = write!(text, " esp={spi:#x}/{sequence}");
            }
        }
    }

    /// The end: what each point counted.
    pub(super) fn end(&self, at_ns: u64, counted: &[Counted]) -> Vec<u8> {
        let mut out = Vec::new();
        for (interface, &counted) in counted.iter().enumerate() {
            let (interface, start_ns) = (interface as u32, self.began_ns);
            let Counted { matched, lost, over_budget, not_looked, .. } = counted;
            let counts = pcapng::Statistics {
                interface,
                at_ns,
                start_ns,
                matched,
                lost,
                over_budget,
                not_looked,
            };
            pcapng::statistics(&mut out, &counts);
        }
        out
    }
}

/// Bytes of a frame's headers, those of a frame inside too.
fn headers_of(seen: &Captured<'_>) -> usize {
    let outer = headers(seen.bytes);
    match seen.is_outside && esp_of(seen.bytes).is_none() {
        true => outer + VXLAN + headers(seen.inside),
        false => outer,
    }
}

/// Bytes of the headers that lie behind each other in front of a frame's payload.
pub(super) fn headers(frame: &[u8]) -> usize {
    let (_, layers) = wire::parse_bytes(frame);
    let ends = [layers.payload, layers.l4, layers.l3, ETHERNET];
    ends.into_iter().find(|end| *end > 0).unwrap_or(ETHERNET).into()
}

/// Says which rule had the last word about a frame.
fn say_entry(text: &mut String, verdict: &Verdict) {
    let _ = write!(text, " table={}", verdict.table);
    if let Some(cookie) = verdict.cookie {
        let _ = write!(text, " cookie={cookie:#x}");
    }
}

/// Says where rules sent a frame.
fn say_whither(text: &mut String, to: Whither, name: impl Fn(u32) -> Option<String>) {
    let _ = match to {
        Whither::Port(port) => {
            write!(text, " to={}", name(port).unwrap_or_else(|| port.to_string()))
        }
        Whither::Several => write!(text, " to=several"),
        Whither::Controller => write!(text, " to=controller"),
        Whither::Nowhere(reason) => write!(text, " verdict={}", reason.name()),
    };
}

/// What a packet is known again by: of a tunnel's packet the frame inside, if it was opened.
fn id_of<'s>(seen: &Captured<'s>) -> Option<&'s [u8]> {
    [seen.inside, seen.bytes].into_iter().find(|bytes| !bytes.is_empty())
}

/// SPI and sequence number of an ESP packet in UDP (RFC 3948).
fn esp_of(bytes: &[u8]) -> Option<(u32, u32)> {
    let (key, layers) = wire::parse_bytes(bytes);
    let is_esp = key.get(wire::Field::TpDst) == u128::from(ESP_IN_UDP);
    let esp = bytes.get(usize::from(layers.l4) + 8..).filter(|_| is_esp && layers.l4 > 0)?;
    let word = |at: usize| Some(u32::from_be_bytes(*esp.get(at..)?.first_chunk()?));
    Some((word(0)?, word(4)?))
}

/// Which frames it has.
fn words(spec: &CaptureSpec) -> String {
    let filter = spec.filter.as_ref().map_or("", |filter| &filter.text);
    let parts = [&*spec.matching, filter].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" and ")
}

/// What is said where there is no name any more.
fn number(at: PortAt) -> (String, String) {
    (at.switch.0.to_string(), at.port.to_string())
}
