//! The JSON of every list and show command, as it was before: scripts read it.

use acceptance::{Place, privileged, until};
use serde_json::Value;

/// Keys whose values differ from run to run, or from host to host.
const VOLATILE: &[&str] = &[
    "age_ns",
    "at_ns",
    "duration_s",
    "empty_polls",
    "mac",
    "pid",
    "reason",
    "since_ns",
    "sleeps",
    "speed_mbps",
    "uptime_s",
    "version",
];

/// What counts frames or time: a guest's kernel sends some of its own.
fn counts(key: &str) -> bool {
    let ends = ["_frames", "_bytes", "_drops", "packets", "bytes", "batches", "drops"];
    key.starts_with("cycles") || ends.iter().any(|end| key.ends_with(end))
}

/// The same with what differs taken out, and the node's own place named by words.
fn settled(place: &Place, key: &str, value: Value) -> Value {
    let home = place.path("").display().to_string();
    match value {
        _ if VOLATILE.contains(&key) || counts(key) => "...".into(),
        Value::String(text) => {
            let text = text.replace(home.trim_end_matches('/'), "HOME");
            without_durations(&text.replace(&place.netns, "NETNS")).into()
        }
        Value::Array(list) => {
            list.into_iter().map(|item| settled(place, "", item)).collect::<Vec<_>>().into()
        }
        Value::Object(map) => {
            let settle = |(key, value): (String, Value)| {
                let value = settled(place, &key, value);
                (key, value)
            };
            Value::Object(map.into_iter().map(settle).collect())
        }
        other => other,
    }
}

/// The text, with `...` for the seconds behind each `duration`.
fn without_durations(text: &str) -> String {
    let mut parts = text.split("duration");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || "=:.".contains(c));
        text + "duration..." + rest
    })
}

const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["switch", "list"],
    &["switch", "show", "sw0"],
    &["port", "list"],
    &["port", "list", "sw1"],
    &["port", "show", "sw0", "g1"],
    &["port", "show", "sw0", "vm1"],
    &["port", "show", "sw0", "tun0"],
    &["queue", "list"],
    &["queue", "list", "sw0", "g1"],
    &["queue", "show", "sw0", "g1", "1"],
    &["flow", "list", "sw0"],
    &["group", "list", "sw0"],
    &["meter", "list", "sw0"],
    &["steer", "list"],
    &["steer", "policy", "show"],
    &["steer", "flow", "list"],
];

/// Lists whose content is the host's: only their shape is the same everywhere.
const LISTS: &[&[&str]] = &[
    &["flow", "list", "sw0", "--rungs"],
    &["offload", "policy", "list"],
    &["part", "list"],
    &["steer", "cores"],
    &["steer", "vm", "list"],
    &["switch", "macs", "sw0"],
];

/// A node with a port of each kind that needs no card, with rules, groups, meters and queues.
fn furnished() -> Place {
    let mut place = Place::new(&["g1"]);
    let guest = place.guest("g1");
    let socket = place.path("vm1.sock").display().to_string();
    place.configure("[[switch]]\nname = 'sw1'\ndpid = '2'\n");
    place.start();
    for words in [
        &["switch", "add", "sw0", "--dpid", "1", "--fail-mode", "secure"][..],
        &["port", "add", "sw0", "g1", "--type", "tap", "--netns", &guest, "--rate", "1G"],
        &["queue", "add", "sw0", "g1", "1", "--min-rate", "10M", "--max-rate", "20M"],
        &["port", "add", "sw0", "vm1", "--type", "vhost-user", "--socket", &socket, "--server"],
        &["port", "add", "sw0", "tun0", "--type", "vxlan", "--remote", "192.0.2.2", "--key", "7"],
        &["port", "add", "sw0", "to-sw1", "--type", "vlink", "--peer", "sw1:to-sw0"],
        &["port", "add", "sw1", "to-sw0", "--type", "vlink", "--peer", "sw0:to-sw1"],
        &["meter", "add", "sw0", "meter=1,kbps,band=type=drop,rate=10000"],
        &["group", "add", "sw0", "group_id=1,type=all,bucket=output:g1"],
        &["flow", "add", "sw0", "cookie=0x5,table=1,priority=9,ip,nw_dst=10.0.0.1,actions=group:1"],
        &["flow", "add", "sw0", "priority=1,arp,idle_timeout=60,actions=output:vm1"],
    ] {
        place.suiro(words);
    }
    place
}

/// What of `kept` is not so in `now`. What has come since is no loss: readers pass over keys that they do not know.
fn lost(at: &str, kept: &Value, now: &Value) -> Vec<String> {
    match (kept, now) {
        (Value::Object(kept), Value::Object(now)) => kept
            .iter()
            .flat_map(|(key, value)| lost(&format!("{at}.{key}"), value, &now[key]))
            .collect(),
        (Value::Array(kept), Value::Array(now)) if kept.len() == now.len() => {
            let items = kept.iter().zip(now).enumerate();
            items
                .flat_map(|(index, (kept, now))| lost(&format!("{at}[{index}]"), kept, now))
                .collect()
        }
        _ if kept == now => Vec::new(),
        _ => vec![format!("{at}: was {kept}, is {now}")],
    }
}

#[test]
fn every_list_and_show_command_prints_the_json_that_it_always_did() {
    if !privileged() {
        return;
    }
    let place = furnished();
    for (port, note) in [("vm1", "no front-end has called"), ("tun0", "no route")] {
        until("the port says what it waits for", || {
            place.suiro(&["port", "show", "sw0", port]).contains(note)
        });
    }
    let kept: Value = serde_json::from_str(include_str!("golden.json")).unwrap();
    let said = |words: &&[&str]| (words.join(" "), settled(&place, "", place.json(words)));
    let now = Value::Object(COMMANDS.iter().map(said).collect());
    assert_eq!(lost("", &kept, &now), [""; 0], "clients read something else now:\n{now:#}");
    let lists = COMMANDS.iter().filter(|words| words.contains(&"list")).chain(LISTS);
    let odd = lists.filter(|words| !place.json(words).is_array());
    assert_eq!(odd.collect::<Vec<_>>(), [&[""; 0]; 0], "what lists prints a JSON list");
}
