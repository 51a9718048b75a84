//! Who takes all that it may is seen: by `suiro status`, by `suiro top` and in the events, beside two guests who lose nothing.

use crate::Bystanders;
use crate::bystanders::{OPENFLOW, says};
use acceptance::{Kind, Lab, inside, send_datagrams, until};
use serde_json::Value;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// The row of a bound, if it was hit.
fn row(lab: &Lab, bound: &str) -> Option<Value> {
    let rows = lab.json(&["status"])["bounds"].as_array().cloned().unwrap();
    rows.into_iter().find(|row| row["bound"] == bound)
}

#[track_caller]
fn is_hit(lab: &Lab, bound: &str, switch: &str, who: Option<&str>) {
    until(&format!("{bound} is shown"), || row(lab, bound).is_some());
    let row = row(lab, bound).unwrap();
    assert_eq!((row["switch"].as_str(), row["who"].as_str()), (Some(switch), who), "{row}");
    let at = |key: &str| row[key].as_u64().unwrap();
    assert!(at("times") > 0 && at("since_ns") <= at("last_ns") && row["goes_on"] == true, "{row}");
}

#[test]
fn who_hits_which_bound_and_since_when_is_in_status_top_and_events() {
    if !acceptance::privileged() {
        return;
    }
    let bystanders = Bystanders::configured("flows_per_table = 100\n", &["g1", "g2", "g3"]);
    let lab = &bystanders.lab;
    assert_eq!(lab.json(&["status"])["bounds"], serde_json::json!([]), "nobody has hit any");

    // Rules.
    let rules = |from, to| {
        let line = |n| format!("priority=9,tcp,tp_dst={n},actions=drop\n");
        let file = lab.path("rules");
        std::fs::write(&file, (from..to).map(line).collect::<String>()).unwrap();
        lab.says(&["flow", "add", "sw0", "--file", file.to_str().unwrap()]).code
    };
    assert_eq!((rules(0, 100), rules(200, 201)), (0, 1));
    is_hit(lab, "rules", "sw0", None);

    // Connections: more than an address has places for.
    let call = || inside(&lab.netns, || TcpStream::connect(OPENFLOW).unwrap());
    let callers: Vec<_> = std::iter::repeat_with(call).take(300).collect();
    is_hit(lab, "connections", "sw0", Some("127.0.0.1"));
    is_hit(lab, "hello", "sw0", Some("127.0.0.1"));
    drop(callers);

    // Frames: broadcasts into a bridge, copies of one frame, packet-ins.
    let few = ["--max-flood-copies-per-s", "10", "--max-packet-in-per-s", "1"];
    lab.suiro(&[&["switch", "add", "loud"], &few[..], &["--max-copies-per-s", "1"]].concat());
    for guest in ["g1", "g2", "g3"] {
        lab.connect("loud", guest, Kind::Tap);
        lab.introduce("g1", guest);
    }
    lab.introduce("g1", "n77");
    let unknown = format!("{}:9", Lab::ip("n77"));
    send_datagrams(lab, "g1", &unknown, (50, 100));
    is_hit(lab, "flood_copies", "loud", Some("g1"));

    let port = lab.json(&["port", "show", "loud", "g2"])["number"].as_u64().unwrap();
    let outputs = vec![format!("output:{port}"); 300].join(",");
    lab.suiro(&["flow", "add", "loud", &format!("priority=9,udp,tp_dst=9,actions={outputs}")]);
    send_datagrams(lab, "g1", &unknown, (50, 100));
    is_hit(lab, "copies", "loud", None);

    lab.suiro(&["flow", "add", "loud", "priority=10,udp,tp_dst=9,actions=CONTROLLER"]);
    send_datagrams(lab, "g1", &unknown, (200, 100));
    is_hit(lab, "packet_ins", "loud", None);

    // The API: more connections than it has, none of which says anything.
    let quiet: Vec<_> = (0..300).map(|_| UnixStream::connect(lab.socket()).unwrap()).collect();
    until("the API's bound is shown", || row(lab, "api_connections").is_some());
    drop(quiet);

    let status = lab.suiro(&["status"]);
    says(&status, &["BOUND HIT", "flood_copies", "(max_flood_copies_per_s)", "ago", "127.0.0.1"]);
    says(&lab.suiro(&["top", "--once"]), &["BOUND HIT", "rules"]);
    says(
        &lab.suiro(&["events"]),
        &["fault bound loud flood_copies: g1: frames were not flooded; max_flood_copies_per_s"],
    );

    lab.suiro(&["switch", "del", "loud"]);
    assert_eq!(row(lab, "copies"), None, "it went with its switch");
    assert!(row(lab, "rules").is_some());
    bystanders.lost_nothing();
}
