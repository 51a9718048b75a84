//! Parts: what a file declares is there whole or not at all, only the difference moves, and it is there again after `kill -9`.

use acceptance::{Place, Said, Speaker, privileged, until};
use openflow::{FlowMod, Message};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a part's file.
fn write(place: &Place, name: &str, text: &str) -> String {
    let path = place.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A switch with a TAP in the guest's namespace for each of these ports, and more keys of the switch.
fn switch(place: &Place, name: &str, keys: &str, ports: &[&str]) -> String {
    let netns = place.guest("g");
    let port = |port: &&str| {
        let (name, keys) = port.split_once(' ').unwrap_or((port, ""));
        format!("[[switch.port]]\nname = '{name}'\ntype = 'tap'\nnetns = '{netns}'\n{keys}\n")
    };
    let ports: String = ports.iter().map(port).collect();
    format!("[[switch]]\nname = '{name}'\n{keys}\n{ports}")
}

/// The guest's interfaces with their indexes, but for its own loopback.
pub fn links(place: &Place) -> Vec<(String, u64)> {
    let netns = place.guest("g");
    let shown = Command::new("ip").args(["-n", &netns, "-j", "link"]).output().unwrap();
    let links: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let mut found: Vec<_> = links
        .as_array()
        .unwrap()
        .iter()
        .map(|link| (link["ifname"].as_str().unwrap().into(), link["ifindex"].as_u64().unwrap()))
        .filter(|(name, _)| name != "lo")
        .collect();
    found.sort();
    found
}

fn names(place: &Place) -> Vec<String> {
    links(place).into_iter().map(|(name, _)| name).collect()
}

/// Flows without what counts.
fn flows(place: &Place, switch: &str) -> Vec<String> {
    let shown = place.json(&["flow", "list", switch]);
    let mut found: Vec<_> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| {
            let [matching, actions] = ["match", "actions"].map(|key| flow[key].as_str().unwrap());
            format!("{},{matching} {actions}", flow["priority"])
        })
        .collect();
    found.sort();
    found
}

#[track_caller]
fn refused(said: &Said, parts: &[&str]) {
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    for part in parts {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn a_part_applied_twice_has_nothing_to_do_and_comes_back_after_a_kill() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    let keys = "flows = ['priority=7,arp,actions=NORMAL', 'priority=8,in_port=p1,actions=output:p2']\ngroups = ['group_id=1,type=all,bucket=output:p1']\nmeters = ['meter=1,kbps,band=type=drop,rate=100']";
    let file = write(&place, "lab.toml", &switch(&place, "sw0", keys, &["p1", "p2 rate = '1G'"]));
    let planned = place.suiro(&["diff", "-f", &file]);
    assert!(planned.starts_with("part lab: 7 come (generation 1)\n+ switch sw0\n"), "{planned}");
    assert_eq!(place.says(&["diff", "-f", &file, "--exit-code"]).code, 4);
    assert_eq!(names(&place), [""; 0], "a plan changes nothing");
    assert_eq!(place.suiro(&["apply", "-f", &file, "--wait"]), planned);
    let (before, rules) = (links(&place), flows(&place, "sw0"));
    assert_eq!((before.len(), rules.len()), (2, 2));
    let nothing = "part lab: nothing to do (generation 1)\n";
    assert_eq!(place.suiro(&["apply", "-f", &file]), nothing);
    assert_eq!(place.says(&["plan", "-f", &file, "--exit-code"]).code, 0);
    place.end(Signal::KILL);
    place.start();
    assert_eq!(place.suiro(&["apply", "-f", &file]), nothing);
    assert_eq!((links(&place), flows(&place, "sw0")), (before, rules));
    assert_eq!(place.json(&["switch", "show", "sw0"])["origin"], "lab");
    refused(&place.says(&["port", "del", "sw0", "p1"]), &["declared by part lab", "suiro apply"]);
    let shown = place.suiro(&["part", "show", "lab"]);
    assert!(shown.contains("generation 1") && shown.contains("priority=7,arp"), "{shown}");
    place.suiro(&["part", "del", "lab"]);
    assert_eq!(names(&place), [""; 0]);
    place.end(Signal::KILL);
    place.start();
    assert_eq!(place.json(&["switch", "list"]), serde_json::json!([]));
    let events = place.suiro(&["part", "list"]);
    assert_eq!(events.lines().count(), 2, "only the configuration file is left: {events}");
}

#[test]
fn a_part_with_one_bad_port_of_ten_changes_nothing() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    let keys = "flows = ['priority=7,arp,actions=NORMAL']";
    let good = switch(&place, "sw0", keys, &["p1", "p2", "old"]);
    place.suiro(&["apply", "-f", &write(&place, "lab.toml", &good)]);
    let view = |place: &Place| {
        let ports = place.json(&["port", "list", "sw0"]);
        let shown: Vec<_> = ports
            .as_array()
            .unwrap()
            .iter()
            .map(|port| (port["name"].clone(), port["number"].clone(), port["rate"].clone()))
            .collect();
        (links(place), flows(place, "sw0"), shown, place.json(&["part", "show", "lab"]))
    };
    let before = view(&place);
    let ports = ["p1 rate = '1G'", "p2 number = 9", "p3", "p4", "p5", "p6", "p7", "p8", "p9"];
    let keys = "flows = ['priority=8,ip,actions=output:p9']\nfail_mode = 'secure'";
    let bad = switch(&place, "sw0", keys, &ports)
        + "[[switch.port]]\nname = 'bad'\ntype = 'af_packet'\ninterface = 'nosuch0'\n";
    let file = write(&place, "lab.toml", &bad);
    let refusal = place.says(&["apply", "-f", &file]);
    refused(&refusal, &["port bad of switch sw0", "nosuch0", "remedy"]);
    assert_eq!(view(&place), before);
    // The same when what is refused comes last: a rule that no table takes.
    let keys = "flows = ['priority=8,ip,actions=group:77']";
    let file = write(&place, "lab.toml", &switch(&place, "sw0", keys, &["p1", "p2", "p3", "old"]));
    refused(&place.says(&["apply", "-f", &file]), &["group:77"]);
    assert_eq!(view(&place), before);
    place.end(Signal::KILL);
    place.start();
    assert_eq!(view(&place), before);
}

