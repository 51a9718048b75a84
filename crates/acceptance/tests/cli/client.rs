//! The client alone: the command line without a node in it, and what it does when a node is silent.

use acceptance::{Place, Said, privileged};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The command line built without its features, in a directory beside the other builds.
fn client() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = root.join("target/client");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["build", "--quiet", "--locked", "--package", "suiro", "--no-default-features"];
    let built =
        Command::new(cargo).args(words).arg("--target-dir").arg(&target).current_dir(root).status();
    assert!(built.unwrap().success(), "the client alone does not build");
    target.join("debug/suiro")
}

#[test]
fn the_client_alone_works_on_a_node_and_runs_none() {
    if !privileged() {
        return;
    }
    let (client, mut place) = (client(), Place::new(&[]));
    place.start();
    let says = |words: &[&str]| {
        let mut command = Command::new(&client);
        Said::of(command.args(words).env("SUIRO_API", place.socket()).output().unwrap())
    };
    assert_eq!(says(&["switch", "add", "sw0", "--dpid", "1"]).code, 0);
    assert_eq!(says(&["switch", "list"]).out, place.suiro(&["switch", "list"]));
    assert_eq!(says(&["flow", "add", "sw0", "arp,actions=NORMAL"]).code, 0);
    assert_eq!(says(&["top", "--once"]).code, 0);
    assert_eq!(says(&["node"]).code, 2, "it has no node to run");
}

#[test]
fn a_node_that_is_silent_is_given_up_with_code_3_and_what_to_look_at() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.signal(Signal::STOP);
    let begin = Instant::now();
    let said = place.says(&["--timeout", "1", "switch", "list"]);
    place.signal(Signal::CONT);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    for part in ["has not answered for 1 s", "systemctl status suiro", "--timeout"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert_eq!(place.says(&["switch", "list"]).code, 0);
}
