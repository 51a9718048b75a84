//! Port-mod, bit by bit on frames, and port-status (OpenFlow 1.3.5 §7.2.1, §7.3.4.5, §7.4.3).

use super::{frame, ports_of};
use crate::groups::{configure, set_link};
use crate::harness::{Bench, Node, Suite, entry, output};
use openflow::{Action, Match, Message, PortConfig, PortNo, PortReason, PortState, PortStatus};
use serde_json::{Value, json};

/// The port-status messages that have come.
fn news(bench: &mut Bench) -> Vec<PortStatus> {
    bench.session.barrier();
    bench.session.take(|message| match message {
        Message::PortStatus(news) => Some(news.clone()),
        _ => None,
    })
}

/// Sets a bit of port 2 and tells what controllers hear of it first.
fn set(bench: &mut Bench, bit: PortConfig) -> PortStatus {
    news(bench);
    configure(bench, 2, bit, bit);
    let first = news(bench).swap_remove(0);
    let facts = (first.reason, first.port.number, first.port.config);
    assert_eq!(facts, (PortReason::Modify, PortNo(2), bit));
    assert_eq!(bench.port(2).config, bit);
    first
}

fn unset(bench: &mut Bench, bit: PortConfig) {
    configure(bench, 2, PortConfig::empty(), bit);
    assert_eq!(bench.port(2).config, PortConfig::empty());
}

/// Waits until so many frames have come in by port 2.
fn await_received(bench: &mut Bench, count: u64) {
    while bench.port_stats(PortNo(2))[0].rx_packets < count {}
}

fn on_ports(suite: &mut Suite, name: &str, test: impl FnOnce(&mut Bench, &Node) + Send + 'static) {
    suite.on_node(name, |node| {
        let mut bench = Bench::make(node);
        test(&mut bench, node);
        bench.remove(node);
    });
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    mods(suite);
    status(suite);
}

fn mods(suite: &mut Suite) {
    on_ports(suite, "messages::a_port_that_is_set_down_neither_sends_nor_receives", |bench, _| {
        bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::ALL)]));
        bench.shut.insert(2);
        assert!(!set(bench, PortConfig::PORT_DOWN).port.state.contains(PortState::LIVE));
        while !bench.port(2).state.contains(PortState::LINK_DOWN) {}
        assert_eq!(ports_of(&bench.send(1, &frame())), [3, 4]);
        unset(bench, PortConfig::PORT_DOWN);
        while !bench.port(2).state.contains(PortState::LIVE) {}
        bench.shut.clear();
        assert_eq!(ports_of(&bench.send(1, &frame())), [2, 3, 4]);
        assert_eq!(ports_of(&bench.send(2, &frame())), [1, 3, 4]);
    });
    on_ports(suite, "messages::a_port_with_no_recv_drops_what_comes_in_and_sends", |bench, _| {
        bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::ALL)]));
        set(bench, PortConfig::NO_RECV);
        for _ in 0..3 {
            bench.inject(2, &frame());
        }
        await_received(bench, 3);
        assert_eq!(
            ports_of(&bench.send(1, &frame())),
            [2, 3, 4],
            "and nothing of what came in by port 2"
        );
        let stats = bench.port_stats(PortNo(2))[0];
        assert_eq!((stats.rx_packets, stats.rx_dropped, stats.rx_errors), (3, 3, 0));
        unset(bench, PortConfig::NO_RECV);
        assert_eq!(ports_of(&bench.send(2, &frame())), [1, 3, 4]);
    });
    on_ports(suite, "messages::a_port_with_no_fwd_sends_nothing_and_receives", |bench, _| {
        bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::ALL)]));
        bench.shut.insert(2);
        set(bench, PortConfig::NO_FWD);
        assert_eq!(ports_of(&bench.send(1, &frame())), [3, 4]);
        assert_eq!(ports_of(&bench.send(2, &frame())), [1, 3, 4]);
        let actions = vec![output(2)];
        bench.packet_out(PortNo::CONTROLLER, actions, &frame()).is_nothing();
        unset(bench, PortConfig::NO_FWD);
        bench.shut.clear();
        assert_eq!(ports_of(&bench.send(1, &frame())), [2, 3, 4]);
    });
    on_ports(
        suite,
        "messages::a_port_with_no_packet_in_has_no_table_misses_told_but_actions",
        |bench, _| {
            let up = || vec![Action::output(PortNo::CONTROLLER)];
            bench.add(&entry(0, Match::default(), up()));
            set(bench, PortConfig::NO_PACKET_IN);
            bench.send(2, &frame()).is_nothing();
            bench.send(1, &frame()).one_packet_in();
            bench.add(&entry(1, Match::default(), up()));
            bench.send(2, &frame()).one_packet_in();
            unset(bench, PortConfig::NO_PACKET_IN);
        },
    );
    on_ports(suite, "messages::a_port_mod_changes_only_the_bits_of_its_mask", |bench, _| {
        configure(bench, 2, PortConfig::NO_RECV, PortConfig::NO_RECV);
        configure(bench, 2, PortConfig::all() - PortConfig::NO_RECV, PortConfig::NO_PACKET_IN);
        assert_eq!(bench.port(2).config, PortConfig::NO_RECV | PortConfig::NO_PACKET_IN);
        news(bench);
        configure(bench, 2, PortConfig::empty(), PortConfig::empty());
        assert_eq!(news(bench), [], "what changes nothing is not told");
    });
}

fn status(suite: &mut Suite) {
    on_ports(suite, "messages::a_port_that_comes_and_goes_is_told", |bench, node| {
        news(bench);
        let ports = format!("/v1/switches/{}/ports", bench.switch);
        let interface = bench.interface(9);
        let spec = json!({
            "type": "tap", "name": "p9", "number": 9, "interface": interface, "netns": node.guests(),
        });
        node.api("POST", &ports, &spec);
        let added = bench.session.wait(told_of(9));
        assert_eq!((added.reason, added.port.name.to_string()), (PortReason::Add, "p9".into()));
        assert_eq!(bench.ports().len(), 5);
        node.api("DELETE", &format!("{ports}/p9"), &Value::Null);
        let removed = loop {
            let news = bench.session.wait(told_of(9));
            if news.reason != PortReason::Modify {
                break news;
            }
        };
        assert_eq!(removed.reason, PortReason::Delete);
        assert_eq!(bench.ports().len(), 4);
    });
    on_ports(suite, "messages::a_link_that_goes_down_and_up_is_told", |bench, node| {
        set_link(bench, node, 2, false);
        let state = bench.port(2).state;
        assert!(state.contains(PortState::LINK_DOWN) && !state.contains(PortState::LIVE));
        bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::ALL)]));
        assert_eq!(ports_of(&bench.send(1, &frame())), [3, 4]);
        set_link(bench, node, 2, true);
        assert_eq!(bench.port(2).state, PortState::LIVE);
        assert_eq!(ports_of(&bench.send(1, &frame())), [2, 3, 4]);
    });
}

fn told_of(number: u32) -> impl FnMut(&Message) -> Option<PortStatus> {
    move |message| match message {
        Message::PortStatus(news) if news.port.number == PortNo(number) => Some(news.clone()),
        _ => None,
    }
}
