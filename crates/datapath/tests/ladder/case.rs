//! One case: what two switches are told, and what they receive.

mod frames;
mod rules;

use crate::random::Random;
use flow::{Action, Band, GroupMod, MeterConfig, MeterMod, Output, PortNo};
use flow::{
    BandKind, Bucket, FlowMod, FragMode, GroupKind, MeterUnit, Miss, PortState, SwitchConfig,
};
use frames::{Arriving, Mix};

/// Ports with lines, on both switches; the last is a tunnel.
pub const LINES: [PortNo; 4] = [1, 2, 3, 4];
/// The tunnel.
pub const TUNNEL: PortNo = 4;
/// The port of the vlink to the other switch.
pub const VLINK: PortNo = 5;
/// A port that no switch has.
pub const ABSENT: PortNo = 9;

/// What a switch is told.
pub struct Switch {
    pub config: SwitchConfig,
    pub ports: Vec<PortState>,
    /// Ports that are not up, by command.
    pub down: Vec<PortNo>,
    /// Ports with another MTU than 1500.
    pub mtu: Vec<(PortNo, u32)>,
    /// A port with queues.
    pub shaped: Option<PortNo>,
    pub groups: Vec<GroupMod>,
    pub meters: Vec<MeterMod>,
    pub rules: Vec<FlowMod>,
}

/// Frames that arrive at once.
pub struct Batch {
    pub switch: u32,
    pub port: PortNo,
    pub frames: Vec<Arriving>,
}

/// All of it.
pub struct Case {
    /// Its number.
    pub seed: u64,
    pub switches: [Switch; 2],
    pub batches: Vec<Batch>,
    /// Rules that come between two batches, and after which.
    pub late: (usize, Vec<FlowMod>),
    /// Which rings are between lines and switches, if any: 0 is split and 1 packed.
    pub rings: Option<usize>,
}

impl Case {
    pub fn new(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let rings = [None, None, None, None, Some(0), Some(1)][seed as usize % 6];
        // Half of the cases are plain, so that short rungs have something to take; with rings most are, for as many batches as a pattern needs.
        let is_plain = random.one_in(2) || rings.is_some() && !random.one_in(4);
        let more = if rings.is_some() { 5 } else { 0 };
        let switches = [(); 2].map(|()| if is_plain { plain(random) } else { switch(random) });
        let mix = Mix::new(random, is_plain);
        let batches: Vec<_> =
            (0..3 + more + random.below(6)).map(|_| batch(random, &mix)).collect();
        let late = (random.below(batches.len() as u64) as usize, rules::rules(random, 2));
        Self { seed, switches, batches, late, rings }
    }

    /// Frames that arrive in all.
    pub fn frames(&self) -> u64 {
        self.batches.iter().map(|batch| batch.frames.len() as u64).sum()
    }
}

fn batch(random: &mut Random, mix: &Mix) -> Batch {
    let switch = random.below(2) as u32;
    // Most come in by one port, so that rungs that remember have something to remember.
    let port = if random.one_in(3) { random.of(&LINES) } else { 1 };
    let count = random.of(&[1, 2, 17, 32, 64, 64, 64, 100]);
    Batch { switch, port, frames: mix.batch(random, count) }
}

/// A switch all of whose ports are up, with rules of one program.
fn plain(random: &mut Random) -> Switch {
    Switch {
        config: SwitchConfig::default(),
        ports: LINES.into_iter().chain([VLINK]).map(PortState::up).collect(),
        down: Vec::new(),
        mtu: Vec::new(),
        shaped: None,
        groups: groups(random),
        meters: meters(random),
        rules: rules::plain(random),
    }
}

fn switch(random: &mut Random) -> Switch {
    let rules = rules::table(random);
    Switch {
        config: SwitchConfig {
            flood_copies_per_s: None,
            copies_per_s: None,
            miss: random.of(&[Miss::Drop, Miss::Drop, Miss::Normal, Miss::Controller]),
            fragments: if random.one_in(5) { FragMode::Drop } else { FragMode::Normal },
            invalid_ttl_to_controller: random.one_in(4),
        },
        ports: LINES.into_iter().chain([VLINK]).map(|port| state(random, port)).collect(),
        down: LINES.into_iter().filter(|_| random.one_in(12)).collect(),
        mtu: LINES.into_iter().filter(|_| random.one_in(8)).map(|port| (port, 576)).collect(),
        shaped: random.one_in(5).then(|| random.of(&[2, 3])),
        groups: groups(random),
        meters: meters(random),
        rules,
    }
}

fn state(random: &mut Random, port: PortNo) -> PortState {
    PortState {
        live: !random.one_in(15),
        no_flood: random.one_in(8),
        no_fwd: random.one_in(15),
        no_recv: random.one_in(15),
        no_packet_in: random.one_in(8),
        ..PortState::up(port)
    }
}

/// Groups 1 to 3: all, select, indirect or fast failover.
fn groups(random: &mut Random) -> Vec<GroupMod> {
    let group = |id| {
        let kind = random.of(&[
            GroupKind::All,
            GroupKind::Select,
            GroupKind::Indirect,
            GroupKind::FastFailover,
        ]);
        let buckets = if kind == GroupKind::Indirect { 1 } else { 1 + random.below(3) };
        let bucket = |_| {
            let port = random.of(&[1, 2, 3, 4, VLINK]);
            Bucket {
                weight: u16::from(kind == GroupKind::Select),
                watch_port: (kind == GroupKind::FastFailover).then_some(port),
                watch_group: None,
                actions: vec![rules::edit(random), Action::Output(Output::Port(port))],
            }
        };
        GroupMod::Add { id, kind, buckets: (0..buckets).map(bucket).collect() }
    };
    (1..=3).map(group).collect()
}

/// Meters 1 and 2, with a band that drops or remarks after a burst.
fn meters(random: &mut Random) -> Vec<MeterMod> {
    let meter = |id| {
        let kind = random.of(&[BandKind::Drop, BandKind::DscpRemark { level: 1 }]);
        let band = Band { rate: 1, burst: 1 + random.below(60) as u32, kind };
        let (unit, burst, stats) = (MeterUnit::Pktps, true, true);
        MeterMod::Add { id, config: MeterConfig { unit, burst, stats, bands: vec![band] } }
    };
    (1..=2).map(meter).collect()
}
