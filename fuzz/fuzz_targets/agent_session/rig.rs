//! A switch without a datapath, and the peer's side of a session with it.

use datapath::{HeldFrame, PortCounters, Punt, QueueCounters, SwitchId};
use flow::{Limits, Nanos, PacketIn, PacketInReason, PortNo, Snapshot};
use node::agent::{Caller, Peer, PeerKind, Timing, serve};
use node::journal::Discard;
use api::FailMode;
use node::switch::{Emission, NewSwitch, Plane, Switch};
use openflow::{
    Action, FlowMod, FlowStats, FlowStatsRequest, GroupMod, GroupModCommand, GroupType,
    Instruction, Match, Message, OxmField, PortConfig, next_frame,
};
use port::PortFacts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

/// Most bytes that may wait for a peer here: a mebibyte of packet-ins, and what one turn of requests is answered.
const OUTBOX: usize = 2 << 20;

/// What the kernel would hold of a connection, in each direction.
const KERNEL: usize = 16 << 10;

/// Nothing happens for so long: everybody waits for us.
const QUIET: Duration = Duration::from_millis(1);

/// A datapath that only tells the time.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Plane for Clock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Relaxed))
    }

    fn publish(&self, _: Arc<Snapshot>) {}

    fn settle(&self) {}

    fn keep_frames(&self, _: bool) {}

    fn packet_out(&self, _: Emission) {}

    fn port_counters(&self, _: PortNo) -> PortCounters {
        PortCounters::default()
    }

    fn queue_counters(&self, _: PortNo) -> Vec<QueueCounters> {
        Vec::new()
    }

    fn set_port_admin(&self, _: PortNo, _: bool) {}
}

/// One switch.
pub struct Rig {
    pub switch: Arc<Switch>,
    clock: Clock,
}

impl Rig {
    pub fn new(name: &str) -> Self {
        let clock = Clock::default();
        let new = NewSwitch {
            name: name.into(),
            datapath_id: 1,
            fail_mode: FailMode::Standalone,
            miss_send_len: 128,
            // Few, so that hundreds of dumps are soon written.
            limits: Limits { tables: 4, entries_per_table: 50, ..Limits::default() },
            serials: flow::Serials::default(),
            ends: Arc::default(),
        };
        let switch = Switch::new(new, Arc::new(Discard), |_| Arc::new(clock.clone()));
        let facts =
            PortFacts { mac: [2, 0, 0, 0, 0, 1], up: true, carrier: true, ..PortFacts::default() };
        switch.add_port(openflow::PortNo(1), "eth1", &facts, PortConfig::empty());
        Self { switch, clock }
    }

    /// An entry and a group.
    pub fn furnish(&self) {
        let id = openflow::GroupId(1);
        let group = GroupMod {
            command: GroupModCommand::Add,
            kind: GroupType::All,
            id,
            buckets: Vec::new(),
        };
        self.switch.group_mod(&group).expect("a group that can be");
        let instructions = vec![Instruction::ApplyActions(vec![Action::Group(id)])];
        let fields = Match::default().with(OxmField::InPort, 1);
        self.switch
            .flow_mod(&FlowMod { fields, instructions, ..FlowMod::default() })
            .expect("an entry that can be");
    }

    pub fn tables(&self) -> (Vec<FlowStats>, Vec<openflow::GroupDesc>, usize) {
        let flows =
            self.switch.flows(&FlowStatsRequest::default()).expect("every table can be asked for");
        (flows.collect(), self.switch.groups(), self.switch.ports().len())
    }

    /// Lets the workers' clock go on, and entries time out.
    pub fn advance(&self, seconds: u8) {
        self.clock.0.fetch_add(u64::from(seconds) * 1_000_000_000, Relaxed);
        self.switch.tick();
    }

    /// A frame of `len` bytes that an entry sent to the controllers.
    pub fn punt(&self, reason: PacketInReason, len: u8) {
        let why = PacketIn { reason, table: 0, cookie: 1, max_len: 128 };
        self.switch.on_packet_in(Punt {
            switch: SwitchId(1),
            in_port: 1,
            frame: HeldFrame::complete(vec![0x55; len.into()]),
            total_len: len.into(),
            why,
            metadata: 0,
            tunnel_id: 0,
        });
    }

    /// A connection with a controller that has not said anything yet, and may be silent for so long.
    pub fn controller(&self, timing: Timing) -> Side {
        let (ours, theirs) = tokio::io::duplex(KERNEL);
        let joined: Arc<OnceLock<Arc<Peer>>> = Arc::default();
        let peer = joined.clone();
        let caller = Caller {
            id: 1,
            name: "fuzz".into(),
            kind: PeerKind::Controller,
            timing,
            main: None,
            on_join: Some(Box::new(move |peer| {
                let _ = joined.set(peer.clone());
                Box::new(())
            })),
            steering: None,
        };
        let switch = self.switch.clone();
        let session = tokio::spawn(async move { drop(serve(theirs, caller, switch).await) });
        Side { stream: ours, session, peer, heard: Vec::new(), held: Vec::new() }
    }
}

/// The peer's side of a session.
pub struct Side {
    stream: DuplexStream,
    session: JoinHandle<()>,
    peer: Arc<OnceLock<Arc<Peer>>>,
    /// What the switch said.
    heard: Vec<u8>,
    /// To be sent after the next message.
    held: Vec<u8>,
}

impl Side {
    /// Sends, if the switch still listens.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let held = std::mem::take(&mut self.held);
        let _ = self.stream.write_all(&held).await;
    }

    /// Keeps bytes back until others were sent.
    pub fn hold(&mut self, bytes: Vec<u8>) {
        self.held = bytes;
    }

    /// Reads until the switch has nothing more to say; false when it has left.
    pub async fn read(&mut self) -> bool {
        loop {
            match tokio::time::timeout(QUIET, self.stream.read_buf(&mut self.heard)).await {
                Err(_) => return true,
                Ok(Ok(count)) if count > 0 => {}
                Ok(_) => return false,
            }
        }
    }

    pub fn is_over(&self) -> bool {
        self.session.is_finished()
    }

    /// What waits to be sent to a peer is bounded, whatever it asks for and does not read.
    pub fn outbox_is_bounded(&self) {
        let waiting = self.peer.get().map_or(0, |peer| peer.outbox().waiting());
        assert!(waiting <= OUTBOX, "{waiting} bytes wait");
    }

    /// The last whole message that the switch said, all of which is OpenFlow. Who reads too slowly is left in the midst of one.
    pub fn said(&self) -> Option<(u32, Message)> {
        let (mut at, mut last) = (0, None);
        while let Some(frame) = next_frame(&self.heard[at..]).expect("the switch speaks OpenFlow") {
            let (header, message) = Message::decode(frame).expect("the switch speaks OpenFlow");
            (at, last) = (at + frame.len(), Some((header.xid, message)));
        }
        last
    }

    /// Reads all, says that nothing more comes, and waits for the session's end.
    pub async fn end(mut self) {
        self.read().await;
        let _ = self.stream.shutdown().await;
        self.read().await;
        self.said();
        drop(self.stream);
        tokio::time::timeout(Duration::from_secs(3600), self.session)
            .await
            .expect("a session ends when its peer goes")
            .expect("a session does not panic");
    }
}
