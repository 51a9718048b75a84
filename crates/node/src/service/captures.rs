//! Captures, by names of switches and ports.

use super::Node;
use super::asides::{self, Sight};
use super::directory::{Directory, Member, MemberPort, MemberState};
use crate::captures::{Asker, Past, PointName, Running, Shown};
use crate::offload;
use crate::refusal::{Refusal, Why};
use ::capture::IdKey;
use ::capture::bpf::{Instruction, Program};
use ::capture::pcapng::ETHERNET;
use api::{
    CAPTURE_BUDGET, CAPTURE_RING, CaptureFilter, CapturePointView, CaptureSpec, CaptureView, Fault,
    Happening, News, Noun, PortKind, PortName, SNAP_MAX,
};
use axum::body::Bytes;
use datapath::{
    CaptureId, Clock, Counted, Every, Filter, MonotonicClock, Point, PortAt, Share, Sides, Wanted,
};
use flow::Nanos;
use openflow::text;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Most points of a capture. Chosen: each batch at a tapped port looks for its point among them.
const POINTS_MAX: usize = 1024;
/// Bytes of all rings of a capture.
const RINGS_MAX: u64 = 256 << 20;
/// From these on a packet's id is known.
const ID_BYTES: u32 = 256;

impl Node {
    /// Begins a capture for somebody: its number, and its file as it comes about.
    ///
    /// # Errors
    /// [`Refusal`]: nothing is captured.
    pub fn begin_capture(
        &self,
        spec: CaptureSpec,
        who: Asker,
    ) -> Result<(u32, mpsc::Receiver<Bytes>), Refusal> {
        let (elsewhere, seen): (Vec<_>, Vec<_>) =
            spec.points.iter().partition(|text| asides::is_elsewhere(text));
        let (places, names_elsewhere): (Vec<_>, Vec<_>) =
            self.places_elsewhere(&elsewhere)?.into_iter().unzip();
        let (points, mut names) = self.points(&seen, places.len())?;
        names.extend(names_elsewhere);
        let filter = self.filter(&spec)?;
        let key = id_key(spec.id_key.as_deref())?;
        let snap = spec.snap.unwrap_or(SNAP_MAX).clamp(1, SNAP_MAX);
        let ring = self.ring(spec.ring)?;
        let kept = snap.max(ID_BYTES) as usize;
        let share = Share {
            every: spec.every.map(|packets| Every { packets, key: IdKey(key) }),
            first: spec.first,
            budget: Some(spec.budget.unwrap_or(CAPTURE_BUDGET)).filter(|percent| *percent < 100),
        };
        let wanted = Wanted { points: &points, filter, snap: kept, ring, share };
        let past = self.past(&spec, &wanted)?;
        let capture = self.datapath.capture(&wanted);
        let capture = capture.map_err(|error| {
            let remedy = "end one of them (curl …/v1/captures lists them), or name several points in one capture";
            let fault = Fault::new("capture", "begin it", error.to_string(), remedy);
            Refusal::new(Why::Impossible, fault)
        })?;
        let sight = Sight {
            spec: &spec,
            first: points.len(),
            snap,
            looks_at: snap.max(ID_BYTES),
            filter: &wanted.filter,
            share: &share,
            key,
            who: &who,
        };
        let watched = self.watch(places, &sight);
        let (aside, sources) = watched.inspect_err(|_| self.datapath.end_capture(&capture))?;
        let CaptureId(id) = capture.id();
        let seen = offload::Seen::from(&wanted);
        let payload = spec.payload.map(|bytes| format!(" with {bytes} bytes of payload"));
        let text = format!("{}{} by {who}", spec.points.join(" "), payload.unwrap_or_default());
        let directory = self.directory.clone();
        let events = spec.events.then(|| self.feed.clone());
        let shown = Shown {
            points: names,
            spec,
            snap,
            key,
            names: Box::new(move |at| named(&directory, at)),
            cores: self.facts.config.cores.clone(),
            events,
            past,
            aside,
            sources,
            who,
        };
        let news = move |change, text| News::of_node(Noun::Capture, &id.to_string(), change, text);
        let feed = self.feed.clone();
        let offload = self.offload.clone();
        let ended = move |counted: Vec<Counted>| {
            offload.capture_ended(CaptureId(id));
            let matched: u64 = counted.iter().map(|point| point.matched).sum();
            let lost: u64 = counted.iter().map(Counted::missing).sum();
            let spent = counted.iter().map(|point| point.spent_ns).sum::<u64>() / 1_000_000;
            let text =
                format!("{matched} frames matched, {lost} lost, {spent} ms of workers' time");
            feed.tell(news(Happening::Removed, text));
        };
        // Before it can end.
        self.feed.tell(news(Happening::Added, text));
        self.offload.capture_begins(capture.id(), seen);
        let begun = self.captures.begin((self.datapath.clone(), capture), shown, ended);
        let chunks = begun.map_err(|error| {
            self.feed.tell(news(Happening::Removed, "its thread did not start".into()));
            self.offload.capture_ended(CaptureId(id));
            let remedy = "see how many threads the node has and may have";
            let fault = Fault::new("capture", "start its thread", error.to_string(), remedy);
            Refusal::new(Why::Impossible, fault)
        })?;
        Ok((id, chunks))
    }

