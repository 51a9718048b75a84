//! A sink that remembers, and checks on the way what every sink relies on.

use super::Switch;
use super::frame::Frame;
use crate::action::{Action, Instructions, PortNo};
use crate::action_set::ActionSet;
use crate::exec::{Env, Leaving, LinearProgram, Origin, Run};
use crate::packet::{Packet, PacketIn, Sink, Then};
use crate::process::Shifted;
use std::ops::ControlFlow;
use wire::{DropReason, Head, Offload};

/// A frame that left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    pub port: PortNo,
    pub queue: u32,
    pub bytes: Vec<u8>,
}

/// Everything that became of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdicts {
    pub sent: Vec<Sent>,
    pub told: Vec<(PacketIn, Vec<u8>)>,
    pub discarded: Option<DropReason>,
    pub lost: Option<DropReason>,
}

/// Remembers the verdicts of one packet.
#[derive(Default)]
pub struct Recorder {
    pub verdicts: Verdicts,
    /// Bytes of the packet that was handed over for good, and where its head lies.
    pub done: Option<(Vec<u8>, *const Head)>,
}

impl Sink for Recorder {
    fn output(&mut self, index: usize, packet: &Packet<'_>, ports: &[PortNo], then: Then) {
        assert!(index == 9 && !ports.is_empty() && self.verdicts.discarded.is_none());
        assert!(self.done.is_none(), "an output after the last one");
        let bytes = packet.head.bytes().to_vec();
        assert_eq!(packet.frame_len as usize, bytes.len());
        let sent = |&port| Sent { port, queue: packet.queue, bytes: bytes.clone() };
        self.verdicts.sent.extend(ports.iter().map(sent));
        if then == Then::Done {
            self.done = Some((bytes, &raw const *packet.head));
        }
    }

    fn packet_in(&mut self, index: usize, packet: &Packet<'_>, why: PacketIn) {
        assert!(index == 9 && self.verdicts.discarded.is_none());
        self.verdicts.told.push((why, packet.head.bytes().to_vec()));
    }

    fn lose(&mut self, index: usize, _packet: &Packet<'_>, reason: DropReason) {
        let Verdicts { sent, told, discarded, lost } = &mut self.verdicts;
        assert!(index == 9 && discarded.is_none() && lost.is_none(), "lost twice");
        let is_all = sent.is_empty() && told.is_empty();
        *(if is_all { discarded } else { lost }) = Some(reason);
    }
}

/// What an entry does, as far as it concerns a packet here.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub meter: Option<u32>,
    pub apply: Vec<Action>,
    pub write: Vec<Action>,
    pub miss: bool,
}

/// The entry of the table of this number.
pub fn origin(table: usize, miss: bool) -> Origin {
    Origin { table: table as u8, cookie: 0xc0 + table as u64, miss }
}

/// Hands a run of a packet of `frame` to `work`, and checks what the sink was promised about its head.
pub fn recorded(
    switch: &Switch,
    frame: &Frame,
    in_port: PortNo,
    work: impl FnOnce(Run<'_, '_, Recorder>),
) -> (Verdicts, bool) {
    recorded_packet(switch, frame, in_port, |env, packet, recorder| {
        work(Run::new(env, 9, packet, recorder));
    })
}

/// Hands the packet itself to `work`.
fn recorded_packet(
    switch: &Switch,
    frame: &Frame,
    in_port: PortNo,
    work: impl FnOnce(&Env<'_>, &mut Packet<'_>, &mut Recorder),
) -> (Verdicts, bool) {
    let bytes = frame.bytes();
    let mut head = Head::copy_of(&bytes);
    let place = &raw const head;
    let (key, layers) = wire::parse(&head, in_port);
    let frame_len = bytes.len() as u32;
    let mut packet =
        Packet { head: &mut head, key, layers, offload: Offload::default(), frame_len, queue: 0 };
    let mut recorder = Recorder::default();
    work(&switch.env(), &mut packet, &mut recorder);
    if let Some((bytes, at)) = &recorder.done {
        assert_eq!(*at, place, "a copy on the stack was handed over for good");
        assert_eq!(
            packet.head.bytes(),
            bytes,
            "the packet changed after it was handed over for good"
        );
    }
    (recorder.verdicts, recorder.done.is_some())
}

/// Runs a packet through the short form of one entry's instructions; `None` if they have none.
pub fn run_linear(
    switch: &Switch,
    frame: &Frame,
    in_port: PortNo,
    instructions: &Instructions,
) -> Option<(Verdicts, bool)> {
    let linear = LinearProgram::of(instructions)?;
    Some(recorded_packet(switch, frame, in_port, |env, packet, recorder| {
        let mut sink = Shifted { sink: recorder, start: 9 };
        let (packets, mut leaving) = (&mut [packet][..], Leaving::new(&mut sink));
        linear.run(env, 0..1, packets, &mut leaving, || origin(0, false));
        leaving.finish(packets);
    }))
}

/// Runs a packet through entries, one a table.
pub fn walk(switch: &Switch, frame: &Frame, in_port: PortNo, steps: &[Step]) -> (Verdicts, bool) {
    recorded(switch, frame, in_port, |mut run| {
        let mut set = ActionSet::default();
        let _cut_or_not = steps.iter().enumerate().try_for_each(|(table, step)| {
            run.enter(origin(table, step.miss));
            step.meter.map_or(ControlFlow::Continue(()), |meter| run.meter(meter))?;
            run.apply(&step.apply)?;
            set.write(&step.write);
            ControlFlow::Continue(())
        });
        run.finish(&set);
    })
}

/// Applies one list.
pub fn apply(
    switch: &Switch,
    frame: &Frame,
    in_port: PortNo,
    actions: &[Action],
) -> (Verdicts, bool) {
    walk(switch, frame, in_port, &[Step { apply: actions.to_vec(), ..Step::default() }])
}
