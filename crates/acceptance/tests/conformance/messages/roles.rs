//! Several controllers: roles and asynchronous configuration (OpenFlow 1.3.5 §6.3.4 to §6.3.6, §7.3.9, §7.3.10).

use super::frame;
use crate::groups::configure;
use crate::harness::{Bench, Node, Session, Suite, entry, output};
use openflow::{
    Action, AsyncConfig, ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FragmentMode, Match,
    Message, MultipartRequest, PortConfig, PortNo, Role, RoleMsg, SwitchConfig, TableId, Version,
};

/// A second controller of the switch, which hears of events.
fn second(bench: &Bench, node: &Node) -> Session {
    let mut session = Session::open(&node.socket(&bench.switch), Version::V1_3);
    let config = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: u16::MAX };
    session.accept(&Message::SetConfig(config));
    session
}

fn claim(session: &mut Session, role: Role, generation_id: u64) -> Message {
    session.ask(&Message::RoleRequest(RoleMsg { role, generation_id }))
}

fn role_of(session: &mut Session) -> Role {
    match claim(session, Role::NoChange, 0) {
        Message::RoleReply(reply) => reply.role,
        other => panic!("{other:?}"),
    }
}

/// How many packet-ins and port-status messages came.
fn heard(session: &mut Session) -> (usize, usize) {
    session.barrier();
    let packets = session.take(|message| matches!(message, Message::PacketIn(_)).then_some(()));
    let ports = session.take(|message| matches!(message, Message::PortStatus(_)).then_some(()));
    (packets.len(), ports.len())
}

fn with_two(
    suite: &mut Suite,
    name: &str,
    test: impl FnOnce(&mut Bench, &mut Session) + Send + 'static,
) {
    suite.on_node(name, |node| {
        let mut bench = Bench::make(node);
        let mut other = second(&bench, node);
        test(&mut bench, &mut other);
        bench.remove(node);
    });
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    roles(suite);
    events(suite);
}

fn roles(suite: &mut Suite) {
    with_two(
        suite,
        "messages::a_new_master_makes_the_old_one_a_slave_and_leaves_equals_alone",
        |bench, other| {
            assert_eq!((role_of(&mut bench.session), role_of(other)), (Role::Equal, Role::Equal));
            let reply = RoleMsg { role: Role::Master, generation_id: 5 };
            assert_eq!(claim(&mut bench.session, Role::Master, 5), Message::RoleReply(reply));
            assert_eq!(role_of(other), Role::Equal);
            claim(other, Role::Master, 6);
            assert_eq!((role_of(&mut bench.session), role_of(other)), (Role::Slave, Role::Master));
            claim(&mut bench.session, Role::Equal, 0);
            assert_eq!(role_of(&mut bench.session), Role::Equal, "equal needs no generation");
        },
    );
    with_two(suite, "messages::an_older_generation_is_stale_in_circular_order", |bench, other| {
        claim(&mut bench.session, Role::Master, u64::MAX);
        for (role, generation_id) in [(Role::Master, u64::MAX - 1), (Role::Slave, u64::MAX - 9)] {
            let request = Message::RoleRequest(RoleMsg { role, generation_id });
            other.refuse(&request, ErrorCode::RoleRequestFailedStale);
        }
        assert_eq!(role_of(&mut bench.session), Role::Master);
        claim(other, Role::Master, 1);
        assert_eq!(role_of(other), Role::Master, "the counter has wrapped");
    });
    with_two(suite, "messages::a_slave_reads_and_changes_nothing", |bench, other| {
        bench.add(&entry(1, Match::default(), vec![output(2)]));
        claim(other, Role::Slave, 1);
        let port = bench.port(1);
        let port_mod = openflow::PortMod {
            number: port.number,
            hw_addr: port.hw_addr,
            config: PortConfig::NO_FWD,
            mask: PortConfig::NO_FWD,
            advertise: openflow::PortFeatures::empty(),
        };
        let delete = FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() };
        let out = openflow::PacketOut {
            buffer_id: None,
            in_port: PortNo::CONTROLLER,
            actions: vec![output(2)],
            data: frame(),
        };
        let group = crate::groups::change(
            openflow::GroupModCommand::Add,
            1,
            openflow::GroupType::All,
            vec![],
        );
        for request in [
            Message::FlowMod(delete),
            group,
            Message::PortMod(port_mod),
            Message::TableMod(openflow::TableMod { table: TableId(0), config: 0 }),
            Message::PacketOut(out),
        ] {
            other.refuse(&request, ErrorCode::BadRequestIsSlave);
        }
        for request in
            [Message::FeaturesRequest, Message::GetConfigRequest, Message::GetAsyncRequest]
        {
            let answer = other.ask(&request);
            assert!(!matches!(answer, Message::Error(_)), "{answer:?}");
        }
        other.ask_parts(&MultipartRequest::PortDesc);
        bench.send(1, &frame()).is_only(2, &frame());
        assert_eq!(bench.port(1).config, PortConfig::empty());
    });
}

