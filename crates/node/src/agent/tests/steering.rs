//! suiro's extension as controllers of both versions see it, at a host that is a double.

use super::Client;
use crate::agent::steering::{Answered, Desk, Host, Permit, Refused};
use crate::agent::{PeerKind, Timing};
use crate::switch::Switch;
use crate::switch::tests::switch;
use openflow::steering::{
    CoreChoice, CoreRole, CoreStats, Events, HostAbilities, HostCore, HostInfo,
    Message as SteerMessage, Place, PlaceMod, PlacementKinds, PlacementRequest, PlacementStats,
    Reply, Request, SteerError, VERSION, Vm, VmReason, VmSource,
};
use openflow::{
    ErrorCode, ErrorKind, Experimenter, FixedText, FlowModCommand, Match, Message, MultipartReply,
    MultipartRequest, OxmField, Part, PortNo, Role, RoleMsg, SUIRO, Version,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tokio::net::UnixStream;

/// A host that is what the test says.
#[derive(Default)]
struct Double {
    threshold: AtomicU32,
    vms: Mutex<Vec<Vm>>,
    changes: Mutex<Vec<PlaceMod>>,
    looks: AtomicU32,
}

fn now<T: Send + 'static>(value: T) -> Answered<T> {
    Box::pin(async move { Ok(value) })
}

impl Host for Double {
    fn info(&self) -> Answered<HostInfo> {
        self.looks.fetch_add(1, SeqCst);
        let role = CoreRole::Allowed;
        now(HostInfo {
            version: VERSION,
            threshold: self.threshold.load(SeqCst) as u16,
            policy: FixedText::from("vse"),
            cores: vec![HostCore { id: 0, numa: None, sibling: None, role, vms: vec![] }],
            ..HostInfo::default()
        })
    }

    fn vms(&self) -> Answered<Vec<Vm>> {
        now(self.vms.lock().unwrap().clone())
    }

    fn change(&self, change: PlaceMod) -> Answered<()> {
        if change.place.core == CoreChoice::Core(99) {
            return Box::pin(async { Err(Refused::new(SteerError::BadCore, "no such core")) });
        }
        self.changes.lock().unwrap().push(change);
        now(())
    }

    fn core_stats(&self) -> Answered<Vec<CoreStats>> {
        now((0..3).map(|core| CoreStats { core, ..CoreStats::default() }).collect())
    }

    fn placements(&self, request: PlacementRequest) -> Answered<Vec<PlacementStats>> {
        assert_eq!(request.kinds, PlacementKinds::GROUPS);
        now(vec![])
    }
}

impl Double {
    fn set_vms(&self, vms: &[Vm]) {
        *self.vms.lock().unwrap() = vms.to_vec();
    }
}

fn vm(name: &str, id: u16) -> Vm {
    Vm {
        id,
        tenant: 7,
        port: PortNo::ANY,
        source: VmSource::Found,
        cores: vec![0],
        addresses: vec![],
        name: name.into(),
    }
}

/// A switch, its host, and a controller that may program it or only read.
async fn rig(may_program: bool) -> (Arc<Switch>, Arc<Double>, Client<UnixStream>) {
    let host = Arc::new(Double::default());
    let permit = Permit { desk: Desk::new(host.clone()), may_program };
    let (switch, _) = switch();
    let (kind, timing) = (PeerKind::Controller, Timing::default());
    let client = Client::permitted(&switch, kind, timing, Some(permit)).greet().await;
    (switch, host, client)
}

fn wrapped(message: SteerMessage) -> Message {
    Message::Experimenter(message.encode())
}

fn asked(request: Request) -> Message {
    Message::MultipartRequest(Part::last(MultipartRequest::Experimenter(request.encode())))
}

fn add(core: CoreChoice) -> PlaceMod {
    PlaceMod {
        command: FlowModCommand::Add,
        priority: 5,
        place: Place::on(core),
        cookie: 1,
        cookie_mask: 0,
        interface: FixedText::default(),
        fields: Match::default().with(OxmField::VmId, 3),
    }
}

