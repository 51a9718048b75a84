//! Who may only look: the group of `[node] read_group`, by a socket of its own. And who may not even run a node.

use acceptance::{Background, Place, Said, privileged, suiro, until};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// A place that other users can enter, and the command where they can run it.
fn open_place() -> Place {
    let place = Place::new(&[]);
    place.configure("read_group = \"nogroup\"\n");
    for directory in ["", "run"] {
        let path = place.path(directory);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o711)).unwrap();
    }
    std::fs::copy(suiro(), place.path("suiro")).unwrap();
    place
}

/// What the command says to that user, who is in that group alone.
fn says(place: &Place, user: &str, group: &str, words: &[&str]) -> Said {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", group, "--clear-groups"]).arg(place.path("suiro"));
    Said::of(command.args(words).env("SUIRO_API", place.socket()).output().unwrap())
}

#[test]
fn a_reader_sees_everything_and_changes_nothing_and_others_see_nothing() {
    privileged();
    let mut place = open_place();
    place.start();
    place.suiro(&["switch", "add", "sw0"]);

    let seen = says(&place, "nobody", "nogroup", &["switch", "list"]);
    assert!(seen.code == 0 && seen.out.contains("sw0"), "{seen:?}");
    let exported = says(&place, "nobody", "nogroup", &["export"]);
    assert!(exported.code == 0 && exported.out.contains("name = \"sw0\""), "{exported:?}");
    for words in [&["switch", "add", "sw1"][..], &["switch", "del", "sw0"], &["reload"]] {
        let refused = says(&place, "nobody", "nogroup", words);
        assert_eq!(refused.code, 1, "{words:?}: {refused:?}");
        assert!(refused.err.contains("you may see everything and change nothing"), "{refused:?}");
    }
    assert_eq!(place.json(&["switch", "list"]).as_array().unwrap().len(), 1);
    assert!(place.log().contains("user 65534"), "who tried to change is in the log");

    let stranger = says(&place, "daemon", "daemon", &["switch", "list"]);
    assert_eq!(stranger.code, 3, "{stranger:?}");
    assert!(stranger.err.contains("[node] read_group"), "{stranger:?}");

    let socket = std::fs::metadata(place.path("run/read.sock")).unwrap();
    assert_eq!((socket.uid(), socket.gid(), socket.mode() & 0o777), (0, 65534, 0o660));
    place.end(rustix::process::Signal::TERM);
    assert!(!place.path("run/read.sock").exists());
}

#[test]
fn a_member_of_the_capture_group_captures_heads_and_a_reader_does_not() {
    privileged();
    let mut place = open_place();
    place.configure("read_group = \"nogroup\"\ncapture_group = \"daemon\"\ncapture_payload = 0\n");
    place.start();
    let capture = ["capture", "drops", "--duration", "100ms", "-w"];
    let seen = says(&place, "daemon", "daemon", &[&capture[..], &["/dev/null"]].concat());
    assert!(seen.code == 0 && seen.err.contains("0 frames matched"), "{seen:?}");
    let events = place.suiro(&["events"]);
    assert!(
        events.contains("added capture 1: drops with 0 bytes of payload by user 1,"),
        "{events}"
    );
    assert!(place.log().contains("user 1, process"), "{}", place.log());
    assert!(place.log().contains("POST /v1/captures: done"), "{}", place.log());
    let changed = says(&place, "daemon", "daemon", &["switch", "add", "sw1"]);
    assert!(changed.err.contains("you may see everything and change nothing"), "{changed:?}");
    let refused = says(&place, "nobody", "nogroup", &[&capture[..], &["/dev/null"]].concat());
    assert!(refused.err.contains("you may see everything and capture nothing"), "{refused:?}");
    assert!(refused.err.contains("[node] capture_group"), "{refused:?}");
}

/// What the node answers who ends a capture by the socket of the capture group.
fn ends(place: &Place, user: &str, capture: u64) -> String {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", "daemon", "--clear-groups", "curl", "-s"]);
    command.args(["-w", "%{http_code}", "-X", "DELETE", "--unix-socket"]);
    command.arg(place.path("run/capture.sock")).arg(format!("http://suiro/v1/captures/{capture}"));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_member_of_the_capture_group_ends_its_own_captures_alone() {
    privileged();
    let mut place = open_place();
    place.configure("capture_group = \"daemon\"\n");
    place.start();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "daemon", "--regid", "daemon", "--clear-groups"]);
    command.arg(place.path("suiro")).args(["capture", "drops", "-w", "/dev/null"]);
    let capture = Background::start(command.env("SUIRO_API", place.socket()));
    let number = || {
        let (_, body) = place.http("GET", "/v1/captures", "");
        serde_json::from_str::<serde_json::Value>(&body).unwrap()[0]["capture"].as_u64()
    };
    until("the capture runs", || number().is_some());
    let running = number().unwrap();
    let refused = ends(&place, "nobody", running);
    assert!(refused.contains("it is of user 1, process") && refused.ends_with("403"), "{refused}");
    assert_eq!(number(), Some(running));
    assert_eq!(ends(&place, "daemon", running), "204");
    until("it ends", || number().is_none());
    assert!(ends(&place, "daemon", running).ends_with("404"));
    let said = capture.end(rustix::process::Signal::INT);
    assert!(said.contains("0 frames matched, 0 written, 0 lost"), "{said}");
}

#[test]
fn a_group_that_the_host_does_not_have_is_named_with_the_remedy() {
    privileged();
    let place = Place::new(&[]);
    place.configure("read_group = \"no-such-group\"\n");
    let said = place.node_says(&[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("[node] read_group: listen to readers"), "{said:?}");
    assert!(said.err.contains("there is no group no-such-group"), "{said:?}");
    assert!(said.err.contains("getent group"), "{said:?}");
}

#[test]
fn a_node_without_rights_does_not_start_and_says_how_it_does() {
    privileged();
    let place = open_place();
    let node = ["node", "--run-dir", "/proc/nowhere", "--state-dir", "/proc/nowhere"];
    let refused = says(&place, "nobody", "nogroup", &node);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("CAP_NET_ADMIN is missing"), "{refused:?}");
    assert!(refused.err.contains("systemctl start suiro"), "{refused:?}");
    let told_to = says(&place, "nobody", "nogroup", &[&node[..], &["--unprivileged"]].concat());
    assert!(told_to.err.contains("directory /proc/nowhere"), "{told_to:?}");
}
