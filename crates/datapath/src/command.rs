//! Orders of the control thread to a worker, and the worker's answers.

use crate::id::{PortIx, SwitchId, SwitchIx};
use crate::local::{LocalPort, LocalSwitch};
use crate::shape::Shaper;
use crate::steering::{Classifier, Handover, Settled, Steered};
use crate::switch::SwitchShared;
use crate::taps::{CaptureId, Tap, Timer};
use flow::{Action, PortNo};
use port::RxQueue;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use wire::Offload;

/// A change of what a worker serves. Each is answered.
pub(crate) enum Command {
    /// Take up a switch.
    AddSwitch { ix: SwitchIx, shared: Arc<SwitchShared>, reply: Sender<Reply> },
    /// Give up a switch, whose ports are gone already.
    RemoveSwitch { ix: SwitchIx, reply: Sender<Reply> },
    /// Take up a port and those of its receive queues that this worker polls.
    Attach { ix: PortIx, port: Box<LocalPort>, rx: Vec<Box<dyn RxQueue>>, reply: Sender<Reply> },
    /// Give up a port and its queues.
    Detach { ix: PortIx, reply: Sender<Reply> },
    /// Give a port queues and rates, or take them away.
    SetQueues { ix: PortIx, shaper: Option<Box<Shaper>>, reply: Sender<Reply> },
    /// Steer a switch; with the worker's part in steering if it has none yet.
    Steer { ix: SwitchIx, part: Option<Box<Handover>>, steered: Box<Steered>, reply: Sender<Reply> },
    /// Steer it by other entries, when no order is lost: answered then.
    Reclassify { ix: SwitchIx, classifier: Arc<Classifier>, reply: Sender<Settled> },
    /// Steer it no more, when no order is lost: answered then.
    Unsteer { ix: SwitchIx, reply: Sender<Settled> },
    /// Give up the worker's part in steering: nothing is steered any more.
    Disconnect { reply: Sender<Reply> },
    /// See frames for a capture.
    Tap { tap: Box<Tap>, reply: Sender<Reply> },
    /// See frames for a capture no more.
    Untap { id: CaptureId, reply: Sender<Reply> },
    /// Time frames.
    Time { timer: Box<Timer>, reply: Sender<Reply> },
    /// Time them no more.
    Untime { id: CaptureId, reply: Sender<Reply> },
    /// Say that no round is under way that began before.
    Barrier { reply: Sender<Reply> },
    /// End.
    Stop,
}

/// A worker's answer. What it gives back is dropped by the thread that asked.
pub(crate) enum Reply {
    /// Done.
    Done,
    /// Done; the port and its queues.
    Port(#[expect(dead_code, reason = "only dropped, by the asking thread")] Box<Removed>),
    /// Done; the switch.
    Switch(#[expect(dead_code, reason = "only dropped, by the asking thread")] Box<LocalSwitch>),
    /// Done; the queues that the port had.
    Shaper(#[expect(dead_code, reason = "only dropped, by the asking thread")] Option<Box<Shaper>>),
    /// Done; the worker's part in steering.
    Handover(
        #[expect(dead_code, reason = "only dropped, by the asking thread")] Option<Box<Handover>>,
    ),
    /// Done; what the worker did for a capture.
    Tap(#[expect(dead_code, reason = "only dropped, by the asking thread")] Option<Box<Tap>>),
    /// Done; what the worker did for a timing.
    Timer(#[expect(dead_code, reason = "only dropped, by the asking thread")] Option<Box<Timer>>),
    /// A receive queue cannot be watched; the worker holds nothing of the port.
    Failed(
        io::Error,
        #[expect(dead_code, reason = "only dropped, by the asking thread")] Box<Removed>,
    ),
}

/// What a worker held of a port.
pub(crate) struct Removed {
    #[expect(dead_code, reason = "only dropped, by the asking thread")]
    pub(crate) port: Option<LocalPort>,
    pub(crate) rx: Vec<Box<dyn RxQueue>>,
}

/// A frame to send, on its way to a worker.
pub(crate) struct Injected {
    pub(crate) ix: SwitchIx,
    /// The place may belong to another switch when the worker gets to it.
    pub(crate) switch: SwitchId,
    pub(crate) in_port: PortNo,
    pub(crate) frame: Vec<u8>,
    pub(crate) offload: Offload,
    pub(crate) actions: Vec<Action>,
}
