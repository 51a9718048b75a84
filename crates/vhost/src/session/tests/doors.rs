//! Sockets that are there, not there yet, left over, or somebody else's.

use super::*;
use crate::session::{Connection, Rights, Role, Session, Settings};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// A server whose socket is for this process's user and group.
const SERVER: Role = Role::Server(Rights { owner: None, group: None, mode: 0o660 });

fn session(path: &Path, role: Role) -> Session {
    let (name, socket) = ("vm1".into(), path.into());
    Session::start(Settings {
        name,
        socket,
        role,
        pairs: 1,
        mtu: 0,
        records: None,
        guest_bounds: None,
        confine: || {},
    })
    .unwrap()
}

fn waits_for(attachment: &Attachment, text: &str) -> bool {
    matches!(attachment.look().connection, Connection::Waiting(why) if why.contains(text))
}

fn is_connected(attachment: &Attachment) -> bool {
    matches!(attachment.look().connection, Connection::Connected { .. })
}

#[test]
fn a_client_waits_for_the_socket_and_comes_back_after_each_end() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("vm1.sock");
    let session = session(&path, Role::Client);
    let attachment = session.attachment();
    until(attachment, "the socket is missed", |attachment| {
        waits_for(attachment, "does not exist yet")
    });
    let listener = UnixListener::bind(&path).unwrap();
    for _ in 0..3 {
        let (socket, _) = listener.accept().unwrap();
        let frontend = Frontend::from_stream(socket, 2);
        frontend.get_features().unwrap();
        until(attachment, "the front-end is heard", |attachment| {
            matches!(attachment.look().connection, Connection::Connected { heard: true, .. })
        });
    }
    drop(listener);
    until(attachment, "nobody listens", |attachment| waits_for(attachment, "nobody listens"));
}

#[test]
fn a_client_that_meets_another_program_says_so_and_tries_on() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("vm1.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let session = session(&path, Role::Client);
    for count in 1..=2 {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"220 mail.example ESMTP\r\n").unwrap();
        until(session.attachment(), "the trouble is told", |attachment| {
            attachment.look().trouble.is_some_and(|trouble| {
                trouble.count == count && trouble.cause.contains("no vhost-user message")
            })
        });
    }
}

#[test]
fn a_server_listens_for_its_group_only_and_takes_its_socket_away() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("vm1.sock");
    let session = session(&path, SERVER);
    until(session.attachment(), "it listens", |attachment| {
        waits_for(attachment, "no front-end has called")
    });
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    for _ in 0..2 {
        let frontend = Frontend::connect(&path, 2).unwrap();
        frontend.get_features().unwrap();
        until(session.attachment(), "it is connected", is_connected);
        drop(frontend);
        until(session.attachment(), "it listens again", |attachment| !is_connected(attachment));
    }
    drop(session);
    assert!(!path.exists());
}

#[test]
fn a_server_removes_what_a_killed_one_left_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("vm1.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a listener that ends leaves its file");
    let served = session(&path, SERVER);
    until(served.attachment(), "it listens", |attachment| {
        waits_for(attachment, "no front-end has called")
    });
    drop(served);

    let other = UnixListener::bind(&path).unwrap();
    let refused = session(&path, SERVER);
    until(refused.attachment(), "the other program is named", |attachment| {
        waits_for(attachment, "another program listens")
    });
    drop(refused);
    assert!(path.exists());
    drop(other);

    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let refused = session(&path, SERVER);
    until(refused.attachment(), "the file is left alone", |attachment| {
        waits_for(attachment, "is there and no socket")
    });
    drop(refused);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

/// The capabilities of a line of a thread's status (proc(5)), by the thread's name.
fn capabilities(thread: &str, which: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let status = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("status")).ok()
    };
    let name = format!("Name:\t{thread}\n");
    let status = tasks.filter_map(status).find(|status| status.starts_with(&name)).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

#[test]
fn who_reads_a_strangers_messages_has_no_privilege() {
    // CAP_CHOWN, CAP_DAC_OVERRIDE and CAP_FOWNER (linux/capability.h).
    const AT_THE_DOOR: u64 = 1 << 0 | 1 << 1 | 1 << 3;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("vm1.sock");
    let (name, socket) = ("privileged".into(), path.clone());
    let role = SERVER;
    let session = Session::start(Settings {
        name,
        socket,
        role,
        pairs: 1,
        mtu: 0,
        records: None,
        guest_bounds: None,
        confine: || {},
    })
    .unwrap();
    until(session.attachment(), "it listens", |attachment| {
        waits_for(attachment, "no front-end has called")
    });
    let held = capabilities("vu-privileged", "CapPrm:");
    assert_eq!(held & !AT_THE_DOOR, 0);
    assert_eq!(capabilities("vu-privileged", "CapEff:"), held);
    let frontend = Frontend::connect(&path, 2).unwrap();
    frontend.get_features().unwrap();
    assert_eq!(capabilities("vu-privileged", "CapEff:"), 0);
    drop(session);
    assert!(!path.exists());
}

#[test]
fn a_server_without_its_directory_says_what_to_create() {
    let home = tempfile::tempdir().unwrap();
    let session = session(&home.path().join("missing/vm1.sock"), SERVER);
    until(session.attachment(), "the directory is missed", |attachment| {
        waits_for(attachment, "create it")
    });
}
