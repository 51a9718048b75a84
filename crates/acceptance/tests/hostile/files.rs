//! A FIFO that nobody writes to, in place of every file that somebody may name: each is refused by name, and nobody waits for it.

use crate::Bystanders;
use crate::bystanders::{fault_says, says};
use acceptance::{Kind, privileged, until};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use std::fs::{Permissions, remove_file, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn fifo(path: &Path) {
    // There may be a file by now.
    let _ = remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_fifo_in_place_of_a_file_is_refused_by_name_and_keeps_nobody_waiting() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&["g1"]);
    let lab = &bystanders.lab;
    let path = lab.path("fifo");
    fifo(&path);
    let path = path.to_str().unwrap();
    let tls = ["--tls-certificate", path, "--tls-key", path, "--tls-ca", path];
    let tunnel = ["--type", "vxlan", "--remote", "192.0.2.2", "--key", "7", "--encrypt", path];
    let tap = ["--type", "tap", "--netns", path];
    let netns = ["--listen", "ptcp:6655:127.0.0.1", "--session-netns", path];
    let calls: [(Vec<&str>, &[&str]); 4] = [
        (
            [&["switch", "add", "t", "--listen", "pssl:6655"][..], &tls].concat(),
            &["it is a FIFO, not a regular file", "give the path of a regular file"],
        ),
        (
            [&["port", "add", "sw0", "tun0"][..], &tunnel].concat(),
            &["it is a FIFO, not a regular file", "give the path of a regular file"],
        ),
        ([&["port", "add", "sw0", "tap0"][..], &tap].concat(), &[path]),
        ([&["switch", "add", "t"][..], &netns].concat(), &["socket failed"]),
    ];
    for (words, parts) in &calls {
        let said = lab.says(words);
        assert_eq!(said.code, 1, "{words:?}: {}", said.out);
        says(&said.err, parts);
        says(&said.err, &["remedy: "]);
    }
    // Whoever comes after has an answer.
    lab.connect("sw0", "g1", Kind::Tap);
    bystanders.lost_nothing();
}

#[test]
fn a_key_file_that_became_a_fifo_keeps_only_its_own_tunnel_down_after_a_kill() {
    if !privileged() {
        return;
    }
    let mut lab = Bystanders::with(&["g1"]).lost_nothing();
    let keys = lab.path("keys");
    let (one, other) = ("1f".repeat(20), "77".repeat(20));
    write(
        &keys,
        format!(
            "[[sa]]\nspi_out = 4097\nkey_out = \"{one}\"\nspi_in = 8193\nkey_in = \"{other}\"\n"
        ),
    )
    .unwrap();
    set_permissions(&keys, Permissions::from_mode(0o600)).unwrap();
    let tunnel = ["port", "add", "sw0", "tun0", "--type", "vxlan", "--remote", "127.0.0.2"];
    let encrypted = ["--key", "7", "--encrypt", keys.to_str().unwrap()];
    lab.suiro(&[&tunnel[..], &encrypted].concat());
    fifo(&keys);
    lab.end(Signal::KILL);
    lab.start();
    fault_says(&lab, "tun0", &["it is a FIFO, not a regular file", "give the path"]);
    until("the neighbour's port is up", || {
        lab.json(&["port", "show", "quiet", "g9"])["fault"].is_null()
    });
}

#[test]
fn a_configuration_that_became_a_fifo_or_far_too_long_is_a_fault_and_sigterm_ends_the_node() {
    if !privileged() {
        return;
    }
    let mut lab = Bystanders::with(&[]).lost_nothing();
    let said = |lab: &acceptance::Lab, part: &str| {
        lab.signal(Signal::HUP);
        until("the fault is told", || lab.suiro(&["status"]).contains(part));
    };
    write(lab.file(), vec![b'#'; (16 << 20) + 1]).unwrap();
    said(&lab, "it has more than 16777216 bytes");
    fifo(&lab.file());
    said(&lab, "it is a FIFO, not a regular file");
    lab.suiro(&["switch", "add", "one-more"]);
    lab.end(Signal::TERM);
}