    /// Bytes behind the transport header that captures of `capture_group` keep; `None` for all.
    pub fn payload_of_group(&self) -> Option<u32> {
        self.facts.config.capture_payload
    }

    /// Has a capture end in order.
    ///
    /// # Errors
    /// There is none of that number, or it is somebody else's.
    pub fn end_capture(&self, id: u32, who: &Asker) -> Result<(), Refusal> {
        let refused = |why, step: &str, cause: &str, remedy: &str| {
            Refusal::new(why, Fault::new(format!("capture {id}"), step, cause, remedy))
        };
        let running = self.captures.get(id).ok_or_else(|| {
            let (cause, remedy) =
                ("no capture of that number runs", "it has ended by itself: do nothing");
            refused(Why::NotFound, "find it", cause, remedy)
        })?;
        if !who.may_end_of(&running.who) {
            let cause = format!("it is of {}", running.who);
            let remedy = "let that user end it, or root";
            return Err(refused(Why::Forbidden, "end it", &cause, remedy));
        }
        self.captures.stop(id);
        Ok(())
    }

    /// Has all captures end in order: the node ends.
    pub fn end_captures(&self) {
        self.captures.stop_all();
    }

    /// The captures under way.
    pub fn captures(&self) -> Vec<CaptureView> {
        let view = |(capture, running): (u32, Arc<Running>)| {
            let view = |(point, counted): (String, Counted)| {
                let Counted { matched, lost, over_budget, not_looked, spent_ns } = counted;
                CapturePointView { point, matched, lost, over_budget, not_looked, spent_ns }
            };
            let points = running.points.iter().cloned().zip(running.counted());
            CaptureView { capture, spec: running.spec.clone(), points: points.map(view).collect() }
        };
        self.captures.all().into_iter().map(view).collect()
    }

    /// What was lost, and what passed, before.
    fn past(&self, spec: &CaptureSpec, wanted: &Wanted<'_>) -> Result<Vec<Past>, Refusal> {
        let Some(past_ms) = spec.past_ms else { return Ok(Vec::new()) };
        let is_kept = |point: &Point| match point {
            Point::Drops(_) | Point::Passed(_) => true,
            Point::Port(_, sides) => *sides != Sides::TX,
            Point::Outside(_) | Point::Queue(..) | Point::Controller(_) => false,
        };
        if !wanted.points.iter().any(is_kept) {
            let cause =
                "only of losses and of frames that came in it is remembered what was before";
            let remedy = "add the point drops, or passed";
            let fault = Fault::new("capture", "look back", cause, remedy);
            return Err(Refusal::new(Why::Invalid, fault));
        }
        let since = MonotonicClock.now().0.saturating_sub(past_ms.saturating_mul(1_000_000));
        let mut past = Vec::new();
        self.datapath.flight(wanted, Nanos(since), |seen| past.push(Past::of(&seen)));
        Ok(past)
    }

