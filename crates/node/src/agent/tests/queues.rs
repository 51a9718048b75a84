//! Queues that a controller asks for, up to what one answer can hold.

use crate::agent::PeerKind;
use crate::agent::tests::client::Client;
use crate::switch::Switch;
use crate::switch::tests::switch;
use datapath::{BitRate, PortQueues, QUEUES_MAX, QueueRates};
use openflow::{ErrorCode, Message, PortConfig, PortNo, QueueConfig};
use port::PortFacts;

/// Gives a port so many queues, each with both rates.
fn set_queues(switch: &Switch, number: u32, queues: usize) {
    let (min, max) = (BitRate::new(1000), BitRate::new(500_000));
    let queues = (0..queues as u32).map(|id| QueueRates { id, min, max }).collect();
    let rate = BitRate::new(1_000_000);
    switch.set_queues(PortNo(number), PortQueues { rate, queues });
}

#[tokio::test]
async fn the_queues_of_all_ports_are_told_while_one_message_holds_them_and_of_each_port_always() {
    let (switch, _) = switch();
    for port in 1..=22 {
        set_queues(&switch, port, QUEUES_MAX);
        switch.add_port(PortNo(port), "eth", &PortFacts::default(), PortConfig::empty());
    }
    set_queues(&switch, 22, 20);
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let answer = client.ask(Message::QueueGetConfigRequest(PortNo::ANY)).await;
    let Message::QueueGetConfigReply(QueueConfig { queues, .. }) = answer else { panic!() };
    assert_eq!(queues.len(), 1364, "just below 64 KiB");
    set_queues(&switch, 22, 21);
    let code = client.error(Message::QueueGetConfigRequest(PortNo::ANY)).await;
    assert_eq!(code, ErrorCode::QueueOpFailedBadPort);
    let answer = client.ask(Message::QueueGetConfigRequest(PortNo(21))).await;
    let Message::QueueGetConfigReply(QueueConfig { queues, .. }) = answer else { panic!() };
    assert_eq!(queues.len(), QUEUES_MAX);
}
