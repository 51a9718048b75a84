//! Captures as their users have them: a file that tshark reads, one id for a packet at each point, and exact counts.

pub use acceptance::tshark;
use acceptance::{Background, Kind, Lab, privileged, suiro, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A guest on a TAP of switch `sw0`, a vlink to `sw1`, which rewrites what passes, and a guest there on a packet socket.
fn two_switches() -> Lab {
    let lab = Lab::running(&["g1", "g2"]);
    for (switch, port, peer) in [("sw0", "out", "sw1:in"), ("sw1", "in", "sw0:out")] {
        lab.suiro(&["switch", "add", switch, "--fail-mode", "secure"]);
        lab.suiro(&["port", "add", switch, port, "--type", "vlink", "--peer", peer]);
    }
    lab.connect("sw0", "g1", Kind::Tap);
    lab.connect("sw1", "g2", Kind::AfPacket);
    for (switch, one, other) in [("sw0", "out", "g1"), ("sw1", "in", "g2")] {
        for (from, to) in [(one, other), (other, one)] {
            let rewrite = "mod_nw_tos:32,dec_ttl,mod_dl_src:02:00:00:00:00:77";
            let rule = format!("priority=9,ip,in_port={from},actions={rewrite},output:{to}");
            let arp = format!("priority=9,arp,in_port={from},actions=output:{to}");
            lab.suiro(&["flow", "add", switch, &rule, &arp]);
        }
    }
    until("the guests talk", || lab.talk("g1", "g2"));
    lab
}

/// A capture that runs beside the test and has begun.
pub fn begin(lab: &Lab, words: &[&str]) -> Background {
    let before = captures(lab).len();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.netns]).arg(suiro());
    command.arg("--api").arg(lab.socket()).arg("capture").args(words);
    let capture = Background::start(&mut command);
    until("the capture runs", || captures(lab).len() > before);
    capture
}

fn captures(lab: &Lab) -> Vec<Value> {
    let (status, body) = lab.http("GET", "/v1/captures", "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn a_packet_has_one_id_at_each_point_whatever_is_rewritten_on_its_way() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let file = lab.path("way.pcapng");
    let name = file.display().to_string();
    let points = ["sw0:g1:rx", "sw0:out:tx", "sw1:in:rx", "sw1:g2:tx"];
    let capture = begin(&lab, &[&points[..], &["-w", &name]].concat());
    assert_eq!(lab.exchange("g1", "g2", 100), 100);
    capture.end(Signal::INT);
    let requests = tshark(
        &file,
        "icmp.type == 8",
        &["frame.packet_id", "frame.interface_name", "ip.ttl", "frame.packet_flags_direction"],
    );
    let mut ways = BTreeMap::<String, Vec<(String, String)>>::new();
    for row in requests {
        ways.entry(row[0].clone()).or_default().push((row[1].clone(), row[2].clone()));
    }
    assert_eq!(ways.len(), 100, "as many ids as pings");
    let wanted: Vec<(String, String)> = points
        .iter()
        .zip([64, 63, 63, 62])
        .map(|(point, ttl)| ((*point).to_owned(), ttl.to_string()))
        .collect();
    for (id, way) in ways {
        assert_eq!(way, wanted, "packet {id}");
    }
    let all = Command::new("tshark").arg("-V").arg("-r").arg(&file).output().unwrap();
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
    assert!(!String::from_utf8_lossy(&all.stdout).contains("Malformed"));
}

#[test]
fn what_is_dropped_is_seen_with_its_reason_and_what_was_counted_is_in_the_file() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    lab.suiro(&["flow", "add", "sw1", "priority=99,icmp,actions=drop"]);
    let file = lab.path("drops.pcapng");
    let name = file.display().to_string();
    let capture = begin(&lab, &["drops:sw1", "sw0:g1:rx", "-w", &name, "--snap", "60"]);
    assert_eq!(lab.exchange("g1", "g2", 20), 0);
    let said = capture.end(Signal::INT);
    assert!(said.contains(" matched, ") && said.contains(" 0 lost for want of room"), "{said}");
    let dropped = tshark(
        &file,
        "icmp && frame.comment contains \"drop=\"",
        &["frame.comment", "frame.len", "frame.cap_len"],
    );
    assert_eq!(dropped.len(), 20);
    for row in dropped {
        assert!(row[0].starts_with("drop=by_rule switch=sw1 port=in core="), "{row:?}");
        assert_eq!((&*row[1], &*row[2]), ("98", "60"));
    }
    let matched: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(tshark(&file, "frame", &["frame.number"]).len() as u64, matched);
}

