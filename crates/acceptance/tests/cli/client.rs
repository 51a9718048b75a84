//! The client alone: the command line without a node in it, and what it does when a node is silent.

use acceptance::{Place, Said, privileged, python};
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

#[test]
fn tab_offers_the_names_of_the_moment() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    for switch in ["sw0", "sw1"] {
        place.suiro(&["switch", "add", switch]);
    }
    place.suiro(&["port", "add", "sw1", "uplink", "--type", "vlink", "--peer", "sw0:down"]);
    let offered = |words: &[&str]| {
        let mut command = Command::new(acceptance::suiro());
        command.arg("--").args(words).env("SUIRO_API", place.socket());
        command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        let said = Said::of(command.output().unwrap()).out;
        let names = said.lines().filter(|word| !word.starts_with('-')).map(str::to_owned);
        names.collect::<Vec<_>>()
    };
    assert_eq!(offered(&["suiro", "switch", "show", ""]), ["sw0", "sw1"]);
    assert_eq!(offered(&["suiro", "flow", "list", "sw1"]), ["sw1"]);
    assert_eq!(offered(&["suiro", "port", "show", "sw1", "up"]), ["uplink"]);
    assert!(offered(&["suiro", "doctor", ""]).contains(&"lo".to_owned()));
    assert_eq!(offered(&["suiro", "lab", "run", "vse-c"]), ["vse-collision"]);
    assert_eq!(offered(&["suiro", "bench", "wi"]), ["wire"]);
    assert_eq!(offered(&["suiro", "capture", "sw1"]), ["sw1", "sw1:uplink"]);
    assert_eq!(offered(&["suiro", "capture", "drops", "controller:"]).len(), 2);
    place.suiro(&["offload", "policy", "add", "web", "--match", "tcp,tp_dst=443", "--never"]);
    assert_eq!(offered(&["suiro", "offload", "policy", "del", ""]), ["web"]);
}

#[test]
fn a_node_that_serves_is_what_a_plain_background_asks_for_and_not_what_one_with_a_configuration_does()
 {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    let directory = place.path("run").display().to_string();
    let background = ["node", "--background", "--run-dir", &directory];
    let said = place.says(&background);
    assert!(said.code == 0 && said.out.contains("already, process"), "{} {}", said.out, said.err);
    let other = place.says(&[&background[..], &["--cores", "0"]].concat());
    assert!(other.code == 1 && other.err.contains("stop it first"), "{} {}", other.code, other.err);
}

#[test]
fn a_bug_report_says_what_is_there_also_without_a_node() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    let without = place.says(&["bugreport", "--output", "-"]);
    assert_eq!(without.code, 0, "{}", without.err);
    assert!(
        without.out.contains("==== /v1/node\n") && without.out.contains("connect to"),
        "{}",
        without.out
    );
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    let file = place.path("report.txt").display().to_string();
    place.suiro(&["bugreport", "--output", &file]);
    let text = std::fs::read_to_string(&file).unwrap();
    for part in ["==== suiro doctor", "\"name\": \"sw0\"", "[[switch]]", "==== log"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_python_client_does_and_tells_what_the_node_describes() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/api");
    let mut pytest = Command::new(python());
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(&package);
    pytest.env("PYTHONPATH", package.join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    let run = pytest.env("SUIRO_API", place.socket()).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && said.contains(" passed"),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
