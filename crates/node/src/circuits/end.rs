//! One end of a circuit: what to send, and what is known of both its ways. Pure: time and frames come from outside.
//!
//! Each end sends numbered probes in pairs, a short one and one as long as the link allows. A way is judged once, by the end at which it arrives; each
//! probe carries that verdict back. So both ends know both ways, without a controller and without each other's clock.

use super::frame::{Came, Probe};
use super::seen::{Seen, WINDOW};
use api::{CircuitSpec, CircuitState, WayView};
use std::time::Duration;

/// Between two pairs of probes while a circuit is proved, so that it takes a second.
const QUICK: Duration = Duration::from_millis(5);
/// Between two pairs in life.
const CALM: Duration = Duration::from_millis(100);
/// Of the probes of both lengths, how many may be missing: before it is up, while it is, and until it is again when it lost some.
/// Chosen: two in a hundred are a fault, and one burst elsewhere is none.
const MISSING: [u32; 3] = [2, 8, 4];
/// Silence after which a way is dead: so long, or so many pauses of the sender's.
const SILENCE: (Duration, u32) = (Duration::from_secs(2), 15);
/// So many short probes in turn whose long ones are missing are no chance.
const SHORTER: i32 = 20;
/// For how long a frame that should not have come counts.
const WRONG: Duration = Duration::from_secs(3);
/// A circuit that does not come up is tried at full pace for five seconds, and then for two of each five.
const TRIES: (u64, u64) = (5, 2);

/// What an end says of the way that arrives at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verdict {
    /// Nothing is wrong, and not enough is known.
    #[default]
    Early,
    /// It carries what it shall.
    Good,
    /// Some frames are lost.
    Lossy,
    /// It does not carry what it shall.
    Bad,
}

impl Verdict {
    /// By its number in a frame.
    pub fn of(number: u8) -> Option<Self> {
        [Self::Early, Self::Good, Self::Lossy, Self::Bad].get(usize::from(number)).copied()
    }
}

/// What an end tells the other of what it has received.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Its verdict.
    pub verdict: Verdict,
    /// What that is from.
    pub way: WayView,
    /// The other's stamp of its newest probe.
    pub stamp: u64,
    /// For how long that is here, in ns.
    pub held: u64,
}

/// One end.
pub struct End {
    part: String,
    spec: CircuitSpec,
    /// Since when it is tried.
    began: Duration,
    state: CircuitState,
    /// When the next pair goes.
    due: Duration,
    sequence: u32,
    short: Seen,
    long: Seen,
    heard: Option<Heard>,
    /// What came that should not have, and when.
    wrong: Option<(Duration, String)>,
    round_trip: Option<Duration>,
    back: (Verdict, WayView),
    there: (Verdict, WayView),
}

/// The last probe of the other end.
struct Heard {
    at: Duration,
    /// By the other's clock.
    stamp: u64,
    /// What the other said.
    report: Report,
    /// Until its next.
    pause: Duration,
}

impl Heard {
    fn is_recent(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) <= SILENCE.0.max(self.pause * SILENCE.1)
    }
}

impl End {
    /// An end that begins to be proved.
    pub fn new(part: String, spec: CircuitSpec, now: Duration) -> Self {
        Self {
            part,
            spec,
            began: now,
            state: CircuitState::Proving,
            due: now,
            sequence: 0,
            short: Seen::default(),
            long: Seen::default(),
            heard: None,
            wrong: None,
            round_trip: None,
            back: Default::default(),
            there: Default::default(),
        }
    }

    /// What it is an end of.
    pub fn spec(&self) -> &CircuitSpec {
        &self.spec
    }