#[test]
fn a_capture_ends_when_it_has_enough_and_with_whoever_reads_it() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let pings = acceptance::Pings::start(&lab, "g1", "g2");
    let name = lab.path("five.pcapng").display().to_string();
    let said = lab.says(&["capture", "sw0", "-w", &name, "--count", "5"]);
    assert!(said.err.contains(" matched, 5 written, 0 lost"), "{}", said.err);
    assert_eq!(tshark(Path::new(&name), "frame", &["frame.number"]).len(), 5);
    let killed = begin(&lab, &["sw0:g1", "drops"]);
    killed.end(Signal::KILL);
    until("the node ends it", || captures(&lab).is_empty());
    let events = lab.suiro(&["events"]);
    assert!(events.contains("added capture 1: sw0 by user 0"), "{events}");
    assert!(events.contains("removed capture 2: "), "{events}");
    pings.end_without_loss();
}

#[test]
fn points_that_are_not_there_are_refused_with_those_that_are() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    for point in ["sw0:nope", "nope", "drops:nope", "sw0:g1:up", "a:b:c:d"] {
        let said = lab.says(&["capture", point, "-w", "-"]);
        assert!(said.err.contains(&format!("capture point {point}: find it: ")), "{}", said.err);
        assert!(said.err.contains("drops, sw0:g1, sw0:out, sw1:g2, sw1:in"), "{}", said.err);
        assert_eq!((said.code, &*said.out), (1, ""), "{point}");
    }
}

#[test]
fn a_match_takes_its_frames_alone_and_events_stand_between_them() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let file = lab.path("match.pcapng");
    let name = file.display().to_string();
    let words = ["sw0:g1", "--match", "icmp,nw_dst=10.0.0.2", "--events", "-w", &name];
    let capture = begin(&lab, &words);
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
    let before = lab.suiro(&["events"]).matches("rules sw0").count();
    lab.suiro(&["flow", "add", "sw0", "priority=3,udp,actions=drop"]);
    let told = || lab.suiro(&["events"]).matches("rules sw0").count() > before;
    until("the change is told", told);
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
    let said = capture.end(Signal::INT);
    assert!(said.starts_with("20 frames matched, 20 written, 0 lost"), "{said}");
    assert_eq!(tshark(&file, "icmp.type == 8", &["frame.number"]).len(), 20);
    let rows = tshark(&file, "frame", &["_ws.col.Protocol"]);
    let is_event = |row: &Vec<String>| row[0] == "systemd Journal";
    assert!(rows.iter().any(is_event) && !is_event(&rows[rows.len() - 1]), "{rows:?}");
    let told = tshark(&file, "systemd_journal.message contains \"rules sw0\"", &["frame.number"]);
    // Rules are told a moment later: those that were there before may be, too.
    assert!(!told.is_empty(), "{rows:?}");
    let said = lab.says(&["capture", "sw0:g1", "--match", "tcp,dport=80", "-w", "-"]);
    assert!(
        said.err.contains("capture: read its match") && said.err.contains("dport"),
        "{}",
        said.err
    );
}

