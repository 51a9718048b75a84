//! Switch, guest, or both killed (kill -9) under traffic, and started again at once.
//!
//! Two guests in processes of their own ([`player`]) send each other 50 000 frames a second, numbered, each compared when it comes. A round
//! ends when both get each other's new frames again. Lost is what never came. Of a guest that is dead nothing else can be expected, so
//! there the figure is what was sent to it meanwhile; of a switch that was killed it is mostly what the guest that is back first sent to
//! the one that was not: what waits in rings goes on where it was.

mod counters;
pub mod player;

use super::Plan;
use crate::report::{Row, Spread};
use anyhow::{Context, Result, bail, ensure};
use counters::{Cell, Counters, now_ns};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::driver::sys::Pages;
use testbed::hugepages::{self, Reserved};
use testbed::peer::vhost::{Kind, Running};
use testbed::process::Process;

/// As `--only` may name it.
pub const NAME: &str = "kill -9";

/// Rounds of each kind, unless more are asked for.
const ROUNDS: u32 = 20;

/// Longest that anything may take to come back.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frames that must have come each way before the next kill: a twentieth of a second.
const SETTLED: u64 = player::RATE / 20;

/// Huge pages for the guests of the last part.
const HUGE_PAGES: u64 = 16;

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Switch,
    Guest,
    Both,
}

impl Victim {
    const ALL: [Self; 3] = [Self::Switch, Self::Guest, Self::Both];

    fn name(self) -> &'static str {
        ["the switch", "a guest", "switch and guest"][self as usize]
    }
}

/// A guest's process, and what is needed to start it again.
struct Guest {
    process: Process,
    counters: Counters,
}

/// Switch and guests.
struct Stage {
    switch: Running,
    guests: [Guest; 2],
    pages: Pages,
    directory: tempfile::TempDir,
}

/// What a round showed.
struct Round {
    back_ms: f64,
    lost: f64,
    repeated: f64,
    damaged: f64,
}

/// What the node holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: u64,
    memory_kib: u64,
}

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    if !plan.kinds.contains(&Kind::Suiro) {
        return Ok(Vec::new());
    }
    let mut stage = Stage::start(Pages::Plain)?;
    let mut rows = vec![stage.undisturbed()?];
    for victim in Victim::ALL {
        rows.extend(stage.rounds(victim, plan.rounds.max(ROUNDS))?);
    }
    drop(stage);
    rows.push(returned()?);
    Ok(rows)
}

