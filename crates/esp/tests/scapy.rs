//! An end that no one here wrote: scapy's ESP over the `cryptography` package opens what we seal, and seals what we open.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use esp::{Counters, Envelope, HEADER, Inbound, Key, Mode, Outbound, sealed_len};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Scapy's process.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Self {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let given = std::env::var_os("SUIRO_PYTHON").map(PathBuf::from);
        let python = given.unwrap_or_else(|| here.join("../../.venv/bin/python"));
        let spawned = Command::new(&python)
            .arg(here.join("tests/peer.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|error| {
            panic!(
                "{}: {error}; run 'make setup', or set SUIRO_PYTHON to a Python with scapy",
                python.display()
            )
        });
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    fn ask(&mut self, request: &str) -> Vec<u8> {
        writeln!(self.input, "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "scapy did not answer to: {request}");
        unhex(line.trim())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    text.as_bytes().chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn scapy_opens_what_we_seal_and_seals_what_we_open() {
    let mut peer = Peer::start();
    let spi = 0x1001;
    for (key_len, has_esn, mode, sequence) in [
        (20, true, Mode::Transport, 1),
        (36, true, Mode::Transport, (7 << 32) + 5),
        (20, true, Mode::Tunnel, (1 << 32) + 1),
        (36, false, Mode::Tunnel, 9),
        (20, false, Mode::Transport, 0xffff_fff0),
    ] {
        let bytes: Vec<u8> = (1..=key_len).collect();
        let key = Key::new(&bytes).unwrap();
        let ends = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let towards = Envelope { mode, local: ends[0], remote: ends[1], port: 4789 };
        let here = Envelope { local: ends[1], remote: ends[0], ..towards };
        let outbound =
            Outbound::new(spi, &key, has_esn, Counters { sequence, iv: 0x0123_4567_89ab_cdef });
        outbound.allow(outbound.after(8));
        let inbound = Inbound::new(spi, &key, has_esn, mode, sequence - 1);
        let words = |sequence: u64| {
            format!(
                "{} {spi} {sequence} {} {}",
                hex(&bytes),
                u8::from(has_esn),
                u8::from(mode == Mode::Tunnel)
            )
        };
        for (number, len) in (sequence..).zip([0, 1, 2, 3, 1400]) {
            let vxlan: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let payload = towards.len() + vxlan.len();
            let mut packet = vec![0; sealed_len(payload)];
            packet[HEADER + towards.len()..HEADER + payload].copy_from_slice(&vxlan);
            towards.write(&mut packet[HEADER..HEADER + payload], 3, 0);
            outbound.seal(&mut packet, payload, towards.next_header()).unwrap();
            let theirs = peer.ask(&format!("open {} {}", words(number), hex(&packet)));
            assert_eq!(theirs[8..], vxlan, "{mode:?}, {len} bytes");
            let mut sealed = peer.ask(&format!("seal {} {}", words(number), hex(&theirs)));
            let opened = inbound.open(&mut sealed).unwrap();
            let contents = here.read(opened.next_header, &sealed[opened.payload.clone()]).unwrap();
            assert_eq!(sealed[opened.payload][contents.vxlan], vxlan, "{mode:?}, {len} bytes");
        }
    }
}
