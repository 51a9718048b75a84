//! What a switch does with changes: tables, journal, listeners, publication, fail mode.

mod ends;
mod portions;
mod tables;

use super::*;
use crate::feed::Feed;
use crate::hits::Hits;
use crate::journal::Discard;
use ::port::PortFacts;
use api::Rules;
use datapath::{HeldFrame, PortCounters, Punt, QueueCounters, SwitchId};
use flow::{Miss, Nanos, PacketIn, PacketInReason, Serials};
use openflow::{
    Action, Bucket, ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest, GroupMod,
    GroupModCommand, GroupType, Instruction, Mac, Match, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, OxmField, PacketOut, PortConfig, PortMod, PortNo, Role, TableId,
};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

/// A datapath that notes what it is told; its clock is set by hand.
#[derive(Default)]
pub(crate) struct TestPlane {
    pub now: AtomicU64,
    pub snapshots: AtomicU64,
    pub keeps_frames: AtomicBool,
    pub sent: Mutex<Vec<Emission>>,
    pub admin: Mutex<Vec<(PortNo32, bool)>>,
    pub queues: Mutex<Vec<QueueCounters>>,
}

type PortNo32 = flow::PortNo;

impl Plane for Arc<TestPlane> {
    fn now(&self) -> Nanos {
        Nanos(self.now.load(Ordering::Relaxed))
    }

    fn publish(&self, _: Arc<Snapshot>) {
        self.snapshots.fetch_add(1, Ordering::Relaxed);
    }

    fn settle(&self) {}

    fn keep_frames(&self, keep: bool) {
        self.keeps_frames.store(keep, Ordering::Relaxed);
    }

    fn packet_out(&self, emission: Emission) {
        self.sent.lock().unwrap().push(emission);
    }

    fn port_counters(&self, port: PortNo32) -> PortCounters {
        PortCounters { rx_frames: u64::from(port), ..PortCounters::default() }
    }

    fn queue_counters(&self, _: PortNo32) -> Vec<QueueCounters> {
        self.queues.lock().unwrap().clone()
    }

    fn set_port_admin(&self, port: PortNo32, up: bool) {
        self.admin.lock().unwrap().push((port, up));
    }
}

/// A switch over a [`TestPlane`].
pub(crate) fn switch_with(
    journal: Arc<dyn Journal>,
    fail_mode: FailMode,
) -> (Arc<Switch>, Arc<TestPlane>) {
    switch_of(journal, fail_mode, Arc::default())
}

/// … of a node with these numbers of tunnels' ends.
fn switch_of(
    journal: Arc<dyn Journal>,
    fail_mode: FailMode,
    ends: Arc<Ends>,
) -> (Arc<Switch>, Arc<TestPlane>) {
    let plane = Arc::new(TestPlane::default());
    let new = NewSwitch {
        name: "sw0".into(),
        datapath_id: 0x1234,
        fail_mode,
        miss_send_len: 128,
        limits: Limits::default(),
        serials: Serials::default(),
        ends,
        budget: Arc::default(),
        room: Arc::default(),
        feed: Feed::default(),
        hits: Hits::default(),
    };
    let switch = Switch::new(new, journal, |_| Arc::new(plane.clone()));
    (switch, plane)
}

pub(crate) fn switch() -> (Arc<Switch>, Arc<TestPlane>) {
    switch_with(Arc::new(Discard), FailMode::Standalone)
}

/// A whole frame of `len` bytes for the controllers.
pub(crate) fn punt(in_port: PortNo32, len: usize, why: PacketIn) -> Punt {
    Punt {
        switch: SwitchId(1),
        in_port,
        frame: HeldFrame::complete((0..len).map(|at| at as u8).collect()),
        total_len: len as u32,
        why,
        metadata: 0,
        tunnel_id: 0,
        tun_src: 0,
        tun_dst: 0,
    }
}

/// An entry that sends everything to IPv4 address `to` out of port 1.
pub(crate) fn entry(to: u32) -> FlowMod {
    FlowMod {
        fields: Match::default().with(OxmField::EthType, 0x0800).with(OxmField::Ipv4Dst, to.into()),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])],
        ..FlowMod::default()
    }
}

fn everything() -> FlowMod {
    FlowMod { command: FlowModCommand::Delete, table: TableId::ALL, ..FlowMod::default() }
}

fn up() -> PortFacts {
    PortFacts {
        mac: [2, 0, 0, 0, 0, 9],
        mtu: 1500,
        up: true,
        carrier: true,
        ..PortFacts::default()
    }
}

