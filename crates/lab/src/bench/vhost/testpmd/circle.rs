//! Large TCP segments between two of its ports.
//!
//! testpmd cannot make such segments, but it can pass them on: its `csum` engine takes a frame from one port, asks for segmentation and
//! checksum anew, and sends it by the other; the switch brings it back to the first. So a third guest, ours, sends a few, and they go round and
//! round. Open vSwitch as it comes offers no segmentation to its guests; there full Ethernet frames go round (`io` engine, no checksum computed,
//! which is in its favour).

use super::{Driven, WARM_UP};
use crate::bench::vhost::Plan;
use crate::bench::vhost::compare::{Contends, Windows, alternate};
use crate::bench::vhost::rig::{LARGE, listen};
use crate::bench::vhost::segments::{self, FRAME, PAYLOAD, Segments};
use crate::report::Row;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testbed::driver::flows::{Pattern, order};
use testbed::driver::frontend::{Device, Shape};
use testbed::driver::lean::{Guest, Least};
use testbed::driver::sys::Pages;
use testbed::driver::traffic::{Touch, Traffic};
use testbed::peer::GENERATORS_CORE;
use testbed::peer::vhost::{Kind, Running};
use testbed::testpmd::{Testpmd, TestpmdSpec, VirtioUser};

/// As `--only` may name it.
pub const NAME: &str = "64 KiB TCP segments, testpmd";

/// Bytes of a frame that is not cut.
const PLAIN_FRAME: usize = 1514;

/// Entries of testpmd's rings.
const ENTRIES: u16 = 1024;

/// Frames that go round. Chosen: they all fit into one ring (32 buffers of 2 KiB for a large one), so that none is lost wherever they gather.
const LARGE_ONES: u16 = 24;
const PLAIN_ONES: u16 = 256;

/// DPDK's `RTE_ETH_RX_OFFLOAD_`: UDP_CKSUM, TCP_CKSUM, TCP_LRO, SCATTER; `RTE_ETH_TX_OFFLOAD_`: UDP_CKSUM, TCP_CKSUM, TCP_TSO, MULTI_SEGS.
const OFFLOADS: [&str; 2] = ["--rx-offloads=0x201c", "--tx-offloads=0x802c"];

/// How long a switch may take to connect, and then to take what is sent.
const PATIENCE: Duration = Duration::from_secs(15);

struct Contender {
    driven: Driven,
    source: Guest,
    is_whole: bool,
}

/// Gbit/s that testpmd received, by both ports together.
pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        if kind == Kind::OvsDpdk {
            contenders.push(Contender::start(Kind::OvsDpdkTso, plan.cycles.per_s)?);
        }
        contenders.push(Contender::start(kind, plan.cycles.per_s)?);
    }
    alternate(plan.rounds, &mut contenders)?;
    Ok(segments::rows(NAME, &contenders))
}

impl Contender {
    fn start(kind: Kind, clock: f64) -> Result<Self> {
        let is_whole = kind != Kind::OvsDpdk;
        let directory = tempfile::tempdir()?;
        let [first, second, third] =
            [1, 2, 3].map(|number| directory.path().join(format!("vm{number}.sock")));
        let [listener] = listen(std::array::from_ref(&third))?;
        let switch = Running::start(kind, &[first.clone(), second.clone(), third], 1518)?;
        switch.add_rules(&rules())?;
        let device = Device::connect(listener.accept(PATIENCE)?, &shape(is_whole))?;
        let source = Guest::new(device, traffic(is_whole), 0);
        let testpmd = start_testpmd(&[first, second], is_whole)?;
        let windows = Windows::default();
        let driven = Driven { kind, testpmd, switch, windows, clock, _directory: directory };
        let mut contender = Self { driven, source, is_whole };
        contender.fill().with_context(|| kind.name())?;
        contender.driven.switch.freeze()?;
        Ok(contender)
    }

