//! Requests that cannot be carried out.

use crate::Bystanders;
use crate::bystanders::says;
use acceptance::{Kind, Lab, Ofctl, privileged, request, until};
use std::io::Write;
use std::os::unix::net::UnixStream;

#[test]
fn unknown_ports_and_taken_datapath_ids_are_refused_by_name() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&["g1"]);
    let lab = &bystanders.lab;
    lab.connect("sw0", "g1", Kind::Tap);
    let table: &[(&[&str], &[&str])] = &[
        (
            &["flow", "add", "sw0", "actions=output:nowhere"],
            &["switch sw0: read a flow", "nowhere"],
        ),
        (
            &["flow", "add", "sw0", "actions=output:4294967041"],
            &["switch sw0: read a flow", "nothing can be sent"],
        ),
        (&["port", "mod", "sw0", "nowhere", "--down"], &["port nowhere of switch sw0: find it"]),
        (&["port", "del", "sw0", "77"], &["port 77 of switch sw0: find it"]),
        (&["switch", "add", "sw1", "--dpid", "1"], &["switch sw1: add it", "taken by switch sw0"]),
    ];
    for (words, parts) in table {
        let said = lab.says(words);
        assert_eq!(said.code, 1, "{words:?}: {}", said.out);
        says(&said.err, parts);
        says(&said.err, &["remedy: "]);
    }
    let (status, answer) = lab.http("POST", "/v1/switches", r#"{"name": "sw1", "dpid": "1"}"#);
    assert_eq!(status, 409, "{answer}");
    says(&answer, &["switch sw1", "add it", "datapath id 0000000000000001", "choose another dpid"]);
    let management = Ofctl::management(lab, "sw0");
    says(&management.says("mod-port", &["77", "down"]).err, &["77"]);
    bystanders.lost_nothing();
}

#[test]
fn a_second_node_in_the_same_directory_is_refused_and_disturbs_nothing() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&[]);
    let said = bystanders.lab.node_says(&[]);
    assert_eq!(said.code, 1);
    says(&said.err, &["node: start", "run_dir", "remedy: "]);
    bystanders.lab.suiro(&["status"]);
    bystanders.lost_nothing();
}

#[test]
fn a_full_table_refuses_one_more_flow_and_takes_it_when_there_is_room() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::configured("flows_per_table = 1000\n", &[]);
    let lab = &bystanders.lab;
    let rules: String =
        (0..1000).map(|n| format!("priority=9,tcp,tp_dst={n},actions=drop\n")).collect();
    std::fs::write(lab.path("rules"), rules).unwrap();
    let file = lab.path("rules");
    lab.suiro(&["flow", "add", "sw0", "--file", file.to_str().unwrap()]);
    lab.suiro(&["flow", "add", "sw0", "priority=9,tcp,tp_dst=7,actions=NORMAL"]);

    let one_more = "priority=9,tcp,tp_dst=1000,actions=drop";
    let said = lab.says(&["flow", "add", "sw0", one_more]);
    assert_eq!(said.code, 1);
    says(&said.err, &["switch sw0: change a flow", one_more, "holds as many entries as it may"]);
    says(&said.err, &["remedy: delete flows first", "flows_per_table"]);
    let management = Ofctl::management(lab, "sw0");
    says(&management.says("add-flow", &[one_more]).err, &["OFPFMFC_TABLE_FULL"]);

    lab.suiro(&["flow", "add", "sw0", &format!("table=1,{one_more}")]);
    management.run("del-flows", &["tcp,tp_dst=0"]);
    management.run("add-flow", &[one_more]);
    says(&management.run("dump-aggregate", &["table=0"]), &["flow_count=1000"]);
    bystanders.lost_nothing();
}

