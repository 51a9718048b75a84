//! Bad input of every kind: each gives thing, step, cause and remedy, the right code, and disturbs nothing.

use acceptance::{Place, Then, privileged, request, sh, suiro, until};
use std::process::Command;

fn run(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(suiro()).args(words).env_remove("SUIRO_API").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_wrong_file_is_refused_with_every_error_and_a_right_one_accepted() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("node.toml");
    let file = file.to_str().unwrap();
    std::fs::write(
        file,
        "[[switch]]\nname = 'a b'\n[[switch]]\nname = 'sw0'\ndipd = '1'\n[[switch]\n",
    )
    .unwrap();
    let (code, _, err) = run(&["node", "--config", file, "--check"]);
    assert_eq!(code, 1);
    for part in [
        ":2: switch #1",
        ":5: switch sw0: unknown key `dipd`",
        "did you mean `dpid`?",
        ":6: TOML",
        "3 errors",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    std::fs::write(file, "[[switch]]\nname = 'sw0'\n").unwrap();
    assert_eq!(run(&["node", "--config", file, "--check"]).0, 0);
    assert_eq!(run(&["node", "--config", "/nonexistent/node.toml", "--check"]).0, 1);
}

#[test]
fn without_a_node_the_code_is_3_and_the_remedy_says_how_to_start_one() {
    let (code, _, err) = run(&["--api", "/nonexistent/api.sock", "switch", "list"]);
    assert_eq!(code, 3);
    assert!(
        err.contains("/nonexistent/api.sock") && err.contains("suiro node --background"),
        "{err}"
    );
}

#[test]
fn what_is_not_understood_is_code_2_before_anything_is_asked() {
    for words in [
        &["switch", "add", "a/b"][..],
        &["switch", "add", "sw0", "--dpid", "xyz"],
        &["switch", "add", "sw0", "--controller", "127.0.0.1"],
        &["port", "add", "sw0", "p", "--type", "vhost"],
        &["port", "add", "sw0", "p", "--type", "tap", "--mac", "01:00:00:00:00:01"],
        &["port", "add", "sw0", "p", "--type", "tap", "--number", "70000"],
        &["port", "mod", "sw0", "p"],
        &["flow", "add", "sw0"],
        &["flow", "del", "sw0"],
        &["flow", "del", "sw0", "--all", "ip"],
        &["flow", "del", "sw0", "--all", "--strict"],
        &["group", "del", "sw0", "--all", "group_id=1"],
        &["steer", "flow", "del", "--all", "ip"],
        &["node", "--log", "a=b=c"],
        &["frobnicate"],
    ] {
        let (code, _, err) = run(words);
        assert_eq!(code, 2, "{words:?}: {err}");
        assert!(!err.is_empty());
    }
}

#[test]
fn completions_and_help_need_no_node() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(out.contains("suiro"), "{shell}");
    }
    for words in [
        &["--help"][..],
        &["node", "--help"],
        &["flow", "add", "--help"],
        &["port", "add", "--help"],
    ] {
        let (code, out, _) = run(words);
        assert_eq!(code, 0);
        assert!(
            out.contains("xample") || out.contains("First steps"),
            "{words:?} teaches nothing:\n{out}"
        );
    }
}

/// A node with one switch, one TAP and one rule.
fn small_node() -> Place {
    let mut place = Place::new(&["g1"]);
    sh(&["ip", "-n", &place.netns, "link", "add", "v1", "type", "veth", "peer", "name", "v1-peer"]);
    place.start();
    place.suiro(&["switch", "add", "sw0", "--dpid", "1"]);
    place.suiro(&["port", "add", "sw0", "g1", "--type", "tap", "--netns", &place.guest("g1")]);
    place.suiro(&["flow", "add", "sw0", "priority=1,arp,actions=NORMAL"]);
    place
}

