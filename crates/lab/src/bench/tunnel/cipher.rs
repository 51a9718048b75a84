//! What ESP costs beside the cipher alone: packets of 1400 bytes sealed, and opened, on one core, next to `openssl speed` on the same.

use crate::bench::Common;
use crate::bench::cases::{Better, ratio};
use crate::report::{Peer, Row, Spread};
use anyhow::{Context, Result};
use esp::{Counters, Inbound, Key, Mode, Outbound, sealed_len};
use std::process::Command;
use std::time::Instant;
use testbed::machine::placement_class;
use testbed::netns::run;
use testbed::peer::SWITCH_CORE;
use testbed::sys::{cycles, pin, unpin};
use wire::BATCH;

/// Bytes of an inner packet.
const PACKET: usize = 1400;
/// Packets of one round.
const PACKETS: usize = 200_000;
/// What is inside: UDP.
const NEXT_HEADER: u8 = 17;
const SPI: u32 = 0x1001;

/// Gbit/s of payload, and cycles for each byte of it.
#[derive(Clone, Copy)]
struct Figures {
    gbits: f64,
    cycles: f64,
}

/// What one round found.
struct Round {
    sealed: Figures,
    opened: Figures,
    raw_gbits: f64,
}

/// The rows that the command asks for.
pub fn rows(common: &Common) -> Result<Vec<Row>> {
    const NAME: &str = "ESP, AES-128-GCM, 1400 B";
    if !NAME.contains(&common.only) {
        return Ok(Vec::new());
    }
    let class = placement_class();
    let rounds = (0..common.rounds).map(|_| round()).collect::<Result<Vec<_>>>()?;
    let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of).collect());
    let raw = spread(|round| round.raw_gbits);
    let version = run(Command::new("openssl").arg("version"))?;
    let name = version.split(' ').take(2).collect::<Vec<_>>().join(" ").to_lowercase();
    let row = |what: &str, unit, ours: Spread, peer: Option<Spread>| Row {
        case: format!("{NAME}, {what}"),
        unit,
        cores: class.into(),
        ours,
        ratio: peer.map(|peer| ratio(Better::More, ours, peer)),
        goal: peer.map(|_| 0.6),
        peer: peer.map(|spread| Peer { name: format!("{name} speed, encryption"), spread }),
    };
    Ok(vec![
        row("sealed", "Gbit/s", spread(|round| round.sealed.gbits), Some(raw)),
        row("opened", "Gbit/s", spread(|round| round.opened.gbits), Some(raw)),
        row("sealed", "c/B", spread(|round| round.sealed.cycles), None),
        row("opened", "c/B", spread(|round| round.opened.cycles), None),
    ])
}

fn round() -> Result<Round> {
    let raw_gbits = raw()?;
    pin(SWITCH_CORE);
    let (sealed, opened) = seal_and_open();
    unpin();
    eprintln!(
        "ESP: sealed {:.2}, opened {:.2} Gbit/s; the cipher alone {raw_gbits:.2}",
        sealed.gbits, opened.gbits
    );
    Ok(Round { sealed, opened, raw_gbits })
}

/// Gbit/s of `openssl speed`, whose machine-readable line ends with bytes a second.
fn raw() -> Result<f64> {
    let mut command = Command::new("taskset");
    let (core, bytes) = (SWITCH_CORE.to_string(), PACKET.to_string());
    command.args(["-c", &core, "openssl", "speed", "-mr", "-elapsed", "-seconds", "1"]);
    let text = run(command.args(["-bytes", &bytes, "-evp", "aes-128-gcm"]))?;
    let line = text.lines().find(|line| line.starts_with("+F:"));
    let rate = line.and_then(|line| line.rsplit(':').next()?.parse::<f64>().ok());
    Ok(rate.with_context(|| format!("openssl speed said no rate: {text}"))? * 8.0 / 1e9)
}

fn seal_and_open() -> (Figures, Figures) {
    let key = Key::new(&[7; 20]).expect("a key of 20 bytes");
    let outbound = Outbound::new(SPI, &key, true, Counters { sequence: 1, iv: 0 });
    outbound.allow(outbound.after(u64::MAX));
    let inbound = Inbound::new(SPI, &key, true, Mode::Transport, 0);
    let mut packets = vec![vec![0x5a; sealed_len(PACKET)]; BATCH];
    let (mut sealing, mut opening) = (Spent::default(), Spent::default());
    for _ in 0..PACKETS / BATCH {
        sealing.add(|| {
            for packet in &mut packets {
                outbound.seal(packet, PACKET, NEXT_HEADER).expect("numbers are left");
            }
        });
        opening.add(|| {
            for packet in &mut packets {
                inbound.open(packet).expect("authentic, and new");
            }
        });
    }
    (sealing.figures(), opening.figures())
}

/// Time and cycles of one side.
#[derive(Default)]
struct Spent {
    seconds: f64,
    cycles: u64,
    batches: usize,
}

impl Spent {
    fn add(&mut self, work: impl FnOnce()) {
        let (begin, before) = (Instant::now(), cycles());
        work();
        self.cycles += cycles() - before;
        self.seconds += begin.elapsed().as_secs_f64();
        self.batches += 1;
    }

    fn figures(&self) -> Figures {
        let bytes = (self.batches * BATCH * PACKET) as f64;
        Figures { gbits: bytes * 8.0 / self.seconds / 1e9, cycles: self.cycles as f64 / bytes }
    }
}