/// A journal and a listener that remember.
#[derive(Default)]
struct Memory {
    changes: Mutex<Vec<Change>>,
    heard: Mutex<Vec<String>>,
    demoted: AtomicU64,
    /// Where to look which snapshot is the newest when a port changes.
    plane: Option<Arc<TestPlane>>,
}

impl Memory {
    fn take(&self) -> Vec<Change> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

impl Journal for Memory {
    fn record(&self, change: Change) {
        self.changes.lock().unwrap().push(change);
    }

    fn room(&self) -> crate::journal::Wait<'_> {
        Box::pin(std::future::ready(()))
    }

    fn flushed(&self) -> crate::journal::Wait<'_> {
        Box::pin(std::future::ready(()))
    }
}

impl Listener for Memory {
    fn id(&self) -> u64 {
        7
    }

    fn is_controller(&self) -> bool {
        true
    }

    fn hear(&self, event: Event<'_>) {
        let text = match event {
            Event::PacketIn(event) => format!("packet-in {}", event.in_port),
            Event::FlowRemoved(removed) => format!("removed {:?}", removed.reason),
            Event::Port(event, port) => {
                let newest = |plane: &Arc<TestPlane>| plane.snapshots.load(Ordering::Relaxed);
                let snapshot =
                    self.plane.iter().map(|plane| format!(" in snapshot {}", newest(plane)));
                format!("{event:?} {}{}", port.number, snapshot.collect::<String>())
            }
        };
        self.heard.lock().unwrap().push(text);
    }

    fn become_slave(&self) {
        self.demoted.fetch_add(1, Ordering::Relaxed);
    }

    fn describe(&self) -> Connection {
        Connection {
            auxiliary: 0,
            peer: "test".into(),
            who: "test".into(),
            controller: true,
            role: "equal",
            version: "1.3",
            packet_ins: 0,
            lost_packet_ins: 0,
        }
    }
}

#[test]
fn an_entry_that_was_added_is_dumped_as_it_was_given() {
    let (switch, _) = switch();
    let given = FlowMod { cookie: 9, priority: 7, idle_timeout_s: 3, ..entry(0x0a00_0001) };
    switch.flow_mod(&given).unwrap();
    let found: Vec<_> = switch.flows(&FlowStatsRequest::default()).unwrap().collect();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].fields, &found[0].instructions), (&given.fields, &given.instructions));
    assert_eq!((found[0].cookie, found[0].priority, found[0].idle_timeout_s), (9, 7, 3));
    assert_eq!(switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count, 1);
    assert_eq!(switch.table_stats()[0].active, 1);
}

#[test]
fn a_dump_shows_each_entry_once_though_it_is_changed_meanwhile() {
    let (switch, _) = switch();
    let entries: Vec<FlowMod> = (0..2000).map(entry).collect();
    entries.iter().for_each(|entry| switch.flow_mod(entry).unwrap());
    let mut dump = switch.flows(&FlowStatsRequest::default()).unwrap();
    let mut seen: Vec<_> = dump.by_ref().take(1000).collect();
    let drop_all =
        FlowMod { command: FlowModCommand::Modify, instructions: vec![], ..FlowMod::default() };
    switch.flow_mod(&drop_all).unwrap();
    switch.flow_mod(&FlowMod { command: FlowModCommand::DeleteStrict, ..entry(7) }).unwrap();
    switch.flow_mod(&FlowMod { cookie: 1, ..entry(8) }).unwrap();
    seen.extend(dump);
    let mut matches: Vec<_> =
        seen.iter().filter_map(|flow| flow.fields.exact(OxmField::Ipv4Dst)).collect();
    matches.sort_unstable();
    matches.dedup();
    assert_eq!(matches.len(), seen.len(), "none twice");
    let missing: Vec<_> = (0..2000).filter(|at| matches.binary_search(at).is_err()).collect();
    assert!(missing.is_empty() || missing == [7], "{missing:?}");
}

#[test]
fn one_bad_flow_mod_of_a_batch_is_refused_and_the_others_count() {
    let (switch, _) = switch();
    let bad = FlowMod { table: TableId::ALL, ..entry(2) };
    let batch = [entry(1), bad, entry(3)];
    let refused = finish(pin!(switch.flow_mods(batch.iter())));
    let refused: Vec<_> = refused.iter().map(|(index, fault)| (*index, fault.code)).collect();
    assert_eq!(refused, [(1, ErrorCode::FlowModFailedBadTableId)]);
    assert_eq!(switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count, 2);
}

