//! A node's life as its user sees it: guests talk, it is killed, everything is back; interfaces and files come and go.

use acceptance::{Place, privileged, sh, until};
use rustix::process::Signal;
use std::time::Instant;
use testbed::unbroken;

/// One switch with a TAP for each of two guests, who have addresses.
pub(super) fn two_guests(place: &Place) {
    place.suiro(&["switch", "add", "sw0"]);
    for (guest, address) in [("g1", "10.0.0.1/24"), ("g2", "10.0.0.2/24")] {
        place.suiro(&[
            "port",
            "add",
            "sw0",
            guest,
            "--type",
            "tap",
            "--netns",
            &place.guest(guest),
        ]);
        place.address(guest, guest, address);
    }
}

fn flow_texts(place: &Place) -> Vec<String> {
    let flows = place.json(&["flow", "list", "sw0"]);
    let describe = |flow: &serde_json::Value| {
        format!("{} {} {}", flow["priority"], flow["match"], flow["actions"])
    };
    let mut texts: Vec<_> = flows.as_array().unwrap().iter().map(describe).collect();
    texts.sort();
    texts
}

/// What must be the same after a restart: without counters and times.
fn ports(place: &Place) -> Vec<String> {
    let ports = place.json(&["port", "list"]);
    let describe = |port: &serde_json::Value| {
        format!(
            "{} {} {} {} up {}",
            port["switch"], port["name"], port["number"], port["type"], port["up"]
        )
    };
    ports.as_array().unwrap().iter().map(describe).collect()
}

#[test]
fn after_kill_9_switches_ports_rules_and_guests_addresses_are_back() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1", "g2"]);
    place.start();
    two_guests(&place);
    place.suiro(&["switch", "mod", "sw0", "--fail-mode", "secure"]);
    place.suiro(&["meter", "add", "sw0", "meter=1,kbps,band=type=drop,rate=100000"]);
    place.suiro(&["group", "add", "sw0", "group_id=1,type=indirect,bucket=output:2"]);
    let flows = [
        "arp,actions=NORMAL",
        "priority=9,ip,nw_dst=10.0.0.2,actions=meter:1,group:1",
        "priority=9,ip,nw_dst=10.0.0.1,actions=output:g1",
    ];
    place.suiro(&[&["flow", "add", "sw0"][..], &flows].concat());
    assert!(place.reaches("g1", "10.0.0.2"), "{}", place.log());
    let (flows_before, ports_before) = (flow_texts(&place), ports(&place));
    place.end(Signal::KILL);
    let start = Instant::now();
    place.start();
    assert_eq!(flow_texts(&place), flows_before);
    assert_eq!(ports(&place), ports_before);
    assert_eq!(place.json(&["switch", "show", "sw0"])["fail_mode"], "secure");
    assert!(place.suiro(&["meter", "list", "sw0"]).contains("rate=100000"));
    assert!(place.reaches("g1", "10.0.0.2"), "{}", place.log());
    println!("back after {} ms", start.elapsed().as_millis());
    place.suiro(&["flow", "del", "sw0", "--strict", "priority=9,ip,nw_dst=10.0.0.1"]);
    place.suiro(&["port", "del", "sw0", "g2"]);
    place.end(Signal::KILL);
    place.start();
    assert_eq!(
        (flow_texts(&place).len(), ports(&place).len()),
        (2, 1),
        "what was deleted stays deleted"
    );
}

#[test]
fn a_clean_end_leaves_taps_and_no_sockets_and_a_purge_leaves_nothing() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1", "g2"]);
    place.start();
    two_guests(&place);
    let sockets = [place.socket(), place.path("run/sw0.mgmt")];
    assert!(sockets.iter().all(|socket| socket.exists()));
    place.end(Signal::TERM);
    assert!(!sockets.iter().any(|socket| socket.exists()));
    sh(&["ip", "-n", &place.guest("g1"), "link", "show", "g1"]);
    for of_member in ["domain.identity", "domain.epoch"] {
        std::fs::write(place.path("state").join(of_member), "x").unwrap();
    }
    let said = place.node_says(&["--purge"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("removed TAP g1") && said.out.contains("state.redb"), "{}", said.out);
    assert!(!place.path("state/state.redb").exists());
    let left = std::process::Command::new("ip")
        .args(["-n", &place.guest("g1"), "link", "show", "g1"])
        .output()
        .unwrap();
    assert!(!left.status.success());
}

