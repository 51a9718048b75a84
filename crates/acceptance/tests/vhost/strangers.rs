//! Sockets that are not what they should be, and servers.

use super::guest::talk;
use super::{Guests, privileged, until};
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
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