/// Polls a future once.
fn step<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn finish<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    loop {
        if let Poll::Ready(done) = step(future.as_mut()) {
            return done;
        }
    }
}

/// Removes what has timed out.
fn tick(switch: &Switch) {
    if switch.tick() {
        while switch.expire() {}
    }
}

#[test]
fn a_flow_mod_with_an_unknown_buffer_changes_nothing() {
    let (switch, _) = switch();
    let fault = switch.flow_mod(&FlowMod { buffer_id: Some(1), ..entry(1) }).unwrap_err();
    assert_eq!(fault.code, ErrorCode::BadRequestBufferUnknown);
    assert_eq!(switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count, 0);
}

#[test]
fn every_change_of_an_entry_is_journalled_in_order() {
    let memory = Arc::new(Memory::default());
    let (switch, _) = switch_with(memory.clone(), FailMode::Secure);
    switch.flow_mod(&entry(1)).unwrap();
    switch.flow_mod(&entry(2)).unwrap();
    let added = memory.take();
    assert!(matches!(&added[..], [Change::FlowSet(..), Change::FlowSet(..)]), "{added:?}");
    let drop_all =
        FlowMod { command: FlowModCommand::Modify, instructions: vec![], ..FlowMod::default() };
    switch.flow_mod(&drop_all).unwrap();
    let modified = memory.take();
    assert_eq!(modified.len(), 2);
    assert!(modified.iter().all(
        |change| matches!(change, Change::FlowSet(_, kept) if kept.instructions.apply.is_empty())
    ));
    switch.flow_mod(&everything()).unwrap();
    assert!(matches!(&memory.take()[..], [Change::FlowGone(_), Change::FlowGone(_)]));
}

#[test]
fn what_was_kept_comes_back_whatever_its_order() {
    let memory = Arc::new(Memory::default());
    let (before, _) = switch_with(memory.clone(), FailMode::Secure);
    let bucket = |action| Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: vec![action],
    };
    let group = |id, action| GroupMod {
        command: GroupModCommand::Add,
        kind: GroupType::Indirect,
        id: GroupId(id),
        buckets: vec![bucket(action)],
    };
    let band = MeterBand { kind: openflow::BandKind::Drop, rate: 100, burst_size: 50 };
    let meter = |id, flags, bands| MeterMod {
        command: MeterModCommand::Add,
        flags,
        id: MeterId(id),
        bands,
    };
    // Also what people cannot write: no unit, no band, a burst that does not count, one that counts and is 0.
    before.meter_mod(&meter(3, MeterFlags::empty(), vec![band])).unwrap();
    before.meter_mod(&meter(4, MeterFlags::KBPS, vec![])).unwrap();
    let none = MeterBand { burst_size: 0, ..band };
    before.meter_mod(&meter(5, MeterFlags::PKTPS | MeterFlags::BURST, vec![none])).unwrap();
    before.group_mod(&group(2, Action::Output { port: PortNo(4), max_len: 0xffe5 })).unwrap();
    before.group_mod(&group(1, Action::Group(GroupId(2)))).unwrap();
    let limited = vec![
        Instruction::Meter(MeterId(3)),
        Instruction::ApplyActions(vec![
            Action::Group(GroupId(1)),
            Action::Output { port: PortNo(2), max_len: 128 },
        ]),
        Instruction::WriteActions(vec![]),
    ];
    before.flow_mod(&FlowMod { instructions: limited, cookie: 5, ..entry(1) }).unwrap();
    let mut kept = memory.take();
    kept.reverse();
    kept.sort_by_key(
        |change| matches!(change, Change::GroupSet(group, _) if group.id == GroupId(2)),
    );

    let journal = Arc::new(Memory::default());
    let (after, plane) = switch_with(journal.clone(), FailMode::Secure);
    assert_eq!(after.restore(kept), []);
    assert!(journal.take().is_empty(), "nothing is journalled again");
    assert_eq!(plane.snapshots.load(Ordering::Relaxed), 1);
    let all = FlowStatsRequest::default();
    let entries = |switch: &Arc<Switch>| switch.flows(&all).unwrap().collect::<Vec<_>>();
    assert_eq!(entries(&after), entries(&before));
    assert_eq!(after.groups(), before.groups());
    assert_eq!(after.meters(MeterId::ALL), before.meters(MeterId::ALL));
}