#[test]
fn each_refusal_names_thing_step_cause_and_remedy_and_changes_nothing() {
    if !privileged() {
        return;
    }
    let place = small_node();
    let guest = place.guest("g1");
    let before = (
        place.json(&["switch", "list"]).as_array().unwrap().len(),
        place.suiro(&["port", "list"]).lines().count(),
    );
    let table: &[(&[&str], &[&str])] = &[
        (&["switch", "add", "sw0"], &["switch sw0: add it", "already taken by switch sw0"]),
        (
            &["switch", "add", "sw1", "--dpid", "1"],
            &["switch sw1", "datapath id 0000000000000001 is already taken by switch sw0"],
        ),
        (
            &["switch", "show", "nope"],
            &["switch nope", "no switch of that name", "suiro switch list"],
        ),
        (&["switch", "del", "nope"], &["switch nope"]),
        (&["port", "show", "sw0", "nope"], &["port nope of switch sw0", "suiro port list sw0"]),
        (&["port", "del", "sw0", "99"], &["port 99 of switch sw0"]),
        (&["port", "add", "nope", "p", "--type", "tap"], &["switch nope"]),
        (
            &["port", "add", "sw0", "g1", "--type", "tap", "--netns", &guest],
            &["already taken by port g1 of switch sw0"],
        ),
        (
            &["port", "add", "sw0", "x", "--type", "tap", "--netns", &guest, "--interface", "g1"],
            &["interface g1 is already taken"],
        ),
        (
            &["port", "add", "sw0", "x", "--type", "tap", "--number", "1"],
            &["number 1 is already taken"],
        ),
        (
            &["port", "add", "sw0", "x", "--type", "af_packet", "--peer", "sw1:y"],
            &["`peer` means nothing on a port of type af_packet"],
        ),
        (
            &["port", "add", "sw0", "x", "--type", "af_packet", "--interface", "missing0"],
            &["port x of switch sw0", "missing0", "remedy: "],
        ),
        (
            &["port", "add", "sw0", "x", "--type", "tap", "--netns", "missing-ns"],
            &["missing-ns", "ip netns add"],
        ),
        (&["port", "add", "sw0", "v1", "--type", "tap"], &["port v1 of switch sw0", "remedy: "]),
        (&["port", "mod", "sw0", "g1", "--mtu", "10"], &["10 is outside 68 to"]),
        (&["flow", "add", "nope", "actions=drop"], &["switch nope"]),
        (
            &["flow", "add", "sw0", "prority=1,actions=drop"],
            &["switch sw0: read a flow", "prority=1", "remedy: "],
        ),
        (&["flow", "add", "sw0", "actions=output:nowhere"], &["nowhere", "no port has this name"]),
        (&["flow", "add", "sw0", "actions=group:77"], &["switch sw0", "group", "remedy: "]),
        (&["flow", "list", "sw0", "bogus=1"], &["filter", "bogus"]),
        (&["group", "add", "sw0", "type=all"], &["group", "group_id=N"]),
        (&["meter", "add", "sw0", "meter=1"], &["meter", "kbps"]),
    ];
    for (words, parts) in table {
        let said = place.says(words);
        assert_eq!(said.code, 1, "{words:?}: {}{}", said.out, said.err);
        for part in parts.iter().chain(&["remedy: "]) {
            assert!(said.err.contains(part), "{words:?} does not say {part:?}:\n{}", said.err);
        }
    }
    let after = (
        place.json(&["switch", "list"]).as_array().unwrap().len(),
        place.suiro(&["port", "list"]).lines().count(),
    );
    assert_eq!(before, after);
    assert_eq!(place.json(&["flow", "list", "sw0"]).as_array().unwrap().len(), 1);
}

