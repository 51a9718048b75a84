//! Is a slice a real network? What its ends and its controller see, and what the underlay sees of it.
//!
//! **Question answered**: could a tenant, or whoever looks at the underlay, tell a slice from switches that are joined by cables?
//!
//! * [`frames`] of every kind go over a link by VXLAN over IPv4 and one over IPv6, both ways: what comes is what was sent, byte for byte.
//! * A controller of the slice's switches sees the ports of the file and no rule; nobody tells it anything. A link that is cut is down at both its ends.
//! * [`underlay`]: outside of tunnels between nodes nothing of the tenant is seen.
//! * A path over 300 switches of one node.

mod frames;
mod underlay;

use super::layout::{Layout, Node};
use super::user::{guest_namespace, suiro, until};
use super::wide;
use anyhow::{Context, Result, ensure};
use frames::{MARK, kinds};
use openflow::{Message, PortNo, PortState};
use serde::Serialize;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::netns;
use testbed::sys::PacketSocket;
use testbed::traffic::openflow::Client;
use underlay::Watch;

const NAME: &str = "red/real";
const SLICE: &str = include_str!("real.yaml");
/// Of the links in it.
const MTU: usize = 8922;
/// How long a frame may take. Chosen: many round trips of a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// Frames that are under way at a time. Chosen: no queue on the way is filled by them.
const BURST: usize = 32;
/// For how long a controller listens whether anybody tells it what it did not ask for.
const LISTEN: Duration = Duration::from_secs(2);
/// Within which both ends of a link that is cut, or mended, are told (domain's design, D9 and D11).
const TOLD: Duration = Duration::from_secs(15);
/// Switches of the long path.
const LINEAR: usize = 300;
/// UDP over IPv4 and IPv6 is lost: tunnels, and not what nodes and controller say.
const CUT: &str = "9,40 0 0 12,21 0 2 2048,48 0 0 23,5 0 0 2,21 0 3 34525,48 0 0 20,21 0 1 17,6 0 0 2,6 0 0 4294967295";

/// One thing that was looked at.
#[derive(Serialize)]
struct Row {
    what: String,
    found: String,
    is_good: bool,
}

struct Table(Vec<Row>);

impl Table {
    fn add(&mut self, what: impl Into<String>, is_good: bool, found: impl Into<String>) {
        let row = Row { what: what.into(), found: found.into(), is_good };
        let miss = if row.is_good { "" } else { "  MISSED" };
        println!("{:<44} {}{miss}", row.what, row.found);
        self.0.push(row);
    }
}

/// Looks at all of it, prints a table, and writes it as JSON where that is asked for. In short: one VLAN of 64, and a path of 40 switches.
///
/// # Errors
/// A thing was not as it should be, or a step failed.
pub fn run(layout: &Layout, short: bool, json: Option<&Path>) -> Result<()> {
    let file = layout.directory.join("real.yaml");
    std::fs::write(&file, SLICE)
        .with_context(|| format!("{}: cannot be written", file.display()))?;
    let file = file.to_str().context("the lab's directory is text")?;
    suiro(layout, &["--timeout", "60", "apply", "-f", file, "--wait"])?;
    let mut table = Table(Vec::new());
    let watch = Watch::begin(layout, &[])?;
    for (link, [near, far], interface) in
        [("IPv4", ["h1", "h2"], "eth4"), ("IPv6", ["h1", "h3"], "eth6")]
    {
        pass(layout, &mut table, link, [near, far], interface, short)?;
    }
    let [first, second, third] = &layout.nodes[..] else { anyhow::bail!("three nodes") };
    see(&mut table, [(first, "s1", &[2, 3]), (second, "s2", &[2]), (third, "s3", &[3])])?;
    cut(layout, &mut table)?;
    let passed = watch.end();
    table.add(
        "tenant's frames and addresses on the underlay",
        passed.leaks.is_empty(),
        format!(
            "{} outside of tunnels, in {} frames of tunnels and {} others{}",
            passed.leaks.len(),
            passed.tunnels,
            passed.others,
            passed.leaks.first().map(|leak| format!("; one begins {leak}")).unwrap_or_default()
        ),
    );
    suiro(layout, &["--timeout", "30", "slice", "del", NAME, "--wait"])?;
    linear(layout, &mut table, if short { LINEAR / 5 } else { LINEAR })?;
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(&table.0)? + "\n")
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let missed: Vec<&str> =
        table.0.iter().filter(|row| !row.is_good).map(|row| row.what.as_str()).collect();
    ensure!(missed.is_empty(), "not as in a real network: {}", missed.join("; "));
    println!("all {} as in a real network", table.0.len());
    Ok(())
}