/// The next message, which is one of steering's.
async fn told(client: &mut Client<UnixStream>) -> SteerMessage {
    match client.next().await.1 {
        Message::Experimenter(message) => SteerMessage::decode(&message).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn told_of_vm(client: &mut Client<UnixStream>) -> (VmReason, Vm) {
    match told(client).await {
        SteerMessage::VmStatus(status) => (status.reason, status.vm),
        other => panic!("{other:?}"),
    }
}

async fn refusal(client: &mut Client<UnixStream>, request: Message) -> ErrorKind {
    match client.ask(request).await {
        Message::Error(error) => error.kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_hears_what_is_there_and_then_every_change_until_it_wants_no_more() {
    let (_switch, host, mut client) = rig(true).await;
    host.set_vms(&[vm("a", 1), vm("b", 2)]);
    client.send(wrapped(SteerMessage::Subscribe(Events::all()))).await;
    let SteerMessage::HostInfo(info) = told(&mut client).await else { panic!() };
    assert_eq!((info.threshold, info.abilities), (0, HostAbilities::PROGRAM));
    assert_eq!(told_of_vm(&mut client).await, (VmReason::Added, vm("a", 1)));
    assert_eq!(told_of_vm(&mut client).await, (VmReason::Added, vm("b", 2)));

    let moved = Vm { cores: vec![1], ..vm("b", 2) };
    host.set_vms(&[moved.clone(), vm("c", 3)]);
    assert_eq!(told_of_vm(&mut client).await, (VmReason::Deleted, vm("a", 1)));
    assert_eq!(told_of_vm(&mut client).await, (VmReason::Modified, moved));
    assert_eq!(told_of_vm(&mut client).await, (VmReason::Added, vm("c", 3)));
    host.threshold.store(700, SeqCst);
    let SteerMessage::HostInfo(info) = told(&mut client).await else { panic!() };
    assert_eq!(info.threshold, 700);

    client.send(wrapped(SteerMessage::Subscribe(Events::empty()))).await;
    assert_eq!(client.ask(Message::BarrierRequest).await, Message::BarrierReply);
    host.set_vms(&[]);
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let looks = host.looks.load(SeqCst);
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(host.looks.load(SeqCst), looks, "nobody wants to hear, so nobody looks");
    assert_eq!(client.ask(Message::BarrierRequest).await, Message::BarrierReply);
}

#[tokio::test(start_paused = true)]
async fn two_controllers_hear_each_what_they_asked_for() {
    let host = Arc::new(Double::default());
    host.set_vms(&[vm("a", 1)]);
    let permit = Permit { desk: Desk::new(host.clone()), may_program: false };
    let (switch, _) = switch();
    let join =
        || Client::permitted(&switch, PeerKind::Caller, Timing::default(), Some(permit.clone()));
    let (mut first, mut second) = (join().greet().await, join().greet().await);
    first.send(wrapped(SteerMessage::Subscribe(Events::VMS))).await;
    assert_eq!(told_of_vm(&mut first).await, (VmReason::Added, vm("a", 1)));
    second.send(wrapped(SteerMessage::Subscribe(Events::HOST))).await;
    let SteerMessage::HostInfo(info) = told(&mut second).await else { panic!() };
    assert_eq!(info.abilities, HostAbilities::empty(), "this one may only read");
    host.set_vms(&[]);
    assert_eq!(told_of_vm(&mut first).await, (VmReason::Deleted, vm("a", 1)));
    assert_eq!(second.ask(Message::BarrierRequest).await, Message::BarrierReply);
}

#[tokio::test]
async fn questions_are_answered_in_both_versions() {
    let (switch, host, mut client) = rig(true).await;
    host.set_vms(&[vm("a", 1), vm("b", 2)]);
    let xid = client.send(wrapped(SteerMessage::HostInfoRequest)).await;
    let (answered, Message::Experimenter(info)) = client.next().await else { panic!() };
    assert_eq!(answered, xid);
    assert!(matches!(SteerMessage::decode(&info), Ok(SteerMessage::HostInfo(_))));
    let cases = [
        (Request::VmInfo(0), Reply::VmInfo(vec![vm("a", 1), vm("b", 2)])),
        (Request::VmInfo(2), Reply::VmInfo(vec![vm("b", 2)])),
        (Request::VmInfo(9), Reply::VmInfo(vec![])),
        (
            Request::CoreStats(Some(2)),
            Reply::CoreStats(vec![CoreStats { core: 2, ..CoreStats::default() }]),
        ),
    ];
    let groups = PlacementRequest { kinds: PlacementKinds::GROUPS, ..PlacementRequest::default() };
    let cases =
        cases.into_iter().chain([(Request::PlacementStats(groups), Reply::PlacementStats(vec![]))]);
    for (request, reply) in cases {
        let Message::MultipartReply(part) = client.ask(asked(request.clone())).await else {
            panic!()
        };
        let MultipartReply::Experimenter(body) = part.body else { panic!() };
        assert_eq!((Reply::decode(&body), part.more), (Ok(reply), false), "{request:?}");
    }
    let unknown = asked(Request::CoreStats(Some(5)));
    assert_eq!(refusal(&mut client, unknown.clone()).await, SteerError::BadCore.kind());

    // The same host by 1.0, which has no experimenter's errors.
    let permit = Permit { desk: Desk::new(host), may_program: true };
    let kind = PeerKind::Controller;
    let mut old = Client::permitted(&switch, kind, Timing::default(), Some(permit));
    old.send_bytes(&[1, 0, 0, 8, 0, 0, 0, 1]).await;
    assert!(matches!(old.next().await.1, Message::Hello(_)));
    old.send_bytes(&asked(Request::VmInfo(1)).encode(Version::V1_0, 7).unwrap()).await;
    let (7, Message::MultipartReply(part)) = old.next().await else { panic!() };
    let MultipartReply::Experimenter(body) = part.body else { panic!() };
    assert_eq!(Reply::decode(&body), Ok(Reply::VmInfo(vec![vm("a", 1)])));
    old.send_bytes(&unknown.encode(Version::V1_0, 8).unwrap()).await;
    let (8, Message::Error(error)) = old.next().await else { panic!() };
    assert_eq!(error.kind, ErrorKind::Known(ErrorCode::BadRequestEperm));
}

#[tokio::test]
async fn entries_are_changed_before_the_barrier_is_answered_and_only_by_those_who_may() {
    let (_switch, host, mut client) = rig(true).await;
    client.send(wrapped(SteerMessage::PlaceMod(add(CoreChoice::Auto)))).await;
    assert_eq!(client.ask(Message::BarrierRequest).await, Message::BarrierReply);
    assert_eq!(*host.changes.lock().unwrap(), [add(CoreChoice::Auto)]);
    let change = |core| wrapped(SteerMessage::PlaceMod(add(core)));
    let cases = [
        (change(CoreChoice::Core(99)), SteerError::BadCore.kind()),
        (change(CoreChoice::Core(0xff00)), ErrorKind::Known(ErrorCode::BadActionBadArgument)),
        (
            wrapped(SteerMessage::PlaceMod(PlaceMod {
                fields: Match::default().with(OxmField::InPort, 1),
                ..add(CoreChoice::Auto)
            })),
            ErrorKind::Known(ErrorCode::BadMatchBadField),
        ),
    ];
    for (request, kind) in cases {
        assert_eq!(refusal(&mut client, request).await, kind);
    }
    let slave = RoleMsg { role: Role::Slave, generation_id: 1 };
    assert!(matches!(client.ask(Message::RoleRequest(slave)).await, Message::RoleReply(_)));
    let is_slave = ErrorKind::Known(ErrorCode::BadRequestIsSlave);
    assert_eq!(refusal(&mut client, change(CoreChoice::Auto)).await, is_slave);

    let (_switch, host, mut reader) = rig(false).await;
    assert_eq!(refusal(&mut reader, change(CoreChoice::Auto)).await, SteerError::NotAllowed.kind());
    assert!(host.changes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_switch_without_a_permit_does_not_know_the_extension() {
    let (switch, _) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let unknown = ErrorKind::Known(ErrorCode::BadRequestBadExperimenter);
    assert_eq!(refusal(&mut client, wrapped(SteerMessage::HostInfoRequest)).await, unknown);
    assert_eq!(refusal(&mut client, asked(Request::VmInfo(0))).await, unknown);
}

#[tokio::test]
async fn what_no_controller_may_say_is_refused_with_its_code() {
    let (_switch, _host, mut client) = rig(true).await;
    let bad_type = ErrorKind::Known(ErrorCode::BadRequestBadExpType);
    let raw = |exp_type, body: &[u8]| {
        Message::Experimenter(Experimenter { experimenter: SUIRO, exp_type, body: body.to_vec() })
    };
    let info = wrapped(SteerMessage::HostInfo(HostInfo::default()));
    let later = wrapped(SteerMessage::Subscribe(Events::from_bits_retain(1 << 31)));
    for request in [info, later, raw(99, &[])] {
        assert_eq!(refusal(&mut client, request).await, bad_type);
    }
    let bad_len = ErrorKind::Known(ErrorCode::BadRequestBadLen);
    assert_eq!(refusal(&mut client, raw(4, &[0; 20])).await, bad_len);
    let foreign = Experimenter { experimenter: 0x2320, exp_type: 0, body: vec![] };
    let unknown = ErrorKind::Known(ErrorCode::BadRequestBadExperimenter);
    assert_eq!(refusal(&mut client, Message::Experimenter(foreign)).await, unknown);
}