#[test]
fn only_the_difference_moves_and_what_others_made_stays() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    let keys = "flows = ['priority=7,arp,actions=NORMAL', 'priority=8,ip,actions=drop']";
    let file = write(&place, "lab.toml", &switch(&place, "sw0", keys, &["p1", "p2", "p3"]));
    place.suiro(&["apply", "-f", &file]);
    place.suiro(&["flow", "add", "sw0", "priority=50,ipv6,actions=drop"]);
    place.suiro(&["port", "add", "sw0", "mine", "--type", "vlink", "--peer", "sw9:x"]);
    let before = links(&place);
    let keys = "flows = ['priority=7,arp,actions=NORMAL', 'priority=9,ip,actions=drop']";
    let ports = ["p1 rate = '1G'", "p2", "p4"];
    let file = write(&place, "lab.toml", &switch(&place, "sw0", keys, &ports));
    let done = place.suiro(&["apply", "-f", &file]);
    let wanted = [
        "~ port p1 of switch sw0: rate none → 1G",
        "+ port p4 of switch sw0",
        "- port p3 of switch sw0; no frame passes any more",
        "+ flow of switch sw0: priority=9,ip,actions=drop",
        "- flow of switch sw0: priority=8,ip,actions=drop",
    ];
    assert_eq!(done.lines().skip(1).collect::<Vec<_>>(), wanted);
    let after = links(&place);
    assert_eq!(after[..2], before[..2], "p1 and p2 carry on");
    assert_eq!(names(&place), ["p1", "p2", "p4"]);
    assert_eq!(flows(&place, "sw0"), ["50,ipv6 drop", "7,arp NORMAL", "9,ip drop"]);
    assert_eq!(place.json(&["port", "show", "sw0", "mine"])["origin"], "api");
    // What somebody else made of a rule is not this part's to take.
    place.suiro(&["flow", "add", "sw0", "priority=9,ip,actions=NORMAL"]);
    let file = write(&place, "lab.toml", &switch(&place, "sw0", "", &["p1", "p2", "p4"]));
    place.suiro(&["apply", "-f", &file]);
    assert_eq!(flows(&place, "sw0"), ["50,ipv6 drop", "9,ip NORMAL"]);
}