#[test]
fn garbage_on_the_api_is_answered_or_cut_off_and_the_node_goes_on() {
    if !privileged() {
        return;
    }
    let place = small_node();
    let endless = [b"GET /".as_slice(), &[b'a'; 200_000], b" HTTP/1.1\r\n\r\n"].concat();
    let random: Vec<u8> =
        (0..10_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for garbage in [
        &b""[..],
        b"\0\0\0\0",
        b"hello\r\n\r\n",
        b"GET",
        b"POST / HTTP/9.9\r\n\r\n",
        &random,
        &endless,
    ] {
        place.raw(garbage, Then::EndAndListen);
    }
    for (method, path, body, status) in [
        ("GET", "/", "", 404),
        ("GET", "/v2/node", "", 404),
        ("PUT", "/v1/node", "", 405),
        ("POST", "/v1/switches", "", 400),
        ("POST", "/v1/switches", "{", 400),
        ("POST", "/v1/switches", "[]", 400),
        ("POST", "/v1/switches", "{\"name\": \"a/b\"}", 400),
        ("POST", "/v1/switches", "{\"name\": \"sw1\", \"colour\": \"red\"}", 400),
        ("POST", "/v1/switches", "{\"name\": \"sw0\"}", 409),
        ("POST", "/v1/switches/sw0/ports", "{\"type\": \"tap\"}", 400),
        (
            "POST",
            "/v1/switches/sw0/ports",
            "{\"type\": \"af_packet\", \"name\": \"missing0\"}",
            422,
        ),
        ("GET", "/v1/switches/%00/ports", "", 404),
        ("GET", "/v1/switches/sw0/flows?colour=red", "", 400),
        ("POST", "/v1/switches/sw0/flows", "{\"flows\": [\"nonsense\"]}", 400),
        ("POST", "/v1/switches", &format!("{{\"name\": \"{}\"}}", "x".repeat(300_000)), 413),
    ] {
        let (found, answer) = place.http(method, path, body);
        assert_eq!(found, status, "{method} {path} {:.60}: {answer}", body);
        let error: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
        for part in ["thing", "step", "cause", "remedy"] {
            assert!(error["error"][part].is_string(), "{method} {path}: {answer}");
        }
    }
    assert_eq!(place.http("GET", "/v1/switches/sw0", "").0, 200);
    let document = place.http("GET", "/v1/openapi.json", "").1;
    assert_eq!(document, include_str!("../../../../docs/reference/openapi.json"));
}

#[test]
fn of_many_flows_a_refusal_says_how_many_are_in_force() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    let [good, bad] = ["priority=1,ip,actions=drop", "priority=2,ip,actions=group:7"];
    let said = place.says(&["flow", "add", "sw0", good, bad, "priority=3,ip,actions=drop"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("of 3 flows 2 are in force"), "{}", said.err);
    let said = place.says(&["flow", "add", "sw0", bad]);
    assert!(said.code == 1 && !said.err.contains("in force"), "{}", said.err);
    assert_eq!(place.suiro(&["flow", "list", "sw0"]).lines().count(), 2);
}

#[test]
fn rules_are_listed_by_table_and_priority_and_a_port_that_is_not_there_is_said() {
    if !privileged() {
        return;
    }
    let place = small_node();
    let rules = [
        "table=2,priority=1,ip,actions=drop",
        "table=1,priority=5,tcp,actions=drop",
        "priority=3,udp,actions=output:1",
        "priority=9,in_port=98,arp,actions=output:99,output:1",
    ];
    let said = place.suiro(&[&["flow", "add", "sw0"][..], &rules].concat());
    assert_eq!(said, "4 flows added\nnote: there are no ports 98, 99 yet\n");
    let listed = place.json(&["flow", "list", "sw0"]);
    let order = |flow: &serde_json::Value| (flow["table"].as_u64(), flow["priority"].as_u64());
    let order: Vec<_> = listed.as_array().unwrap().iter().map(order).collect();
    let wanted = [(0, 9), (0, 3), (0, 1), (1, 5), (2, 1)];
    assert_eq!(order, wanted.map(|(table, priority)| (Some(table), Some(priority))));
    let bucket = "group_id=1,type=all,bucket=output:97,bucket=output:IN_PORT";
    let said = place.suiro(&["group", "add", "sw0", bucket]);
    assert_eq!(said, "1 group added\nnote: there is no port 97 yet\n");
    let said = place.json(&["flow", "add", "sw0", "udp,actions=output:LOCAL,output:96"]);
    assert_eq!(said, serde_json::json!({"applied": 1, "absent_ports": [96]}));
    let said = place.json(&["flow", "add", "sw0", "tcp,actions=output:1"]);
    assert_eq!(said, serde_json::json!({"applied": 1}));
    let newest = place.json(&["flow", "list", "sw0", "--sort", "newest"]);
    assert_eq!(newest[0]["match"], "tcp", "{newest}");
}

#[test]
fn the_first_rule_of_a_switch_that_forwards_by_itself_says_what_it_does_not_change() {
    if !privileged() {
        return;
    }
    let place = small_node();
    let first = |rule| {
        place.suiro(&["flow", "del", "sw0", "--all"]);
        place.suiro(&["flow", "add", "sw0", rule])
    };
    let note = "note: sw0 forwards by itself what no rule matches; a controller, or --fail-mode secure, ends that\n";
    assert_eq!(first("udp,actions=drop"), format!("1 flow added\n{note}"));
    assert_eq!(place.suiro(&["flow", "add", "sw0", "tcp,actions=drop"]), "1 flow added\n");
    let shown = place.suiro(&["switch", "show", "sw0"]);
    assert!(shown.contains(", forwarding by itself now what no rule matches,"), "{shown}");
    place.suiro(&["switch", "mod", "sw0", "--fail-mode", "secure"]);
    assert_eq!(first("udp,actions=drop"), "1 flow added\n");
    let shown = place.suiro(&["switch", "show", "sw0"]);
    assert!(!shown.contains("by itself"), "{shown}");
}

#[test]
fn a_client_that_hangs_up_leaves_its_change_whole() {
    if !privileged() {
        return;
    }
    let mut place = small_node();
    let count = |place: &Place| place.json(&["port", "list"]).as_array().unwrap().len();
    for number in 0..10 {
        let body = format!("{{\"type\": \"tap\", \"name\": \"h{number}\"}}");
        place.raw(request("POST", "/v1/switches/sw0/ports", &body).as_bytes(), Then::HangUp);
    }
    // Requests that were read are done to their end; how many were read before the client went is open.
    until("no change is under way", || {
        let before = count(&place);
        std::thread::sleep(std::time::Duration::from_millis(300));
        count(&place) == before
    });
    let ports = place.suiro(&["port", "list"]).lines().filter(|line| line.contains(" up ")).count();
    assert_eq!(ports, count(&place), "{}", place.log());
    place.end(rustix::process::Signal::KILL);
    place.start();
    assert_eq!(count(&place), ports, "every port that was made was saved");
}

#[test]
fn ovs_ofctl_and_suiro_see_the_same_rules() {
    if !privileged() {
        return;
    }
    let place = small_node();
    let management = format!("unix:{}", place.path("run/sw0.mgmt").display());
    sh(&[
        "ovs-ofctl",
        "-O",
        "OpenFlow13",
        "add-flow",
        &management,
        "priority=5,tcp,tp_dst=80,actions=output:1",
    ]);
    let ours = place.suiro(&["flow", "list", "sw0"]);
    assert!(ours.contains("priority=5,tcp,tp_dst=80 actions=output:1"), "{ours}");
    let dump = Command::new("ovs-ofctl")
        .args(["-O", "OpenFlow13", "dump-flows", &management])
        .output()
        .unwrap();
    let theirs = String::from_utf8_lossy(&dump.stdout).into_owned();
    let rules = |text: &str| {
        let mut rules: Vec<String> =
            text.lines().filter(|line| line.contains("actions=")).map(without_age).collect();
        rules.sort();
        rules
    };
    assert_eq!(rules(&ours), rules(&theirs));
}

fn without_age(line: &str) -> String {
    line.split(',')
        .filter(|part| !part.trim_start().starts_with("duration="))
        .collect::<Vec<_>>()
        .join(",")
}
