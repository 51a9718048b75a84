//! Sockets that are not what they should be, and servers.

use super::guest::talk;
use super::{Guests, privileged, until};
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use testbed::driver::frontend::Shape;
use testbed::driver::plain::PlainGuest;

/// Calls a server as a guest does, until it answers.
fn call(path: &Path) -> PlainGuest {
    let mut guest = None;
    until("the server serves", || {
        guest = UnixStream::connect(path)
            .ok()
            .and_then(|socket| PlainGuest::connect(socket, Shape::default()).ok());
        guest.is_some()
    });
    guest.unwrap()
}

#[test]
fn a_server_serves_one_guest_after_the_other_also_after_it_was_killed() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(0);
    let paths = [1, 2].map(|index| guests.path(index));
    (1..=2).for_each(|index| drop(guests.add(index, &["--server"])));
    for round in 0..3 {
        let mut pair = [call(&paths[0]), call(&paths[1])];
        guests.until(1, "ready");
        guests.until(2, "ready");
        talk(&mut pair, &format!("round {round}"));
        drop(pair);
        if round == 1 {
            guests.lab.end(Signal::KILL);
            assert!(paths[0].exists(), "a killed node leaves its socket");
            guests.lab.start();
        }
    }
    guests.lab.suiro(&["port", "del", "sw0", "vm1"]);
    assert!(!paths[0].exists() && paths[1].exists());
}

#[test]
fn a_server_never_takes_another_programs_socket() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(0);
    let _other = UnixListener::bind(guests.path(1)).unwrap();
    guests.add(1, &["--server"]);
    until("the other program is told", || {
        guests.shown(1)["waits_for"].as_str().unwrap().contains("another program listens")
    });
    guests.lab.suiro(&["port", "del", "sw0", "vm1"]);
    assert!(guests.path(1).exists());
}

#[test]
fn another_programs_words_are_told_from_a_guests_and_the_log_stays_short() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(0);
    let other = UnixListener::bind(guests.path(1)).unwrap();
    guests.add(1, &[]);
    for _ in 0..4 {
        let (mut socket, _) = other.accept().unwrap();
        socket.write_all(b"220 mail.example ESMTP\r\n").unwrap();
    }
    until("the errors are counted", || guests.shown(1)["last_error"]["count"].as_u64() >= Some(3));
    let shown = guests.lab.suiro(&["port", "show", "sw0", "vm1"]);
    assert!(
        shown.contains("last error  what came on the socket is no vhost-user message"),
        "{shown}"
    );
    assert!(shown.contains("ss -xlp"), "{shown}");
    let lines = guests.lab.log().matches("no vhost-user message").count();
    assert!((1..=4).contains(&lines), "{lines} lines in the log");
}

#[test]
fn a_socket_of_another_user_is_opened_as_libvirt_leaves_it() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(0);
    guests.listen(1);
    let nobody = Some(65534);
    std::os::unix::fs::chown(guests.path(1), nobody, nobody).unwrap();
    std::fs::set_permissions(guests.path(1), PermissionsExt::from_mode(0o700)).unwrap();
    guests.add(1, &[]);
    let _guest = guests.connect(1, Shape::default());
    guests.until(1, "ready");
}

/// User, group and mode of a file.
fn rights(path: &Path) -> (u32, u32, u32) {
    let file = std::fs::symlink_metadata(path).unwrap();
    (file.uid(), file.gid(), file.mode() & 0o777)
}

/// Becomes a user who is not root, and calls a socket.
const CALL: &str = "import os, socket, sys
user, one = int(sys.argv[1]), socket.socket(socket.AF_UNIX)
os.setgroups([]), os.setgid(user), os.setuid(user)
one.connect(sys.argv[2])";

/// Whether a user may call a socket.
fn may_call(user: u32, path: &Path) -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", CALL, &user.to_string()]).arg(path).stderr(Stdio::null());
    python.status().unwrap().success()
}

#[test]
fn a_servers_socket_is_another_users_from_its_first_moment_and_changes_hands() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(0);
    let path = guests.path(1);
    // So that who may open the socket gets as far as there.
    std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o711)).unwrap();
    guests.add(1, &["--server", "--owner", "nobody", "--group", "65533", "--mode", "0600"]);
    until("the socket is there", || path.exists());
    assert_eq!(rights(&path), (65534, 65533, 0o600), "as soon as it has its name");
    assert!(may_call(65534, &path) && !may_call(65532, &path));
    let shown = guests.lab.suiro(&["port", "show", "sw0", "vm1"]);
    assert!(shown.contains("--owner nobody --group 65533 --mode 0600"), "{shown}");
    let asked = guests.lab.json(&["port", "show", "sw0", "vm1"])["spec"].clone();
    assert_eq!((&asked["owner"], &asked["mode"]), (&"nobody".into(), &"0600".into()));
    let change =
        |words: &[&str]| guests.lab.says(&[&["port", "mod", "sw0", "vm1"][..], words].concat());
    assert_eq!(change(&["--owner", "65532", "--mode", "0660"]).code, 0);
    assert_eq!(rights(&path), (65532, 65533, 0o660));
    assert!(may_call(65532, &path) && !may_call(65534, &path));
    for (option, name, cause) in [
        ("--owner", "no-such-user", "there is no user no-such-user"),
        ("--group", "no-such-group", "there is no group no-such-group"),
    ] {
        let said = change(&[option, name]);
        let named = said.err.contains(cause) && said.err.contains("getent");
        assert!(said.code == 1 && named, "{}", said.err);
        assert_eq!(rights(&path), (65532, 65533, 0o660), "a change refused changed nothing");
    }
    assert_eq!(change(&["--owner", "none", "--group", "none", "--mode", "none"]).code, 0);
    assert_eq!(rights(&path), (0, 0, 0o660), "the node's own again");
    guests.lab.suiro(&["port", "del", "sw0", "vm1"]);
    assert!(!path.exists());
}

#[test]
fn a_guest_that_is_silent_or_half_spoken_harms_no_other() {
    if !privileged() {
        return;
    }
    let guests = Guests::called(2);
    let silent = UnixListener::bind(guests.path(3)).unwrap();
    let half = UnixListener::bind(guests.path(4)).unwrap();
    guests.add(3, &[]);
    guests.add(4, &[]);
    let (_silent, _) = silent.accept().unwrap();
    let (mut half, _) = half.accept().unwrap();
    half.write_all(&[1, 0, 0, 0, 1, 0]).unwrap();
    let mut pair = guests.pair();
    talk(&mut pair, "beside them");
    assert_eq!(guests.shown(3)["waits_for"], "the front-end's first message");
    guests.lab.suiro(&["port", "del", "sw0", "vm3", "vm4"]);
}
