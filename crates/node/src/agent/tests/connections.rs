//! How connections are made: calling controllers, being called, the management socket.

use super::client::Client;
use crate::agent::{Agent, BindError, Endpoints, Lot, Timing};
use crate::switch::tests::switch;
use api::{Controller, Listen, Transport};
use openflow::{Message, Role, RoleMsg};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixStream};

const ANY_PORT: &str = "127.0.0.1:0";

/// Plain TCP at an address.
fn listen(address: SocketAddr) -> Listen {
    Listen::at(Transport::Tcp, address)
}

/// A controller by plain TCP.
fn calling(address: SocketAddr) -> Endpoints {
    Endpoints { controllers: vec![Controller::at(Transport::Tcp, address)], ..Endpoints::default() }
}

fn quick() -> Timing {
    let retry = Duration::from_millis(10);
    Timing { retry_min: retry, retry_max: 2 * retry, ..Timing::default() }
}

#[tokio::test]
async fn a_controller_is_called_and_called_again_when_it_is_gone() {
    let (switch, _) = switch();
    let controller = TcpListener::bind(ANY_PORT).await.unwrap();
    let endpoints = calling(controller.local_addr().unwrap());
    let agent = Agent::start(switch.clone(), &endpoints, quick()).await.unwrap();
    for _ in 0..2 {
        let (stream, _) = controller.accept().await.unwrap();
        let mut client = Client::over(stream).greet().await;
        assert!(switch.has_controller());
        assert!(matches!(client.ask(Message::FeaturesRequest).await, Message::FeaturesReply(_)));
    }
    drop(agent);
}

#[tokio::test]
async fn a_controller_that_is_named_twice_is_called_once() {
    let (switch, _) = switch();
    let controller = TcpListener::bind(ANY_PORT).await.unwrap();
    let mut endpoints = calling(controller.local_addr().unwrap());
    endpoints.controllers.extend(endpoints.controllers.clone());
    let agent = Agent::start(switch, &endpoints, quick()).await.unwrap();
    assert_eq!(agent.links().len(), 1);
}

#[tokio::test]
async fn a_controller_that_starts_late_is_found() {
    let (switch, _) = switch();
    let address = TcpListener::bind(ANY_PORT).await.unwrap().local_addr().unwrap();
    let endpoints = calling(address);
    let _agent = Agent::start(switch.clone(), &endpoints, quick()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let controller = TcpListener::bind(address).await.unwrap();
    let accepted = tokio::time::timeout(Duration::from_secs(10), controller.accept()).await;
    Client::over(accepted.expect("a call").unwrap().0).greet().await;
}

#[tokio::test]
async fn visitors_come_by_tcp_and_by_the_management_socket_and_leave_with_the_agent() {
    let (switch, _) = switch();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sw0.mgmt");
    let listen = [ANY_PORT, "[::1]:0"].map(|at| listen(at.parse().unwrap())).to_vec();
    let endpoints = Endpoints { listen, management: Some(path.clone()), ..Endpoints::default() };
    let agent = Agent::start(switch.clone(), &endpoints, Timing::default()).await.unwrap();
    assert_eq!(agent.listening().len(), 2);
    let mut visitors = Vec::new();
    for address in agent.listening() {
        visitors.push(Client::over(TcpStream::connect(address).await.unwrap()).greet().await);
    }
    let mut local = Client::over(UnixStream::connect(&path).await.unwrap()).greet().await;
    assert_eq!(switch.connections().len(), 3);
    assert!(!switch.has_controller());
    agent.stop().await;
    assert!(switch.connections().is_empty() && !path.exists());
    assert!(local.is_left().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_agent_has_left_its_addresses_to_the_next_one() {
    let (switch, _) = switch();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sw0.mgmt");
    let mut endpoints = Endpoints { management: Some(path.clone()), ..Endpoints::default() };
    endpoints.listen = vec![listen(ANY_PORT.parse().unwrap())];
    let mut agent = Agent::start(switch.clone(), &endpoints, Timing::default()).await.unwrap();
    endpoints.listen = agent.listening().iter().copied().map(listen).collect();
    for _ in 0..100 {
        agent.stop().await;
        agent = Agent::start(switch.clone(), &endpoints, Timing::default()).await.unwrap();
        assert!(path.exists(), "the last one took the socket of the next one along");
    }
}

#[tokio::test]
async fn a_flood_of_callers_keeps_no_controller_out_and_sends_no_master_away() {
    let (switch, _) = switch();
    let endpoints = Endpoints {
        listen: vec![listen(ANY_PORT.parse().unwrap())],
        lot: Lot::of_files(128, 256),
        ..Endpoints::default()
    };
    let agent = Agent::start(switch.clone(), &endpoints, Timing::default()).await.unwrap();
    let address = agent.listening()[0];
    let call = || async { Client::over(TcpStream::connect(address).await.unwrap()).greet().await };
    let mut flood = Vec::new();
    for _ in 0..8 {
        flood.push(call().await);
    }
    let mut controller = call().await;
    assert!(flood[0].is_left().await, "the oldest has given its place up");
    let claim = RoleMsg { role: Role::Master, generation_id: 1 };
    assert_eq!(controller.ask(Message::RoleRequest(claim)).await, Message::RoleReply(claim));
    for _ in 0..20 {
        flood.push(call().await);
    }
    assert_eq!(controller.ask(Message::BarrierRequest).await, Message::BarrierReply);
    assert!(switch.connections().len() <= 8);
    agent.stop().await;
}

#[tokio::test]
async fn where_files_are_few_a_node_that_calls_says_so() {
    let (switch, _) = switch();
    let controller = TcpListener::bind(ANY_PORT).await.unwrap();
    let mut endpoints = calling(controller.local_addr().unwrap());
    endpoints.lot = Lot::of_files(1, 256);
    let agent = Agent::start(switch, &endpoints, quick()).await.unwrap();
    let trouble = loop {
        tokio::task::yield_now().await;
        if let Some((_, trouble)) = agent.links()[0].status().trouble {
            break trouble;
        }
    };
    assert!(trouble.remedy.contains("LimitNOFILE"), "{trouble}");
}

#[tokio::test]
async fn a_socket_that_a_killed_node_left_is_replaced_but_a_file_is_not() {
    let (switch, _) = switch();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| Endpoints {
        management: Some(directory.path().join(name)),
        ..Endpoints::default()
    };
    std::mem::forget(std::os::unix::net::UnixListener::bind(directory.path().join("old")).unwrap());
    Agent::start(switch.clone(), &at("old"), Timing::default()).await.unwrap();
    std::fs::write(directory.path().join("notes"), "precious").unwrap();
    let error = Agent::start(switch.clone(), &at("notes"), Timing::default()).await.err().unwrap();
    assert!(matches!(&error, BindError::Unix { step: "bind", .. }), "{error}");
    let long = at(&"x".repeat(110));
    let error = Agent::start(switch.clone(), &long, Timing::default()).await.err().unwrap();
    assert!(error.remedy().contains("107 bytes"), "{error}: {}", error.remedy());
    assert_eq!(std::fs::read(directory.path().join("notes")).unwrap(), b"precious");
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let (switch, _) = switch();
    let taken = TcpListener::bind(ANY_PORT).await.unwrap();
    let address: SocketAddr = taken.local_addr().unwrap();
    let endpoints = Endpoints { listen: vec![listen(address)], ..Endpoints::default() };
    let error = Agent::start(switch, &endpoints, Timing::default()).await.err().unwrap();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
