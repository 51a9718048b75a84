//! All attacks at once for minutes, while other tenants come and go.
//!
//! Holds when the node lives, its memory does not grow from the second third of the time to the last, files and threads are those of before when the
//! tenants have gone, and its counters are those of the other side: what a TAP's interface sent and received, and what the far end of each vlink did.

use super::attacks::{self, Scene};
use super::side::Side;
use super::victim;
use crate::bench::cases::suiro;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testbed::driver::flows::Random;
use testbed::netns::{self, Namespace};
use testbed::peer::{Attach, Contend, Running};

/// Tenants that are there at a time, at most.
const TENANTS: u32 = 8;
/// Between two looks at the node.
const LOOK: Duration = Duration::from_secs(5);
/// Until what is under way has arrived.
const SETTLED: Duration = Duration::from_secs(2);
/// What the last third of the time may have more than the second. Chosen: a heap's breathing.
const MORE_MIB: u64 = 16;
/// Files and threads that may be there more than before: of connections that have just ended.
const MORE: u64 = 8;

/// What the node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    mib: u64,
    files: u64,
    threads: u64,
}

impl Held {
    fn of(running: &Running) -> Result<Self> {
        let process = running.process()?;
        let count = |what: &str| -> Result<u64> {
            let path = format!("/proc/{}/{what}", process.pid());
            let entries = std::fs::read_dir(&path);
            Ok(entries.with_context(|| format!("{path}: has the node ended?"))?.count() as u64)
        };
        Ok(Self { mib: process.memory_kib()? / 1024, files: count("fd")?, threads: count("task")? })
    }

    fn most(all: &[Self]) -> Self {
        let most = |of: fn(&Self) -> u64| all.iter().map(of).max().unwrap_or_default();
        Self {
            mib: most(|held| held.mib),
            files: most(|held| held.files),
            threads: most(|held| held.threads),
        }
    }
}