#[test]
fn a_kept_thing_that_cannot_be_is_named() {
    let (switch, _) = switch();
    let group = GroupDesc { kind: GroupType::Indirect, id: GroupId(1), buckets: vec![] };
    let refused = switch.restore(vec![Change::GroupSet(group, 0)]);
    assert_eq!(refused.len(), 1);
}

#[test]
fn a_flood_is_published_once_and_a_barrier_publishes_at_once() {
    let (switch, plane) = switch();
    switch.publish();
    let before = plane.snapshots.load(Ordering::Relaxed);
    for to in 0..1000 {
        switch.flow_mod(&entry(to)).unwrap();
    }
    assert_eq!(plane.snapshots.load(Ordering::Relaxed), before);
    switch.publish();
    switch.publish();
    assert_eq!(plane.snapshots.load(Ordering::Relaxed), before + 1);
}

#[tokio::test]
async fn a_change_that_nobody_waits_for_is_published_soon() {
    let (switch, plane) = switch();
    let keeper = tokio::spawn(switch.clone().keep_published());
    switch.flow_mod(&entry(1)).unwrap();
    let seen = async {
        while plane.snapshots.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(PUBLISH_WITHIN).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), seen).await.unwrap();
    keeper.abort();
}

#[test]
fn an_entry_times_out_and_whoever_wants_to_hears_of_it() {
    let memory = Arc::new(Memory::default());
    let (switch, plane) = switch_with(memory.clone(), FailMode::Secure);
    switch.join(memory.clone());
    let told = FlowMod { hard_timeout_s: 2, flags: FlowModFlags::SEND_FLOW_REM, ..entry(1) };
    let silent = FlowMod { idle_timeout_s: 2, ..entry(2) };
    [told, silent].iter().for_each(|entry| switch.flow_mod(entry).unwrap());
    memory.take();
    tick(&switch);
    assert!(memory.heard().is_empty() && memory.take().is_empty());
    plane.now.store(3_000_000_000, Ordering::Relaxed);
    tick(&switch);
    switch.settle();
    assert_eq!(memory.heard(), ["removed HardTimeout"]);
    assert_eq!(memory.take().len(), 2, "both are journalled as gone");
    assert_eq!(switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count, 0);
}

#[test]
fn entries_go_with_their_group_and_its_number_is_free_again() {
    let memory = Arc::new(Memory::default());
    let (switch, _) = switch_with(memory.clone(), FailMode::Secure);
    let add = GroupMod {
        command: GroupModCommand::Add,
        kind: GroupType::All,
        id: GroupId(1),
        buckets: vec![],
    };
    switch.group_mod(&add).unwrap();
    assert_eq!(switch.group_mod(&add).unwrap_err().code, ErrorCode::GroupModFailedGroupExists);
    let via = vec![Instruction::ApplyActions(vec![Action::Group(GroupId(1))])];
    switch.flow_mod(&FlowMod { instructions: via, ..entry(1) }).unwrap();
    assert_eq!(switch.group_stats(GroupId(1))[0].ref_count, 1);
    memory.take();
    switch.group_mod(&GroupMod { command: GroupModCommand::Delete, ..add.clone() }).unwrap();
    assert!(matches!(&memory.take()[..], [Change::GroupGone(1), Change::FlowGone(_)]));
    assert_eq!(switch.group_stats(GroupId(1)), []);
    switch.group_mod(&add).unwrap();
}

#[test]
fn ports_come_change_and_go_and_are_told() {
    let memory = Arc::new(Memory::default());
    let (switch, _) = switch_with(memory.clone(), FailMode::Secure);
    switch.join(memory.clone());
    switch.add_port(PortNo(3), "eth3", &up(), PortConfig::empty());
    switch.port_changed(PortNo(3), &up());
    switch.port_changed(PortNo(3), &PortFacts { carrier: false, ..up() });
    assert_eq!(switch.port_stats(PortNo(3)).unwrap()[0].rx_packets, 3);
    switch.remove_port(PortNo(3));
    assert_eq!(memory.heard(), ["Added 3", "Changed 3", "Removed 3"]);
    assert_eq!(switch.port_stats(PortNo(3)).unwrap_err().code, ErrorCode::BadRequestBadPort);
    assert_eq!(switch.port_stats(PortNo::ANY).unwrap(), []);
}

