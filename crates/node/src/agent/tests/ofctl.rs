//! The real `ovs-ofctl -O OpenFlow13` against a management socket.

use crate::agent::{Agent, Endpoints, Timing};
use crate::switch::Switch;
use crate::switch::tests::{TestPlane, punt, switch};
use openflow::{PortConfig, PortNo};
use port::PortFacts;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const REMEDY: &str = "ovs-ofctl cannot be run; install it (Debian: apt install openvswitch-common openvswitch-switch), or leave the test out: SUIRO_SKIP_OFCTL=1";

/// Flows of the tests that need many.
const MANY: u32 = 10_000;

/// A switch with two ports behind a management socket.
struct Bench {
    switch: Arc<Switch>,
    plane: Arc<TestPlane>,
    _agent: Agent,
    directory: tempfile::TempDir,
}

impl Bench {
    /// `None` when the user leaves these tests out.
    async fn new() -> Option<Self> {
        if std::env::var_os("SUIRO_SKIP_OFCTL").is_some() {
            return None;
        }
        let (switch, plane) = switch();
        for (number, name) in [(1, "eth1"), (2, "eth2")] {
            let mac = [2, 0, 0, 0, 0, number as u8];
            let facts = PortFacts {
                mac,
                up: true,
                carrier: true,
                speed_mbps: 10_000,
                ..PortFacts::default()
            };
            switch.add_port(PortNo(number), name, &facts, PortConfig::empty());
        }
        let directory = tempfile::tempdir().unwrap();
        let endpoints = Endpoints {
            management: Some(directory.path().join("sw0.mgmt")),
            ..Endpoints::default()
        };
        let agent = Agent::start(switch.clone(), &endpoints, Timing::default()).await.unwrap();
        Some(Self { switch, plane, _agent: agent, directory })
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("sw0.mgmt")
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ovs-ofctl");
        // It keeps a control socket of its own there.
        command.env("OVS_RUNDIR", self.directory.path());
        command
            .args(["-O", "OpenFlow13"])
            .args(verb.split(' '))
            .arg(format!("unix:{}", self.socket().display()));
        command.args(arguments).kill_on_drop(true);
        command
    }