/// Of 64 MiB the node itself has half, and switches a KiB for each entry of the rest: 32768, of which one switch takes half.
#[test]
fn rules_and_groups_take_of_the_nodes_memory_what_they_hold_and_leave_others_theirs() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::configured("memory = 67108864\n", &[]);
    let lab = &bystanders.lab;
    let status = lab.json(&["status"]);
    assert_eq!(status["memory"]["may"], 67_108_864, "{status}");
    let add = |what: &str, switch: &str, lines: Vec<String>| {
        let file = lab.path("lines");
        std::fs::write(&file, lines.join("\n")).unwrap();
        lab.says(&[what, "add", switch, "--file", file.to_str().unwrap()])
    };
    // 400 actions are as much as 50 entries.
    let outputs = vec!["output:1"; 400].join(",");
    let rule = |n| format!("priority=9,tcp,tp_dst={n},actions={outputs}");
    let said = add("flow", "sw0", (0..400).map(rule).collect());
    assert_eq!(said.code, 1);
    says(&said.err, &["the node's memory has no room", "remedy: "]);
    let rules = Ofctl::management(lab, "sw0").run("dump-aggregate", &[]);
    let count = rules.split("flow_count=").nth(1).and_then(|rest| rest.trim().parse().ok());
    let count: u32 = count.unwrap_or_else(|| panic!("{rules}"));
    assert!((300..=330).contains(&count), "{count} of 51 each in 16384");

    lab.suiro(&["switch", "add", "sw1"]);
    let bucket = ",bucket=output:1".repeat(100);
    let group = |n| format!("group_id={n},type=all{bucket}");
    let said = add("group", "sw1", (1..200).map(group).collect());
    assert_eq!(said.code, 1);
    says(&said.err, &["the node's memory has no room for more groups"]);
    let hits = lab.json(&["status"])["bounds"].to_string();
    says(&hits, &[r#""switch":"sw0""#, r#""switch":"sw1""#, r#""bound":"rules""#]);

    lab.suiro(&["switch", "add", "sw2"]);
    let plain = |n| format!("priority=9,tcp,tp_dst={n},actions=drop");
    assert_eq!(add("flow", "sw2", (0..1000).map(plain).collect()).code, 0);
    lab.suiro(&["switch", "del", "sw0"]);
    assert_eq!(add("group", "sw1", (300..340).map(group).collect()).code, 0, "it came back");
    bystanders.lost_nothing();
}

/// So many calls of the API that say this and then neither speak nor listen.
fn calls(lab: &Lab, count: usize, what: &str) -> Vec<UnixStream> {
    let call = || {
        let mut stream = UnixStream::connect(lab.socket()).unwrap();
        stream.write_all(what.as_bytes()).unwrap();
        stream
    };
    std::iter::repeat_with(call).take(count).collect()
}

#[test]
fn half_requests_and_unread_lists_keep_nobody_from_an_answer() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&[]);
    let lab = &bystanders.lab;
    let rules: String =
        (0..5000).map(|n| format!("priority=9,tcp,tp_dst={n},actions=drop\n")).collect();
    let file = lab.path("rules");
    std::fs::write(&file, rules).unwrap();
    lab.suiro(&["flow", "add", "sw0", "--file", file.to_str().unwrap()]);
    let _halves = calls(lab, 400, "GET /v1/node HTTP/1.1\r\nHost: x\r\nX-Half: ");
    let more =
        request("POST", "/v1/switches/sw0/flows", "").replace("Length: 0", "Length: 60000000");
    let _bodies = calls(lab, 100, &more);
    let _unread = calls(lab, 100, &request("GET", "/v1/switches/sw0/flows", ""));
    let threads = || std::fs::read_dir(format!("/proc/{}/task", lab.pid())).unwrap().count();
    assert!(threads() < 100, "{} threads", threads());
    lab.suiro(&["switch", "add", "one-more"]);
    // Whoever reads nothing for a second makes room.
    until("a list is answered", || {
        let said = lab.says(&["flow", "list", "sw0", "tcp,tp_dst=7"]);
        says(
            &(said.out.clone() + &said.err),
            &[if said.code == 0 { "tp_dst=7" } else { "remedy" }],
        );
        said.code == 0
    });
    bystanders.lost_nothing();
}