#[test]
fn workers_see_a_port_before_anyone_hears_of_it() {
    let (switch, plane) = switch();
    let memory = Arc::new(Memory { plane: Some(plane), ..Memory::default() });
    switch.join(memory.clone());
    switch.add_port(PortNo(3), "eth3", &PortFacts { carrier: false, ..up() }, PortConfig::empty());
    switch.port_changed(PortNo(3), &up());
    switch.port_changed(PortNo(3), &up());
    switch.remove_port(PortNo(3));
    let heard = ["Added 3 in snapshot 1", "Changed 3 in snapshot 2", "Removed 3 in snapshot 3"];
    assert_eq!(memory.heard(), heard);
}

#[test]
fn a_port_mod_must_name_the_right_port_and_address() {
    let memory = Arc::new(Memory::default());
    let (switch, plane) = switch_with(memory.clone(), FailMode::Secure);
    switch.add_port(PortNo(1), "eth1", &up(), PortConfig::empty());
    let down = PortMod {
        number: PortNo(1),
        hw_addr: Mac(up().mac),
        config: PortConfig::PORT_DOWN,
        mask: PortConfig::PORT_DOWN,
        advertise: openflow::PortFeatures::empty(),
    };
    let code = |change: PortMod| switch.port_mod(&change).unwrap_err().code;
    assert_eq!(
        code(PortMod { number: PortNo(2), ..down.clone() }),
        ErrorCode::PortModFailedBadPort
    );
    assert_eq!(
        code(PortMod { hw_addr: Mac([0; 6]), ..down.clone() }),
        ErrorCode::PortModFailedBadHwAddr
    );
    assert_eq!(
        code(PortMod { mask: PortConfig::NO_STP, ..down.clone() }),
        ErrorCode::PortModFailedBadConfig
    );
    let advertise = openflow::PortFeatures::FD_1GB;
    assert_eq!(code(PortMod { advertise, ..down.clone() }), ErrorCode::PortModFailedBadAdvertise);
    switch.port_mod(&down).unwrap();
    switch.port_mod(&down).unwrap();
    assert_eq!(*plane.admin.lock().unwrap(), [(1, false)]);
    assert_eq!(memory.take(), [Change::PortConfig { port: 1, bits: 1 }]);
    assert_eq!(switch.ports()[0].config, PortConfig::PORT_DOWN);
}

#[test]
fn a_frame_goes_to_the_datapath_with_its_actions() {
    let (switch, plane) = switch();
    let request = PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(PortNo::TABLE)],
        data: vec![0; 60],
    };
    switch.packet_out(request.clone()).unwrap();
    let sent = plane.sent.lock().unwrap()[0].clone();
    assert_eq!((sent.in_port, sent.frame.len()), (PortNo::CONTROLLER.0, 60));
    assert_eq!(sent.actions, [flow::Action::Output(flow::Output::Table)]);
    let short = PacketOut { data: vec![0; 13], ..request.clone() };
    assert_eq!(switch.packet_out(short).unwrap_err().code, ErrorCode::BadRequestBadPacket);
    let absent = PacketOut { in_port: PortNo(7), ..request.clone() };
    assert_eq!(switch.packet_out(absent).unwrap_err().code, ErrorCode::BadRequestBadPort);
    let actions = vec![Action::Group(openflow::GroupId(9))];
    let no_group = PacketOut { actions, ..request.clone() };
    assert_eq!(switch.packet_out(no_group).unwrap_err().code, ErrorCode::BadActionBadOutGroup);
    let kept = PacketOut { buffer_id: Some(4), ..request };
    assert_eq!(switch.packet_out(kept).unwrap_err().code, ErrorCode::BadRequestBufferUnknown);
}

#[test]
fn a_frame_for_the_tables_meets_what_was_changed_before_it() {
    let (switch, plane) = switch();
    switch.flow_mod(&entry(1)).unwrap();
    let send = |port| {
        let (in_port, actions) = (PortNo::CONTROLLER, vec![Action::output(port)]);
        switch.packet_out(PacketOut { buffer_id: None, in_port, actions, data: vec![0; 60] })
    };
    let snapshots = || plane.snapshots.load(Ordering::Relaxed);
    send(PortNo(3)).unwrap();
    assert_eq!(snapshots(), 0, "the tables are not asked");
    send(PortNo::TABLE).unwrap();
    send(PortNo::TABLE).unwrap();
    assert_eq!(snapshots(), 1, "nothing changed in between");
}

