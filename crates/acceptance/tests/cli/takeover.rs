//! What was made by commands becomes a file, and a file takes over what was made by commands.

use super::parts::links;
use acceptance::{Place, privileged};
use rustix::process::Signal;

/// A switch with a guest, a queue and rules of each kind, made by commands.
fn made(place: &Place) {
    place.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    let netns = place.guest("g");
    place.suiro(&["port", "add", "sw0", "g", "--type", "tap", "--netns", &netns, "--rate", "1G"]);
    place.suiro(&["queue", "add", "sw0", "g", "1", "--min-rate", "10M"]);
    place.suiro(&["meter", "add", "sw0", "meter=1,kbps,band=type=drop,rate=100"]);
    place.suiro(&["group", "add", "sw0", "group_id=1,type=indirect,bucket=output:g"]);
    let rules =
        ["priority=7,arp,actions=group:1", "priority=9,ip,in_port=g,actions=meter:1,NORMAL"];
    place.suiro(&[&["flow", "add", "sw0"][..], &rules].concat());
    place.suiro(&["flow", "add", "sw0", "idle_timeout=600,priority=3,udp,actions=drop"]);
}

fn origins(place: &Place) -> (String, String) {
    let origin = |view: serde_json::Value| view["origin"].as_str().unwrap().to_owned();
    (
        origin(place.json(&["switch", "show", "sw0"])),
        origin(place.json(&["port", "show", "sw0", "g"])),
    )
}

#[test]
fn an_export_is_a_file_that_a_restart_takes_over() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    made(&place);
    assert_eq!(origins(&place), ("api".into(), "api".into()));
    let text = place.suiro(&["export"]);
    assert!(text.contains("# Left out: 1 flows that end by themselves"), "{text}");
    for line in ["name = \"sw0\"", "fail_mode = \"secure\"", "priority=9,ip,in_port=g"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("echo_interval_s"), "defaults are left out: {text}");
    let link = links(&place);
    place.end(Signal::TERM);
    place.configure(&text);
    place.start();
    assert_eq!(origins(&place), ("file".into(), "file".into()));
    assert_eq!(links(&place), link, "the guest's interface is the same");
    assert_eq!(place.json(&["flow", "list", "sw0"]).as_array().unwrap().len(), 3);
    assert_eq!(place.suiro(&["export"]), text, "and exported again it is the same");
    place.end(Signal::TERM);
    place.configure("");
    place.start();
    assert_eq!(place.json(&["switch", "list"]), serde_json::json!([]), "it was the file's");
}

#[test]
fn a_part_takes_over_what_commands_made_just_so_and_a_difference_is_a_conflict() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g"]);
    place.start();
    made(&place);
    let text = place.suiro(&["export"]);
    let file = place.path("lab.toml").display().to_string();
    std::fs::write(&file, text.replace("\"1G\"", "\"2G\"")).unwrap();
    let said = place.says(&["apply", "-f", &file]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("port g of switch sw0"), "{}", said.err);
    assert_eq!(origins(&place), ("api".into(), "api".into()), "nothing changed");
    std::fs::write(&file, &text).unwrap();
    let link = links(&place);
    let said = place.suiro(&["apply", "-f", &file]);
    assert!(said.contains("owner api → lab"), "{said}");
    assert_eq!(origins(&place), ("lab".into(), "lab".into()));
    assert_eq!(place.suiro(&["apply", "-f", &file]), "part lab: nothing to do (generation 1)\n");
    assert_eq!(links(&place), link);
    place.suiro(&["part", "del", "lab"]);
    assert_eq!(place.json(&["switch", "list"]), serde_json::json!([]));
}