    /// There and back, without the time at the other end; smoothed as TCP does (RFC 6298).
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.filter(|_| self.state != CircuitState::Down)
    }

    /// The way to the far end, and that from it, as they were judged last.
    pub fn ways(&self) -> [&WayView; 2] {
        [&self.there.1, &self.back.1]
    }

    /// When it has something to send.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Between two pairs, if nobody else had any.
    pub fn pause(&self, now: Duration) -> Duration {
        let waited = now.saturating_sub(self.began).as_secs();
        let is_tried = waited < TRIES.0 || waited % TRIES.0 < TRIES.1;
        let is_asked = self.heard.as_ref().is_some_and(|it| it.report.verdict == Verdict::Early);
        if !self.state.has_link() && (is_tried || is_asked) { QUICK } else { CALM }
    }

    /// The probes to send now; `stretch`: by how much the pause is longer because others have some, too.
    pub fn send(&mut self, now: Duration, stretch: f64) -> Vec<Vec<u8>> {
        if now < self.due {
            return Vec::new();
        }
        let pause = self.pause(now).mul_f64(stretch);
        // Behind by more than a pause: what was not sent is not made up for.
        self.due = (self.due + pause).max(now.saturating_sub(pause));
        let (stamp, held) = match &self.heard {
            Some(Heard { at, stamp, .. }) => (*stamp, now.saturating_sub(*at).as_nanos() as u64),
            None => (0, 0),
        };
        let (verdict, way) = self.back.clone();
        let probe = |long| Probe {
            path: self.spec.id,
            long,
            sequence: self.sequence,
            sent: now.as_nanos() as u64,
            pause: pause.as_millis().try_into().unwrap_or(u16::MAX),
            report: Report { verdict, way: way.clone(), stamp, held },
            from: self.spec.near.clone(),
            part: self.part.clone(),
            link: self.spec.link.clone(),
        };
        let frames = [false, true].map(|long| probe(long).to_frame(self.spec.mtu)).into();
        self.sequence = self.sequence.wrapping_add(1);
        frames
    }

    /// A probe came by this circuit's path.
    pub fn hear(&mut self, came: &Came, now: Duration) {
        if let Some(wrong) = self.not_ours(&came.probe) {
            self.wrong = Some((now, wrong));
            return;
        }
        if let Err(wrong) = &came.tags {
            self.wrong = Some((now, wrong.clone()));
        }
        let probe = &came.probe;
        if !self.heard.as_ref().is_some_and(|heard| heard.is_recent(now)) {
            // After a silence it is proved anew.
            (self.short, self.long, self.began) = (Seen::default(), Seen::default(), now);
        }
        let seen = if probe.long { &mut self.long } else { &mut self.short };
        seen.note(probe.sequence);
        let report = probe.report.clone();
        let pause = Duration::from_millis(probe.pause.into());
        let round = (now.as_nanos() as u64).checked_sub(report.stamp);
        let round = round.and_then(|round| round.checked_sub(report.held));
        if let Some(round) = round.filter(|_| report.stamp > 0).map(Duration::from_nanos) {
            self.round_trip = Some(self.round_trip.map_or(round, |old| (old * 7 + round) / 8));
        }
        self.heard = Some(Heard { at: now, stamp: probe.sent, report, pause });
    }

    /// Its own probe came out here by a tag that no rule knows.
    pub fn hear_by_no_rule(&mut self, now: Duration) {
        let wrong = "probes come by a tunnel id that is no link's: the tag is wrong";
        self.wrong = Some((now, wrong.into()));
    }

    /// Why a probe is not the other end's.
    fn not_ours(&self, probe: &Probe) -> Option<String> {
        let CircuitSpec { id, link, near, far, .. } = &self.spec;
        let Probe { path, from, part, link: theirs, .. } = probe;
        let whose = match *part == self.part {
            true => format!("link {theirs}"),
            false => "another slice".into(),
        };
        match () {
            () if from == near && path == id => {
                Some("its own probes come back: the way leads back to where it begins".into())
            }
            () if path != id && from == far => {
                Some(format!("probes of {whose} come by it: ids are exchanged"))
            }
            () if path != id || from != far => {
                Some(format!("probes of {whose} come by it, from {from}: ends are crossed"))
            }
            () if theirs != link || *part != self.part => {
                Some(format!("probes of {whose} come by its id: one id has two links"))
            }
            () => None,
        }
    }

    /// Judges what arrives, and takes over what the other end says of the rest.
    pub fn judge(&mut self, now: Duration) -> CircuitState {
        self.back = self.judge_back(now);
        let heard = self.heard.as_ref().filter(|heard| heard.is_recent(now));
        self.there = heard
            .map(|Heard { report, .. }| (report.verdict, report.way.clone()))
            .unwrap_or_default();
        self.state = match (self.back.0, self.there.0) {
            (Verdict::Bad, _) | (_, Verdict::Bad) => CircuitState::Down,
            (Verdict::Lossy, _) | (_, Verdict::Lossy) if self.state.has_link() => {
                CircuitState::Lossy
            }
            (Verdict::Lossy, _) | (_, Verdict::Lossy) => CircuitState::Down,
            (Verdict::Early, _) | (_, Verdict::Early) => CircuitState::Proving,
            (Verdict::Good, Verdict::Good) => CircuitState::Up,
        };
        self.state
    }

    fn judge_back(&self, now: Duration) -> (Verdict, WayView) {
        let probes = self.short.of() + self.long.of();
        let ahead = self.short.ahead_of(&self.long);
        // Of the last pair one may be on its way yet.
        let behind = ahead.unsigned_abs().saturating_sub(1);
        let lost = self.short.missing() + self.long.missing() + behind;
        let judged = |verdict, why: Option<String>| (verdict, WayView { probes, lost, why });
        let bad = |why: String| judged(Verdict::Bad, Some(why));
        if let Some((at, wrong)) = &self.wrong
            && now.saturating_sub(*at) < WRONG
        {
            return bad(wrong.clone());
        }
        match &self.heard {
            Some(heard) if !heard.is_recent(now) => return bad("no probe arrives".into()),
            None if now.saturating_sub(self.began) > SILENCE.0 => {
                return bad("no probe arrives".into());
            }
            _ => {}
        }
        let lone = self.long.of() == 0 && self.short.of() > SHORTER as u32;
        if lone || ahead > SHORTER {
            let mtu = self.spec.mtu;
            return bad(format!("frames of {mtu} bytes are lost, and short ones arrive"));
        }
        let allowed = match self.state {
            CircuitState::Down | CircuitState::Proving => MISSING[0],
            CircuitState::Up => MISSING[1],
            CircuitState::Lossy => MISSING[2],
        };
        if lost > allowed {
            let percent = f64::from(lost) * 100.0 / f64::from(probes.max(1));
            let why = format!("{percent:.1} % of frames are lost ({lost} of {probes} probes)");
            return judged(Verdict::Lossy, Some(why));
        }
        let is_whole = self.short.of().min(self.long.of()) >= WINDOW;
        judged(if is_whole { Verdict::Good } else { Verdict::Early }, None)
    }
}

#[cfg(test)]
mod tests;
