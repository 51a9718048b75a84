use super::*;
use proptest::prelude::*;
use std::cell::Cell;

const STEP: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(20);

fn spec(link: &str, id: u32, near: &str, far: &str) -> CircuitSpec {
    let port = "s1:p2".parse().ok();
    CircuitSpec { link: link.into(), port, id, near: near.into(), far: far.into(), mtu: 1500 }
}

/// A frame on its way: who sends it by which id.
type Fate<'a> = dyn FnMut(&str, u32, Vec<u8>) -> Option<(usize, Vec<u8>)> + 'a;

/// Two circuits between two nodes, and what the wide area does to a frame: at which end it comes out, if it does.
struct Land<'a> {
    ends: Vec<End>,
    now: Duration,
    fate: Box<Fate<'a>>,
}

impl<'a> Land<'a> {
    fn new(fate: impl FnMut(&str, u32, Vec<u8>) -> Option<(usize, Vec<u8>)> + 'a) -> Self {
        let ends = [
            ("a", 10, "t1", "o1"),
            ("a", 10, "o1", "t1"),
            ("b", 12, "t1", "o1"),
            ("b", 12, "o1", "t1"),
        ];
        let end = |(link, id, near, far)| {
            End::new("red".into(), spec(link, id, near, far), Duration::ZERO)
        };
        Self { ends: ends.map(end).into(), now: Duration::ZERO, fate: Box::new(fate) }
    }

    /// Lets so much time pass; returns when both ends of link `a` had a link first.
    fn run(&mut self, time: Duration) -> Option<Duration> {
        let (until, mut up) = (self.now + time, None);
        while self.now < until {
            let mut sent = Vec::new();
            for end in &mut self.ends {
                let (from, id) = (end.spec().near.clone(), end.spec().id);
                sent.extend(
                    end.send(self.now, 1.0).into_iter().map(|frame| (from.clone(), id, frame)),
                );
            }
            self.now += STEP;
            for (from, id, frame) in sent {
                let Some((to, frame)) = (self.fate)(&from, id, frame) else { continue };
                let came = Probe::of_frame(&frame).unwrap();
                self.ends[to].hear(&came, self.now);
            }
            let now = self.now;
            let states: Vec<_> = self.ends.iter_mut().map(|end| end.judge(now)).collect();
            if states[0].has_link() && states[1].has_link() {
                up = up.or(Some(now));
            }
        }
        up
    }

    fn states(&self) -> [CircuitState; 2] {
        [self.ends[0].state, self.ends[1].state]
    }

    /// What an end of link `a` says of the way there and of that back.
    #[track_caller]
    fn says(&self, at: usize, there: &str, back: &str) {
        let said = self.ends[at].ways().map(|way| way.why.clone().unwrap_or_default());
        assert!(said[0].contains(there) && said[1].contains(back), "{said:?}");
        assert_eq!([there, back].map(str::is_empty), said.map(|why| why.is_empty()));
    }
}

/// As it shall be: by the own id to the other node.
fn right(from: &str, id: u32, frame: Vec<u8>) -> Option<(usize, Vec<u8>)> {
    Some((usize::from(from == "t1") + if id == 12 { 2 } else { 0 }, frame))
}

/// Runs from the start with a fault that both ends must name within three seconds; link `a` is never up.
#[track_caller]
fn never_up<'a>(
    fate: impl FnMut(&str, u32, Vec<u8>) -> Option<(usize, Vec<u8>)> + 'a,
    t1: [&str; 2],
    o1: [&str; 2],
) {
    let mut land = Land::new(fate);
    for time in [Duration::from_secs(3), LONG] {
        assert_eq!(land.run(time), None);
        assert_eq!(land.states(), [CircuitState::Down; 2]);
        land.says(0, t1[0], t1[1]);
        land.says(1, o1[0], o1[1]);
    }
}