#[test]
fn an_interface_that_vanishes_is_a_fault_with_a_remedy_and_its_return_ends_that() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    let veth = |place: &Place| {
        sh(&[
            "ip",
            "-n",
            &place.netns,
            "link",
            "add",
            "v1",
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            &place.guest("g1"),
        ]);
        sh(&["ip", "-n", &place.netns, "link", "set", "v1", "up"]);
        sh(&["ip", "-n", &place.guest("g1"), "link", "set", "eth0", "up"]);
    };
    veth(&place);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["port", "add", "sw0", "v1", "--type", "af_packet"]);
    let show = |place: &Place| place.json(&["port", "show", "sw0", "v1"]);
    until("the port is up", || show(&place)["carrier"] == true);
    sh(&["ip", "-n", &place.netns, "link", "del", "v1"]);
    until("the port is at fault", || show(&place)["fault"].is_object());
    let fault = show(&place)["fault"].clone();
    assert_eq!(fault["thing"], "port v1 of switch sw0");
    assert!(fault["remedy"].as_str().unwrap().contains("create"), "{fault}");
    assert_eq!(show(&place)["carrier"], false);
    veth(&place);
    until("the port is up again", || {
        show(&place)["carrier"] == true && show(&place)["fault"].is_null()
    });
    place.end(Signal::KILL);
    sh(&["ip", "-n", &place.netns, "link", "del", "v1"]);
    place.start();
    assert!(show(&place)["fault"].is_object(), "a node starts without the interface of a port");
    veth(&place);
    until("the port is up once more", || show(&place)["carrier"] == true);
}

#[test]
fn a_namespace_made_anew_gets_its_port_back() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["port", "add", "sw0", "g1", "--type", "tap", "--netns", &place.guest("g1")]);
    sh(&["ip", "netns", "del", &place.guest("g1")]);
    let show = |place: &Place| place.json(&["port", "show", "sw0", "g1"]);
    until("the port is at fault", || show(&place)["fault"].is_object());
    sh(&["ip", "netns", "add", &place.guest("g1")]);
    until("the port is back", || show(&place)["fault"].is_null() && show(&place)["up"] == true);
    sh(&["ip", "-n", &place.guest("g1"), "link", "show", "g1"]);
}

#[test]
fn a_vlink_joins_two_switches_in_whatever_order_its_ends_come() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1", "g2"]);
    place.start();
    for (switch, guest, address) in [("sw0", "g1", "10.0.0.1/24"), ("sw1", "g2", "10.0.0.2/24")] {
        place.suiro(&["switch", "add", switch]);
        place.suiro(&[
            "port",
            "add",
            switch,
            guest,
            "--type",
            "tap",
            "--netns",
            &place.guest(guest),
        ]);
        place.address(guest, guest, address);
    }
    let waiting = place.suiro(&["port", "add", "sw0", "a", "--type", "vlink", "--peer", "sw1:b"]);
    assert!(waiting.contains("sw1:b is not there"), "{waiting}");
    assert!(!place.reaches("g1", "10.0.0.2"));
    place.suiro(&["port", "add", "sw1", "b", "--type", "vlink", "--peer", "sw0:a"]);
    assert!(place.reaches("g1", "10.0.0.2"), "{}", place.log());
    place.suiro(&["port", "del", "sw1", "b"]);
    assert_eq!(place.json(&["port", "show", "sw0", "a"])["carrier"], false);
    place.suiro(&["port", "add", "sw1", "b", "--type", "vlink", "--peer", "sw0:a"]);
    place.end(Signal::KILL);
    place.start();
    assert!(place.reaches("g1", "10.0.0.2"), "{}", place.log());
}

const DECLARED: &str = "[[switch]]\nname = 'sw0'\nflows = ['priority=7,arp,actions=NORMAL']\n";