    /// What match and filter take.
    pub(super) fn filter_of(
        &self,
        thing: &str,
        matching: &str,
        ports: text::Resolve<'_>,
    ) -> Result<Filter, Refusal> {
        let read = offload::matched(thing, matching, ports, self.ports.ends());
        let (key, mask) = read.map_err(|fault| Refusal::new(Why::Invalid, fault))?;
        Ok(Filter::of(&key, &mask))
    }

    fn filter(&self, spec: &CaptureSpec) -> Result<Filter, Refusal> {
        let matched = self.filter_of("capture", &spec.matching, &text::no_ports)?;
        Ok(match &spec.filter {
            Some(filter) => matched.and(program(filter)?),
            None => matched,
        })
    }

    /// Where the frames of these points are seen, and how they are shown.
    fn points(
        &self,
        texts: &[&String],
        elsewhere: usize,
    ) -> Result<(Vec<Point>, Vec<PointName>), Refusal> {
        let mut found = Vec::new();
        for text in texts {
            found.extend(self.points_of(text)?);
        }
        match found.len() + elsewhere {
            0 => Err(bad_point("", "no point is named", self.points_there())),
            1..=POINTS_MAX => Ok(found.into_iter().unzip()),
            many => {
                let cause = format!("{many} points, and {POINTS_MAX} may be");
                Err(bad_point("", &cause, "name fewer ports".into()))
            }
        }
    }

    /// The points of one text.
    fn points_of(&self, text: &str) -> Result<Vec<(Point, PointName)>, Refusal> {
        let parts: Vec<&str> = text.split(':').collect();
        let member = |name: &str| -> Result<Arc<Member>, Refusal> {
            self.directory.by_name(name).ok_or_else(|| self.no_such_point(text))
        };
        match parts[..] {
            ["drops"] => Ok(vec![drops(None)]),
            ["drops", switch] => Ok(vec![drops(Some(&member(switch)?))]),
            ["passed"] => Ok(vec![passed(None)]),
            ["passed", switch] => Ok(vec![passed(Some(&member(switch)?))]),
            ["controller", switch] => Ok(vec![controller(&*member(switch)?)]),
            ["tunnel", name] => self.everywhere(text, name, PortKind::Vxlan, &[All, Outside]),
            ["tunnel", name, side] => match side_of(side) {
                Some(sides) => self.everywhere(text, name, PortKind::Vxlan, &[sides]),
                None => Err(bad_point(text, "it is not understood", self.points_there())),
            },
            ["queue", switch, port] => self.queue_points(text, &*member(switch)?, port, None),
            ["queue", switch, port, queue] => {
                self.queue_points(text, &*member(switch)?, port, Some(queue))
            }
            ["link", name] => self.everywhere(text, name, PortKind::Vlink, &[All]),
            [switch] => {
                let member = member(switch)?;
                let state = member.state();
                let ports = state.ports.keys();
                let points = ports.filter_map(|port| port_point(&member, &state, port, All));
                let points: Vec<_> = points.collect();
                let empty = || bad_point(text, "the switch has no ports", self.points_there());
                (!points.is_empty()).then_some(points).ok_or_else(empty)
            }
            [switch, port] => self.one(text, &member(switch)?, port, All),
            [switch, port, side] => match side_of(side) {
                Some(seen) => self.one(text, &member(switch)?, port, seen),
                None => Err(bad_point(text, "it is not understood", self.points_there())),
            },
            _ => Err(bad_point(text, "it is not understood", self.points_there())),
        }
    }