#[test]
fn wireshark_lists_the_points_and_captures_there() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let home = lab.path("home");
    let directory = home.join(".config/wireshark/extcap");
    std::fs::create_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink(suiro(), directory.join("suirocap")).unwrap();
    let tshark = |words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["30", "tshark"]).args(words);
        command.env("HOME", &home).env_remove("XDG_CONFIG_HOME").env("SUIRO_API", lab.socket());
        let output = command.output().unwrap();
        (output.status, String::from_utf8(output.stdout).unwrap())
    };
    let (_, listed) = tshark(&["-D"]);
    let of_switch = ["sw0", "drops:sw0", "controller:sw0", "openflow:sw0"];
    let of_ports = ["sw0:g1", "sw0:out", "sw1:g2", "sw1:in", "link:out", "link:in"];
    for point in of_switch.into_iter().chain(of_ports).chain(["drops", "sw1"]) {
        assert!(listed.contains(&format!("suiro-{point} (suiro: ")), "{point} in {listed}");
    }
    let pings = acceptance::Pings::start(&lab, "g1", "g2");
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "icmp.type"];
    let capture = ["-i", "suiro-sw0:g1", "-f", "icmp", "-c", "4"];
    let (status, rows) = tshark(&[&capture[..], &fields].concat());
    assert!(status.success(), "{rows}");
    let rows: Vec<&str> = rows.lines().collect();
    let (ping, answer) = ("sw0:g1\t8", "sw0:g1\t0");
    assert!(
        rows == [ping, answer, ping, answer] || rows == [answer, ping, answer, ping],
        "{rows:?}"
    );
    until("the node ends it", || captures(&lab).is_empty());
    pings.end_without_loss();
}

#[test]
fn a_filter_of_libpcaps_takes_its_frames_and_one_that_would_not_end_is_refused() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let file = lab.path("filter.pcapng");
    let name = file.display().to_string();
    let filter = "icmp[icmptype] == icmp-echo and len > 90";
    let capture = begin(&lab, &["sw0:g1", "--filter", filter, "-m", "ip", "-w", &name]);
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
    let said = capture.end(Signal::INT);
    assert!(said.starts_with("10 frames matched, 10 written, 0 lost"), "{said}");
    assert_eq!(tshark(&file, "icmp.type == 8", &["frame.number"]).len(), 10);
    let listed = Command::new("capinfos").arg("-I").arg(&file).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains(&format!("ip and {filter}")), "{listed}");
    let said = lab.says(&["capture", "sw0:g1", "--filter", "tcp prot 80", "-w", "-"]);
    let cause = "filter \"tcp prot 80\": compile it: ";
    assert!(said.code == 2 && said.err.contains(cause), "{}", said.err);
    for (program, cause) in [
        ("[[5,0,0,4294967295],[6,0,0,1]]", "instruction 0 leads past the end"),
        ("[[32,0,0,4294963200],[6,0,0,1]]", "is out of bounds"),
        ("[[70000,0,0,0]]", "more bits than it may"),
        ("[]", "0 instructions"),
    ] {
        let filter = format!("{{\"text\":\"x\",\"program\":{program}}}");
        let body = format!("{{\"points\":[\"sw0\"],\"filter\":{filter}}}");
        let (status, said) = lab.http("POST", "/v1/captures", &body);
        assert!((400..500).contains(&status) && said.contains(cause), "{status} {said}");
    }
}

#[test]
fn payload_is_cut_off_and_headers_stay_whole() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let file = lab.path("heads.pcapng");
    let name = file.display().to_string();
    let capture = begin(&lab, &["sw0:g1", "--payload", "0", "-w", &name]);
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
    capture.end(Signal::INT);
    let rows = tshark(&file, "icmp", &["frame.len", "frame.cap_len", "icmp.seq"]);
    assert!(rows.len() == 20 && rows.iter().all(|row| row[..2] == ["98", "42"]), "{rows:?}");
}

