//! `suiro bench node`: a node with hundreds of switches: start, memory, idle cost, and coming back after `kill -9` under traffic.
//!
//! All ports but two are TAPs in the node's own namespace; the first switch joins two guests, between whom numbered datagrams run,
//! one each millisecond, while the node is killed and started again. The outage is the longest silence at the receiver.

use super::Common;
use crate::report::{Report, Row, Spread};
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testbed::machine::placement_class;
use testbed::netns::{self, Guest, Namespace};
use testbed::process::Process;
use testbed::traffic::openflow::Client;
use testbed::unbroken;

const SWITCHES: usize = 300;
const PORTS: usize = 4;
const ENTRIES_PER_SWITCH: u32 = 10;
const IDLE_WINDOW: Duration = Duration::from_secs(10);
const UDP_PORT: u16 = 7778;
/// The guests ask again for their neighbours after a second.
const RESUMED: Duration = Duration::from_secs(10);

pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    let mut figures: [Vec<f64>; 6] = Default::default();
    for round in 1..=common.rounds {
        let one = Round::run().with_context(|| format!("round {round}"))?;
        eprintln!("round {round}/{}  {one:?}", common.rounds);
        let values = [
            one.start_ms,
            one.memory_mib,
            one.idle_percent,
            one.restart_ms,
            one.outage_ms,
            one.lost,
        ];
        figures.iter_mut().zip(values).for_each(|(figures, value)| figures.push(value));
    }
    let names = [
        (format!("start, {SWITCHES} switches x {PORTS} ports"), "ms", None),
        ("memory".into(), "MiB", None),
        ("idle CPU of one core".into(), "%", Some(1.0)),
        ("restart after kill -9, all back".into(), "ms", None),
        ("outage seen by traffic".into(), "ms", None),
        ("datagrams lost (1000/s)".into(), "", None),
    ];
    report.add(names.into_iter().zip(figures).map(|((case, unit, goal), figures)| Row {
        case,
        unit,
        cores: placement_class().into(),
        ours: Spread::of(figures),
        peer: None,
        ratio: None,
        goal,
    }))
}

#[derive(Debug)]
struct Round {
    start_ms: f64,
    memory_mib: f64,
    idle_percent: f64,
    restart_ms: f64,
    outage_ms: f64,
    lost: f64,
}