/// Frames of every kind, both ways over one link.
fn pass(
    layout: &Layout,
    table: &mut Table,
    over: &str,
    guests: [&str; 2],
    interface: &str,
    short: bool,
) -> Result<()> {
    let open = |guest: &str| -> Result<PacketSocket> {
        let namespace = guest_namespace(layout, NAME, guest)?;
        netns::enter(&namespace, || {
            PacketSocket::open(interface, PATIENCE).context("a packet socket of a guest")
        })
    };
    let sockets = [open(guests[0])?, open(guests[1])?];
    let both = [kinds(0, MTU, short), kinds(1, MTU, short)];
    for (there, back) in both[0].iter().zip(&both[1]) {
        let mut wrong = carried(&sockets[0], &sockets[1], &there.frames)?;
        wrong.extend(carried(&sockets[1], &sockets[0], &back.frames)?);
        let sent = there.frames.len() + back.frames.len();
        let found = match wrong.first() {
            None => format!("{sent} of {sent} the same, byte for byte"),
            Some(first) => format!("{} of {sent} wrong: {first}", wrong.len()),
        };
        table.add(format!("{over}: {}", there.name), wrong.is_empty(), found);
    }
    Ok(())
}

/// Sends frames, some at a time; returns what is wrong with those that come. Frames of different flows may overtake each other, as on parallel cables.
fn carried(from: &PacketSocket, to: &PacketSocket, frames: &[Vec<u8>]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for some in frames.chunks(BURST) {
        for frame in some {
            from.send(frame).with_context(|| format!("a frame of {} bytes", frame.len()))?;
        }
        let mut missing: Vec<&Vec<u8>> = some.iter().collect();
        while !missing.is_empty() {
            let Some(came) = marked(to)? else { break };
            match missing.iter().position(|frame| **frame == came) {
                Some(at) => drop(missing.remove(at)),
                None => wrong.push(format!("{} was not sent so", hex(&came))),
            }
        }
        wrong.extend(missing.iter().map(|frame| format!("{} did not come", hex(frame))));
    }
    Ok(wrong)
}

/// The next frame of ours.
fn marked(socket: &PacketSocket) -> Result<Option<Vec<u8>>> {
    loop {
        match socket.receive() {
            Ok(frame) if frame.windows(MARK.len()).any(|some| some == MARK) => {
                return Ok(Some(frame));
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(None);
            }
            Err(error) => return Err(error).context("waiting for a frame"),
        }
    }
}

fn hex(frame: &[u8]) -> String {
    let start: String = frame.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
    format!("{start}… ({} bytes)", frame.len())
}

/// The session that a controller of the slice has with a switch.
fn session(node: &Node, switch: &str) -> Result<Client> {
    let mut client = Client::connect(&node.run_dir().join(format!("red.real.{switch}.mgmt")))?;
    client.wish_events()?;
    Ok(client)
}

/// Ports, rules and news of each switch, as its controller sees them.
fn see(table: &mut Table, switches: [(&Node, &str, &[u32]); 3]) -> Result<()> {
    let (mut ports, mut rules, mut news) = (Vec::new(), 0, Vec::new());
    for (node, switch, wanted) in switches {
        let mut client = session(node, switch)?;
        let told = client.ports()?;
        let mut numbers: Vec<u32> = told
            .iter()
            .map(|port| port.number)
            .filter(|it| it.is_ordinary())
            .map(|it| it.0)
            .collect();
        numbers.sort_unstable();
        if numbers != wanted {
            ports.push(format!("{switch} has ports {numbers:?}"));
        }
        let ours =
            |name: &str| name.starts_with('c') || name.contains("probe") || name.contains("wan");
        ports.extend(told.iter().map(|port| port.name.to_string()).filter(|name| ours(name)));
        rules += client.entries()?;
        news.extend(client.hear(LISTEN, |_| false)?.into_iter().map(|it| format!("{it:?}")));
    }
    table.add(
        "controller: ports",
        ports.is_empty(),
        match ports.first() {
            None => "those of the file, and no other".to_owned(),
            Some(first) => first.clone(),
        },
    );
    table.add("controller: rules of others", rules == 0, rules.to_string());
    table.add(
        "controller: told unasked in 2 s",
        news.is_empty(),
        match news.first() {
            None => "nothing".to_owned(),
            Some(first) => format!("{} messages, first {first}", news.len()),
        },
    );
    Ok(())
}

