//! Buckets and the links that they depend on: real links that go down and come up.

use super::{
    add, bucket, change, frame, only_group, through, to, use_group, watching, ways, weighted,
};
use crate::harness::{Bench, Node, Suite, sh};
use openflow::{
    Bucket, GroupId, GroupModCommand, GroupType, Message, PortConfig, PortFeatures, PortMod,
    PortNo, PortState,
};

/// Sets the guest's end of a port, and waits until the switch has told of it.
pub fn set_link(bench: &mut Bench, node: &Node, port: u32, up: bool) {
    let word = if up { "up" } else { "down" };
    let interface = bench.interface(port);
    if !up {
        bench.shut.insert(port);
    }
    sh(&["ip", "-n", &node.guests(), "link", "set", &interface, word]);
    bench.session.wait(|message| match message {
        Message::PortStatus(news) if news.port.number == PortNo(port) => {
            (news.port.state.contains(PortState::LIVE) == up).then_some(())
        }
        _ => None,
    });
    if up {
        bench.shut.remove(&port);
    }
    bench.session.barrier();
}

/// Configures a port; what a controller hears of it is taken.
pub fn configure(bench: &mut Bench, port: u32, config: PortConfig, mask: PortConfig) {
    let hw_addr = bench.port(port).hw_addr;
    let advertise = PortFeatures::empty();
    let change = PortMod { number: PortNo(port), hw_addr, config, mask, advertise };
    bench.session.accept(&Message::PortMod(change));
}

fn on_links(suite: &mut Suite, name: &str, test: impl FnOnce(&mut Bench, &Node) + Send + 'static) {
    suite.on_node(name, |node| {
        let mut bench = Bench::make(node);
        test(&mut bench, node);
        bench.remove(node);
    });
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    on_links(suite, "groups::fast_failover_follows_a_link_down_and_up_again", |bench, node| {
        only_group(bench, GroupType::FastFailover, vec![watching(2), watching(3)]);
        bench.send(1, &frame()).is_only(2, &frame());
        set_link(bench, node, 2, false);
        bench.send(1, &frame()).is_only(3, &frame());
        set_link(bench, node, 3, false);
        bench.send(1, &frame()).is_nothing();
        set_link(bench, node, 3, true);
        bench.send(1, &frame()).is_only(3, &frame());
        set_link(bench, node, 2, true);
        bench.send(1, &frame()).is_only(2, &frame());
    });
    on_links(
        suite,
        "groups::fast_failover_may_watch_another_port_than_it_sends_to",
        |bench, node| {
            let watched = Bucket { watch_port: PortNo(4), ..to(2) };
            only_group(bench, GroupType::FastFailover, vec![watched, watching(3)]);
            bench.send(1, &frame()).is_only(2, &frame());
            set_link(bench, node, 4, false);
            bench.send(1, &frame()).is_only(3, &frame());
        },
    );
    on_links(suite, "groups::fast_failover_watches_a_group_down_a_chain", |bench, node| {
        add(bench, 3, GroupType::FastFailover, vec![watching(2)]);
        add(bench, 2, GroupType::Indirect, vec![through(3)]);
        let watched = Bucket { watch_group: GroupId(2), ..through(2) };
        only_group(bench, GroupType::FastFailover, vec![watched, watching(4)]);
        bench.send(1, &frame()).is_only(2, &frame());
        set_link(bench, node, 2, false);
        bench.send(1, &frame()).is_only(4, &frame());
        set_link(bench, node, 2, true);
        bench.send(1, &frame()).is_only(2, &frame());
    });
    on_links(
        suite,
        "groups::a_bucket_that_watches_port_and_group_lives_while_either_does",
        |bench, node| {
            add(bench, 2, GroupType::FastFailover, vec![watching(3)]);
            let both = Bucket { watch_port: PortNo(2), watch_group: GroupId(2), ..to(4) };
            only_group(bench, GroupType::FastFailover, vec![both]);
            set_link(bench, node, 2, false);
            bench.send(1, &frame()).is_only(4, &frame());
            set_link(bench, node, 3, false);
            bench.send(1, &frame()).is_nothing();
        },
    );
    on_links(suite, "groups::fast_failover_leaves_a_port_that_is_configured_down", |bench, _| {
        only_group(bench, GroupType::FastFailover, vec![watching(2), watching(3)]);
        bench.shut.insert(2);
        configure(bench, 2, PortConfig::PORT_DOWN, PortConfig::PORT_DOWN);
        bench.send(1, &frame()).is_only(3, &frame());
    });
    on_links(suite, "groups::select_leaves_out_a_bucket_whose_link_is_down", |bench, node| {
        only_group(bench, GroupType::Select, vec![weighted(1, 2), weighted(1, 3)]);
        let before = ways(bench, 0..60);
        assert!(before.contains(&2) && before.contains(&3));
        set_link(bench, node, 2, false);
        assert_eq!(ways(bench, 0..60), [3; 60]);
        set_link(bench, node, 2, true);
        assert_eq!(ways(bench, 0..60), before, "flows come back to where they were");
    });
    on_links(suite, "groups::a_modified_group_is_live_by_its_new_buckets", |bench, node| {
        add(bench, 2, GroupType::All, vec![bucket(vec![])]);
        let watched = Bucket { watch_group: GroupId(2), ..to(3) };
        only_group(bench, GroupType::FastFailover, vec![watched, watching(4)]);
        use_group(bench, 1);
        bench.send(1, &frame()).is_only(3, &frame());
        set_link(bench, node, 2, false);
        let dead = vec![watching(2)];
        bench.session.accept(&change(GroupModCommand::Modify, 2, GroupType::All, dead));
        bench.send(1, &frame()).is_only(4, &frame());
    });
}