#[test]
fn a_standalone_switch_is_on_its_own_only_while_no_controller_is_there() {
    let memory = Arc::new(Memory::default());
    let miss = |switch: &Switch| switch.control().pipeline.config().miss;
    let (standalone, _) = switch_with(memory.clone(), FailMode::Standalone);
    assert_eq!(miss(&standalone), Miss::Normal);
    standalone.join(memory.clone());
    assert_eq!(miss(&standalone), Miss::Drop);
    standalone.leave(7);
    assert_eq!(miss(&standalone), Miss::Orphaned, "its rules may ask for one who was here");
    let (calling, _) = switch_with(memory.clone(), FailMode::Standalone);
    calling.expect_controllers(true, false);
    assert_eq!(miss(&calling), Miss::Orphaned);
    standalone.join(memory.clone());
    assert_eq!(miss(&standalone), Miss::Drop);
    standalone.leave(7);
    standalone.set_fail_policy(FailPolicy::of(FailMode::Secure));
    assert_eq!(miss(&standalone), Miss::Drop);
}

#[test]
fn a_standalone_switch_waits_before_it_forwards_by_itself() {
    let memory = Arc::new(Memory::default());
    let (switch, plane) = switch_with(memory.clone(), FailMode::Standalone);
    let at = |seconds: u64| {
        plane.now.store(seconds * 1_000_000_000, Ordering::Relaxed);
        switch.watch_controllers();
        switch.is_alone()
    };
    let after = Duration::from_secs(10);
    switch.set_fail_policy(FailPolicy { after, ..FailPolicy::of(FailMode::Standalone) });
    assert!(at(1), "nobody is expected");
    switch.expect_controllers(true, false);
    assert!(!at(10) && at(11), "ten seconds after it began to call");
    switch.join(memory.clone());
    assert!(!at(100));
    switch.leave(7);
    assert!(!at(109) && at(110), "ten seconds after the last one went");
    switch.expect_controllers(false, false);
    assert!(switch.is_alone());
    switch.set_fail_policy(FailPolicy::of(FailMode::Secure));
    assert!(!at(1000));
}

#[test]
fn rules_stay_or_go_with_controllers_as_the_policy_says() {
    let count =
        |switch: &Switch| switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count;
    let keep = FailPolicy::of(FailMode::Standalone);
    for (policy, when_alone, when_back) in [
        (keep, 2, 2),
        (FailPolicy { on_standalone: Rules::Flush, ..keep }, 0, 0),
        (FailPolicy { on_reconnect: Rules::Flush, ..keep }, 2, 0),
    ] {
        let memory = Arc::new(Memory::default());
        let (switch, _) = switch_with(memory.clone(), FailMode::Standalone);
        switch.set_fail_policy(policy);
        switch.join(memory.clone());
        for to in [1, 2] {
            switch.flow_mod(&entry(to)).unwrap();
        }
        memory.take();
        switch.leave(7);
        assert_eq!(count(&switch), when_alone, "{policy:?}");
        switch.join(memory.clone());
        assert_eq!(count(&switch), when_back, "{policy:?}");
        let gone =
            memory.take().iter().filter(|change| matches!(change, Change::FlowGone(_))).count();
        assert_eq!(gone as u32, 2 - when_back, "what goes is forgotten on disk, too");
    }
}

#[test]
fn a_stale_generation_makes_no_master_and_generations_wrap() {
    let memory = Arc::new(Memory::default());
    let (switch, _) = switch_with(memory.clone(), FailMode::Secure);
    switch.join(memory.clone());
    assert_eq!(switch.claim_role(1, Role::NoChange, 0), Ok(u64::MAX));
    assert_eq!(switch.claim_role(1, Role::Master, u64::MAX - 1), Ok(u64::MAX - 1));
    assert_eq!(memory.demoted.load(Ordering::Relaxed), 1);
    assert_eq!(switch.claim_role(1, Role::Slave, 1), Ok(1), "2^64 - 2 comes before 1");
    let stale = switch.claim_role(1, Role::Master, u64::MAX).unwrap_err();
    assert_eq!(stale.code, ErrorCode::RoleRequestFailedStale);
    assert_eq!(switch.claim_role(1, Role::Equal, 0), Ok(1));
}

#[test]
fn a_packet_in_reaches_the_listeners() {
    let memory = Arc::new(Memory::default());
    let (switch, _) = switch();
    switch.join(memory.clone());
    let why = PacketIn { reason: PacketInReason::Action, table: 0, cookie: 0, max_len: 10 };
    let frame = switch.on_packet_in(punt(4, 60, why));
    assert!(frame.is_some(), "nobody has use for a buffer");
    assert_eq!(memory.heard(), ["packet-in 4"]);
}