/// Cuts the way of a link, and mends it: both its switches' controllers are told.
fn cut(layout: &Layout, table: &mut Table) -> Result<()> {
    let [first, second, third] = &layout.nodes[..] else { anyhow::bail!("three nodes") };
    for (over, node, switch, port) in [("IPv4", second, "s2", 2), ("IPv6", third, "s3", 3)] {
        let mut ends = [(session(first, "s1")?, port), (session(node, switch)?, port)];
        for (what, program, is_down) in [("cut", Some(CUT), true), ("mended", None, false)] {
            let began = Instant::now();
            wide::filter(node, &layout.wide, program)?;
            let mut took = Vec::new();
            for (client, port) in &mut ends {
                took.extend(told(client, PortNo(*port), is_down)?.then(|| began.elapsed()));
            }
            let longest = took.iter().max().map_or(0.0, Duration::as_secs_f64);
            let found = format!("PORT_STATUS at {} of 2 ends within {longest:.2} s", took.len());
            table.add(format!("{over}: a link is {what}"), took.len() == 2, found);
        }
    }
    Ok(())
}

/// Waits until a port is said to be down, or up.
fn told(client: &mut Client, port: PortNo, is_down: bool) -> Result<bool> {
    let is_it = |message: &Message| match message {
        Message::PortStatus(status) => {
            status.port.number == port
                && status.port.state.contains(PortState::LINK_DOWN) == is_down
        }
        _ => false,
    };
    let heard = client.hear(TOLD, |heard| heard.iter().any(is_it))?;
    Ok(heard.iter().any(is_it))
}

/// A path over as many switches of one node.
fn linear(layout: &Layout, table: &mut Table, switches: usize) -> Result<()> {
    let mut text = "suiro: slice/1\nname: linear\ntenant: red\ndefaults: {switch: {fail_mode: standalone}}\nswitches:\n".to_owned();
    for n in 1..=switches {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  s{n}: {{site: tokyo}}");
    }
    text += "guests:\n";
    for (guest, switch) in [(1, 1), (2, switches)] {
        let _ = writeln!(
            text,
            "  h{guest}: {{kind: process, site: tokyo, ports: {{eth0: {{to: \"s{switch}:1\", addresses: [10.0.0.{guest}/24]}}}}}}"
        );
    }
    text += "links:\n";
    for n in 1..switches {
        let _ = writeln!(text, "  l{n}: {{between: [\"s{n}:3\", \"s{}:2\"]}}", n + 1);
    }
    let file = layout.directory.join("linear.yaml");
    std::fs::write(&file, text)
        .with_context(|| format!("{}: cannot be written", file.display()))?;
    let began = Instant::now();
    let file = file.to_str().context("the lab's directory is text")?;
    suiro(layout, &["--timeout", "120", "apply", "-f", file, "--wait"])?;
    let ready = began.elapsed().as_secs_f64();
    let ping = ["slice", "exec", "red/linear", "h1", "--", "ping", "-c1", "-w2", "10.0.0.2"];
    let answers =
        until(PATIENCE, "an answer over all switches", || Ok(suiro(layout, &ping).is_ok()));
    let again = suiro(
        layout,
        &["slice", "exec", "red/linear", "h1", "--", "ping", "-c5", "-i0.2", "-q", "10.0.0.2"],
    );
    let loss = again.unwrap_or_default();
    let time = loss.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let time = time.and_then(|times| times.split('/').nth(1)).unwrap_or("no");
    table.add(
        format!("a line of {switches} switches on one node"),
        answers.is_ok() && loss.contains(" 0% packet loss"),
        format!("ready after {ready:.1} s; ping {time} ms"),
    );
    suiro(layout, &["--timeout", "60", "slice", "del", "red/linear", "--wait"]).map(drop)
}
