//! The modes of AF_XDP from the best down, until one works.
//!
//! | mode | program runs | frame is |
//! |---|---|---|
//! | zero-copy | in the driver | in the UMEM at once |
//! | native copy | in the driver | copied once |
//! | generic | after the driver, on a socket buffer | copied once |

use super::FRAMES;
use super::claim::{occupied, taken};
use crate::common::Common;
use crate::error::OpenError;
use crate::interface::cannot_enter;
use crate::netns::Netns;
use crate::sys::xsk::{self, Shape, XskRx, XskTx};
use api::{AfXdp, XdpMode};
use netlink::Link;
use std::error::Error;
use std::io;
use std::time::{Duration, Instant};
use xdp::{Hook, HookError, Mode, Stage, Worker, WorkerStage};

/// A program and sockets on every queue.
pub(super) struct Attached {
    pub(super) sockets: Vec<(XskRx, XskTx)>,
    pub(super) worker: Worker,
    /// In words.
    pub(super) mode: String,
    /// The driver's buffers, instead of a copy.
    pub(super) zero_copy: bool,
    /// Modes refused, with the reason.
    pub(super) notes: Vec<String>,
}

/// One step of the ladder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rung {
    name: &'static str,
    hook: Mode,
    zero_copy: bool,
}

const ZERO_COPY: Rung = Rung { name: "zero-copy", hook: Mode::Native, zero_copy: true };
const NATIVE: Rung = Rung { name: "native copy", hook: Mode::Native, zero_copy: false };
const GENERIC: Rung = Rung { name: "generic", hook: Mode::Generic, zero_copy: false };

fn rungs(mode: XdpMode) -> &'static [Rung] {
    match mode {
        XdpMode::Auto => &[ZERO_COPY, NATIVE, GENERIC],
        XdpMode::ZeroCopy => &[ZERO_COPY],
        XdpMode::Native => &[NATIVE],
        XdpMode::Generic => &[GENERIC],
    }
}

/// Climbs down until a rung holds.
pub(super) fn attach(
    (spec, xdp): (&Common, &AfXdp),
    netns: &Netns,
    link: &Link,
    queues: u32,
    chunk: u32,
) -> Result<Attached, OpenError> {
    let mut refused = Vec::new();
    for &rung in rungs(xdp.xdp_mode.unwrap_or_default()) {
        let tried = netns.run(|| try_rung(rung, link.index, queues, chunk));
        match tried.map_err(|source| cannot_enter(spec, source))? {
            Ok((worker, sockets)) => {
                let plural = if queues == 1 { "" } else { "s" };
                let mode = format!("af_xdp {}, {queues} queue{plural}", rung.name);
                let zero_copy = rung.zero_copy;
                return Ok(Attached { sockets, worker, mode, zero_copy, notes: refused });
            }
            Err(Refusal::Hook(HookError::Occupied { program, .. })) => {
                return Err(occupied(&spec.interface, program));
            }
            Err(Refusal::Bind { source, .. }) if source.raw_os_error() == Some(libc::EBUSY) => {
                return Err(taken(&spec.interface));
            }
            Err(refusal) if refusal.errno() == Some(libc::EPERM) => {
                let source = io::Error::from_raw_os_error(libc::EPERM);
                return Err(OpenError::io(&spec.interface, "attach the XDP program", source));
            }
            Err(refusal) => refused.push(format!("{}: {}", rung.name, refusal.text())),
        }
    }
    Err(OpenError::Xdp { interface: spec.interface.clone(), refused })
}

type Sockets = Vec<(XskRx, XskTx)>;

/// Sockets, program, stage: in the calling thread's namespace.
fn try_rung(rung: Rung, index: u32, queues: u32, chunk: u32) -> Result<(Worker, Sockets), Refusal> {
    let mut stage = WorkerStage::new().map_err(Refusal::Hook)?;
    let mut sockets = Vec::new();
    for queue in 0..queues {
        let shape = Shape {
            index,
            queue,
            zero_copy: rung.zero_copy,
            chunk,
            frames: FRAMES,
            checksum: !rung.zero_copy,
        };
        let socket = bind_when_free(&shape).map_err(|source| Refusal::Bind { queue, source })?;
        stage.set_socket(queue, socket.0.fd()).map_err(Refusal::Map)?;
        sockets.push(socket);
    }
    // Each queue has one socket in all: where ours are bound, no other port has the stage.
    let worker = stage.attach(index, rung.hook).map_err(Refusal::Hook)?;
    Ok((worker, sockets))
}

/// How long queues are waited for that no port has any more. Chosen: a busy host takes a second.
const FREED: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Binds it. The kernel frees the queues of sockets in a thread of its own, after they are closed: those of a port that was removed, or of a
/// killed node.
fn bind_when_free(shape: &Shape) -> io::Result<(XskRx, XskTx)> {
    let until = Instant::now() + FREED;
    let has_port = || !Hook::taken(shape.index).is_ok_and(|taken| !taken.contains(&Stage::Worker));
    loop {
        match bind(shape) {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY)
                    && !has_port()
                    && Instant::now() < until =>
            {
                std::thread::sleep(PAUSE);
            }
            bound => return bound,
        }
    }
}

/// A kernel before 6.11 does not complete checksums: then suiro does.
fn bind(shape: &Shape) -> io::Result<(XskRx, XskTx)> {
    match xsk::open(shape) {
        Err(error) if shape.checksum && error.raw_os_error() == Some(libc::EINVAL) => {
            xsk::open(&Shape { checksum: false, ..*shape })
        }
        opened => opened,
    }
}

/// Why a rung does not hold.
enum Refusal {
    Hook(HookError),
    Bind { queue: u32, source: io::Error },
    Map(xdp::MapError),
}

impl Refusal {
    fn errno(&self) -> Option<i32> {
        match self {
            Self::Hook(error) => error.errno(),
            Self::Bind { source, .. } => source.raw_os_error(),
            Self::Map(_) => None,
        }
    }

    /// In words, the common cases plainly.
    fn text(&self) -> String {
        match self {
            Self::Hook(error) => match error.errno() {
                Some(libc::EOPNOTSUPP) => "the driver has no XDP".into(),
                Some(libc::ERANGE | libc::EINVAL) => {
                    format!("{} (the MTU may be too large for the driver)", chain(error))
                }
                Some(libc::ENOSPC) => "its peer has more tx queues than it has rx queues".into(),
                _ => chain(error),
            },
            Self::Bind { source, .. } if source.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                "the driver has no zero-copy".into()
            }
            Self::Bind { queue, source } => format!("queue {queue} cannot be bound: {source}"),
            Self::Map(error) => chain(error),
        }
    }
}

fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}
