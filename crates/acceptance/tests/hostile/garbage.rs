//! Bytes that mean nothing, on every socket.

use crate::Bystanders;
use crate::bystanders::{OPENFLOW, says};
use acceptance::{Lab, Ofctl, inside, privileged, until};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A hello of OpenFlow 1.3, after which a session is in order.
pub const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];

/// A mebibyte that looks random and is the same in every run (xorshift64).
fn garbage() -> Vec<u8> {
    let next = |state: &u64| {
        let mut x = *state;
        x ^= x << 13;
        x ^= x >> 7;
        Some(x ^ x << 17)
    };
    let words = std::iter::successors(Some(0x9e37_79b9_7f4a_7c15u64), next);
    words.take(1 << 17).flat_map(u64::to_le_bytes).collect()
}

/// Sends bytes, whose reader may hang up at any time, and reads meanwhile what it answers.
fn pour<S: Sync>(stream: &S, bytes: &[u8], end: impl Fn()) -> Vec<u8>
where
    for<'s> &'s S: Read + Write,
{
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut stream, mut answer) = (stream, Vec::new());
            let _ = stream.read_to_end(&mut answer);
            answer
        });
        let mut stream = stream;
        let _ = stream.write_all(bytes);
        end();
        reader.join().unwrap()
    })
}

fn pour_tcp(lab: &Lab, bytes: &[u8]) -> Vec<u8> {
    inside(&lab.netns, || {
        let stream = TcpStream::connect(OPENFLOW).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        pour(&stream, bytes, || drop(stream.shutdown(Shutdown::Write)))
    })
}

fn pour_unix(lab: &Lab, socket: &str, bytes: &[u8]) -> Vec<u8> {
    let stream = UnixStream::connect(lab.path(socket)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    pour(&stream, bytes, || drop(stream.shutdown(Shutdown::Write)))
}

#[test]
fn a_mebibyte_of_garbage_on_each_socket_is_answered_reported_and_forgotten() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&[]);
    let lab = &bystanders.lab;
    let garbage = garbage();

    let answer = pour_unix(lab, "run/api.sock", &garbage);
    says(&String::from_utf8_lossy(&answer), &["HTTP/1.1 400"]);

    for pour in [pour_tcp, |lab: &Lab, bytes: &[u8]| pour_unix(lab, "run/sw0.mgmt", bytes)] {
        let answer = pour(lab, &garbage);
        says(&String::from_utf8_lossy(&answer), &["an OpenFlow hello comes first"]);
        pour(lab, &[&HELLO[..], &garbage].concat());
        // A frame that is shorter than its own header.
        pour(lab, &[&HELLO[..], &[4, 0, 0, 4], &garbage].concat());
        // A frame of an honest length with nothing of sense in it, again and again.
        let nonsense: Vec<u8> = garbage
            .chunks(56)
            .flat_map(|chunk| [&[4, 14, 0, 64, 0, 0, 0, 9], chunk].concat())
            .collect();
        let answer = pour(lab, &[&HELLO[..], &nonsense].concat());
        let errors = answer.windows(4).filter(|bytes| bytes[..2] == [4, 1]).count();
        assert!(errors > 0, "nonsense is answered by errors");
    }
    for from in ["tcp:127.0.0.1:", "management socket"] {
        until("the log names who sent garbage", || lab.log().contains(&format!("peer=\"{from}")));
    }
    let log = lab.log();
    says(
        &log,
        &[
            "OpenFlow session ended",
            "switch=\"sw0\"",
            "does not speak OpenFlow",
            "framing: the peer is no OpenFlow speaker",
            "check what connects",
        ],
    );

    says(&Ofctl::tcp(lab, 6654).run("show", &[]), &["dpid:0000000000000001"]);
    says(&Ofctl::management(lab, "sw0").run("dump-flows", &[]), &["OFPST_FLOW"]);
    bystanders.lost_nothing();
}