impl Round {
    fn run() -> Result<Self> {
        let fleet = Fleet::create()?;
        let (mut node, start) = fleet.start()?;
        fleet.guests.iter().try_for_each(|guest| guest.configure("eth0"))?;
        fleet.add_entries()?;
        fleet.check()?;
        let memory_mib = node.memory_kib()? as f64 / 1024.0;
        let idle_percent = idle_percent(&node)?;
        let traffic = Traffic::prepare(&fleet.guests)?;
        let (seen, restart) = traffic.while_running(|| {
            node.kill()?;
            let (restarted, restart) = fleet.start()?;
            node = restarted;
            Ok(restart)
        })?;
        fleet.check().context("after the restart")?;
        Ok(Self {
            start_ms: millis(start),
            memory_mib,
            idle_percent,
            restart_ms: millis(restart),
            outage_ms: millis(seen.longest_silence),
            lost: seen.lost as f64,
        })
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Processor time of the node over a quiet window, in percent of one core.
fn idle_percent(node: &Process) -> Result<f64> {
    let before = node.cpu_time()?;
    std::thread::sleep(IDLE_WINDOW);
    Ok((node.cpu_time()? - before).as_secs_f64() / IDLE_WINDOW.as_secs_f64() * 100.0)
}

/// The namespaces and files of one round; dropped after the node.
struct Fleet {
    guests: [Guest; 2],
    switch: Namespace,
    directory: tempfile::TempDir,
}

impl Fleet {
    fn create() -> Result<Self> {
        let fleet = Self {
            guests: [Guest::bare(1)?, Guest::bare(2)?],
            switch: Namespace::create("sw")?,
            directory: tempfile::tempdir()?,
        };
        // 1200 interfaces of one kernel would solicit IPv6 routers for half a minute: that is traffic, and idle is to be measured.
        netns::run(
            fleet.switch.command("sysctl").args(["-qw", "net.ipv6.conf.default.disable_ipv6=1"]),
        )?;
        std::fs::write(fleet.path("node.toml"), fleet.configuration()?)?;
        Ok(fleet)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn configuration(&self) -> Result<String> {
        let directory = self.directory.path().display();
        let mut text = format!(
            "[node]\nrun_dir = \"{directory}\"\nstate_dir = \"{directory}\"\ncores = [0, 1]\n"
        );
        for switch in 0..SWITCHES {
            write!(text, "\n[[switch]]\nname = \"sw{switch}\"\nfail_mode = \"standalone\"\n")?;
            for port in 1..=PORTS {
                write!(
                    text,
                    "\n[[switch.port]]\nname = \"p{port}\"\nnumber = {port}\ntype = \"tap\"\n"
                )?;
                match self.guests.get(port - 1).filter(|_| switch == 0) {
                    Some(guest) => writeln!(
                        text,
                        "interface = \"eth0\"\nnetns = \"{}\"",
                        guest.namespace.name()
                    )?,
                    None => writeln!(text, "interface = \"t{switch}p{port}\"")?,
                }
            }
        }
        Ok(text)
    }

    /// Starts the node and waits for its `READY=1` (sd_notify), which it sends when all ports are open.
    fn start(&self) -> Result<(Process, Duration)> {
        let notify = self.path("notify");
        let _ = std::fs::remove_file(&notify);
        let ready = UnixDatagram::bind(&notify)?;
        ready.set_read_timeout(Some(Duration::from_secs(60)))?;
        let binary = std::env::current_exe()?;
        let mut command =
            self.switch.command(binary.to_str().context("own binary: path is not UTF-8")?);
        command
            .args(["node", "--config"])
            .arg(self.path("node.toml"))
            .env("NOTIFY_SOCKET", &notify);
        let start = Instant::now();
        let process = Process::start(&mut command, &self.path("node.log"))?;
        let mut buffer = [0; 4096];
        loop {
            let Ok(len) = unbroken(|| ready.recv(&mut buffer)) else {
                bail!("the node was not ready after 60 s:\n{}", self.last_words());
            };
            if String::from_utf8_lossy(&buffer[..len]).lines().any(|line| line == "READY=1") {
                return Ok((process, start.elapsed()));
            }
        }
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.path("node.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn client(&self, switch: usize) -> Result<Client> {
        Client::connect(&self.path(&format!("sw{switch}.mgmt")))
    }

    fn add_entries(&self) -> Result<()> {
        (0..SWITCHES)
            .try_for_each(|switch| self.client(switch)?.add_entries(ENTRIES_PER_SWITCH).map(drop))
    }

    /// Every switch has its ports and its entries.
    fn check(&self) -> Result<()> {
        for switch in 0..SWITCHES {
            let mut client = self.client(switch)?;
            let (ports, entries) = (client.live_ports()?, client.entries()?);
            ensure!(ports == PORTS, "sw{switch} has {ports} ports up of {PORTS}");
            ensure!(
                entries == ENTRIES_PER_SWITCH,
                "sw{switch} has {entries} entries of {ENTRIES_PER_SWITCH}"
            );
        }
        Ok(())
    }
}

/// Numbered datagrams from the first guest to the second, one each millisecond.
struct Traffic {
    from: UdpSocket,
    to: UdpSocket,
}

struct Seen {
    longest_silence: Duration,
    lost: u64,
}

impl Traffic {
    fn prepare(guests: &[Guest; 2]) -> Result<Self> {
        let [a, b] = guests;
        let bind = |guest: &Guest| {
            guest.namespace.enter(|| Ok(UdpSocket::bind((guest.address.as_str(), UDP_PORT))?))
        };
        let (from, to) = (bind(a)?, bind(b)?);
        from.connect((b.address.as_str(), UDP_PORT))?;
        to.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(Self { from, to })
    }

    /// Runs for half a second, then `meanwhile`, then until datagrams sent after that arrive.
    fn while_running<T>(&self, meanwhile: impl FnOnce() -> Result<T>) -> Result<(Seen, T)> {
        let progress = Progress::default();
        std::thread::scope(|scope| {
            scope.spawn(|| self.send(&progress));
            let receiver = scope.spawn(|| self.receive(&progress));
            std::thread::sleep(Duration::from_millis(500));
            let result = meanwhile().and_then(|value| progress.resumed().map(|()| value));
            progress.done.store(true, Ordering::Relaxed);
            let (received, longest_silence) = receiver.join().expect("the receiver does not panic");
            let lost = progress.newest.load(Ordering::Relaxed) - received;
            Ok((Seen { longest_silence, lost }, result?))
        })
    }

    fn send(&self, progress: &Progress) {
        let (start, mut sent) = (Instant::now(), 0);
        while !progress.done.load(Ordering::Relaxed) {
            sent += 1;
            // A full queue of an interface without a switch behind it is a loss like any other.
            let _ = self.from.send(&u64::to_be_bytes(sent));
            progress.sent.store(sent, Ordering::Relaxed);
            std::thread::sleep(
                (start + Duration::from_millis(sent)).saturating_duration_since(Instant::now()),
            );
        }
    }

    /// How many arrived, and the longest time without one.
    fn receive(&self, progress: &Progress) -> (u64, Duration) {
        let (mut received, mut longest, mut last) = (0, Duration::ZERO, Instant::now());
        let mut number = [0; 8];
        while !progress.done.load(Ordering::Relaxed) {
            if self.to.recv(&mut number).is_ok() {
                longest = longest.max(last.elapsed());
                last = Instant::now();
                received += 1;
                progress.newest.fetch_max(u64::from_be_bytes(number), Ordering::Relaxed);
            }
        }
        (received, longest)
    }
}

/// How far the datagrams are, by their numbers from 1.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    /// Highest that arrived: any below that did not is lost.
    newest: AtomicU64,
    done: AtomicBool,
}

impl Progress {
    /// Waits until a datagram sent from now on arrives.
    fn resumed(&self) -> Result<()> {
        let (mark, deadline) = (self.sent.load(Ordering::Relaxed), Instant::now() + RESUMED);
        while self.newest.load(Ordering::Relaxed) <= mark {
            ensure!(
                Instant::now() < deadline,
                "no datagram arrived within {RESUMED:?} of the restart"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
