//! Forwards between two ports in one thread: what the ports alone can do, without a switch.
//!
//! `forward tap:tap0@guest1 af_xdp:veth1 [--core N] [--seconds N] [--mode native] [--pump]`
//!
//! With `--pump` nothing is received: one frame of 60 bytes is sent by the second port again and again, which tells what the kernel
//! takes for sending alone.

use api::{Keys, PortSpec};
use port::{Body, BodyAt, Drops, OpenPort, RxBatch, RxQueue, Sent, Slot, TxFrame, TxQueue, open};
use std::env;
use std::error::Error;
use std::time::{Duration, Instant};
use wire::Offload;

struct Options {
    ports: Vec<PortSpec>,
    core: Option<usize>,
    seconds: u64,
    pump: bool,
}

/// One direction: every rx queue of one port, one tx queue of the other.
struct Way {
    from: Vec<Box<dyn RxQueue>>,
    to: Box<dyn TxQueue>,
    sent: Sent,
    drops: Drops,
    /// Time in `rx` calls that brought frames, and in `tx`.
    busy: [Duration; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    if let Some(core) = options.core {
        let mut set = rustix::thread::CpuSet::new();
        set.set(core);
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    let [left, right] = &options.ports[..] else { return Err("two ports, please".into()) };
    let (left, right) = (opened(left)?, opened(right)?);
    let (mut there, mut back) = (way(left.rx, right.tx), way(right.rx, left.tx));
    let mut batch = RxBatch::default();
    let end = Instant::now() + Duration::from_secs(options.seconds);
    while options.pump && Instant::now() < end {
        pump(&mut there);
    }
    while Instant::now() < end {
        for _ in 0..64 {
            forward(&mut there, &mut batch)?;
            forward(&mut back, &mut batch)?;
        }
    }
    for (name, way) in [("there", &there), ("back", &back)] {
        let seconds = options.seconds as f64;
        let (mpps, gbits) =
            (way.sent.frames as f64 / seconds / 1e6, way.sent.bytes as f64 * 8.0 / seconds / 1e9);
        let drops: Vec<_> =
            way.drops.iter().map(|(reason, count)| format!("{} {count}", reason.name())).collect();
        let [rx, tx] = way.busy.map(|busy| busy.as_nanos() / u128::from(way.sent.frames.max(1)));
        println!(
            "{name}: {mpps:.3} Mpps, {gbits:.2} Gbit/s, rx {rx} ns, tx {tx} ns a frame, drops: {}",
            drops.join(", ")
        );
    }
    Ok(())
}

fn opened(spec: &PortSpec) -> Result<OpenPort, Box<dyn Error>> {
    let port = open(spec, 1).map_err(|error| {
        let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
        format!("{error}{cause}; {}", error.remedy())
    })?;
    println!("{}: {}; {}", port.facts.interface, port.facts.mode, port.facts.notes.join("; "));
    Ok(port)
}

fn way(from: Vec<Box<dyn RxQueue>>, mut to: Vec<Box<dyn TxQueue>>) -> Way {
    Way {
        from,
        to: to.remove(0),
        sent: Sent::default(),
        drops: Drops::default(),
        busy: [Duration::ZERO; 2],
    }
}

fn forward(way: &mut Way, batch: &mut RxBatch) -> std::io::Result<()> {
    for rx in &mut way.from {
        batch.clear();
        let began = Instant::now();
        if rx.rx(batch, &mut way.drops)? == 0 {
            continue;
        }
        let received = Instant::now();
        let frames: Vec<TxFrame<'_>> =
            batch.frames().iter().map(|slot| frame(slot, rx.as_ref())).collect();
        let sent = way.to.tx(&frames, &mut way.drops);
        (way.sent.frames, way.sent.bytes) =
            (way.sent.frames + sent.frames, way.sent.bytes + sent.bytes);
        rx.release();
        way.busy[0] += received - began;
        way.busy[1] += received.elapsed();
    }
    Ok(())
}

/// Sends a batch of the smallest frames: broadcast, of an experimental EtherType (IEEE 802, 0x88b5).
fn pump(way: &mut Way) {
    let mut head = [0; 60];
    head[..6].fill(0xff);
    head[6] = 2;
    head[12..14].copy_from_slice(&[0x88, 0xb5]);
    let frame = TxFrame {
        head: &head,
        body: Body::default(),
        offload: Offload::default(),
        tunnel_id: 0,
        tun_dst: 0,
    };
    let began = Instant::now();
    let sent = way.to.tx(&[frame; wire::BATCH], &mut way.drops);
    (way.sent.frames, way.sent.bytes) =
        (way.sent.frames + sent.frames, way.sent.bytes + sent.bytes);
    way.busy[1] += began.elapsed();
}

fn frame<'a>(slot: &'a Slot, rx: &'a dyn RxQueue) -> TxFrame<'a> {
    let body = match slot.body {
        BodyAt::Nowhere => Body::default(),
        BodyAt::Slot(len) => Body::private(&slot.buffer[..len as usize]),
        BodyAt::Port { at, len } => rx.body(at, len),
    };
    TxFrame { head: slot.head.bytes(), body, offload: slot.offload, tunnel_id: 0, tun_dst: 0 }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options { ports: Vec::new(), core: None, seconds: 10, pump: false };
    let (mut ports, mut mode) = (Vec::new(), None);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("a value is missing");
        match argument.as_str() {
            "--core" => options.core = Some(value()?.parse()?),
            "--seconds" => options.seconds = value()?.parse()?,
            "--pump" => options.pump = true,
            "--mode" => mode = Some(value()?),
            text => ports.push(text.to_owned()),
        }
    }
    for text in ports {
        options.ports.push(spec(&text, mode.as_deref())?);
    }
    Ok(options)
}

fn spec(text: &str, mode: Option<&str>) -> Result<PortSpec, Box<dyn Error>> {
    let (kind, rest) = text.split_once(':').ok_or("a port reads kind:interface[@netns]")?;
    let (interface, netns) = match rest.split_once('@') {
        Some((interface, netns)) => (interface, Some(netns)),
        None => (rest, None),
    };
    let mut keys = Keys::new();
    keys.insert("type".into(), kind.into());
    keys.insert("interface".into(), interface.into());
    keys.extend(netns.map(|netns| ("netns".into(), netns.into())));
    let mode = mode.filter(|_| kind == "af_xdp");
    keys.extend(mode.map(|mode| ("xdp_mode".into(), mode.into())));
    Ok(PortSpec::read(keys)?)
}