fn events(suite: &mut Suite) {
    with_two(suite, "messages::a_slave_hears_of_ports_and_not_of_packets", |bench, other| {
        bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::CONTROLLER)]));
        claim(other, Role::Slave, 1);
        bench.send(1, &frame()).one_packet_in();
        configure(bench, 2, PortConfig::NO_RECV, PortConfig::NO_RECV);
        assert_eq!(heard(other), (0, 1));
        claim(other, Role::Equal, 1);
        bench.send(1, &frame()).one_packet_in();
        // The frame, and the markers that came with it.
        assert!(heard(other).0 >= 2);
    });
    with_two(
        suite,
        "messages::the_asynchronous_configuration_is_each_controllers_own",
        |bench, other| {
            let initial = Message::GetAsyncReply(AsyncConfig::default());
            assert_eq!(bench.session.ask(&Message::GetAsyncRequest), initial);
            let none = AsyncConfig { packet_in: [0; 2], port_status: [0; 2], flow_removed: [0; 2] };
            other.accept(&Message::SetAsync(none));
            assert_eq!(other.ask(&Message::GetAsyncRequest), Message::GetAsyncReply(none));
            assert_eq!(bench.session.ask(&Message::GetAsyncRequest), initial);
            bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::CONTROLLER)]));
            bench.send(1, &frame()).one_packet_in();
            configure(bench, 2, PortConfig::NO_RECV, PortConfig::NO_RECV);
            assert_eq!(heard(other), (0, 0));
        },
    );
    with_two(
        suite,
        "messages::packet_ins_and_flow_removed_are_chosen_by_reason",
        |bench, other| {
            // Of packet-ins only table misses, of flow-removed only deletions.
            let some =
                AsyncConfig { packet_in: [1, 0], port_status: [0; 2], flow_removed: [1 << 2, 0] };
            other.accept(&Message::SetAsync(some));
            let up = || vec![Action::output(PortNo::CONTROLLER)];
            let flags = FlowModFlags::SEND_FLOW_REM;
            bench.add(&FlowMod { flags, hard_timeout_s: 1, ..entry(1, Match::default(), up()) });
            bench.send(1, &frame()).one_packet_in();
            assert_eq!(bench.flow_removed().reason, openflow::FlowRemovedReason::HardTimeout);
            bench.add(&FlowMod { flags, ..entry(0, Match::default(), up()) });
            bench.send(1, &frame()).one_packet_in();
            assert_eq!(heard(other).0, 1);
            bench.add(&FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() });
            other.barrier();
            let removed = other.take(|message| match message {
                Message::FlowRemoved(removed) => Some(removed.reason),
                _ => None,
            });
            assert_eq!(removed, [openflow::FlowRemovedReason::Delete]);
        },
    );
    with_two(suite, "messages::a_controllers_miss_send_len_is_its_own", |bench, other| {
        let own = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: 20 };
        other.accept(&Message::SetConfig(own));
        assert_eq!(other.ask(&Message::GetConfigRequest), Message::GetConfigReply(own));
        let first = bench.session.ask(&Message::GetConfigRequest);
        let whole = SwitchConfig { miss_send_len: u16::MAX, ..own };
        assert_eq!(first, Message::GetConfigReply(whole));
    });
}