    /// What the command prints; it must succeed.
    async fn run(&self, verb: &str, arguments: &[&str]) -> String {
        let output = self.command(verb, arguments).output().await.expect(REMEDY);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{verb} {arguments:?}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// What the command complains of; it must fail.
    async fn fail(&self, verb: &str, arguments: &[&str]) -> String {
        let output = self.command(verb, arguments).output().await.expect(REMEDY);
        assert!(!output.status.success(), "{verb} {arguments:?}");
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    }
}

fn flows(addresses: impl Iterator<Item = u32>) -> String {
    addresses.fold(String::new(), |mut text, at| {
        let [a, b, c, d] = (0x0a00_0000 + at).to_be_bytes();
        writeln!(text, "priority=5,ip,nw_dst={a}.{b}.{c}.{d},actions=output:1").unwrap();
        text
    })
}

#[tokio::test]
async fn show_and_the_dumps_of_ports_and_tables_know_the_switch() {
    let Some(bench) = Bench::new().await else { return };
    let shown = bench.run("show", &[]).await;
    for expected in [
        "dpid:0000000000001234",
        "n_tables:254",
        "1(eth1): addr:02:00:00:00:00:01",
        "LIVE",
        "10GB-FD",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(bench.run("dump-ports", &[]).await.contains("rx pkts=2"), "port 2 of the test plane");
    assert!(bench.run("dump-ports", &["1"]).await.contains("rx pkts=1"));
    assert!(bench.run("dump-ports-desc", &[]).await.contains("2(eth2)"));
    assert!(bench.run("dump-desc", &[]).await.contains("suiro"));
    assert!(bench.run("dump-tables", &[]).await.contains("table 0"));
    assert!(bench.run("dump-table-features", &[]).await.contains("table 253"));
    bench.run("queue-stats", &[]).await;
    bench.run("get-frags", &[]).await;
    bench.run("set-frags", &["drop"]).await;
    assert!(bench.run("get-frags", &[]).await.contains("drop"));
}

#[tokio::test]
async fn flows_are_added_dumped_modified_and_deleted() {
    let Some(bench) = Bench::new().await else { return };
    // As dump-flows prints them; what is added differs only in its commas.
    let given = [
        "cookie=0x7, priority=9,tcp,in_port=1,tp_dst=80 actions=set_field:1.2.3.4->ip_dst,output:2",
        "idle_timeout=60, priority=5,dl_vlan=7 actions=pop_vlan,NORMAL",
        "send_flow_rem priority=4,arp,arp_tpa=10.0.0.0/8 actions=CONTROLLER:65535",
        "priority=3,icmp6,icmp_type=135,nd_target=fe80::1 actions=FLOOD",
        "priority=1,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=write_metadata:0x5/0xff,goto_table:2",
        "table=2, priority=0 actions=drop",
    ];
    for flow in given {
        let flow = flow.replace(", ", ",").replace(" actions", ",actions").replace("rem ", "rem,");
        bench.run("add-flow", &[&flow]).await;
    }
    let dumped = bench.run("--no-stats dump-flows", &[]).await;
    for flow in given {
        assert!(dumped.contains(flow), "{flow}\n{dumped}");
    }
    assert!(bench.run("dump-aggregate", &[]).await.contains("flow_count=6"));
    assert!(bench.run("dump-aggregate", &["tcp"]).await.contains("flow_count=1"));
    bench.run("mod-flows", &["tcp,actions=drop"]).await;
    assert!(bench.run("dump-flows", &["tcp"]).await.contains("actions=drop"));
    bench.run("--strict del-flows", &["priority=5,dl_vlan=7"]).await;
    bench.run("del-flows", &["out_port=controller"]).await;
    assert!(bench.run("dump-aggregate", &[]).await.contains("flow_count=4"));
    bench.run("del-flows", &["cookie=0x7/-1"]).await;
    bench.run("del-flows", &[]).await;
    assert!(bench.run("dump-aggregate", &[]).await.contains("flow_count=0"));
    let refused = bench.fail("add-flow", &["actions=group:9"]).await;
    assert!(refused.contains("OFPBAC_BAD_OUT_GROUP"), "{refused}");
}

#[tokio::test]
async fn tunnels_ends_are_matched_and_chosen_by_their_addresses() {
    let Some(bench) = Bench::new().await else { return };
    let given = [
        "priority=9,in_port=1 actions=set_field:0x7->tun_id,set_field:192.0.2.2->tun_dst,output:2",
        "priority=8,in_port=1 actions=set_field:2001:db8::2->tun_ipv6_dst,output:2",
        "priority=7,tun_id=0x7,tun_src=192.0.2.2 actions=output:1",
        "priority=6,tun_ipv6_src=2001:db8::2,in_port=2 actions=output:1",
        "priority=5,tun_src=0.0.0.0,in_port=2 actions=drop",
        "priority=4,tun_dst=192.0.2.2 actions=output:1",
    ];
    for flow in given {
        bench.run("add-flow", &[&flow.replace(" actions", ",actions")]).await;
    }
    let dumped = bench.run("--no-stats dump-flows", &[]).await;
    for flow in given {
        assert!(dumped.contains(flow), "{flow}\n{dumped}");
    }
    let count = async |filter| {
        let text = bench.run("dump-aggregate", &[filter]).await;
        text.trim().rsplit('=').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(count("tun_src=192.0.2.2").await, 1);
    assert_eq!(count("tun_ipv6_src=2001:db8::2").await, 1);
    assert_eq!(count("tun_src=192.0.2.99").await, 0, "an end that no rule names");
    bench.run("del-flows", &["tun_src=192.0.2.99"]).await;
    bench.run("del-flows", &["tun_ipv6_src=2001:db8::2"]).await;
    assert_eq!(count("").await, 5);
    for (flow, why) in [
        ("tun_src=192.0.2.0/24,actions=drop", "OFPBMC_BAD_NW_ADDR_MASK"),
        ("tun_src=192.0.2.2,tun_ipv6_src=2001:db8::2,actions=drop", "OFPBMC_DUP_FIELD"),
        ("in_port=1,actions=set_field:192.0.2.1->tun_src,output:2", "OFPBAC_BAD_SET_TYPE"),
    ] {
        let refused = bench.fail("add-flow", &[flow]).await;
        assert!(refused.contains(why), "{flow}: {refused}");
    }
    let features = bench.run("dump-table-features", &[]).await;
    for fields in [
        "exact match or wildcard: tun_{src,dst,ipv6_{src,dst}}",
        "Set-Field: tun_{id,dst,ipv6_dst}",
    ] {
        assert!(features.contains(fields), "{features}");
    }
}

#[tokio::test]
async fn groups_and_meters_are_added_dumped_and_deleted() {
    let Some(bench) = Bench::new().await else { return };
    bench.run("add-group", &["group_id=1,type=select,bucket=weight:3,actions=output:1,bucket=weight:1,actions=output:2"]).await;
    bench.run("add-group", &["group_id=2,type=ff,bucket=watch_port:1,actions=output:1"]).await;
    let dumped = bench.run("dump-groups", &[]).await;
    assert!(dumped.contains("group_id=1,type=select") && dumped.contains("weight:3"), "{dumped}");
    assert!(dumped.contains("group_id=2,type=ff"), "{dumped}");
    bench.run("mod-group", &["group_id=2,type=all,bucket=output:2"]).await;
    bench.run("add-flow", &["actions=group:2"]).await;
    assert!(bench.run("dump-group-stats", &["group_id=2"]).await.contains("ref_count=1"));
    assert!(bench.run("dump-group-features", &[]).await.contains("select group"));
    bench.run("del-groups", &["group_id=2"]).await;
    assert!(bench.run("dump-aggregate", &[]).await.contains("flow_count=0"));
    bench.run("del-groups", &[]).await;
    assert!(!bench.run("dump-groups", &[]).await.contains("group_id"));

    bench
        .run("add-meter", &["meter=3,kbps,burst,stats,bands=type=drop,rate=1000,burst_size=50"])
        .await;
    bench.run("add-flow", &["actions=meter:3,output:1"]).await;
    assert!(bench.run("dump-meters", &[]).await.contains("rate=1000 burst_size=50"));
    assert!(bench.run("meter-stats", &["meter=3"]).await.contains("flow_count:1"));
    assert!(bench.run("meter-features", &[]).await.contains("max_meter"));
    bench.run("del-meters", &[]).await;
    assert!(bench.run("dump-aggregate", &[]).await.contains("flow_count=0"));
}

#[tokio::test]
async fn a_port_is_configured_and_a_frame_sent() {
    let Some(bench) = Bench::new().await else { return };
    bench.run("mod-port", &["eth1", "down"]).await;
    assert_eq!(*bench.plane.admin.lock().unwrap(), [(1, false)]);
    assert!(bench.run("show", &[]).await.contains("PORT_DOWN"));
    bench.run("mod-port", &["2", "no-receive"]).await;
    assert!(bench.run("show", &[]).await.contains("NO_RECV"));
    let frame = "ffffffffffff0200000000010800450000140000000040010000";
    bench
        .run("packet-out", &[&format!("in_port=controller,packet={frame},actions=output:2")])
        .await;
    let sent = bench.plane.sent.lock().unwrap().clone();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].frame.len(), frame.len() / 2);
}

#[tokio::test]
async fn a_monitor_sees_packet_ins() {
    let Some(bench) = Bench::new().await else { return };
    let mut monitor =
        bench.command("monitor", &["65534"]).stderr(Stdio::piped()).spawn().expect(REMEDY);
    let mut lines = BufReader::new(monitor.stderr.take().unwrap()).lines();
    let why = flow::PacketIn {
        reason: flow::PacketInReason::NoMatch,
        table: 0,
        cookie: 0,
        max_len: 0xffff,
    };
    let seen = async {
        loop {
            bench.switch.on_packet_in(punt(2, 60, why));
            let line = tokio::time::timeout(Duration::from_millis(50), lines.next_line()).await;
            if let Ok(Ok(Some(line))) = line
                && line.contains("OFPT_PACKET_IN")
            {
                return line;
            }
        }
    };
    let line = tokio::time::timeout(Duration::from_secs(20), seen).await.expect("a packet-in");
    assert!(line.contains("total_len=60 in_port=2"), "{line}");
}

#[tokio::test]
async fn ten_thousand_flows_are_replaced_and_compared() {
    let Some(bench) = Bench::new().await else { return };
    let first = bench.file("first", &flows(0..MANY));
    let second = bench.file("second", &flows(MANY / 2..MANY + MANY / 2));
    bench.run("add-flows", &[&first]).await;
    assert_eq!(
        bench.run("dump-flows", &[]).await.lines().filter(|line| line.contains("actions=")).count(),
        MANY as usize
    );
    assert_eq!(bench.run("diff-flows", &[&first]).await, "");
    let difference = bench.fail("diff-flows", &[&second]).await;
    assert_eq!(difference.lines().count(), MANY as usize);
    bench.run("replace-flows", &[&second]).await;
    assert_eq!(bench.run("diff-flows", &[&second]).await, "");
}