/// Runs for so long.
pub fn run(minutes: u32, only: &str) -> Result<()> {
    let inside = Namespace::create("bad")?;
    // Interfaces that say something by themselves would go on while counters are compared.
    let silent = ["-qw", "net.ipv6.conf.default.disable_ipv6=1"];
    netns::run(inside.command("sysctl").args(silent))?;
    let running = suiro(Attach::Tap).start()?;
    let side = Side::Suiro(&running);
    let scenes: Vec<(usize, Scene<'_>)> = (0..attacks::ALL.len())
        .filter(|&number| attacks::ALL[number].name.contains(only))
        .map(|number| (number, Scene { side, inside: &inside, number: number + 1 }))
        .collect();
    for (at, scene) in &scenes {
        let attack = &attacks::ALL[*at];
        (attack.prepare)(scene).with_context(|| format!("preparing {}", attack.name))?;
    }
    let before = Held::of(&running)?;
    let over = AtomicBool::new(false);
    let (failed, changes) = (AtomicU64::new(0), AtomicU64::new(0));
    let (held, left) = std::thread::scope(|scope| {
        for (at, scene) in &scenes {
            let (over, failed) = (&over, &failed);
            scope.spawn(move || {
                attacks::give_way();
                // An attack that is cut off begins again.
                while !over.load(Ordering::Relaxed) {
                    if let Err(error) = (attacks::ALL[*at].run)(scene, over) {
                        if failed.fetch_add(1, Ordering::Relaxed) < 10 {
                            eprintln!("  {}: {error:#}", attacks::ALL[*at].name);
                        }
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            });
        }
        let tenants = scope.spawn(|| tenants(side, &inside, &over, &changes));
        let held = watch(&running, Duration::from_secs(u64::from(minutes) * 60));
        over.store(true, Ordering::Relaxed);
        let left = tenants.join().expect("tenants do not panic");
        held.map(|held| (held, left))
    })?;
    left.iter().try_for_each(|number| side.remove(&format!("t{number}")))?;
    let third = held.len() / 3;
    let [second, last] = [&held[third..2 * third], &held[2 * third..]].map(Held::most);
    println!(
        "{} changes of tenants, {} attacks cut off; at most, second third {second:?}, last {last:?}",
        changes.into_inner(),
        failed.into_inner()
    );
    std::thread::sleep(SETTLED);
    let after = Held::of(&running)?;
    println!("before {before:?}, when all have gone {after:?}");
    ensure!(
        last.mib <= second.mib + MORE_MIB
            && after.files <= before.files + MORE
            && after.threads <= before.threads + MORE,
        "the node grows"
    );
    let (ports, wrong) = compare(side, &inside)?;
    wrong.iter().for_each(|line| println!("  {line}"));
    ensure!(
        wrong.is_empty(),
        "counters of {} of {ports} ports are not the other side's",
        wrong.len()
    );
    println!("counters of {ports} ports are those of the other side; the node lives");
    Ok(())
}

/// Looks at the node and at the victim until the time is over.
fn watch(running: &Running, time: Duration) -> Result<Vec<Held>> {
    let (begun, mut all) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let seen = victim::see(&running.guests)?;
        let held = Held::of(running)?;
        println!(
            "{:>5} s  victim: {:>6.0} datagrams/s, {:.2} Gbit/s, silent for {:>4} ms at most; {held:?}",
            begun.elapsed().as_secs(),
            seen.datagrams_per_s,
            seen.gbits,
            seen.silence.as_millis()
        );
        all.push(held);
        std::thread::sleep(LOOK);
    }
    Ok(all)
}

/// Tenants come with a switch, ports and rules, and go; those that are left.
fn tenants(side: Side<'_>, inside: &Namespace, over: &AtomicBool, changes: &AtomicU64) -> Vec<u32> {
    let (mut random, mut there) = (Random(0x7e4a), Vec::<u32>::new());
    for number in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let goes = !there.is_empty() && (there.len() as u32 == TENANTS || random.below(2) == 0);
        let done = if goes {
            let at = random.below(there.len() as u32) as usize;
            side.remove(&format!("t{}", there.swap_remove(at)))
        } else {
            there.push(number);
            tenant(side, inside, number, random.below(4))
        };
        match done {
            Ok(()) => drop(changes.fetch_add(1, Ordering::Relaxed)),
            Err(error) => eprintln!("  tenant {number}: {error:#}"),
        }
    }
    there
}

fn tenant(side: Side<'_>, inside: &Namespace, number: u32, ports: u32) -> Result<()> {
    let name = format!("t{number}");
    side.switch(&name, number.is_multiple_of(2))?;
    for port in 1..=ports {
        side.tap(&name, &format!("t{number}-{port}"), port, inside)?;
    }
    side.flows(&name, &[format!("priority={},ip,actions=output:1", number % 1000)])
}

/// How many ports were compared, and what is not the same.
fn compare(side: Side<'_>, inside: &Namespace) -> Result<(usize, Vec<String>)> {
    let links: Value = serde_json::from_str(&inside.ip(&["-j", "-s", "link"])?)?;
    let of_guests: HashMap<&str, [u64; 2]> = entries(&links)
        .filter_map(|link| {
            let packets = |way: &str| link["stats64"][way]["packets"].as_u64();
            Some((link["ifname"].as_str()?, [packets("tx")?, packets("rx")?]))
        })
        .collect();
    let (mut taps, mut vlinks) = (Vec::new(), HashMap::new());
    for switch in entries(&side.asked(&["switch", "list"])?) {
        let name = switch["name"].as_str().context("a switch without a name")?;
        for port in entries(&side.asked(&["port", "list", name])?) {
            let count = |what: &str| port["counters"][what].as_u64().unwrap_or_default();
            let counts = [count("rx_frames"), count("tx_frames")];
            let own = port["name"].as_str().context("a port without a name")?.to_owned();
            match port["type"].as_str() {
                Some("tap") if name != "sw0" => taps.push((own, counts)),
                Some("vlink") => {
                    let peer = port["peer"].as_str().context("a vlink without a peer")?.to_owned();
                    vlinks.insert(format!("{name}:{own}"), (peer, counts));
                }
                _ => {}
            }
        }
    }
    let mut wrong = Vec::new();
    for (name, counts) in &taps {
        match of_guests.get(&**name) {
            Some(guest) if guest == counts => {}
            guest => wrong.push(format!("{name}: rx, tx {counts:?}, its interface {guest:?}")),
        }
    }
    for (name, (peer, [rx, tx])) in &vlinks {
        match vlinks.get(peer) {
            Some((_, [far_rx, far_tx])) if rx == far_tx && tx == far_rx => {}
            far => wrong.push(format!("{name}: rx, tx {rx}, {tx}; its far end {far:?}")),
        }
    }
    if taps.is_empty() {
        bail!("no ports to compare");
    }
    Ok((taps.len() + vlinks.len(), wrong))
}

fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
