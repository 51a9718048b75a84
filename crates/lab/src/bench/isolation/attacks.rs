//! What one tenant does against all others of its host.

use super::side::Side;
use crate::bench::vhost::cases::Rules;
use anyhow::{Context, Result};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testbed::driver::flows::{Random, network, scattered_rules};
use testbed::netns::Namespace;
use testbed::peer::GENERATORS_CORE;
use testbed::sys::{PacketSocket, pin};

/// Masks that two workers' worth of tuples would be probed for.
const MASKS: usize = 506;
/// Rules of one wave of flow-mods.
const WAVE: u32 = 50_000;
const LINKS: u32 = 6;
const LISTENERS: u32 = 16;
const BROADCAST: [u8; 6] = [0xff; 6];
const NOBODY: [u8; 6] = [2, 9, 9, 9, 9, 9];

/// The attacker's place: switches `x` and `y`, whatever is made of them, and interfaces in a namespace; `in` is port 1 of `x`.
pub struct Scene<'s> {
    pub side: Side<'s>,
    pub inside: &'s Namespace,
    /// Ends its names, so that there may be several.
    pub number: usize,
}

/// An attack.
pub struct Attack {
    pub name: &'static str,
    /// It is one that only suiro has.
    pub takes_suiro: bool,
    /// Makes what it needs.
    pub prepare: fn(&Scene<'_>) -> Result<()>,
    /// What it does until it is told to stop.
    pub run: fn(&Scene<'_>, &AtomicBool) -> Result<()>,
}

impl Attack {
    const fn new(
        name: &'static str,
        prepare: fn(&Scene<'_>) -> Result<()>,
        run: fn(&Scene<'_>, &AtomicBool) -> Result<()>,
    ) -> Self {
        Self { name, takes_suiro: false, prepare, run }
    }
}

pub const ALL: &[Attack] = &[
    Attack::new(
        "one frame of 262,144 copies",
        |scene| scene.multiplier(),
        |scene, over| scene.now_and_then(over),
    ),
    Attack::new(
        "1500 broadcasts a second into a loop",
        |scene| scene.ring(),
        |scene, over| scene.paced_broadcasts(over),
    ),
    Attack::new(
        "broadcasts to 16 guests",
        |scene| scene.crowd(),
        |scene, over| scene.flood(over, |_| frame(BROADCAST, 1)),
    ),
    Attack::new(
        "new addresses to nobody",
        |scene| scene.crowd(),
        |scene, over| scene.flood(over, |number| frame(NOBODY, number)),
    ),
    Attack::new(
        "packet-ins that nobody reads",
        |scene| scene.deaf(),
        |scene, over| {
            let mut session = scene.side.session(&scene.named("x"))?;
            session.ask_for_packet_ins(128)?;
            scene.flood(over, |number| frame(NOBODY, number))
        },
    ),
    Attack::new(
        "flow-mods",
        |scene| scene.deaf(),
        |scene, over| {
            let mut session = scene.side.session(&scene.named("x"))?;
            until(over, || session.add_entries(WAVE).map(drop))
        },
    ),
    Attack::new(
        "flows past 506 masks",
        |scene| scene.masks(),
        |scene, over| {
            let mut random = Random(7);
            scene.flood(over, move |_| packet(random.draw(), 0))
        },
    ),
    Attack::new(
        "fragments",
        |scene| scene.open(),
        |scene, over| {
            let mut random = Random(9);
            scene.flood(over, move |_| packet(random.draw(), 0x2001))
        },
    ),
    Attack::new(
        "ports made and removed",
        |scene| scene.deaf(),
        |scene, over| {
            until(over, || {
                scene.tap("t", 9)?;
                scene.side.untap(&scene.named("x"), &scene.named("t"))
            })
        },
    ),
    Attack {
        takes_suiro: true,
        ..Attack::new(
            "a capture of a flood",
            |scene| scene.open(),
            |scene, over| {
                let mut capture = scene.side.suiro_command()?;
                capture
                    .args(["capture", &scene.named("x"), "-w", "/dev/null"])
                    .stderr(Stdio::null());
                let mut capture = capture.spawn().context("suiro capture")?;
                let mut random = Random(11);
                let flooded = scene.flood(over, move |_| packet(random.draw(), 0));
                capture.kill().and_then(|()| capture.wait()).context("ending the capture")?;
                flooded
            },
        )
    },
];

/// Runs the calling thread when nobody else wants the guests' core.
pub fn give_way() {
    pin(GENERATORS_CORE);
    // On Linux a thread's own (setpriority(2)).
    let _ = rustix::process::setpriority_process(None, 19);
}

impl Scene<'_> {
    /// A name of this scene's own.
    pub fn named(&self, what: &str) -> String {
        format!("{what}{}", self.number)
    }

    fn switch(&self, what: &str, learns: bool) -> Result<()> {
        self.side.switch(&self.named(what), learns)
    }

    /// A port of `x`.
    fn tap(&self, name: &str, number: u32) -> Result<()> {
        self.tap_of("x", name, number)
    }

    fn tap_of(&self, switch: &str, name: &str, number: u32) -> Result<()> {
        self.side.tap(&self.named(switch), &self.named(name), number, self.inside)
    }

    fn link(&self, number: u32) -> Result<()> {
        self.side.link(&self.named("x"), &self.named("y"), number)
    }

    fn flows(&self, switch: &str, rules: &[String]) -> Result<()> {
        self.side.flows(&self.named(switch), rules)
    }

    /// 512 copies to the next switch, where a group of 16 buckets names one of 32.
    fn multiplier(&self) -> Result<()> {
        self.switch("x", false)?;
        self.switch("y", false)?;
        self.tap("in", 1)?;
        self.link(2)?;
        self.tap_of("y", "sink", 3)?;
        let copies = vec!["output:2"; 512].join(",");
        self.flows("x", &[format!("in_port=1,actions={copies}")])?;
        let group = |id, bucket: &str, count| {
            format!("group_id={id},type=all{}", format!(",bucket={bucket}").repeat(count))
        };
        let groups = [group(1, "output:3", 32), group(2, "group:1", 16)];
        self.side.groups(&self.named("y"), &groups)?;
        self.flows("y", &["in_port=2,actions=group:2".into()])
    }

    /// Two switches that learn, with six ways between them.
    fn ring(&self) -> Result<()> {
        self.switch("x", true)?;
        self.switch("y", true)?;
        self.tap("in", 1)?;
        (2..2 + LINKS).try_for_each(|number| self.link(number))
    }

    /// A switch that learns, with listeners.
    fn crowd(&self) -> Result<()> {
        self.switch("x", true)?;
        self.tap("in", 1)?;
        (2..2 + LISTENERS).try_for_each(|number| self.tap(&format!("l{number}-"), number))
    }

    /// A switch that only has its rules, and none.
    fn deaf(&self) -> Result<()> {
        self.switch("x", false)?;
        self.tap("in", 1)
    }

    /// One that lets everything through.
    fn open(&self) -> Result<()> {
        self.deaf()?;
        self.tap("sink", 2)?;
        self.flows("x", &["in_port=1,actions=output:2".into()])
    }

    /// One whose rules have hundreds of masks.
    fn masks(&self) -> Result<()> {
        self.deaf()?;
        self.tap("sink", 2)?;
        self.flows("x", &Rules::Masks(scattered_rules(MASKS)).text())
    }

    fn socket(&self) -> Result<PacketSocket> {
        let interface = self.named("in");
        self.inside.enter(|| {
            PacketSocket::open(&interface, Duration::from_millis(1))
                .context("the attacker's socket")
        })
    }

    /// Four frames a second.
    fn now_and_then(&self, over: &AtomicBool) -> Result<()> {
        let socket = self.socket()?;
        until(over, || {
            let _ = socket.send(&frame(NOBODY, 1));
            std::thread::sleep(Duration::from_millis(250));
            Ok(())
        })
    }

    fn paced_broadcasts(&self, over: &AtomicBool) -> Result<()> {
        let (socket, start, mut sent) = (self.socket()?, Instant::now(), 0);
        until(over, || {
            let due = (start.elapsed().as_secs_f64() * 1500.0) as u32;
            (sent..due).for_each(|_| drop(socket.send(&frame(BROADCAST, 1))));
            sent = due;
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        })
    }

    /// As many as go; a full socket is no fault of the attacker's.
    fn flood(&self, over: &AtomicBool, mut frame: impl FnMut(u32) -> Vec<u8>) -> Result<()> {
        let (socket, mut number) = (self.socket()?, 0_u32);
        until(over, || {
            let _ = socket.send(&frame(number));
            number = number.wrapping_add(1);
            Ok(())
        })
    }
}

fn until(over: &AtomicBool, mut step: impl FnMut() -> Result<()>) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        step()?;
    }
    Ok(())
}

fn frame(to: [u8; 6], number: u32) -> Vec<u8> {
    let [a, b, c, d] = number.to_be_bytes();
    let mut frame = [&to[..], &[2, 0, a, b, c, d, 0x88, 0xb5]].concat();
    frame.resize(60, 0);
    frame
}

/// A UDP packet of random addresses in the networks that rules of masks are about; with these flags and offset of a fragment.
fn packet(random: u64, fragment: u16) -> Vec<u8> {
    let [source, destination] = [
        network(0) | random as u32 & 0x00ff_ffff,
        network(1) | (random >> 24) as u32 & 0x00ff_ffff,
    ];
    let mut packet = frame([2, 0, 0, 0, 0, 8], 7);
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..24].copy_from_slice(&[
        0x45,
        0,
        0,
        46,
        (random >> 8) as u8,
        random as u8,
        0,
        0,
        64,
        17,
    ]);
    packet[20..22].copy_from_slice(&fragment.to_be_bytes());
    packet[26..30].copy_from_slice(&source.to_be_bytes());
    packet[30..34].copy_from_slice(&destination.to_be_bytes());
    packet[38..40].copy_from_slice(&26_u16.to_be_bytes());
    let sum =
        packet[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = sum.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet
}