    /// The ports of this name and kind, in whichever switch they are.
    fn everywhere(
        &self,
        text: &str,
        name: &str,
        kind: PortKind,
        seen: &[Seen],
    ) -> Result<Vec<(Point, PointName)>, Refusal> {
        let mut points = Vec::new();
        for member in self.directory.all() {
            let state = member.state();
            let is_it = |port: &MemberPort| port.spec.kind.kind() == kind;
            let Some(port) = state.ports.get(name).filter(|port| is_it(port)) else { continue };
            points.extend(seen.iter().filter_map(|&seen| port_point(&member, &state, name, seen)));
            let Some(far) = port.spec.peer().cloned() else { continue };
            drop(state);
            if let Some(member) = self.directory.by_name(far.switch().as_ref()) {
                points.extend(port_point(&member, &member.state(), far.port().as_ref(), All));
            }
        }
        // Both ends of a vlink may have one name.
        let mut known = Vec::new();
        points.retain(|(point, _)| {
            !known.contains(point) && {
                known.push(*point);
                true
            }
        });
        let missing = || {
            let cause = format!("there is no {} port of that name", kind.word());
            bad_point(text, &cause, self.points_there())
        };
        (!points.is_empty()).then_some(points).ok_or_else(missing)
    }

    fn one(
        &self,
        text: &str,
        member: &Arc<Member>,
        port: &str,
        seen: Seen,
    ) -> Result<Vec<(Point, PointName)>, Refusal> {
        let point = port_point(member, &member.state(), port, seen);
        let missing = || {
            let cause = match seen {
                Outside => "there is no such tunnel",
                _ => "there is no such port",
            };
            bad_point(text, cause, self.points_there())
        };
        Ok(vec![point.ok_or_else(missing)?])
    }

    /// Nothing is called so.
    pub(super) fn no_such_point(&self, text: &str) -> Refusal {
        bad_point(text, "there is no such point", self.points_there())
    }

    /// Says which points there are.
    fn points_there(&self) -> String {
        const SHOWN: usize = 12;
        let mut names = vec!["drops".to_owned()];
        for member in self.directory.all() {
            let state = member.state();
            names.extend(state.ports.keys().map(|port| format!("{}:{port}", state.spec.name)));
        }
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        let rest =
            if more > 0 { format!(" and {more} more (suiro port list)") } else { String::new() };
        format!("name one of those there are: {}{rest}", names.join(", "))
    }

    /// Bytes of each worker's ring.
    fn ring(&self, asked: Option<u32>) -> Result<usize, Refusal> {
        let ring = u64::from(asked.unwrap_or(CAPTURE_RING)).max(1 << 17).next_power_of_two();
        let all = ring * self.facts.config.cores.len() as u64;
        if all > RINGS_MAX {
            let cause = format!(
                "{} workers would need {} MiB, and {} may be",
                self.facts.config.cores.len(),
                all >> 20,
                RINGS_MAX >> 20
            );
            let fault = Fault::new("capture", "make its rings", cause, "ask for a smaller --ring");
            return Err(Refusal::new(Why::Invalid, fault));
        }
        Ok(ring as usize)
    }
}

/// A filter that may be run.
fn program(filter: &CaptureFilter) -> Result<Program, Refusal> {
    let instruction = |&[code, jt, jf, k]: &[u32; 4]| -> Option<Instruction> {
        let (code, jt, jf) = (code.try_into().ok()?, jt.try_into().ok()?, jf.try_into().ok()?);
        Some(Instruction { code, jt, jf, k })
    };
    let refused = |cause: String| {
        let remedy = "give what tcpdump -ddd prints, or a match";
        let thing = format!("capture filter {:?}", filter.text);
        Refusal::new(Why::Invalid, Fault::new(thing, "check its program", cause, remedy))
    };
    let code: Option<Vec<_>> = filter.program.iter().map(instruction).collect();
    let code = code.ok_or_else(|| refused("a number has more bits than it may".into()))?;
    Program::new(&code).map_err(|bad| refused(bad.to_string()))
}

fn drops(member: Option<&Arc<Member>>) -> (Point, PointName) {
    let (name, description) = match member {
        None => ("drops".to_owned(), "frames lost, of all switches".to_owned()),
        Some(member) => {
            (format!("drops:{}", member.name()), format!("frames lost, of {}", member.name()))
        }
    };
    let point = Point::Drops(member.map(|member| member.id));
    (point, PointName { link: ETHERNET, name, description, hardware: "", queue: None })
}

