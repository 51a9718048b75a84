//! Two driven machines on vhost-user ports: each sleeps until a frame comes, and answers it.
//!
//! They have no network stack, so of all loads only `ping` is theirs: one frame there, one back.

use crate::bench::vhost::rig::{listen, on_the_generators_core};
use anyhow::{Context, Result, ensure};
use std::cell::RefCell;
use std::thread::sleep;
use std::time::{Duration, Instant};
use testbed::driver::frontend::{Listener, Shape};
use testbed::driver::plain::PlainGuest;
use testbed::peer::vhost::{Kind, Running};
use testbed::traffic::request::{Answers, Pace};

/// How long a switch may take to connect; Open vSwitch looks once a second.
const CONNECTS: Duration = Duration::from_secs(15);

/// A frame that is not there after so long is lost.
const PATIENCE: Duration = Duration::from_millis(500);

/// A frame of 64 bytes with its check sequence, of a type for local experiments (IEEE 802, EtherType 0x88b5).
const FRAME: [u8; 60] = {
    let mut frame = [0; 60];
    (frame[0], frame[5], frame[6], frame[11]) = (2, 2, 2, 1);
    (frame[12], frame[13]) = (0x88, 0xb5);
    frame
};

/// The machines, and the switch between them.
pub struct Machines {
    /// Gone first, so that the switch sees them leave.
    guests: RefCell<[PlainGuest; 2]>,
    switch: Running,
    _listeners: [Listener; 2],
    _directory: tempfile::TempDir,
}

impl Machines {
    pub fn start(kind: Kind) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let sockets = [1, 2].map(|number| directory.path().join(format!("vm{number}.sock")));
        let listeners = listen(&sockets)?;
        let switch = Running::start(kind, &sockets, FRAME.len())?;
        let rules = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"];
        switch.add_rules(&rules.map(str::to_owned))?;
        let connect =
            |listener: &Listener| PlainGuest::connect(listener.accept(CONNECTS)?, Shape::default());
        let guests = RefCell::new([connect(&listeners[0])?, connect(&listeners[1])?]);
        let machines = Self { guests, switch, _listeners: listeners, _directory: directory };
        machines.wait_until_joined()?;
        Ok(machines)
    }

    fn wait_until_joined(&self) -> Result<()> {
        let deadline = Instant::now() + CONNECTS;
        while self.there_and_back().is_err() {
            ensure!(Instant::now() < deadline, "no frame comes through");
        }
        Ok(())
    }

    /// As [`request::ping`](testbed::traffic::request::ping).
    pub fn ping(&self, pace: Pace, count: u32) -> Result<Answers> {
        on_the_generators_core(|| {
            let began = Instant::now();
            let mut times = Vec::new();
            for number in 0..count {
                if let Pace::Each(pause) = pace {
                    sleep((pause * number).saturating_sub(began.elapsed()));
                }
                times.push(self.there_and_back()?);
            }
            let micros = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
            Answers::of(micros, began.elapsed())
        })
    }

    fn there_and_back(&self) -> Result<Duration> {
        let mut guests = self.guests.borrow_mut();
        let began = Instant::now();
        for (from, to) in [(0, 1), (1, 0)] {
            guests[from].send(&FRAME, PATIENCE)?;
            let came = guests[to].receive(PATIENCE)?.context("a frame was lost")?;
            ensure!(came.bytes == FRAME, "another frame came: {:02x?}", came.bytes);
        }
        Ok(began.elapsed())
    }

    pub fn cpu_time(&self) -> Result<Duration> {
        self.switch.cpu_time()
    }
}
