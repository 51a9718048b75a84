//! 60-byte UDP frames as fast as one core makes them, and a receiver that costs next to nothing.
//!
//! The generator injects live XDP frames (`BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18) into the guest's interface; the receiver is an XDP
//! program that drops, so the interface's own counter tells what was delivered.

use crate::netns::Guest;
use crate::sys::{GENERATOR, RECEIVER, XdpProgram, interface_index, pin};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Frames per system call. Each call makes a page pool of its own, which takes milliseconds, so there are many.
const BURST: u32 = 200_000;

/// What came of a window.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Frames offered per second.
    pub offered: f64,
    /// Frames delivered per second.
    pub delivered: f64,
}

/// Sends from one guest to another for `window`, from core 0; the first quarter is not counted.
pub fn flood(from: &Guest, to: &Guest, window: Duration) -> Result<Delivered> {
    let _receiver =
        to.namespace.enter(|| XdpProgram::load(RECEIVER)?.attach(interface_index("eth0")?))?;
    let frame = udp_frame(from, to, 10_048, 18);
    send(from, &frame, window / 4)?;
    let before = to.namespace.received("eth0")?;
    let start = Instant::now();
    let sent = send(from, &frame, window)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = to.namespace.received("eth0")?;
    Ok(Delivered { offered: sent as f64 / seconds, delivered: (after - before) as f64 / seconds })
}

/// Sends 64 flows of the frame for a while; returns how many frames were offered.
pub fn send(from: &Guest, frame: &[u8], window: Duration) -> Result<u64> {
    from.namespace.enter(|| {
        pin(0);
        let generator = XdpProgram::load(GENERATOR)?;
        let interface = interface_index("eth0")?;
        let (start, mut sent) = (Instant::now(), 0);
        while start.elapsed() < window {
            generator.send(interface, frame, BURST)?;
            sent += u64::from(BURST);
        }
        Ok(sent)
    })
}

/// Ethernet, IPv4, UDP without checksum (RFC 768 allows 0), `payload` zero bytes; 18 make the smallest frame, 60 bytes without FCS.
pub fn udp_frame(from: &Guest, to: &Guest, source_port: u16, payload: u16) -> Vec<u8> {
    let address =
        |text: &str| text.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u8>>();
    let mac = |text: &str| {
        text.split(':').map(|part| u8::from_str_radix(part, 16).unwrap_or(0)).collect::<Vec<u8>>()
    };
    let mut ip =
        [&[0x45, 0][..], &(28 + payload).to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    ip.extend(address(&from.address));
    ip.extend(address(&to.address));
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    let ports =
        [source_port.to_be_bytes(), 9u16.to_be_bytes(), (8 + payload).to_be_bytes(), [0, 0]]
            .concat();
    [mac(&to.mac), mac(&from.mac), vec![8, 0], ip, ports, vec![0; payload.into()]].concat()
}