#[test]
fn what_was_lost_before_anybody_looked_is_there_with_its_reason() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    lab.suiro(&["flow", "add", "sw1", "priority=99,icmp,actions=drop"]);
    assert_eq!(lab.exchange("g1", "g2", 20), 0);
    let file = lab.path("flight.pcapng");
    let name = file.display().to_string();
    let lost = |words: &[&str]| {
        let said = lab.says(&[words, &["-w", &name]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        tshark(&file, "icmp", &["frame.comment", "frame.len"])
    };
    let rows = lost(&["flight", "sw1", "--drops", "-m", "icmp"]);
    assert_eq!(rows.len(), 20);
    for row in rows {
        assert!(row[0].starts_with("drop=by_rule switch=sw1 port=in core="), "{row:?}");
        assert_eq!(row[1], "98");
    }
    assert_eq!(lost(&["flight", "sw0", "--drops", "-m", "icmp"]).len(), 0);
    // Those of before, and those that come.
    let capture = begin(&lab, &["drops", "--past", "1h", "-m", "icmp", "-w", &name]);
    assert_eq!(lab.exchange("g1", "g2", 10), 0);
    let said = capture.end(Signal::INT);
    assert!(said.starts_with("30 frames matched, 30 written, 0 lost"), "{said}");
    let said = lab.says(&["capture", "controller:sw0", "--past", "1s", "-w", "-"]);
    assert!(said.err.contains("look back: only of losses and of frames"), "{}", said.err);
}

#[test]
fn a_sample_of_what_passed_is_there_and_losses_beside_it() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    // At once no more than a ping's socket holds the answers of.
    (0..4).for_each(|_| assert_eq!(lab.exchange("g1", "g2", 50), 50));
    let file = lab.path("passed.pcapng");
    let name = file.display().to_string();
    let passed = [("sw1", "g2", "in"), ("sw0", "g1", "out")].map(|(switch, port, to)| {
        let said = lab.says(&["flight", switch, "-m", "icmp", "-w", &name]);
        assert_eq!(said.code, 0, "{}", said.err);
        let rows = tshark(&file, "icmp", &["frame.comment", "frame.interface_name"]);
        for row in &rows {
            let from = format!("switch={switch} port={port} core=");
            assert!(row[0].starts_with(&from), "{row:?}");
            assert!(row[0].contains(" table=0 ") && row[0].contains(" rung="), "{row:?}");
            assert!(row[0].ends_with(&format!(" to={to}")), "{row:?}");
            assert_eq!(row[1], format!("passed:{switch}"));
        }
        rows.len()
    });
    // Of 200 pings and 200 answers; where one worker takes both, all may be of one kind.
    assert!((10..=15).contains(&(passed[0] + passed[1])), "{passed:?}");
    let begun = begin(&lab, &["sw0:g1:rx", "--past", "1h", "-m", "icmp", "-w", &name]);
    let said = begun.end(Signal::INT);
    assert!(said.starts_with(&format!("{} frames matched", passed[1])), "{said}");
}

#[test]
fn one_packet_in_so_many_is_the_same_at_each_point_and_a_flow_has_its_first_frames() {
    if !privileged() {
        return;
    }
    let lab = two_switches();
    let name = lab.path("some.pcapng").display().to_string();
    let points = ["sw0:g1:rx", "sw1:g2:tx", "-m", "icmp", "-w", &name];
    let ids = |point: &str| {
        let filter = format!("frame.interface_name == \"{point}\"");
        tshark(Path::new(&name), &filter, &["frame.packet_id"])
    };
    let capture = begin(&lab, &[&points[..], &["--every", "4"]].concat());
    assert_eq!(lab.exchange("g1", "g2", 100), 100);
    capture.end(Signal::INT);
    let (came, left) = (ids("sw0:g1:rx"), ids("sw1:g2:tx"));
    assert!(came == left && (5..60).contains(&came.len()), "{} and {}", came.len(), left.len());
    let capture = begin(&lab, &[&points[..], &["--first", "3"]].concat());
    assert_eq!(lab.exchange("g1", "g2", 100), 100);
    let view = captures(&lab).remove(0);
    assert!(view["points"][0]["spent_ns"].as_u64() > Some(0), "{view}");
    let said = capture.end(Signal::INT);
    assert!(said.starts_with("6 frames matched, 6 written, 0 lost"), "{said}");
    let events = lab.suiro(&["events"]);
    assert!(events.contains(" ms of workers' time"), "{events}");
}