fn passed(member: Option<&Arc<Member>>) -> (Point, PointName) {
    let name = member.map_or("passed".to_owned(), |member| format!("passed:{}", member.name()));
    let of = member.map_or("of all switches".to_owned(), |member| format!("of {}", member.name()));
    let description = format!("one in 32 of the frames that came in, {of}");
    let point = Point::Passed(member.map(|member| member.id));
    (point, PointName { link: ETHERNET, name, description, hardware: "", queue: None })
}

fn controller(member: &Member) -> (Point, PointName) {
    let name = format!("controller:{}", member.name());
    let description = format!("packet-ins (out) and packet-outs (in) of {}", member.name());
    (
        Point::Controller(member.id),
        PointName { link: ETHERNET, name, description, hardware: "", queue: None },
    )
}

/// Which of a port's frames are seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    All,
    Rx,
    Tx,
    /// A tunnel's packets on the underlay.
    Outside,
}
use Seen::{All, Outside};

fn side_of(word: &str) -> Option<Seen> {
    Some(match word {
        "inside" => All,
        "outside" => Outside,
        "rx" => Seen::Rx,
        "tx" => Seen::Tx,
        _ => return None,
    })
}

/// A port by its name or number.
pub(super) fn find_port<'s>(
    state: &'s MemberState,
    text: &str,
) -> Option<(&'s PortName, &'s MemberPort)> {
    let is_it = |(name, number): (&str, u32)| name == text || number.to_string() == text;
    state.ports.iter().find(|(name, port)| is_it((name, port.number)))
}

/// The same as a point; `None` as well if it has no outside to be seen.
fn port_point(
    member: &Member,
    state: &MemberState,
    text: &str,
    seen: Seen,
) -> Option<(Point, PointName)> {
    let (name, port) = find_port(state, text)?;
    let (kind, at) = (port.spec.kind.kind(), member.at(port.number));
    let (point, side, place) = match seen {
        All => (Point::Port(at, Sides::BOTH), "", ""),
        Seen::Rx => (Point::Port(at, Sides::RX), ":rx", ""),
        Seen::Tx => (Point::Port(at, Sides::TX), ":tx", ""),
        Outside if kind == PortKind::Vxlan => (Point::Outside(at), ":outside", " on the underlay"),
        Outside => return None,
    };
    let kind = kind.word();
    let shown = PointName {
        link: ETHERNET,
        name: format!("{}:{name}{side}", state.spec.name),
        description: format!("port {} of switch {}, {kind}{place}", port.number, state.spec.name),
        hardware: kind,
        queue: None,
    };
    Some((point, shown))
}

/// Names of a switch and its port.
fn named(directory: &Directory, at: PortAt) -> Option<(String, String)> {
    let member = directory.by_id(at.switch)?;
    let state = member.state();
    let found = state.ports.iter().find(|(_, port)| port.number == at.port);
    let port = found.map_or_else(|| at.port.to_string(), |(name, _)| name.to_string());
    Some((state.spec.name.to_string(), port))
}

pub(super) fn bad_point(text: &str, cause: &str, remedy: String) -> Refusal {
    let fault = Fault::new(format!("capture point {text}"), "find it", cause, remedy);
    Refusal::new(Why::NotFound, fault)
}

/// 32 hexadecimal digits, or two numbers that nobody knows.
fn id_key(text: Option<&str>) -> Result<[u64; 2], Refusal> {
    let Some(text) = text else { return Ok(super::start::random_secret()) };
    let whole = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    let whole = whole.ok_or_else(|| {
        let cause = format!("{text} are not 32 hexadecimal digits");
        let fault = Fault::new("capture", "read its id_key", cause, "leave it out");
        Refusal::new(Why::Invalid, fault)
    })?;
    Ok([(whole >> 64) as u64, whole as u64])
}