#[test]
fn an_interface_moves_from_one_port_to_another_and_back_when_that_is_refused() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    let held = |name: &str, more: &str| {
        let keys = format!("{name} interface = 'eth0'\n{more}");
        switch(&place, "sw0", "", &[&keys])
    };
    let file = write(&place, "lab.toml", &held("a", ""));
    place.suiro(&["apply", "-f", &file]);
    let refusal = held("b", "") + "[[switch.port]]\nname = 'bad'\ntype = 'af_packet'\n";
    let bad = write(&place, "lab.toml", &refusal);
    refused(&place.says(&["apply", "-f", &bad]), &["port bad of switch sw0"]);
    assert_eq!(names(&place), ["eth0"]);
    assert_eq!(place.json(&["port", "show", "sw0", "a"])["carrier"], true);
    let file = write(&place, "lab.toml", &held("b", ""));
    place.suiro(&["apply", "-f", &file]);
    assert_eq!(names(&place), ["eth0"]);
    assert_eq!(place.json(&["port", "show", "sw0", "b"])["carrier"], true);
    // Another datapath id is another switch, with the same ports.
    let other = held("b", "").replace("name = 'sw0'", "name = 'sw0'\ndpid = '77'");
    let done = place.suiro(&["apply", "-f", &write(&place, "lab.toml", &other)]);
    assert!(done.contains("-/+ switch sw0: dpid") && done.contains("-/+ port b"), "{done}");
    assert_eq!(place.json(&["switch", "show", "sw0"])["dpid"], "0000000000000077");
    assert_eq!(place.json(&["port", "show", "sw0", "b"])["carrier"], true);
}

#[test]
fn what_two_owners_declare_is_a_conflict_that_names_both() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.configure("[[switch]]\nname = 'filed'\n");
    place.start();
    place.suiro(&["switch", "add", "made", "--fail-mode", "secure"]);
    let red = write(&place, "red.toml", &switch(&place, "sw0", "", &["p1 interface = 'eth0'"]));
    place.suiro(&["apply", "-f", &red]);
    let blue = switch(&place, "sw0", "", &["p2 interface = 'eth0'"])
        + "[[switch]]\nname = 'made'\n[[switch]]\nname = 'filed'\n";
    let blue = write(&place, "blue.toml", &blue);
    let said = place.says(&["apply", "-f", &blue]);
    refused(
        &said,
        &[
            "blue.toml:1: switch sw0 (part blue): add it: this name is already taken by switch sw0 (part red)",
            "interface eth0 is already taken by port p1 of switch sw0 (part red)",
            "switch made (part blue)",
            "(made through the API)",
            "switch filed (part blue)",
            "(configuration file)",
            "4 errors",
        ],
    );
    assert_eq!(place.json(&["part", "list"]).as_array().unwrap().len(), 2);
    let said = place.says(&["apply", "-f", &red, "--part", "file"]);
    refused(&said, &["the configuration file's", "--part"]);
    let taken = place.says(&["switch", "add", "sw0"]);
    refused(&taken, &["taken by switch sw0 (part red)"]);
    // What a start finds in both is refused by it, too.
    place.end(Signal::TERM);
    place.configure("[[switch]]\nname = 'sw0'\n");
    let said = place.node_says(&[]);
    refused(&said, &["switch sw0 (part red)", "configuration file, line 5", "--forget-conflicts"]);
}

#[test]
fn every_error_of_a_part_has_its_file_and_line_also_in_json() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    let text = "[node]\ncores = [0]\n[[switch]]\nname = 'sw0'\ncolour = 'red'\n[[switch.port]]\nname = 'p'\ntype = 'tpa'\n";
    let file = write(&place, "lab.toml", text);
    let said = place.says(&["apply", "-f", &file]);
    let at = |line: usize| format!("{file}:{line}: ");
    refused(
        &said,
        &[&at(1), &at(5), &at(8), "unknown key `colour`", "did you mean \"tap\"?", "3 errors"],
    );
    let said = place.says(&["--json", "apply", "-f", &file]);
    let body: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(body["error"]["at"], serde_json::json!({"file": file, "line": 1}));
    assert_eq!(body["others"].as_array().unwrap().len(), 2);
    let (status, answer) = place.http("PUT", "/v1/parts/lab?dry_run=true", "{\"text\": \"x\"}");
    assert_eq!(status, 400);
    assert!(answer.contains("part lab") && answer.contains("\"line\":1"), "{answer}");
    assert_eq!(place.http("DELETE", "/v1/parts/lab", "").0, 404);
    assert_eq!(place.says(&["apply", "-f", "/nowhere.toml"]).code, 2);
}

