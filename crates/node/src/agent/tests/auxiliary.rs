//! Auxiliary connections (OpenFlow 1.3.5 §6.3.7) and who counts as a controller.

use super::client::Client;
use super::packet_in;
use crate::agent::{Agent, Endpoints, PeerKind, Timing};
use crate::switch::tests::switch;
use api::{Controller, Transport};
use openflow::{FragmentMode, Message, Role, RoleMsg, SwitchConfig};
use std::time::Duration;
use tokio::net::TcpListener;

fn quick() -> Timing {
    let retry = Duration::from_millis(10);
    Timing { retry_min: retry, retry_max: 2 * retry, ..Timing::default() }
}

async fn auxiliary_id(client: &mut Client<tokio::net::TcpStream>) -> u8 {
    let Message::FeaturesReply(features) = client.ask(Message::FeaturesRequest).await else {
        panic!()
    };
    assert_eq!(features.datapath_id, 0x1234);
    features.auxiliary_id
}

#[tokio::test]
async fn auxiliary_connections_come_after_the_main_one_share_its_role_carry_packet_ins_and_go_with_it()
 {
    let (switch, _) = switch();
    let controller = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = controller.local_addr().unwrap();
    let endpoints = Endpoints {
        controllers: vec![Controller::at(Transport::Tcp, at)],
        auxiliaries: 1,
        ..Endpoints::default()
    };
    let agent = Agent::start(switch.clone(), &endpoints, quick()).await.unwrap();
    for _ in 0..2 {
        let (stream, from) = controller.accept().await.unwrap();
        let mut main = Client::over(stream).greet().await;
        assert_eq!(auxiliary_id(&mut main).await, 0);
        let (stream, also_from) = controller.accept().await.unwrap();
        assert_eq!(from.ip(), also_from.ip());
        let mut auxiliary = Client::over(stream).greet().await;
        assert_eq!(auxiliary_id(&mut auxiliary).await, 1);
        assert_eq!(agent.links()[0].status().auxiliary, 1);

        let claim = |role| Message::RoleRequest(RoleMsg { role, generation_id: 1 });
        let granted = Message::RoleReply(RoleMsg { role: Role::Master, generation_id: 1 });
        assert_eq!(auxiliary.ask(claim(Role::Master)).await, granted);
        assert_eq!(main.ask(claim(Role::NoChange)).await, granted, "one role for both");

        packet_in(&switch, flow::PacketInReason::Action);
        assert!(matches!(auxiliary.next().await.1, Message::PacketIn(_)));
        assert_eq!(main.ask(Message::BarrierRequest).await, Message::BarrierReply, "and none here");
        drop(main);
        assert!(auxiliary.is_left().await);
    }
}

#[tokio::test]
async fn a_caller_is_a_controller_once_it_behaves_as_one() {
    let (switch, _) = switch();
    let mut tool = Client::join(&switch, PeerKind::Caller).await;
    assert!(matches!(tool.ask(Message::FeaturesRequest).await, Message::FeaturesReply(_)));
    assert!(!switch.has_controller());
    let config = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: 128 };
    tool.send(Message::SetConfig(config)).await;
    tool.ask(Message::BarrierRequest).await;
    assert!(switch.has_controller() && !switch.is_alone());
    let mut visitor = Client::join(&switch, PeerKind::Visitor).await;
    drop(tool);
    while switch.has_controller() {
        tokio::task::yield_now().await;
    }
    visitor.send(Message::SetConfig(config)).await;
    visitor.ask(Message::BarrierRequest).await;
    assert!(!switch.has_controller(), "the management socket is for tools");
}
