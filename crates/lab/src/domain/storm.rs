//! One tenant's slice does what it can against another's on the same node: what does the other notice?
//!
//! **Question answered**: does a tenant pay for itself?
//!
//! Two guests of `red/calm` send numbered datagrams to and fro, 500 a second, and somebody asks the controller and the node all the time: first in quiet,
//! then beside each attack of `blue/storm`. A row is good when 95 of 100 datagrams are answered, the 99th of 100 round trips takes at most twice the quiet
//! one and half a millisecond more, the 99th of 100 answers of the API comes within 100 ms, and the attacker's switches are named by a reason of drops.
//!
//! Attackers and attacked share this machine's cores, and what an attacker's own program takes is no switch's. On few cores round trips say more of that than
//! of suiro: the row says what it saw.

use super::layout::Layout;
use super::talk::{Heard, Talk};
use super::user::{at_node, guest_namespace, suiro};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testbed::netns;
use testbed::sys::PacketSocket;
use testbed::traffic::openflow::Client;

const STORM: &str = include_str!("storm.yaml");
const CALM: &str = include_str!("calm.yaml");
const OFFENDER: &str = "blue/storm";
const PACE: Duration = Duration::from_millis(2);
/// Between two questions to the API.
const ASK: Duration = Duration::from_millis(20);
/// Source addresses of the flood of them.
const MACS: u32 = 10_000;
/// Rules of one wave of flow-mods.
const WAVE: u32 = 50_000;
/// Bounds of the domain's design (D11, row 7).
const ANSWERED_MIN: f64 = 0.95;
const API_MAX: Duration = Duration::from_millis(100);
const ROUND_TRIP_MORE: Duration = Duration::from_micros(500);

/// What was seen beside one attack.
#[derive(Serialize)]
struct Row {
    attack: &'static str,
    /// Parts of a whole.
    answered: f64,
    round_trip_p99_ms: f64,
    api_p99_ms: f64,
    /// The attacker's switch that dropped most, and why.
    named: Option<String>,
    missed: Vec<&'static str>,
}

/// An attack.
struct Attack {
    name: &'static str,
    /// Which of the attacker's switches must be named for it, by how their names begin. Of applies the audit has who made them.
    at: Option<&'static str>,
    /// What it does until it is told to stop.
    run: fn(&Scene, &AtomicBool) -> Result<()>,
}

/// The ring last: frames in it go on for a while.
const ATTACKS: [Attack; 5] = [
    Attack { name: "10,000 source addresses", at: Some("macs"), run: macs },
    Attack { name: "packet-ins that nobody reads", at: Some("deaf"), run: packet_ins },
    Attack { name: "flow-mods", at: Some("deaf"), run: flow_mods },
    Attack { name: "applies", at: None, run: applies },
    Attack { name: "broadcasts into a ring", at: Some("b"), run: ring },
];

/// What is missed, and which bound would hold it.
const LACKS: [(&str, &str); 4] = [
    ("answered", "shares of workers' time by tenant"),
    (
        "round trip",
        "shares of workers' time by tenant; on few cores the attacker's own program, too",
    ),
    ("API", "changes in portions, so that others' do not wait"),
    ("not named", "counts of flow-mods and addresses by tenant"),
];

/// Where attacks begin.
struct Scene<'a> {
    layout: &'a Layout,
    file: String,
}