impl Stage {
    fn start(pages: Pages) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let guests =
            [start_guest(directory.path(), 0, pages)?, start_guest(directory.path(), 1, pages)?];
        let sockets = [0, 1].map(|side| socket(directory.path(), side));
        let switch = Running::start_learning(&sockets)?;
        let stage = Self { switch, guests, pages, directory };
        stage.until("the guests hear each other", |stage| stage.is_joined([0, 0]))?;
        Ok(stage)
    }

    fn get(&self, cell: Cell) -> [u64; 2] {
        self.guests.each_ref().map(|guest| guest.counters.get(cell))
    }

    fn sum(&self, cell: Cell) -> u64 {
        self.get(cell).iter().sum()
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            ensure!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}; {}", self.story());
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// For an error.
    fn story(&self) -> String {
        let cells = [Cell::Session, Cell::Seen, Cell::Sequence, Cell::Good, Cell::Lost];
        let told = cells.map(|cell| format!("{cell:?} {:?}", self.get(cell)));
        let log =
            |side| std::fs::read_to_string(log(self.directory.path(), side)).unwrap_or_default();
        format!("{}\n{}{}{}", told.join(", "), log(0), log(1), self.switch.last_words())
    }

    /// Whether each hears the other's present session, and has had at least as many as these.
    fn is_joined(&self, least: [u64; 2]) -> bool {
        let (session, seen) = (self.get(Cell::Session), self.get(Cell::Seen));
        session.iter().zip(least).all(|(&session, least)| session > least)
            && seen == [session[1], session[0]]
    }

    /// Until frames have come for a while; what was lost is known then.
    fn settle(&self) -> Result<()> {
        let before = self.get(Cell::Good);
        self.until("frames come both ways", |stage| {
            let now = stage.get(Cell::Good);
            now.iter().zip(before).all(|(now, before)| *now >= before + SETTLED)
        })
    }

    fn held(&self) -> Result<Held> {
        Ok(Held { descriptors: self.switch.descriptors()?, memory_kib: self.switch.memory_kib()? })
    }

    /// What is lost while nobody is killed.
    fn undisturbed(&self) -> Result<Row> {
        let (lost, good) = (self.sum(Cell::Lost), self.sum(Cell::Good));
        self.until("frames pass", |stage| stage.sum(Cell::Good) >= good + 4 * player::RATE)?;
        let lost = (self.sum(Cell::Lost) - lost) as f64;
        Ok(row("nobody: frames lost of 200 000", "frames", vec![lost], Some(0.0)))
    }

    fn rounds(&mut self, victim: Victim, rounds: u32) -> Result<Vec<Row>> {
        self.settle()?;
        let before = self.held()?;
        let mut shown = Vec::new();
        for round in 1..=rounds {
            let figures =
                self.round(victim).with_context(|| format!("{NAME} of {}", victim.name()))?;
            eprintln!(
                "round {round}  {NAME} of {}: traffic again after {:.1} ms, {} frames lost, {} repeated, {} damaged, {:?}",
                victim.name(),
                figures.back_ms,
                figures.lost,
                figures.repeated,
                figures.damaged,
                self.held()?
            );
            shown.push(figures);
        }
        let after = self.held_in_the_end(before)?;
        let of = |of: fn(&Round) -> f64| shown.iter().map(of).collect::<Vec<_>>();
        let name = |what| format!("{}: {what}", victim.name());
        let more = |after: u64, before: u64| vec![after as f64 - before as f64];
        Ok(vec![
            row(&name("traffic again after"), "ms", of(|round| round.back_ms), None),
            row(&name("frames lost"), "frames", of(|round| round.lost), None),
            row(&name("frames repeated"), "frames", of(|round| round.repeated), None),
            row(&name("frames damaged"), "frames", of(|round| round.damaged), Some(0.0)),
            row(
                &name("descriptors leaked"),
                "fds",
                more(after.descriptors, before.descriptors),
                Some(0.0),
            ),
            row(&name("memory before"), "KiB", vec![before.memory_kib as f64], None),
            row(&name("memory more"), "KiB", more(after.memory_kib, before.memory_kib), None),
        ])
    }

    /// Descriptors of a guest that has gone are closed a moment later.
    fn held_in_the_end(&self, before: Held) -> Result<Held> {
        self.settle()?;
        let is_back =
            |stage: &Self| stage.held().is_ok_and(|held| held.descriptors <= before.descriptors);
        self.until(
            &format!("the node has no more descriptors than the {} before", before.descriptors),
            is_back,
        )?;
        self.held()
    }

    fn round(&mut self, victim: Victim) -> Result<Round> {
        let cells = [Cell::Lost, Cell::Repeated, Cell::Damaged];
        let (before, sessions) = (cells.map(|cell| self.sum(cell)), self.get(Cell::Session));
        let start = now_ns();
        if victim != Victim::Guest {
            self.switch.kill()?;
        }
        if victim != Victim::Switch {
            self.guests[1].process.kill()?;
            self.guests[1].process = launch_guest(self.directory.path(), 1, self.pages)?;
        }
        if victim != Victim::Guest {
            self.switch.start_again()?;
        }
        let least = match victim {
            Victim::Guest => [sessions[0] - 1, sessions[1]],
            _ => sessions,
        };
        self.until("the guests hear each other again", |stage| stage.is_joined(least))?;
        let back = self.get(Cell::Since).into_iter().max().unwrap_or(start);
        self.settle()?;
        let [lost, repeated, damaged] = [0, 1, 2].map(|n| (self.sum(cells[n]) - before[n]) as f64);
        Ok(Round { back_ms: (back - start) as f64 / 1e6, lost, repeated, damaged })
    }
}

/// Guests on huge pages, everything killed: are all pages free again?
fn returned() -> Result<Row> {
    let _reserved = Reserved::new(HUGE_PAGES)?;
    let before = hugepages::free()?;
    let mut stage = Stage::start(Pages::Huge)?;
    let used = before.saturating_sub(hugepages::free()?);
    ensure!(used > 0, "the guests took no huge pages");
    stage.settle()?;
    stage.switch.kill()?;
    stage.guests.iter_mut().try_for_each(|guest| guest.process.kill())?;
    let deadline = Instant::now() + PATIENCE;
    while hugepages::free()? != before {
        if Instant::now() > deadline {
            bail!("{} of {before} huge pages are free after the end of all", hugepages::free()?);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let name = format!("all: huge pages not given back of {used}");
    Ok(row(&name, "pages", vec![(before - hugepages::free()?) as f64], Some(0.0)))
}

fn socket(directory: &Path, side: u8) -> PathBuf {
    directory.join(format!("vm{side}.sock"))
}

fn log(directory: &Path, side: u8) -> PathBuf {
    directory.join(format!("player{side}.log"))
}

fn start_guest(directory: &Path, side: u8, pages: Pages) -> Result<Guest> {
    let counters = Counters::create(&directory.join(format!("counters{side}")))?;
    Ok(Guest { process: launch_guest(directory, side, pages)?, counters })
}

fn launch_guest(directory: &Path, side: u8, pages: Pages) -> Result<Process> {
    let mut command = Command::new(std::env::current_exe().context("own binary")?);
    command.args(["bench", "player", "--side", &side.to_string(), "--socket"]);
    command.arg(socket(directory, side)).arg("--counters");
    command.arg(directory.join(format!("counters{side}")));
    if pages == Pages::Huge {
        command.arg("--hugepages");
    }
    Process::start(&mut command, &log(directory, side))
}

fn row(name: &str, unit: &'static str, figures: Vec<f64>, goal: Option<f64>) -> Row {
    Row {
        case: format!("{NAME} of {name}"),
        unit,
        cores: "-".into(),
        ours: Spread::of(figures),
        peer: None,
        ratio: None,
        goal,
    }
}
