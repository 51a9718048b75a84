//! Peers that connect and say nothing, or say everything and read nothing; and an end that does not wait for them.

use crate::Bystanders;
use crate::bystanders::{OPENFLOW, says};
use crate::garbage::HELLO;
use acceptance::{Kind, Lab, Ofctl, inside, privileged, send_datagrams, until};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Connections to open at a time: more than a switch serves.
const CROWD: usize = 300;

fn open_files(lab: &Lab) -> usize {
    let pid = lab.json(&["status"])["pid"].as_u64().unwrap();
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Resident memory of the node.
pub fn memory_kib(lab: &Lab) -> u64 {
    let pid = lab.json(&["status"])["pid"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn hundreds_of_half_open_connections_shut_out_only_each_other() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&[]);
    let lab = &bystanders.lab;
    let before = open_files(lab);
    let mut silent = Vec::new();
    let mut unix = Vec::new();
    // Who says nothing has some seconds: on a busy host they may not come fast enough, and come once more.
    until("the switch says that there are too many", || {
        silent.clear();
        unix.clear();
        inside(&lab.netns, || {
            silent.extend((0..CROWD).map(|_| TcpStream::connect(OPENFLOW).unwrap()));
        });
        for socket in ["run/sw0.mgmt", "run/api.sock"] {
            for begun in 0..CROWD {
                let mut stream = UnixStream::connect(lab.path(socket)).unwrap();
                // Every other one begins a message and leaves it at that; those too many are hung up on.
                let _ = stream.write_all(if begun % 2 == 0 { b"" } else { b"\x04\0\0" });
                unix.push(stream);
            }
        }
        lab.log().matches("256 connections already: another gave its place up").count() >= 2
    });
    lab.suiro(&["flow", "add", "sw0", "priority=9,arp,actions=NORMAL"]);
    says(&Ofctl::management(lab, "quiet").run("dump-flows", &[]), &["OFPST_FLOW"]);
    drop((silent, unix));
    until("their descriptors are free again", || open_files(lab) <= before + 2);
    says(&Ofctl::tcp(lab, 6654).run("dump-flows", &[]), &["priority=9,arp"]);
    bystanders.lost_nothing();
}

/// A controller that says hello and never reads again.
struct Deaf {
    _listener: TcpListener,
    stream: Option<TcpStream>,
}

/// Waits in the node's namespace and lets `sw0` call.
fn deaf_controller(lab: &Lab) -> Deaf {
    let listener = inside(&lab.netns, || TcpListener::bind("127.0.0.1:0").unwrap());
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    lab.suiro(&[
        "switch",
        "mod",
        "sw0",
        "--controller",
        &address,
        "--max-packet-in-per-s",
        "1000000",
    ]);
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&HELLO).unwrap();
    Deaf { _listener: listener, stream: Some(stream) }
}

fn lost_packet_ins(lab: &Lab) -> u64 {
    let peers = lab.json(&["switch", "show", "sw0"])["connections"].clone();
    peers.as_array().unwrap().iter().map(|peer| peer["lost_packet_ins"].as_u64().unwrap()).sum()
}

#[test]
fn a_controller_that_never_reads_loses_packet_ins_and_then_its_connection() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&["g1"]);
    let lab = &bystanders.lab;
    lab.connect("sw0", "g1", Kind::Tap);
    lab.introduce("g1", "n99");
    lab.suiro(&["flow", "add", "sw0", "priority=9,udp,actions=CONTROLLER:65535"]);
    let mut deaf = deaf_controller(lab);
    until("the controller is too slow", || {
        send_datagrams(lab, "g1", "10.0.0.99:9", (2000, 1400));
        lost_packet_ins(lab) > 0
    });
    let before = memory_kib(lab);
    for _ in 0..10 {
        send_datagrams(lab, "g1", "10.0.0.99:9", (2000, 1400));
    }
    let grown = memory_kib(lab).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more for a controller that never reads");
    until("the switch gives it up", || lab.log().contains("controller disconnected"));
    says(&lab.log(), &["switch=\"sw0\"", "silent for too long; see whether it hangs", "Trying on"]);
    deaf.stream = None;
    bystanders.lost_nothing();
}

#[test]
fn an_end_waits_for_nobody_and_leaves_no_socket() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&["g1", "g2"]);
    let lab = &bystanders.lab;
    lab.connect("sw0", "g1", Kind::Tap);
    lab.connect("sw0", "g2", Kind::AfXdp);
    let rules: String =
        (0..20_000).map(|n| format!("priority=9,tcp,tp_dst={n},actions=drop\n")).collect();
    std::fs::write(lab.path("rules"), rules).unwrap();
    lab.suiro(&["flow", "add", "sw0", "--file", lab.path("rules").to_str().unwrap()]);
    let deaf = deaf_controller(lab);
    let idle = inside(&lab.netns, || TcpStream::connect(OPENFLOW).unwrap());
    let mut lister = UnixStream::connect(lab.socket()).unwrap();
    lister.write_all(b"GET /v1/switches/sw0/flows HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut lab = bystanders.lost_nothing();
    let start = Instant::now();
    lab.end(rustix::process::Signal::TERM);
    let took = start.elapsed();
    assert!(took.as_secs_f32() < 2.0, "the end took {took:?}");
    let left: Vec<_> =
        std::fs::read_dir(lab.path("run")).unwrap().map(|entry| entry.unwrap()).collect();
    let is_socket = |entry: &std::fs::DirEntry| {
        std::os::unix::fs::FileTypeExt::is_socket(&entry.file_type().unwrap())
    };
    assert!(!left.iter().any(is_socket), "{left:?}");
    drop((deaf, idle, lister));
}