/// Each attack for as many seconds, with a table, and as JSON where that is asked for.
///
/// # Errors
/// A bound did not hold, or a step failed.
pub fn run(layout: &Layout, seconds: u32, json: Option<&Path>) -> Result<()> {
    let time = Duration::from_secs(seconds.into());
    let write = |name: &str, text: &str| -> Result<String> {
        let path = layout.directory.join(name);
        std::fs::write(&path, text)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        let file = path.to_str().context("the lab's directory is text")?.to_owned();
        suiro(layout, &["--timeout", "60", "apply", "-f", &file, "--wait"])?;
        Ok(file)
    };
    write("calm.yaml", CALM)?;
    let scene = Scene { layout, file: write("storm.yaml", STORM)? };
    println!(
        "{:<30} {:>10} {:>16} {:>12}  NAMED",
        "ATTACK", "ANSWERED", "ROUND TRIP p99", "API p99"
    );
    let (quiet, api) = watched(layout, || {
        thread::sleep(time);
        Ok(())
    })?;
    let none = Attack { name: "none", at: None, run: |_, _| Ok(()) };
    print(&row(&none, &quiet, api, None, &quiet));
    let mut rows = Vec::new();
    for attack in ATTACKS {
        let before = drops(layout, &attack)?;
        let (heard, api) = watched(layout, || during(time, |over| (attack.run)(&scene, over)))?;
        let named = most(&before, &drops(layout, &attack)?);
        let row = row(&attack, &heard, api, named, &quiet);
        print(&row);
        rows.push(row);
    }
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let bad: Vec<String> = rows
        .iter()
        .filter(|row| !row.missed.is_empty())
        .map(|row| format!("{} ({})", row.attack, row.missed.join(", ")))
        .collect();
    let is_missed = |what: &str| rows.iter().any(|row| row.missed.contains(&what));
    for (what, lacks) in LACKS.into_iter().filter(|(what, _)| is_missed(what)) {
        println!("{what}: what is lacking is {lacks}");
    }
    ensure!(bad.is_empty(), "bounds that do not hold: {}", bad.join("; "));
    println!("all bounds hold beside {} attacks", rows.len());
    Ok(())
}

/// Runs an attack for so long.
fn during(time: Duration, attack: impl FnOnce(&AtomicBool) -> Result<()> + Send) -> Result<()> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let attack = scope.spawn(|| attack(&over));
        thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        attack.join().expect("an attack does not panic")
    })
}

/// What guests and users of the other slice notice while that is done: their talk, and how long the 99th of 100 answers of controller and node took.
fn watched(layout: &Layout, work: impl FnOnce() -> Result<()>) -> Result<(Heard, Duration)> {
    let [from, to] = ["h1", "h2"].map(|guest| guest_namespace(layout, "red/calm", guest));
    let talk = Talk::begin(&from?, &to?, "10.0.0.2", PACE)?;
    let over = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let asks = scope.spawn(|| ask(layout, &over));
        let done = work();
        over.store(true, Ordering::Relaxed);
        let asked = asks.join().expect("who asks does not panic");
        done.and(asked)
    })?;
    Ok((talk.end(), asked))
}

fn ask(layout: &Layout, over: &AtomicBool) -> Result<Duration> {
    let mut took = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        suiro(layout, &["slice", "show", "red/calm"])?;
        took.push(began.elapsed());
        let began = Instant::now();
        at_node(&layout.nodes[0], &["switch", "list"])?;
        took.push(began.elapsed());
        thread::sleep(ASK);
    }
    took.sort();
    Ok(took.get(took.len() * 99 / 100).copied().unwrap_or_default())
}

fn row(attack: &Attack, heard: &Heard, api: Duration, named: Option<String>, quiet: &Heard) -> Row {
    let answered = heard.answered as f64 / heard.sent.max(1) as f64;
    let bounds = [
        (answered >= ANSWERED_MIN, "answered"),
        (heard.p99 <= quiet.p99 * 2 + ROUND_TRIP_MORE, "round trip"),
        (api <= API_MAX, "API"),
        (named.is_some() || attack.at.is_none(), "not named"),
    ];
    let missed = bounds.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect();
    Row {
        attack: attack.name,
        answered,
        round_trip_p99_ms: heard.p99.as_secs_f64() * 1e3,
        api_p99_ms: api.as_secs_f64() * 1e3,
        named,
        missed,
    }
}