#[test]
fn a_good_circuit_is_up_within_two_seconds_and_stays_up() {
    let mut land = Land::new(right);
    assert!(land.run(LONG).unwrap() <= Duration::from_secs(2));
    assert_eq!(land.states(), [CircuitState::Up; 2]);
    assert!(land.ends[0].round_trip().unwrap() <= 3 * STEP);
    land.says(0, "", "");
}

#[test]
fn ids_that_are_exchanged_are_named_by_both_ends() {
    let exchanged = |from: &str, id, frame| match (from, id) {
        ("t1", 10) => Some((3, frame)),
        ("t1", _) => Some((1, frame)),
        _ => right(from, id, frame),
    };
    let why = "probes of link b come by it: ids are exchanged";
    never_up(exchanged, [why, ""], ["", why]);
}

#[test]
fn a_dead_way_is_named_by_both_ends_and_the_other_way_is_not() {
    let dead = |from: &str, id, frame| right(from, id, frame).filter(|_| from == "t1");
    never_up(dead, ["", "no probe arrives"], ["no probe arrives", ""]);
}

#[test]
fn a_way_that_loses_long_frames_is_named() {
    let cut = |from: &str, id, frame| {
        right(from, id, frame).filter(|(_, frame)| from == "o1" || frame.len() <= 1400)
    };
    let why = "frames of 1500 bytes are lost, and short ones arrive";
    never_up(cut, [why, ""], ["", why]);
}

#[test]
fn a_way_that_leads_back_is_named() {
    let back = |from: &str, id, frame| match from {
        "t1" => Some((if id == 12 { 2 } else { 0 }, frame)),
        _ => None,
    };
    never_up(back, ["", "its own probes come back"], ["", "no probe arrives"]);
}

#[test]
fn a_tag_that_a_way_adds_is_named() {
    let tagged = |from: &str, id, mut frame: Vec<u8>| {
        if from == "t1" {
            frame.splice(12..12, [0x81, 0, 0, 7]);
        }
        right(from, id, frame)
    };
    let why = "frames come with VLAN tag 7, which they were not sent with";
    never_up(tagged, [why, ""], ["", why]);
}

#[test]
fn a_circuit_that_breaks_is_down_within_three_seconds_and_is_proved_anew_when_it_is_mended() {
    let cut = Cell::new(false);
    let mut land = Land::new(|from: &str, id, frame| {
        right(from, id, frame).filter(|_| !(cut.get() && from == "o1"))
    });
    assert!(land.run(LONG).is_some());
    cut.set(true);
    land.run(Duration::from_secs(3));
    assert_eq!(land.states(), [CircuitState::Down; 2]);
    land.says(0, "", "no probe arrives");
    cut.set(false);
    land.run(Duration::from_millis(500));
    assert_eq!(land.states(), [CircuitState::Proving; 2]);
    land.run(Duration::from_secs(12));
    assert_eq!(land.states(), [CircuitState::Up; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// By a small generator, so that the fate of each frame is known by the seed.
    #[test]
    fn loss_of_five_percent_is_never_up_and_in_life_is_found_within_thirty_seconds(seed: u64) {
        let mut state = seed | 1;
        let mut lost = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100 < 5
        };
        let lossy = Cell::new(true);
        let mut land = Land::new(|from: &str, id, frame| {
            let gone = lossy.get() && lost() && from == "t1";
            right(from, id, frame).filter(|_| !gone)
        });
        prop_assert_eq!(land.run(LONG), None);
        prop_assert_eq!(land.states(), [CircuitState::Down; 2]);
        lossy.set(false);
        prop_assert!(land.run(LONG).is_some());
        lossy.set(true);
        land.run(Duration::from_secs(30));
        prop_assert_eq!(land.states(), [CircuitState::Lossy; 2]);
        prop_assert!(land.ends[0].ways()[0].why.as_ref().unwrap().contains("% of frames are lost"));
    }
}
