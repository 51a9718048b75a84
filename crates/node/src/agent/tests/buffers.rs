//! Packet buffers as controllers use them (OpenFlow 1.3.5 §6.1.2, §7.3.2, §7.3.4.1, §7.3.7, §7.4.1): the frames here are 200 bytes long.

use crate::agent::PeerKind;
use crate::agent::tests::client::Client;
use crate::switch::tests::{TestPlane, entry, punt, switch};
use crate::switch::{PACKET_BUFFERS, Switch};
use flow::PacketIn;
use openflow::{
    Action, AsyncConfig, ErrorCode, FlowMod, FlowModCommand, FlowStatsRequest, FragmentMode,
    Message, PacketOut, PortConfig, PortNo, SwitchConfig, TableId,
};
use port::PortFacts;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::UnixStream;

const LEN: usize = 200;
const IN_PORT: PortNo = PortNo(1);

/// Two seconds and a bit, in the datapath's time.
const TOO_LATE: u64 = 2_000_000_001;

struct Bench {
    switch: Arc<Switch>,
    plane: Arc<TestPlane>,
    controller: Client<UnixStream>,
}

impl Bench {
    async fn new() -> Self {
        let (switch, plane) = switch();
        switch.add_port(IN_PORT, "eth1", &PortFacts::default(), PortConfig::empty());
        let controller = Client::join(&switch, PeerKind::Controller).await;
        Self { switch, plane, controller }
    }

    fn emit(&self, reason: flow::PacketInReason, max_len: u16) {
        let why = PacketIn { reason, table: 0, cookie: 1, max_len };
        self.switch.on_packet_in(punt(IN_PORT.0, LEN, why));
    }

    /// Buffer id and bytes of the packet-in that an output action of that limit makes.
    async fn packet_in(&mut self, max_len: u16) -> (Option<u32>, usize) {
        self.emit(flow::PacketInReason::Action, max_len);
        shown(&mut self.controller).await
    }

    async fn buffered(&mut self) -> u32 {
        let (id, len) = self.packet_in(64).await;
        assert_eq!(len, 64);
        id.expect("a buffer is free")
    }

    /// What the datapath was told to send: frame, ingress port, actions.
    async fn sent(&mut self) -> Vec<(Vec<u8>, u32, Vec<flow::Action>)> {
        assert_eq!(self.controller.ask(Message::BarrierRequest).await, Message::BarrierReply);
        let sent = std::mem::take(&mut *self.plane.sent.lock().unwrap());
        sent.into_iter().map(|sent| (sent.frame, sent.in_port, sent.actions)).collect()
    }

    fn entries(&self) -> u32 {
        self.switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count
    }
}

async fn shown(client: &mut Client<UnixStream>) -> (Option<u32>, usize) {
    let (_, Message::PacketIn(found)) = client.next().await else { panic!("no packet-in") };
    assert_eq!(usize::from(found.total_len), LEN);
    (found.buffer_id, found.data.len())
}

fn packet_out(id: u32) -> Message {
    let (actions, data) = (vec![Action::output(PortNo(3))], Vec::new());
    Message::PacketOut(PacketOut { buffer_id: Some(id), in_port: IN_PORT, actions, data })
}

fn flow_mod(id: u32, command: FlowModCommand) -> Message {
    Message::FlowMod(FlowMod { buffer_id: Some(id), command, ..entry(1) })
}

fn whole() -> Vec<u8> {
    (0..LEN).map(|at| at as u8).collect()
}

fn output(port: u32) -> Vec<flow::Action> {
    vec![flow::Action::Output(flow::Output::Port(port))]
}

fn through_tables() -> (Vec<u8>, u32, Vec<flow::Action>) {
    (whole(), IN_PORT.0, vec![flow::Action::Output(flow::Output::Table)])
}

#[tokio::test]
async fn max_len_cuts_a_frame_that_is_kept() {
    let mut bench = Bench::new().await;
    for max_len in [0, 64, 199] {
        let (id, len) = bench.packet_in(max_len).await;
        assert!(id.is_some() && len == usize::from(max_len), "{id:?} {len}");
    }
}

#[tokio::test]
async fn a_frame_that_fits_and_one_without_limit_come_whole_and_are_not_kept() {
    let mut bench = Bench::new().await;
    for max_len in [200, 201, 0xffff] {
        assert_eq!(bench.packet_in(max_len).await, (None, LEN));
    }
}

#[tokio::test]
async fn the_miss_send_length_cuts_what_no_action_sent() {
    let mut bench = Bench::new().await;
    let wanted = AsyncConfig { packet_in: [7, 0], ..AsyncConfig::default() };
    bench.controller.send(Message::SetAsync(wanted)).await;
    for (miss_send_len, is_kept, expected) in [(30, true, 30), (0, true, 0), (0xffff, false, LEN)] {
        let config = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len };
        bench.controller.send(Message::SetConfig(config)).await;
        bench.controller.ask(Message::BarrierRequest).await;
        bench.emit(flow::PacketInReason::InvalidTtl, 0xffff);
        let (id, len) = shown(&mut bench.controller).await;
        assert_eq!((id.is_some(), len), (is_kept, expected), "miss_send_len {miss_send_len}");
    }
}

#[tokio::test]
async fn a_packet_out_sends_the_kept_frame_whole_and_once() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    bench.controller.send(packet_out(id)).await;
    assert_eq!(bench.sent().await, [(whole(), IN_PORT.0, output(3))]);
    assert_eq!(bench.controller.error(packet_out(id)).await, ErrorCode::BadRequestBufferEmpty);
    assert_eq!(bench.sent().await, []);
}

