//! 60-byte UDP frames as fast as one core makes them, and a receiver that costs next to nothing.
//!
//! The generator injects live XDP frames (`BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18) into the guest's interface; the receiver's interface
//! counts what was delivered.

use crate::netns::{Guest, run};
use crate::peer::GENERATORS_CORE;
use crate::sys::{GENERATOR, GENERATOR_INSIDE, RECEIVER, XdpProgram, interface_index, pin};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Frames of the first system call, which tells how long the next one has to be.
const TRIAL: u32 = 200_000;

/// Who takes the frames at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// An XDP program that drops.
    Program,
    /// The guest's own stack, which has no socket for them; with or without GRO on its interface.
    Stack {
        /// `ethtool -K eth0 gro on`
        gro: bool,
    },
}

/// What came of a window.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Frames offered per second.
    pub offered: f64,
    /// Frames delivered per second.
    pub delivered: f64,
}

/// UDP payload of the smallest frame, 60 bytes without FCS.
pub const SMALLEST: u16 = 18;

/// Sends frames with that much UDP payload from one guest to another for about `window`, from core 0, after a trial that is not counted.
pub fn flood(
    from: &Guest,
    to: &Guest,
    by: Receiver,
    payload: u16,
    window: Duration,
) -> Result<Delivered> {
    let bytes = udp_frame(from, to, 10_048, payload);
    flood_of(from, to, by, &Frames { bytes, generator: GENERATOR }, window)
}

/// What is sent: 64 flows.
pub struct Frames {
    bytes: Vec<u8>,
    generator: &'static [u64],
}

/// A tunnel's packets: VXLAN over IPv4, without an outer checksum.
pub struct Packets<'p> {
    /// MAC and address of this end, as the other one sees them.
    pub to: (&'p str, &'p str),
    /// The other end's address; its MAC is the sending guest's.
    pub from: &'p str,
    /// The tunnel's identifier.
    pub vni: u32,
}

impl Frames {
    /// Frames from one guest to another, in a tunnel's packets.
    pub fn in_tunnel(from: &Guest, to: &Guest, payload: u16, packets: &Packets<'_>) -> Self {
        let mut inside = vec![8, 0, 0, 0];
        inside.extend((packets.vni << 8).to_be_bytes());
        inside.extend(udp_frame(from, to, 10_048, payload));
        let macs = (&*from.mac, packets.to.0);
        let bytes = udp_packet(macs, (packets.from, packets.to.1), (49_152, VXLAN), &inside);
        Self { bytes, generator: GENERATOR_INSIDE }
    }
}

/// VXLAN's UDP port (RFC 7348).
const VXLAN: u16 = 4789;

/// The same with such frames.
pub fn flood_of(
    from: &Guest,
    to: &Guest,
    by: Receiver,
    frames: &Frames,
    window: Duration,
) -> Result<Delivered> {
    let drop_all = || XdpProgram::load(RECEIVER)?.attach(interface_index("eth0")?);
    let _receiver = match by {
        Receiver::Program => Some(to.namespace.enter(drop_all)?),
        Receiver::Stack { gro } => {
            let gro = if gro { "on" } else { "off" };
            run(to.namespace.command("ethtool").args(["-K", "eth0", "gro", gro]))?;
            None
        }
    };
    from.namespace.enter(|| {
        let source = Source::new(&frames.bytes, frames.generator)?;
        let count = source.frames_in(window)?;
        let before = to.namespace.received("eth0")?;
        let seconds = source.send(count)?;
        let after = to.namespace.received("eth0")?;
        let (sent, received) = (f64::from(count), (after - before) as f64);
        Ok(Delivered { offered: sent / seconds, delivered: received / seconds })
    })
}

/// Sends 64 flows of the frame for about `window`.
pub fn send(from: &Guest, frame: &[u8], window: Duration) -> Result<()> {
    from.namespace.enter(|| {
        let source = Source::new(frame, GENERATOR)?;
        source.send(source.frames_in(window)?).map(drop)
    })
}

/// A generator on core 0.
struct Source<'a> {
    program: XdpProgram,
    interface: u32,
    frame: &'a [u8],
}

impl<'a> Source<'a> {
    /// For `eth0` of the calling thread's namespace.
    fn new(frame: &'a [u8], generator: &[u64]) -> Result<Self> {
        pin(GENERATORS_CORE);
        Ok(Self {
            program: XdpProgram::load(generator)?,
            interface: interface_index("eth0")?,
            frame,
        })
    }

    /// How many it sends in a window, as far as a short trial tells.
    fn frames_in(&self, window: Duration) -> Result<u32> {
        Ok((f64::from(TRIAL) / self.send(TRIAL)? * window.as_secs_f64()) as u32)
    }

    /// Sends so many in one call, which makes and gives back a page pool: tens of milliseconds in which a switch has nothing to do, so
    /// a window is one call. Returns the seconds that it took.
    fn send(&self, count: u32) -> Result<f64> {
        let start = Instant::now();
        self.program.send(self.interface, self.frame, count)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Ethernet, IPv4, UDP without checksum (RFC 768 allows 0), `payload` zero bytes.
pub fn udp_frame(from: &Guest, to: &Guest, source_port: u16, payload: u16) -> Vec<u8> {
    let addresses = (&*from.address, &*to.address);
    udp_packet((&from.mac, &to.mac), addresses, (source_port, 9), &vec![0; payload.into()])
}

fn udp_packet(
    (from_mac, to_mac): (&str, &str),
    (from, to): (&str, &str),
    (source, destination): (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let len = payload.len() as u16;
    let address =
        |text: &str| text.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u8>>();
    let mac = |text: &str| {
        text.split(':').map(|part| u8::from_str_radix(part, 16).unwrap_or(0)).collect::<Vec<u8>>()
    };
    let mut ip =
        [&[0x45, 0][..], &(28 + len).to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    ip.extend(address(from));
    ip.extend(address(to));
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    let ports = [source, destination, 8 + len, 0].map(u16::to_be_bytes).concat();
    [&mac(to_mac)[..], &mac(from_mac), &[8, 0], &ip, &ports, payload].concat()
}