#[test]
fn the_file_is_read_again_on_sighup_and_what_the_api_made_stays() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1", "g2"]);
    place.configure(DECLARED);
    place.start();
    place.suiro(&["switch", "add", "made"]);
    place.suiro(&["port", "add", "sw0", "g2", "--type", "tap", "--netns", &place.guest("g2")]);
    let port =
        format!("[[switch.port]]\nname = 'g1'\ntype = 'tap'\nnetns = '{}'\n", place.guest("g1"));
    place.configure(&format!("{DECLARED}{port}[[switch]]\nname = 'sw1'\nfail_mode = 'secure'\n"));
    place.signal(Signal::HUP);
    until("the new switch is there", || place.says(&["switch", "show", "sw1"]).code == 0);
    assert_eq!(ports(&place).len(), 2);
    assert_eq!(flow_texts(&place).len(), 1);
    place.configure("[[switch]]\nname = 'sw0'\ncolour = 'red'\n");
    place.signal(Signal::HUP);
    until("the wrong file is reported", || place.log().contains("unknown key `colour`"));
    assert_eq!(
        place.json(&["switch", "list"]).as_array().unwrap().len(),
        3,
        "a wrong file changes nothing"
    );
    place.configure("");
    place.signal(Signal::HUP);
    until("only what the API made is left", || {
        place.json(&["switch", "list"]).as_array().unwrap().len() == 1
    });
}

#[test]
fn a_reload_of_a_broken_file_fails_and_says_why_and_a_restart_runs_the_last_that_worked() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.configure(DECLARED);
    let good = place.path("node.toml.good").display().to_string();
    place.start_as(&["--last-good", &good]);
    assert_eq!(place.suiro(&["reload"]).trim(), format!("{} is in force", place.file().display()));
    place.configure("[[switch]]\nname = 'sw0'\ncolour = 'red'\n");
    let said = place.says(&["reload"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("unknown key `colour`"), "{}", said.err);
    let told = |place: &Place| {
        let status = place.suiro(&["status"]);
        assert!(status.contains("NOT IN FORCE: the configuration file"), "{status}");
        assert!(status.contains("unknown key `colour`"), "{status}");
    };
    told(&place);
    place.end(Signal::KILL);
    assert_eq!(place.node_says(&[]).code, 1, "without a last good file a broken one is an end");
    place.start_as(&["--last-good", &good]);
    told(&place);
    assert_eq!(flow_texts(&place).len(), 1, "the last that worked is in force");
    place.configure(DECLARED);
    place.suiro(&["reload"]);
    assert!(!place.suiro(&["status"]).contains("NOT IN FORCE"));
    let audit = ": POST /v1/node/reload: done (200)";
    assert!(place.log().contains(audit), "{}", place.log());
}

#[test]
fn what_was_made_through_the_api_and_contradicts_the_file_is_an_error_that_names_both() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    place.end(Signal::TERM);
    place.configure(DECLARED);
    let said = place.node_says(&[]);
    assert_eq!(said.code, 1);
    for part in
        ["switch sw0", "configuration file, line 5", "made through the API", "--forget-conflicts"]
    {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn systemd_hears_that_the_node_is_ready_alive_and_ending() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    let path = place.path("notify");
    let notices = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    notices.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    place.start_with(&[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")]);
    let mut heard = String::new();
    let mut hear_until = |word: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(word) {
            let length = unbroken(|| notices.recv(&mut buffer))
                .unwrap_or_else(|error| panic!("no {word} ({error}) after:\n{heard}"));
            heard += &format!("{}\n", String::from_utf8_lossy(&buffer[..length]));
        }
    };
    ["READY=1", "WATCHDOG=1"].into_iter().for_each(&mut hear_until);
    place.end(Signal::TERM);
    hear_until("STOPPING=1");
}

#[test]
fn a_rule_that_timed_out_or_was_deleted_with_all_others_does_not_come_back() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["flow", "add", "sw0", "idle_timeout=1,ip,actions=drop", "arp,actions=drop"]);
    until("one rule timed out", || flow_texts(&place).len() == 1);
    place.end(Signal::TERM);
    place.start();
    assert_eq!(flow_texts(&place).len(), 1);
    place.suiro(&["group", "add", "sw0", "group_id=1,type=all"]);
    for kind in ["flow", "group", "meter"] {
        place.suiro(&[kind, "del", "sw0", "--all"]);
    }
    place.end(Signal::TERM);
    place.start();
    assert_eq!(flow_texts(&place).len(), 0);
    assert_eq!(place.suiro(&["group", "list", "sw0"]), "");
}

