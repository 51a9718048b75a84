//! Part of `suiro bench wire` (`--only headers`): TCP of guests behind headers of their own, on the commonest pairs of port kinds, beside the Linux bridge.
//!
//! A second a cell. VLAN, QinQ and GRE are put on by programs at the guests' tc hooks, as their own devices would; VXLAN is the kernel's device.

use super::cases::{BRIDGE, Better, Case, suiro};
use anyhow::{Context, Result};
use testbed::netns::{Guest, run};
use testbed::peer::{Attach, Running};
use testbed::traffic::tcp::{Cores, throughput_at};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/headers.bpf.o"));

const SECONDS: u32 = 1;
/// An MTU that leaves room for the headers of GRE over IPv4.
const GRE_MTU: &str = "1476";

/// What is around a guest's TCP.
#[derive(Clone, Copy)]
enum Around {
    Nothing,
    Vlan,
    QinQ,
    Vxlan,
    Gre,
}

const AROUND: [Around; 5] =
    [Around::Nothing, Around::Vlan, Around::QinQ, Around::Vxlan, Around::Gre];

type Measure = fn(&Running) -> Result<f64>;

/// Names, and how each is measured from the first guest to the second and back.
const CELLS: [(&str, Measure, Measure); AROUND.len()] = [
    ("TCP", forth::<0>, back::<0>),
    ("TCP in a VLAN", forth::<1>, back::<1>),
    ("TCP in QinQ", forth::<2>, back::<2>),
    ("TCP in VXLAN", forth::<3>, back::<3>),
    ("TCP in GRE", forth::<4>, back::<4>),
];

/// Names, and whether it is the way back.
const PAIRS: [(&str, Attach, bool); 5] = [
    ("tap to tap", Attach::Tap, false),
    ("af_packet to af_packet", Attach::AfPacket, false),
    ("af_xdp to af_xdp", Attach::AfXdpNative, false),
    ("tap to af_packet", Attach::TapAndAfPacket, false),
    ("af_packet to tap", Attach::TapAndAfPacket, true),
];

pub fn cases() -> Vec<Case> {
    let cells = PAIRS.iter().flat_map(|pair| CELLS.iter().map(move |cell| (pair, cell)));
    let case =
        |(&(pair, attach, is_back), &(cell, forth, back)): (&(_, _, _), &(&str, _, _))| Case {
            name: format!("headers, {pair}: {cell}").leak(),
            unit: "Gbit/s",
            better: Better::More,
            ours: suiro(attach),
            peers: vec![(BRIDGE, None)],
            measure: if is_back { back } else { forth },
        };
    cells.map(case).collect()
}

fn forth<const AT: usize>(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    measure(a, b, AROUND[AT])
}

fn back<const AT: usize>(running: &Running) -> Result<f64> {
    let [a, b] = &running.guests;
    measure(b, a, AROUND[AT])
}

fn measure(from: &Guest, to: &Guest, around: Around) -> Result<f64> {
    let address = |guest: &Guest| match around {
        Around::Vxlan => guest.address.replace("10.77.0.", "10.78.0."),
        _ => guest.address.clone(),
    };
    for (guest, other) in [(from, to), (to, from)] {
        enter(guest, other, &address(guest), around)
            .with_context(|| format!("guest {}: its headers", guest.port))?;
    }
    throughput_at(from, (to, &address(to)), Cores::Generators, SECONDS)
}

/// Has a guest speak so.
fn enter(guest: &Guest, other: &Guest, address: &str, around: Around) -> Result<()> {
    let ip = |words: &str| guest.namespace.ip(&words.split(' ').collect::<Vec<_>>()).map(drop);
    match around {
        Around::Nothing => Ok(()),
        Around::Vlan => hooks(guest, "vlan_out", "tags_in"),
        Around::QinQ => hooks(guest, "qinq_out", "tags_in"),
        Around::Gre => {
            ip(&format!("route replace 10.77.0.0/24 dev eth0 mtu {GRE_MTU}"))?;
            hooks(guest, "gre_out", "gre_in")
        }
        Around::Vxlan => {
            let (local, remote) = (&guest.address, &other.address);
            ip(&format!(
                "link add vx0 type vxlan id 5 local {local} remote {remote} dstport 4789"
            ))?;
            ip(&format!("addr add {address}/24 dev vx0"))?;
            ip("link set vx0 up")
        }
    }
}

/// Attaches programs to what leaves a guest and what enters it.
fn hooks(guest: &Guest, out: &str, into: &str) -> Result<()> {
    let object = tempfile::NamedTempFile::new().context("a file for the programs")?;
    std::fs::write(&object, OBJECT).context("a file for the programs")?;
    let path = object.path().display().to_string();
    let tc = |words: &str| run(guest.namespace.command("tc").args(words.split(' '))).map(drop);
    tc("qdisc replace dev eth0 clsact")?;
    for (hook, program) in [("egress", out), ("ingress", into)] {
        tc(&format!("filter replace dev eth0 {hook} bpf da object-file {path} program {program}"))?;
    }
    Ok(())
}