#[tokio::test]
async fn a_packet_out_without_actions_drops_the_kept_frame() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    let drop = PacketOut { buffer_id: Some(id), in_port: IN_PORT, actions: vec![], data: vec![] };
    bench.controller.send(Message::PacketOut(drop)).await;
    assert!(bench.sent().await.iter().all(|(_, _, actions)| actions.is_empty()));
    assert_eq!(bench.controller.error(packet_out(id)).await, ErrorCode::BadRequestBufferEmpty);
}

#[tokio::test]
async fn a_refused_packet_out_leaves_the_frame_where_it_is() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    let absent =
        PacketOut { buffer_id: Some(id), in_port: PortNo(77), actions: vec![], data: vec![] };
    let error = bench.controller.error(Message::PacketOut(absent)).await;
    assert_eq!(error, ErrorCode::BadRequestBadPort);
    bench.controller.send(packet_out(id)).await;
    assert_eq!(bench.sent().await.len(), 1);
}

#[tokio::test]
async fn an_id_that_nobody_was_told_is_unknown() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    for wrong in [0, 1, id ^ 1, id ^ 1 << 20] {
        let error = bench.controller.error(packet_out(wrong)).await;
        assert_eq!(error, ErrorCode::BadRequestBufferUnknown);
        let error = bench.controller.error(flow_mod(wrong, FlowModCommand::Add)).await;
        assert_eq!(error, ErrorCode::BadRequestBufferUnknown);
    }
    assert_eq!((bench.entries(), bench.sent().await), (0, vec![]));
}

#[tokio::test]
async fn a_frame_that_waited_too_long_is_unknown() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    bench.plane.now.fetch_add(TOO_LATE, Relaxed);
    assert_eq!(bench.controller.error(packet_out(id)).await, ErrorCode::BadRequestBufferUnknown);
}

#[tokio::test]
async fn a_flow_mod_sends_the_kept_frame_through_the_tables_as_it_changed_them() {
    let mut bench = Bench::new().await;
    for command in [FlowModCommand::Add, FlowModCommand::Modify, FlowModCommand::ModifyStrict] {
        let id = bench.buffered().await;
        let before = bench.plane.snapshots.load(Relaxed);
        bench.controller.send(flow_mod(id, command)).await;
        assert_eq!(bench.sent().await, [through_tables()], "{command:?}");
        assert!(bench.plane.snapshots.load(Relaxed) > before, "the workers have the entry first");
        let error = bench.controller.error(flow_mod(id, command)).await;
        assert_eq!(error, ErrorCode::BadRequestBufferEmpty);
    }
    assert_eq!(bench.entries(), 1);
}

#[tokio::test]
async fn a_delete_ignores_its_buffer() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    for (id, command) in [(id, FlowModCommand::Delete), (7, FlowModCommand::DeleteStrict)] {
        bench.controller.send(flow_mod(id, command)).await;
    }
    assert_eq!(bench.sent().await, []);
    bench.controller.send(packet_out(id)).await;
    assert_eq!(bench.sent().await.len(), 1);
}

#[tokio::test]
async fn a_refused_flow_mod_leaves_the_frame_where_it_is() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    let bad = FlowMod { buffer_id: Some(id), table: TableId::ALL, ..entry(1) };
    let error = bench.controller.error(Message::FlowMod(bad)).await;
    assert_eq!(error, ErrorCode::FlowModFailedBadTableId);
    bench.controller.send(packet_out(id)).await;
    assert_eq!(bench.sent().await.len(), 1);
}

#[tokio::test]
async fn when_no_buffer_is_free_the_frame_comes_whole() {
    let mut bench = Bench::new().await;
    let mut first = None;
    for _ in 0..PACKET_BUFFERS {
        first = first.or(Some(bench.buffered().await));
    }
    assert_eq!(bench.packet_in(64).await, (None, LEN));
    bench.controller.send(packet_out(first.unwrap())).await;
    assert_eq!(bench.sent().await.len(), 1);
    bench.buffered().await;
    assert_eq!(bench.packet_in(64).await, (None, LEN));
    bench.plane.now.fetch_add(TOO_LATE, Relaxed);
    bench.buffered().await;
}

#[tokio::test]
async fn two_controllers_hear_of_one_buffer_and_the_first_sends_it() {
    let mut bench = Bench::new().await;
    let mut other = Client::join(&bench.switch, PeerKind::Controller).await;
    let id = bench.buffered().await;
    assert_eq!(shown(&mut other).await, (Some(id), 64));
    other.send(packet_out(id)).await;
    other.ask(Message::BarrierRequest).await;
    assert_eq!(bench.controller.error(packet_out(id)).await, ErrorCode::BadRequestBufferEmpty);
    assert_eq!(bench.sent().await.len(), 1);
}

#[tokio::test]
async fn a_switch_to_which_nobody_listens_keeps_nothing() {
    let mut bench = Bench::new().await;
    let id = bench.buffered().await;
    assert!(bench.plane.keeps_frames.load(Relaxed));
    let Bench { switch, plane, controller } = bench;
    drop(controller);
    while switch.has_controller() {
        tokio::task::yield_now().await;
    }
    assert!(!plane.keeps_frames.load(Relaxed));
    let mut next = Client::join(&switch, PeerKind::Controller).await;
    assert_eq!(next.error(packet_out(id)).await, ErrorCode::BadRequestBufferUnknown);
}