#[test]
fn what_groups_and_meters_list_can_be_added_again() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["switch", "add", "sw1"]);
    let meters = ["meter=1,kbps,bands=type=drop,rate=1000", "meter=2,flags=0,bands="];
    place.suiro(&[&["meter", "add", "sw0"][..], &meters].concat());
    let groups = ["group_id=1,type=select,bucket=weight:5,output:1,bucket=output:2"];
    place.suiro(&[&["group", "add", "sw0"][..], &groups].concat());
    for kind in ["meter", "group"] {
        let listed = place.suiro(&[kind, "list", "sw0"]);
        let lines: Vec<_> = listed.lines().collect();
        place.suiro(&[&[kind, "add", "sw1"][..], &lines].concat());
        assert_eq!(place.suiro(&[kind, "list", "sw1"]), listed);
        let with_counters = place.suiro(&[kind, "list", "sw0", "--stats"]);
        assert!(with_counters.contains("duration"), "{with_counters}");
    }
}

#[test]
fn a_word_that_a_deletion_does_not_obey_deletes_nothing() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["flow", "add", "sw0", "priority=1,ip,actions=drop", "arp,actions=drop"]);
    place.suiro(&["group", "add", "sw0", "group_id=1,type=all"]);
    place.suiro(&["meter", "add", "sw0", "meter=1,kbps,bands=type=drop,rate=1000"]);
    let all = || ["flow", "group", "meter"].map(|kind| place.suiro(&[kind, "list", "sw0"]));
    let before = all().map(|list| list.lines().count());
    for (kind, text, word) in [
        ("flow", "priority=1", "priority=1"),
        ("flow", "arp,hard_timeout=10", "hard_timeout=10"),
        ("flow", "send_flow_rem", "send_flow_rem"),
        ("flow", "n_packets=0", "n_packets=0"),
        ("flow", "", "--all"),
        ("flow", "table=255", "--all"),
        ("group", "type=all", "type=all"),
        ("group", "", "--all"),
        ("meter", "kbps", "kbps"),
        ("meter", "", "--all"),
    ] {
        let said = place.says(&[kind, "del", "sw0", text]);
        assert!(said.code == 1 && said.err.contains(word), "{kind} {text}: {}", said.err);
        assert!(said.err.contains("remedy: "), "{}", said.err);
    }
    let said = place.says(&["flow", "mod", "sw0", "priority=1,ip,actions=output:1"]);
    assert!(said.code == 1 && said.err.contains("--strict"), "{}", said.err);
    let said = place.says(&["flow", "list", "sw0", "priority=1"]);
    assert!(said.code == 1 && said.err.contains("priority=1"), "{}", said.err);
    assert_eq!(all().map(|list| list.lines().count()), before);
    place.suiro(&["flow", "del", "sw0", "--strict", "priority=1,ip"]);
    assert_eq!(flow_texts(&place).len(), 1);
}

#[test]
fn cores_of_the_command_line_stand_before_the_files_also_after_a_reload() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    let said = place.node_says(&["--cores", "1023"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("core 1023") && said.err.contains("choose from: 0"), "{}", said.err);
    let last = std::thread::available_parallelism().unwrap().get() - 1;
    place.start_as(&["--cores", &last.to_string()]);
    let core = |place: &Place| place.json(&["top", "--once"])["workers"][0]["core"].as_u64();
    assert_eq!(core(&place), Some(last as u64));
    place.suiro(&["reload"]);
    assert!(!place.log().contains("restart suiro"), "{}", place.log());
    place.configure("spin_us = 7\n");
    place.suiro(&["reload"]);
    assert!(place.log().contains("restart suiro"), "{}", place.log());
}

