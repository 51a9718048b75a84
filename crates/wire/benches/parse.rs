//! Prints nanoseconds per operation of parsing and of common edits: `cargo bench -p suiro-wire`.
//!
//! Each figure is the best of seven rounds over 64 heads, two of a worker's batches, which stay in the first-level cache as they do there.

use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::Instant;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::{Edit, Field, Head, Key, Layers, Offload, is_partial, parse_into};

const HEADS: usize = 64;
const PASSES: usize = 4000;
const ROUNDS: usize = 7;

struct Packet {
    head: Head,
    key: Key,
    layers: Layers,
    offload: Offload,
    frame_len: u32,
}

impl Packet {
    fn edit(&mut self) -> Edit<'_> {
        let Self { head, key, layers, offload, frame_len } = self;
        Edit { head, key, layers, offload, frame_len }
    }
}

fn packets(frame: impl Fn(u16) -> Vec<u8>) -> Vec<Packet> {
    let packet = |i| {
        let frame = frame(i as u16);
        let head = Head::copy_of(&frame);
        let (key, layers) = wire::parse(&head, 1);
        Packet { head, key, layers, offload: Offload::default(), frame_len: frame.len() as u32 }
    };
    (0..HEADS).map(packet).collect()
}

/// Best time of one call, in nanoseconds.
fn measure(name: &str, packets: &mut [Packet], mut each: impl FnMut(&mut Packet)) {
    let round = |_| {
        let begin = Instant::now();
        for _ in 0..PASSES {
            packets.iter_mut().for_each(|packet| each(black_box(packet)));
        }
        begin.elapsed().as_nanos() as f64 / (PASSES * HEADS) as f64
    };
    let best = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
    println!("{name:<34} {best:>7.1} ns");
}

fn parse(packet: &mut Packet) {
    parse_into(black_box(&packet.head), &mut packet.key, &mut packet.layers);
}

fn ethernet() -> Frame {
    Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
}

fn tcp4(i: u16) -> Vec<u8> {
    ethernet()
        .ipv4(Ipv4::default())
        .tcp(Tcp { src: i, ..Tcp::default() })
        .payload(&[0; 10])
        .finish()
}

fn tcp6(i: u16) -> Vec<u8> {
    ethernet().ipv6(Ipv6::default()).tcp(Tcp { src: i, ..Tcp::default() }).finish()
}

fn measure_parsing() {
    measure("parse eth/ipv4/tcp", &mut packets(tcp4), parse);
    let vlan_udp = |i| {
        ethernet()
            .vlan(0x8100, i & 0xfff)
            .ipv4(Ipv4::default())
            .udp(i, 53)
            .payload(&[0; 18])
            .finish()
    };
    measure("parse eth/vlan/ipv4/udp", &mut packets(vlan_udp), parse);
    measure("parse eth/ipv6/tcp", &mut packets(tcp6), parse);
    let chain = |i| {
        ethernet()
            .ipv6(Ipv6::default())
            .routing(0, Ipv6Addr::LOCALHOST)
            .fragment(1, 7)
            .udp(i, 53)
            .finish()
    };
    measure("parse eth/ipv6/routing/frag/udp", &mut packets(chain), parse);
    let ask = |i| {
        ethernet()
            .ipv6(Ipv6::default())
            .neighbor(135, Ipv6Addr::from(u128::from(i)), Some([2; 6]))
            .finish()
    };
    measure("parse eth/ipv6/icmpv6/nd", &mut packets(ask), parse);
    let labels = |i| {
        ethernet()
            .mpls(u32::from(i), 0, 64)
            .mpls(7, 0, 64)
            .ipv4(Ipv4::default())
            .udp(i, 53)
            .finish()
    };
    measure("parse eth/mpls/mpls/ipv4", &mut packets(labels), parse);
    measure("is_partial eth/ipv4/tcp", &mut packets(tcp4), |packet| {
        black_box(is_partial(&packet.head, &packet.layers));
    });
}

fn measure_edits() {
    let mut value = 0u128;
    let mut next = || {
        value += 0x0101_0101;
        value
    };
    let mut set = |name: &str, field: Field| {
        measure(name, &mut packets(tcp4), |packet| {
            let _ = black_box(packet.edit().set_field(field, next(), field.full()));
        });
    };
    set("set_field eth_dst", Field::EthDst);
    set("set_field ipv4_src", Field::Ipv4Src);
    set("set_field tp_dst", Field::TpDst);
    measure("push_vlan, pop_vlan", &mut packets(tcp4), |packet| {
        let _ = black_box(packet.edit().push_vlan(0x8100));
        let _ = black_box(packet.edit().pop_vlan());
    });
    measure("set_nw_ttl, dec_nw_ttl", &mut packets(tcp4), |packet| {
        let _ = black_box(packet.edit().set_nw_ttl(64));
        let _ = black_box(packet.edit().dec_nw_ttl());
    });
    let sctp = |i| ethernet().ipv4(Ipv4::default()).sctp(i, 80).payload(&[0; 1400]).finish();
    measure("set_field tp_dst (SCTP, 1400 B)", &mut packets(sctp), |packet| {
        let _ = black_box(packet.edit().set_field(Field::TpDst, next(), 0xffff));
    });
}

fn measure_sums() {
    let bytes = vec![0x5a; 1448];
    let mut one = packets(tcp4);
    measure("checksum::sum 1448 B", &mut one, |_| {
        black_box(wire::checksum::sum(black_box(&bytes)));
    });
    measure("checksum::crc32c 1448 B", &mut one, |_| {
        black_box(wire::checksum::crc32c(black_box(&bytes)));
    });
}

fn main() {
    // `cargo test --benches` only asks whether it runs.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    measure_parsing();
    measure_edits();
    measure_sums();
}
