//! Filters that tcpdump compiles take here what tcpdump itself takes.

#![expect(clippy::unwrap_used, reason = "tests")]

use capture::bpf::{Instruction, Program};
use std::io::Write;
use std::process::{Command, Stdio};
use wire::build::{Arp, Frame, Ipv4, Ipv6, Tcp};

const FILTERS: [&str; 17] = [
    "",
    "tcp and port 80",
    "udp port 53 or icmp",
    "host 10.0.0.1",
    "net 10.0.0.0/30 and not port 80",
    "ip6",
    "ip6 and tcp port 80",
    "vlan and tcp port 80",
    "vlan 7",
    "arp",
    "ip[8] < 5",
    "tcp[tcpflags] & tcp-syn != 0",
    "greater 100",
    "ether[0] & 1 = 0 and len > 60",
    "(ip[2:2] - ((ip[0] & 0xf) << 2)) % 3 = 1",
    "mpls",
    "pppoes or (geneve and ip)",
];

/// Bytes that `tcpdump` prints for these words, given these on standard input.
fn tcpdump(words: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("tcpdump");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("tcpdump is missing: run `make setup` as root");
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().stdout
}

fn compiled(filter: &str) -> Program {
    let text = tcpdump(&["-ddd", "-y", "EN10MB", "--", filter], &[]);
    let text = String::from_utf8(text).unwrap();
    let instruction = |line: &str| {
        let numbers: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [code, jt, jf, k] = numbers.try_into().unwrap();
        Instruction { code: code as u16, jt: jt as u8, jf: jf as u8, k }
    };
    let code: Vec<_> = text.lines().skip(1).map(instruction).collect();
    Program::new(&code).unwrap()
}

/// Frames of many kinds, whole and cut at every length of a header.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for kind in 0..64u8 {
        let mut frame = Frame::ethernet([kind & 3, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
        if kind & 4 != 0 {
            frame = frame.vlan(0x8100, 7 + u16::from(kind & 1));
        }
        let v4 = Ipv4 {
            src: [10, 0, 0, kind % 5].into(),
            ttl: kind / 4,
            fragment: if kind % 11 == 3 { 0x2010 } else { 0 },
            ..Ipv4::default()
        };
        let port = [80, 53, 443][usize::from(kind % 3)];
        let tcp = |src, dst| Tcp { src, dst, flags: 2 << (kind & 3), ..Tcp::default() };
        let [sha, tha] = [[2; 6], [0; 6]];
        let arp = Arp { op: 1, sha, spa: v4.src, tha, tpa: [10, 0, 0, 1].into() };
        let frame = match kind / 8 {
            0 | 1 => frame.ipv4(v4).tcp(tcp(port, 1000)),
            2 => frame.ipv4(v4).udp(1000, port),
            3 => frame.ipv4(v4).icmp(8, 0),
            4 => frame.ipv6(Ipv6::default()).tcp(tcp(1000, port)),
            5 => frame.ipv6(Ipv6::default()).udp(port, 1000),
            6 => frame.arp(arp),
            _ => frame.ipv4(v4).udp(9, 6081),
        };
        frames.push(frame.payload(&vec![kind; usize::from(kind) * 5]).finish());
    }
    let whole = frames.clone();
    frames.extend(
        whole.iter().flat_map(|frame| {
            (14..frame.len().min(60)).step_by(3).map(|len| frame[..len].to_vec())
        }),
    );
    frames
}

/// A pcap file of them (draft-ietf-opsawg-pcap); each is known again by its time.
fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_536, 1]);
    for (number, frame) in (0..).zip(frames) {
        let len = frame.len() as u32;
        file.extend(words(&[number, 0, len, len]));
        file.extend(frame);
    }
    file
}

/// The times of a pcap file's packets.
fn times(file: &[u8]) -> Vec<u32> {
    let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap());
    let (mut at, mut times) = (24, Vec::new());
    while at < file.len() {
        times.push(word(at));
        at += 16 + word(at + 8) as usize;
    }
    times
}

#[test]
fn each_filter_takes_what_tcpdump_takes() {
    let frames = frames();
    let input = file(&frames);
    for filter in FILTERS {
        let taken = times(&tcpdump(&["-r", "-", "-w", "-", "--", filter], &input));
        let program = compiled(filter);
        let ours = (0..).zip(&frames).filter(|(_, frame)| program.takes(&frame[..]));
        assert_eq!(ours.map(|(number, _)| number).collect::<Vec<u32>>(), taken, "{filter:?}");
        assert!(filter.is_empty() == (taken.len() == frames.len()), "{filter:?}");
    }
}