/// Adds a flow as soon as a switch can be talked to, however early that is.
fn program_at_once(socket: &Path) {
    let stream = (0..).find_map(|_| UnixStream::connect(socket).ok()).unwrap();
    let mut speaker = Speaker::greet(stream);
    speaker.send(&Message::FlowMod(FlowMod { priority: 77, ..FlowMod::default() }));
    let answer = speaker.ask(&Message::BarrierRequest);
    assert!(matches!(answer, Message::BarrierReply), "{answer:?}");
}

#[test]
fn what_a_controller_says_before_an_apply_has_ended_is_there_after_a_kill() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    let all: String = (0..40).map(|n| switch(&place, &format!("sw{n:02}"), "", &[])).collect();
    let file = write(&place, "many.toml", &all);
    let socket = place.path("run/sw00.mgmt");
    std::thread::scope(|scope| {
        let controller = scope.spawn(|| program_at_once(&socket));
        place.suiro(&["apply", "-f", &file]);
        controller.join().unwrap();
    });
    assert_eq!(flows(&place, "sw00"), ["77, drop"]);
    // It has nothing to do, and returns when all that came before is on the disk.
    place.suiro(&["apply", "-f", &file]);
    place.end(Signal::KILL);
    place.start();
    assert_eq!(flows(&place, "sw00"), ["77, drop"]);
}

/// The versions that a killed node may come back with: five ports each, and a rule for each port.
fn version(place: &Place, letter: char) -> String {
    let ports: Vec<String> = (1..=5).map(|n| format!("{letter}{n}")).collect();
    let rules: Vec<String> =
        (1..=5).map(|n| format!("'priority={n},in_port={letter}{n},actions=drop'")).collect();
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    switch(place, "sw0", &format!("flows = [{}]", rules.join(", ")), &ports)
}

#[test]
fn a_node_killed_in_the_middle_of_an_apply_comes_back_with_one_version_and_nothing_of_the_other() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    let first = write(&place, "lab.toml", &version(&place, 'a'));
    place.suiro(&["apply", "-f", &first]);
    let mut old = 'a';
    for (round, new) in ('b'..='g').enumerate() {
        let file = write(&place, "lab.toml", &version(&place, new));
        let mut apply = Command::new(acceptance::suiro());
        let apply = apply.args(["apply", "-f", &file]).env("SUIRO_API", place.socket());
        let mut apply = apply.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // In the first rounds amid the new ports, then among the rules and the ports that go.
        match round {
            0..5 => {
                let line = format!("port {new}{} of switch sw0: open", round + 1);
                until(&line, || place.log().contains(&line));
            }
            // They may all be gone by the next look.
            _ => until("an old port goes", || {
                let there = names(&place);
                there.contains(&format!("{new}5")) && there.len() < 10
            }),
        }
        place.end(Signal::KILL);
        apply.wait().unwrap();
        place.start();
        let found = names(&place);
        let version = |letter: char| (1..=5).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
        assert!(found == version(old) || found == version(new), "{found:?}");
        let rules = flows(&place, "sw0");
        assert_eq!(rules.len(), 5, "round {round}: {rules:?}");
        let shown = place.json(&["port", "list", "sw0"]);
        let ports = shown.as_array().unwrap();
        assert_eq!(ports.len(), 5, "{shown}");
        for port in ports {
            let number = format!("in_port={} ", port["number"]);
            let of = |rule: &&String| rule.contains(&number);
            assert_eq!(rules.iter().filter(of).count(), 1, "{rules:?} {shown}");
        }
        place.suiro(&["apply", "-f", &file]);
        assert_eq!(names(&place), version(new));
        old = new;
    }
}