fn print(row: &Row) {
    let named = row.named.as_deref().unwrap_or("-");
    let missed = match &row.missed[..] {
        [] => String::new(),
        missed => format!("  MISSED: {}", missed.join(", ")),
    };
    println!(
        "{:<30} {:>8.1} % {:>13.2} ms {:>9.1} ms  {named}{missed}",
        row.attack,
        row.answered * 100.0,
        row.round_trip_p99_ms,
        row.api_p99_ms
    );
}

/// Frames that the attacked switches have dropped so far, by switch and reason; what they kept from their controllers counts too.
fn drops(layout: &Layout, attack: &Attack) -> Result<BTreeMap<String, u64>> {
    let Some(at) = attack.at else { return Ok(BTreeMap::new()) };
    let text = at_node(&layout.nodes[0], &["--json", "switch", "list"])?;
    let switches: Vec<Value> = serde_json::from_str(&text).context("suiro switch list")?;
    let mut all = BTreeMap::new();
    let own = format!("{}.{at}", OFFENDER.replace('/', "."));
    for switch in switches {
        let Some(name) = switch["name"].as_str().filter(|name| name.starts_with(&own)) else {
            continue;
        };
        for drop in switch["drops"].as_array().into_iter().flatten() {
            let reason = drop["reason"].as_str().unwrap_or_default();
            let frames = drop["frames"].as_u64().unwrap_or_default();
            all.insert(format!("{name}: {reason}"), frames);
        }
    }
    Ok(all)
}

/// Of which there are most more.
fn most(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Option<String> {
    let more = |(name, frames): (&String, &u64)| {
        (frames.saturating_sub(*before.get(name).unwrap_or(&0)), name.clone())
    };
    let (frames, name) = after.iter().map(more).max()?;
    (frames > 0).then(|| format!("{name} {frames}"))
}

impl Scene<'_> {
    fn guest(&self, guest: &str) -> Result<PacketSocket> {
        let namespace = guest_namespace(self.layout, OFFENDER, guest)?;
        netns::enter(&namespace, || {
            PacketSocket::open("eth0", PACE).context("a packet socket of the attacker")
        })
    }

    fn session(&self, switch: &str) -> Result<Client> {
        let own = OFFENDER.replace('/', ".");
        Client::connect(&self.layout.nodes[0].run_dir().join(format!("{own}.{switch}.mgmt")))
    }
}

fn frame(to: [u8; 6], number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let mut frame = [&to[..], &[2, 0, 0, a, b, c, 0x88, 0xb5]].concat();
    frame.resize(60, 0);
    frame
}

/// Sends frames until it is told to stop; a full socket is no fault of the attacker's.
fn flood(socket: &PacketSocket, over: &AtomicBool, frame: impl Fn(u32) -> Vec<u8>) {
    for number in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let _ = socket.send(&frame(number));
    }
}

fn ring(scene: &Scene, over: &AtomicBool) -> Result<()> {
    flood(&scene.guest("loop")?, over, |_| frame([0xff; 6], 1));
    Ok(())
}

fn macs(scene: &Scene, over: &AtomicBool) -> Result<()> {
    flood(&scene.guest("many")?, over, |number| frame([2, 9, 9, 9, 9, 9], number % MACS));
    Ok(())
}

fn packet_ins(scene: &Scene, over: &AtomicBool) -> Result<()> {
    let mut session = scene.session("deaf")?;
    session.ask_for_packet_ins(128)?;
    flood(&scene.guest("ask")?, over, |number| frame([2, 9, 9, 9, 9, 9], number));
    Ok(())
}

fn flow_mods(scene: &Scene, over: &AtomicBool) -> Result<()> {
    let mut session = scene.session("deaf")?;
    while !over.load(Ordering::Relaxed) {
        session.add_entries(WAVE)?;
    }
    Ok(())
}

fn applies(scene: &Scene, over: &AtomicBool) -> Result<()> {
    for rate in ["10M", "20M"].iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let text = STORM.replace("\"b1:3\"]", &format!("\"b1:3\"], rate: {rate}"));
        std::fs::write(&scene.file, text)?;
        suiro(scene.layout, &["apply", "-f", &scene.file])?;
    }
    Ok(())
}
