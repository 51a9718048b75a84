//! A guest in a process of its own, so that it can be killed.
//!
//! It listens on its socket, and while a switch is there it sends numbered frames at a steady rate and compares what the other player
//! sends. When the switch ends, it waits for the next one with the rings as they are. In its next life it goes on with its numbers.

use super::counters::{Cell, Counters, now_ns};
use anyhow::Result;
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use testbed::driver::flows::{Pattern, order};
use testbed::driver::frame::STAMP;
use testbed::driver::frontend::{Device, Listener, Shape};
use testbed::driver::lean::{Got, Guest, Least, Sink};
use testbed::driver::sys::Pages;
use testbed::driver::traffic::{Touch, Traffic};
use testbed::driver::verify::{Check, unchanged};
use testbed::peer::GENERATORS_CORE;
use testbed::sys::pin;

/// Frames a second that each player sends, and the slots of its rings: 20 ms of it, for a player may be kept waiting for its core.
pub const RATE: u64 = 50_000;
const SLOTS: u16 = 1024;

/// From one look at the rings to the next.
const TICK: Duration = Duration::from_millis(1);

/// Nobody waits longer for a switch.
const PATIENCE: Duration = Duration::from_secs(60);

const FRAME: usize = 256;

/// Options of the hidden command that a player is.
#[derive(Args, Clone)]
pub struct Options {
    #[arg(long)]
    socket: PathBuf,
    #[arg(long)]
    counters: PathBuf,
    #[arg(long)]
    side: u8,
    #[arg(long)]
    hugepages: bool,
}

/// Plays until nobody comes any more.
///
/// # Errors
/// No switch comes within a minute, or there is no memory.
pub fn run(options: &Options) -> Result<()> {
    pin(GENERATORS_CORE);
    // Who was killed left it behind.
    let _ = std::fs::remove_file(&options.socket);
    let listener = Listener::bind(&options.socket)?;
    let pages = if options.hugepages { Pages::Huge } else { Pages::Plain };
    let shape = Shape { slots: SLOTS, frame: FRAME, pages, ..Shape::default() };
    let mut player = Player::new(Counters::open(&options.counters)?, options.side);
    let mut guest = None;
    loop {
        let socket = listener.accept(PATIENCE)?;
        let session = socket.try_clone()?;
        // A switch that is killed before all is told is like one that never came.
        if let Err(error) = player.meet(&mut guest, socket, &shape) {
            eprintln!("{error:#}");
            continue;
        }
        if let Some(guest) = &mut guest {
            player.play(guest, &session)?;
        }
    }
}

struct Player {
    counters: Counters,
    traffic: Traffic,
    side: u8,
    judge: Judge,
}

/// Compares frames and notes whose they are.
struct Judge {
    check: Check,
    /// The other player's session by the frames' stamps; 0 before the first one of this session of ours.
    seen: u64,
    since: u64,
}

impl Sink for Judge {
    fn frame(&mut self, side: u8, got: Got<'_>) {
        let stamp = got.line.0[STAMP].load(Relaxed);
        if stamp != self.seen {
            (self.seen, self.since) = (stamp, now_ns());
        }
        self.check.frame(side, got);
    }
}

impl Player {
    fn new(counters: Counters, side: u8) -> Self {
        let traffic = Traffic {
            frame: FRAME,
            touch: Touch::Full,
            segment: None,
            pattern: Pattern::Addresses,
            order: order(1000),
        };
        let mut check = Check::new(traffic.clone(), unchanged);
        check.begin([counters.get(Cell::Expected); 2]);
        check.good = counters.get(Cell::Good);
        check.lost = counters.get(Cell::Lost);
        check.reordered = counters.get(Cell::Repeated);
        check.damaged = counters.get(Cell::Damaged);
        Self { counters, traffic, side, judge: Judge { check, seen: 0, since: 0 } }
    }

    /// Connects the guest to a switch, or makes one.
    fn meet(&mut self, guest: &mut Option<Guest>, socket: UnixStream, shape: &Shape) -> Result<()> {
        match guest {
            Some(guest) => guest.device.reconnect(socket, shape)?,
            None => {
                let device = Device::connect(socket, shape)?;
                let made = guest.insert(Guest::new(device, self.traffic.clone(), self.side));
                made.sequence = self.counters.get(Cell::Sequence);
            }
        }
        let session = self.counters.get(Cell::Session) + 1;
        self.judge.seen = 0;
        self.counters.set(Cell::Seen, 0);
        self.counters.set(Cell::Session, session);
        Ok(())
    }

    /// Sends and receives until the switch hangs up.
    fn play(&mut self, guest: &mut Guest, session: &UnixStream) -> Result<()> {
        let (start, mut sent) = (Instant::now(), 0);
        let stamp = self.counters.get(Cell::Session);
        while !hung_up(session)? {
            while guest.receive(1, &mut self.judge) > 0 {
                guest.tell();
            }
            self.tell();
            let due = start.elapsed().as_micros() as u64 * RATE / 1_000_000;
            while sent < due {
                let burst = (due - sent).min(32) as u16;
                // Who is killed between this and the sending has lost frames that never were; the other way round they would come twice.
                self.counters.set(Cell::Sequence, guest.sequence + u64::from(burst));
                let went = guest.send(burst, Least::One, |_| stamp);
                guest.tell();
                if went < burst {
                    // The switch takes no more: what is due now never is.
                    self.counters.set(Cell::Sequence, guest.sequence);
                    sent = due;
                }
                sent += u64::from(went);
            }
        }
        Ok(())
    }

    fn tell(&self) {
        let Judge { check, seen, since } = &self.judge;
        let cells = [
            (Cell::Expected, check.next(1 - self.side)),
            (Cell::Good, check.good),
            (Cell::Lost, check.lost),
            (Cell::Repeated, check.reordered),
            (Cell::Damaged, check.damaged),
            (Cell::Since, *since),
            (Cell::Seen, *seen),
        ];
        cells.into_iter().for_each(|(cell, value)| self.counters.set(cell, value));
    }
}

/// Waits a tick; whether the switch has hung up by then.
fn hung_up(session: &UnixStream) -> Result<bool> {
    let mut fds = [PollFd::new(session, PollFlags::RDHUP)];
    Ok(poll(&mut fds, Some(&Timespec::try_from(TICK)?))? > 0)
}