#[test]
fn no_guest_gets_the_number_that_rules_of_one_that_went_still_name() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1", "g2", "g3", "g4"]);
    place.start();
    two_guests(&place);
    place.suiro(&["flow", "add", "sw0", "in_port=1,actions=output:2"]);
    let add = |place: &Place, guest: &str| {
        let netns = place.guest(guest);
        place.suiro(&["port", "add", "sw0", guest, "--type", "tap", "--netns", &netns]);
        place.json(&["port", "show", "sw0", guest])["number"].as_u64().unwrap()
    };
    place.suiro(&["port", "del", "sw0", "g2"]);
    assert_eq!(add(&place, "g3"), 3);
    place.suiro(&["port", "del", "sw0", "g3"]);
    place.end(Signal::KILL);
    place.start();
    assert_eq!(add(&place, "g4"), 4, "the same over a restart");
    let netns = place.guest("g2");
    let asked = ["port", "add", "sw0", "g2", "--type", "tap", "--netns", &netns, "--number", "2"];
    place.suiro(&asked);
    place.suiro(&["port", "del", "sw0", "g4"]);
    let last = [
        "port",
        "add",
        "sw0",
        "g4",
        "--type",
        "tap",
        "--netns",
        &place.guest("g4"),
        "--number",
        "65279",
    ];
    place.suiro(&last);
    place.suiro(&["flow", "add", "sw0", "priority=7,in_port=5,actions=drop"]);
    assert_eq!(add(&place, "g3"), 6, "5 may have been a port's by now, and a rule names it");
}

#[test]
fn each_state_directory_has_ids_of_its_own_and_keeps_them() {
    if !privileged() {
        return;
    }
    let [mut one, mut other] = [Place::new(&[]), Place::new(&[])];
    let dpid = |place: &mut Place| {
        place.start();
        let view = place.json(&["switch", "show", "sw1"]);
        let status = place.suiro(&["status"]);
        place.end(Signal::TERM);
        (view["dpid"].as_str().unwrap().to_owned(), status.contains("COPIED"))
    };
    for place in [&mut one, &mut other] {
        place.configure("[[switch]]\nname = 'sw1'\n");
    }
    let (first, is_copied) = dpid(&mut one);
    assert!(!is_copied);
    assert_ne!(dpid(&mut other).0, first, "of one machine");
    assert_eq!(dpid(&mut one).0, first);
    let file = one.path("state/identity");
    let text = std::fs::read_to_string(&file).unwrap();
    let copied: String = text.lines().filter(|line| line.starts_with("node_id")).collect();
    std::fs::write(
        &file,
        format!("{copied}\nmachine_id = \"another\"\nfirmware_id = \"another\"\n"),
    )
    .unwrap();
    let (copy, is_copied) = dpid(&mut one);
    assert_eq!(copy, first, "a copy is the same node, and says so");
    if std::fs::read_to_string("/etc/machine-id").is_ok_and(|id| !id.trim().is_empty()) {
        assert!(one.log().contains("was made on another machine"), "{}", one.log());
        assert!(is_copied, "in its status, too");
    }
}

#[test]
fn a_second_node_in_the_same_directory_is_refused_and_the_first_goes_on() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    let pid = place.start();
    let said = place.node_says(&[]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains(&format!("process {pid}")) && said.err.contains("remedy: "),
        "{}",
        said.err
    );
    place.suiro(&["status"]);
}

#[test]
fn only_the_threads_of_ports_steering_and_offload_keep_privileges() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    let pid = place.start();
    let mut names = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = task.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        let (name, status) = (read("comm").trim().to_owned(), read("status"));
        let held = |set: &str| !status.contains(&format!("{set}:\t0000000000000000"));
        assert!(status.contains("NoNewPrivs:\t1"), "{name}");
        assert_eq!(
            held("CapEff") || held("CapPrm") || held("CapInh"),
            ["suiro-ports", "suiro-steer", "suiro-offload", "suiro-guests"]
                .contains(&name.as_str()),
            "{name}: {status}"
        );
        names.push(name);
    }
    for expected in [
        "suiro-ports",
        "suiro-steer",
        "suiro-offload",
        "suiro-scout",
        "suiro-worker-0",
        "suiro-store",
        "suiro-events",
        "suiro-control",
    ] {
        assert!(names.iter().any(|name| name == expected), "{expected} is not among {names:?}");
    }
}