    /// Sends what is to go round.
    fn fill(&mut self) -> Result<()> {
        let mut left = if self.is_whole { LARGE_ONES } else { PLAIN_ONES };
        let deadline = Instant::now() + PATIENCE;
        // testpmd has its devices, but links come up later.
        while self.driven.received()?.frames == 0 {
            ensure!(Instant::now() < deadline, "no frame of the source reaches testpmd");
            left -= self.source.send(1, Least::One, |_| 0);
            self.source.tell();
            self.driven.testpmd.command("start")?;
            std::thread::sleep(WARM_UP);
            self.driven.testpmd.command("stop")?;
            ensure!(left > 0, "no frame of the source comes out of testpmd");
        }
        while left > 0 {
            ensure!(Instant::now() < deadline, "the switch does not take the source's frames");
            left -= self.source.send(left.min(8), Least::One, |_| 0);
            self.source.tell();
        }
        Ok(())
    }
}

impl Contends for Contender {
    fn kind(&self) -> Kind {
        self.driven.kind
    }

    fn windows(&self) -> &Windows {
        &self.driven.windows
    }

    fn turn(&mut self, round: u32) -> Result<()> {
        let received = self.driven.turn(NAME, round)?;
        let (name, wanted) = (self.kind().name(), self.frame() as u64);
        ensure!(received.frames > 0, "{name}: nothing goes round any more");
        // The counters are read while they move.
        let is_as_sent = (received.bytes / received.frames).abs_diff(wanted) <= wanted / 100;
        ensure!(is_as_sent, "{name}: not all that goes round has {wanted} bytes");
        Ok(())
    }
}

impl Segments for Contender {
    fn frame(&self) -> usize {
        if self.is_whole { FRAME } else { PLAIN_FRAME }
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Round and round; what the third guest sends joins.
fn rules() -> Vec<String> {
    [(1, 2), (2, 1), (3, 1)]
        .map(|(from, to)| format!("in_port={from},actions=output:{to}"))
        .to_vec()
}

fn shape(is_whole: bool) -> Shape {
    let plain = Shape::default();
    let (frame, large) = if is_whole { (FRAME, LARGE) } else { (PLAIN_FRAME, 0) };
    Shape { frame, features: plain.features | large, ..plain }
}

fn traffic(is_whole: bool) -> Traffic {
    Traffic {
        frame: shape(is_whole).frame,
        touch: Touch::Head,
        segment: is_whole.then_some(PAYLOAD),
        pattern: Pattern::Addresses,
        order: order(10),
    }
}

/// With its ports ready to forward: from each to the other.
fn start_testpmd(sockets: &[PathBuf; 2], is_whole: bool) -> Result<Testpmd> {
    let depth = [format!("--rxd={ENTRIES}"), format!("--txd={ENTRIES}")];
    let spec = TestpmdSpec::new("circle", GENERATORS_CORE).on(Pages::Huge);
    let spec = depth.iter().fold(spec, |spec, depth| spec.option(depth));
    // Or it would throw away what waits when it is started again.
    let spec = spec.option("--no-flush-rx");
    let spec = match is_whole {
        true => OFFLOADS.iter().fold(spec, |spec, option| spec.option(option)),
        false => spec.option("--forward-mode=io"),
    };
    let devices =
        sockets.each_ref().map(|socket| VirtioUser { entries: ENTRIES, ..VirtioUser::new(socket) });
    let mut testpmd = Testpmd::start(&devices.iter().fold(spec, TestpmdSpec::driver))?;
    if is_whole {
        testpmd.command("set fwd csum")?;
        // What a port is asked for can only be changed while it is stopped.
        testpmd.command("port stop all")?;
        for port in [0, 1] {
            testpmd.command(&format!("csum set tcp hw {port}"))?;
            testpmd.command(&format!("tso set {PAYLOAD} {port}"))?;
        }
        testpmd.command("port start all")?;
    }
    Ok(testpmd)
}
