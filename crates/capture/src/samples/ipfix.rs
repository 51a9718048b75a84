//! IPFIX (RFC 7011), with information elements of IANA's registry (RFC 7012).
//!
//! | template | flows |
//! |---|---|
//! | 256 | of IPv4 |
//! | 257 | of IPv6 |
//! | 258 | of anything else: port, addresses of Ethernet, EtherType |
//!
//! A flow's packets and octets are estimates: the sum of the weights of its samples. So `samplingInterval` need not be told, and a collector has
//! nothing to multiply. `octetDeltaCount` is what lies behind Ethernet's header and tags, a short frame's padding too.
//! A flow that was [counted](Flow) elsewhere is told as it was counted.
//! With an enterprise number, its elements 1 (`core`, unsigned32) and 2 (`rung`, string) follow.

use super::bytes::Bytes;
use super::{DATAGRAM, Place, Sample};
use std::collections::BTreeMap;
use wire::{Field, VLAN_PRESENT, eth_type, ip_proto};

const VERSION: u16 = 10;
const HEADER: usize = 16;
const TEMPLATE_SET: u16 = 2;
/// flowEndReason: active timeout, for what goes on is told again.
const ACTIVE_TIMEOUT: u8 = 2;
/// Flows that are summed up between two messages. Chosen: some MiB.
const FLOWS_MAX: usize = 16_384;
/// Bit of an element that is an enterprise's, and the length of those that say their own (RFC 7011 §3.2, §7).
const OF_ENTERPRISE: u16 = 0x8000;
const VARIABLE: u16 = u16::MAX;

/// Information elements: number and bytes.
type Element = (u16, u16);
const INGRESS_INTERFACE: Element = (10, 4);
const SOURCE_MAC: Element = (56, 6);
const DESTINATION_MAC: Element = (80, 6);
const VLAN_ID: Element = (58, 2);
const ETHERNET_TYPE: Element = (256, 2);
const SOURCE_IPV4: Element = (8, 4);
const DESTINATION_IPV4: Element = (12, 4);
const SOURCE_IPV6: Element = (27, 16);
const DESTINATION_IPV6: Element = (28, 16);
const PROTOCOL: Element = (4, 1);
const CLASS_OF_SERVICE: Element = (5, 1);
const SOURCE_PORT: Element = (7, 2);
const DESTINATION_PORT: Element = (11, 2);
const TCP_FLAGS: Element = (6, 2);
const PACKETS: Element = (2, 8);
const OCTETS: Element = (1, 8);
const LAYER2_OCTETS: Element = (352, 8);
const START_MS: Element = (152, 8);
const END_MS: Element = (153, 8);
const END_REASON: Element = (136, 1);

const LINK: [Element; 5] = [INGRESS_INTERFACE, SOURCE_MAC, DESTINATION_MAC, VLAN_ID, ETHERNET_TYPE];
const IPV4: [Element; 2] = [SOURCE_IPV4, DESTINATION_IPV4];
const IPV6: [Element; 2] = [SOURCE_IPV6, DESTINATION_IPV6];
const TRANSPORT: [Element; 5] =
    [PROTOCOL, CLASS_OF_SERVICE, SOURCE_PORT, DESTINATION_PORT, TCP_FLAGS];
const COUNTED: [Element; 6] = [PACKETS, OCTETS, LAYER2_OCTETS, START_MS, END_MS, END_REASON];

/// Which template a flow has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Ipv4 = 256,
    Ipv6 = 257,
    Other = 258,
}

impl Kind {
    const EACH: [Self; 3] = [Self::Ipv4, Self::Ipv6, Self::Other];

    fn elements(self) -> Vec<Element> {
        let (addresses, transport): (&[_], &[_]) = match self {
            Self::Ipv4 => (&IPV4, &TRANSPORT),
            Self::Ipv6 => (&IPV6, &TRANSPORT),
            Self::Other => (&[], &[]),
        };
        [&LINK, addresses, transport, &COUNTED].concat()
    }
}

/// What the frames of a flow have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: Kind,
    port: u32,
    place: Place,
    link: [u64; 4],
    addresses: [u128; 2],
    /// Protocol, class of service, ports.
    transport: [u16; 4],
}

struct Counts {
    packets: u64,
    /// Behind Ethernet's header, and with it.
    octets: [u64; 2],
    tcp_flags: u16,
    start_ns: u64,
    end_ns: u64,
}

/// What came of a flow of IPv4 or IPv6 that was counted packet by packet, since it was told last.
pub struct Flow<'a> {
    /// Number of the port where it came in.
    pub port: u32,
    /// What its packets have in common.
    pub key: &'a wire::Key,
    /// Where it was processed.
    pub place: Place,
    /// Its packets.
    pub packets: u64,
    /// Their bytes, with Ethernet's header and tags.
    pub octets: u64,
    /// From when to when, in nanoseconds since 1970.
    pub times_ns: (u64, u64),
}

/// The flows of one observation domain: of a switch.
pub struct Domain {
    number: u32,
    /// 0 for none: then nothing is said of places.
    enterprise: u32,
    flows: BTreeMap<Key, Counts>,
    /// Data records so far.
    sequence: u32,
}

impl Domain {
    /// One that has seen nothing yet.
    pub fn new(number: u32, enterprise: u32) -> Self {
        Self { number, enterprise, flows: BTreeMap::new(), sequence: 0 }
    }

    /// Adds a frame to its flow. False if there are too many flows: it is left out.
    pub fn frame(&mut self, sample: &Sample<'_>) -> bool {
        let (parsed, layers) = wire::parse_bytes(sample.bytes);
        let key = key_of(&parsed, layers.ip > 0, (sample.port, sample.place));
        let is_tcp = key.transport[0] == ip_proto::TCP.into();
        let packets = u64::from(sample.weight);
        let lengths = [sample.len.saturating_sub(layers.l3.into()), sample.len];
        let counts = Counts {
            packets,
            octets: lengths.map(|len| packets * u64::from(len)),
            tcp_flags: if is_tcp { parsed.get(Field::TcpFlags) as u16 } else { 0 },
            start_ns: sample.at_ns,
            end_ns: sample.at_ns,
        };
        self.add(key, counts)
    }

    /// Adds what came of a flow that was counted. False if there are too many.
    pub fn flow(&mut self, flow: &Flow<'_>) -> bool {
        let is_tagged = flow.key.get(Field::VlanVid) as u16 & VLAN_PRESENT != 0;
        let link = flow.packets * if is_tagged { 18 } else { 14 };
        let (start_ns, end_ns) = flow.times_ns;
        let counts = Counts {
            packets: flow.packets,
            octets: [flow.octets.saturating_sub(link), flow.octets],
            tcp_flags: 0,
            start_ns,
            end_ns,
        };
        self.add(key_of(flow.key, true, (flow.port, flow.place)), counts)
    }

    fn add(&mut self, mut key: Key, more: Counts) -> bool {
        if self.enterprise == 0 {
            key.place = Place { core: 0, rung: "" };
        }
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&key) {
            return false;
        }
        let counts = self.flows.entry(key).or_insert(Counts {
            packets: 0,
            octets: [0; 2],
            tcp_flags: 0,
            ..more
        });
        counts.packets += more.packets;
        for (octets, more) in counts.octets.iter_mut().zip(more.octets) {
            *octets += more;
        }
        counts.tcp_flags |= more.tcp_flags;
        counts.start_ns = counts.start_ns.min(more.start_ns);
        counts.end_ns = counts.end_ns.max(more.end_ns);
        true
    }

    /// The message that says what the data sets mean. Collectors by UDP need it again and again (RFC 7011 §8.4).
    pub fn templates(&self, now_s: u32) -> Vec<u8> {
        let mut set = Bytes::default();
        for kind in Kind::EACH {
            let elements = kind.elements();
            let own: &[Element] = if self.enterprise > 0 { &[(1, 4), (2, VARIABLE)] } else { &[] };
            set.u16(kind as u16);
            set.u16((elements.len() + own.len()) as u16);
            for (number, length) in elements {
                set.u16(number);
                set.u16(length);
            }
            for (number, length) in own {
                set.u16(number | OF_ENTERPRISE);
                set.u16(*length);
                set.u32(self.enterprise);
            }
        }
        self.message(now_s, TEMPLATE_SET, &set)
    }

    /// The messages with all flows so far, which begin anew.
    pub fn finish(&mut self, now_s: u32) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let flows = std::mem::take(&mut self.flows);
        let mut set = (Kind::Ipv4, Bytes::default(), 0);
        for (key, counts) in &flows {
            let record = self.record(key, counts);
            let is_full = HEADER + 4 + set.1.0.len() + record.0.len() > DATAGRAM;
            if is_full || set.0 != key.kind {
                let before = std::mem::replace(&mut set, (key.kind, Bytes::default(), 0));
                messages.extend(self.data(now_s, before));
            }
            set.1.0.extend(record.0);
            set.2 += 1;
        }
        messages.extend(self.data(now_s, set));
        messages
    }

    /// A message with so many records of a kind, if there are any.
    fn data(&mut self, now_s: u32, (kind, set, records): (Kind, Bytes, u32)) -> Option<Vec<u8>> {
        let message = (records > 0).then(|| self.message(now_s, kind as u16, &set));
        self.sequence = self.sequence.wrapping_add(records);
        message
    }

    fn message(&self, now_s: u32, set: u16, records: &Bytes) -> Vec<u8> {
        let mut message = Bytes::default();
        message.u16(VERSION);
        message.u16((HEADER + 4 + records.0.len()) as u16);
        for value in [now_s, self.sequence, self.number] {
            message.u32(value);
        }
        message.u16(set);
        message.u16((4 + records.0.len()) as u16);
        message.0.extend(&records.0);
        message.0
    }

    /// In the order of the template.
    fn record(&self, key: &Key, counts: &Counts) -> Bytes {
        let mut record = Bytes::default();
        record.u32(key.port);
        let [source, destination, vlan, eth_type] = key.link;
        for mac in [source, destination] {
            record.0.extend(&mac.to_be_bytes()[2..]);
        }
        record.u16(vlan as u16);
        record.u16(eth_type as u16);
        for address in key.addresses {
            match key.kind {
                Kind::Ipv4 => record.u32(address as u32),
                Kind::Ipv6 => record.0.extend(address.to_be_bytes()),
                Kind::Other => {}
            }
        }
        if key.kind != Kind::Other {
            let [protocol, class, source, destination] = key.transport;
            record.u8(protocol as u8);
            record.u8(class as u8);
            for value in [source, destination, counts.tcp_flags] {
                record.u16(value);
            }
        }
        let ms = 1_000_000;
        let [octets, with_link] = counts.octets;
        let (start, end) = (counts.start_ns / ms, counts.end_ns.div_ceil(ms));
        for value in [counts.packets, octets, with_link, start, end] {
            record.u64(value);
        }
        record.u8(ACTIVE_TIMEOUT);
        if self.enterprise > 0 {
            record.u32(key.place.core);
            record.u8(key.place.rung.len() as u8);
            record.0.extend(key.place.rung.as_bytes());
        }
        record
    }
}

fn key_of(parsed: &wire::Key, has_ip: bool, (port, place): (u32, Place)) -> Key {
    let get = |field| parsed.get(field);
    let small = |field| get(field) as u16;
    // EtherType, and with it the kind, comes from the parse: what is cut off is anything else.
    let (kind, addresses) = match small(Field::EthType) {
        eth_type::IPV4 if has_ip => (Kind::Ipv4, [get(Field::Ipv4Src), get(Field::Ipv4Dst)]),
        eth_type::IPV6 if has_ip => (Kind::Ipv6, [get(Field::Ipv6Src), get(Field::Ipv6Dst)]),
        _ => (Kind::Other, [0; 2]),
    };
    let vlan = match small(Field::VlanVid) {
        tag if tag & VLAN_PRESENT != 0 => u64::from(tag & !VLAN_PRESENT),
        _ => 0,
    };
    let link =
        [get(Field::EthSrc) as u64, get(Field::EthDst) as u64, vlan, get(Field::EthType) as u64];
    let class = small(Field::IpDscp) << 2 | small(Field::IpEcn);
    let protocol = small(Field::IpProto);
    let is = |protocols: &[u8]| protocols.iter().any(|&of| u16::from(of) == protocol);
    let [source, destination] = match protocol {
        _ if is(&[ip_proto::ICMP, ip_proto::ICMPV6]) => {
            // Where NetFlow has them.
            [0, small(Field::IcmpType) << 8 | small(Field::IcmpCode)]
        }
        _ if is(&[ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP]) => {
            [small(Field::TpSrc), small(Field::TpDst)]
        }
        _ => [0; 2],
    };
    let is_ip = kind != Kind::Other;
    let transport = if is_ip { [protocol, class, source, destination] } else { [0; 4] };
    Key { kind, port, place, link, addresses, transport }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use wire::build::{Frame, Ipv4, Tcp};

    const NOW_S: u32 = 1_700_000_000;

    fn sample<'a>(port: u32, bytes: &'a [u8], at_ms: u64, rung: &'static str) -> Sample<'a> {
        let place = Place { core: 5, rung };
        Sample { at_ns: at_ms * 1_000_000, port, len: 1500, bytes, weight: 100, place }
    }

    fn u16_at(bytes: &[u8], at: usize) -> u16 {
        u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
    }

    /// Fields of each template, by number: element and length.
    fn read_templates(message: &[u8]) -> HashMap<u16, Vec<Element>> {
        assert_eq!((u16_at(message, 0), u16_at(message, 16)), (VERSION, TEMPLATE_SET));
        assert_eq!(usize::from(u16_at(message, 2)), message.len());
        let (mut templates, mut at) = (HashMap::new(), HEADER + 4);
        while at < message.len() {
            let (number, count) = (u16_at(message, at), u16_at(message, at + 2));
            at += 4;
            let mut fields = Vec::new();
            for _ in 0..count {
                let field = (u16_at(message, at), u16_at(message, at + 2));
                at += if field.0 & OF_ENTERPRISE != 0 { 8 } else { 4 };
                fields.push(field);
            }
            templates.insert(number, fields);
        }
        templates
    }

    /// Records of a data message as a collector reads them: by its templates.
    fn read_records(
        templates: &HashMap<u16, Vec<Element>>,
        message: &[u8],
    ) -> Vec<HashMap<u16, Vec<u8>>> {
        let fields = &templates[&u16_at(message, HEADER)];
        assert_eq!(usize::from(u16_at(message, HEADER + 2)), message.len() - HEADER);
        let (mut records, mut at) = (Vec::new(), HEADER + 4);
        while at < message.len() {
            let mut record = HashMap::new();
            for &(element, length) in fields {
                let mut length = usize::from(length);
                if length == usize::from(VARIABLE) {
                    length = usize::from(message[at]);
                    at += 1;
                }
                record.insert(element, message[at..at + length].to_vec());
                at += length;
            }
            records.push(record);
        }
        records
    }

    fn number(record: &HashMap<u16, Vec<u8>>, (element, _): Element) -> u64 {
        record[&element].iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn tcp(flags: u16) -> Vec<u8> {
        let header = Tcp { src: 1234, dst: 80, flags, ..Tcp::default() };
        let frame = Frame::ethernet([2; 6], [4; 6]).vlan(eth_type::VLAN, 7);
        frame.ipv4(Ipv4::default()).tcp(header).finish()
    }

    #[test]
    fn samples_of_a_flow_become_one_record_that_a_collector_reads_by_its_template() {
        let mut domain = Domain::new(9, 0x8001);
        let templates = read_templates(&domain.templates(NOW_S));
        for (at_ms, flags) in [(20, 0x02), (30, 0x10), (25, 0x08)] {
            assert!(domain.frame(&sample(3, &tcp(flags), at_ms, "whole")));
        }
        let messages = domain.finish(NOW_S);
        let records = read_records(&templates, &messages[0]);
        assert_eq!((messages.len(), records.len()), (1, 1));
        let get = |element| number(&records[0], element);
        assert_eq!([get(PACKETS), get(OCTETS), get(LAYER2_OCTETS)], [300, 444_600, 450_000]);
        assert_eq!([get(START_MS), get(END_MS)], [20, 30]);
        assert_eq!([get(SOURCE_PORT), get(DESTINATION_PORT), get(TCP_FLAGS)], [1234, 80, 0x1a]);
        assert_eq!([get(INGRESS_INTERFACE), get(VLAN_ID), get(PROTOCOL)], [3, 7, 6]);
        assert_eq!(get((1 | OF_ENTERPRISE, 4)), 5);
        assert_eq!(records[0][&(2 | OF_ENTERPRISE)], b"whole");
        assert!(domain.finish(NOW_S).is_empty(), "all began anew");
    }

    #[test]
    fn a_counted_flow_becomes_the_record_that_its_frames_would() {
        let frame = tcp(0);
        let (key, _) = wire::parse_bytes(&frame);
        let place = Place { core: 5, rung: "tc" };
        let times_ns = (20_000_000, 30_000_000);
        let flow = Flow { port: 3, key: &key, place, packets: 200, octets: 300_000, times_ns };
        let [mut counted, mut sampled] = [0; 2].map(|_| Domain::new(9, 0x8001));
        assert!(counted.flow(&flow));
        for at_ms in [20, 30] {
            assert!(sampled.frame(&sample(3, &frame, at_ms, "tc")));
        }
        assert_eq!(counted.finish(NOW_S), sampled.finish(NOW_S));
    }

    #[test]
    fn places_divide_flows_only_where_they_are_told() {
        for (enterprise, records) in [(0, 1), (1, 2)] {
            let mut domain = Domain::new(1, enterprise);
            domain.frame(&sample(1, &tcp(0), 1, "whole"));
            domain.frame(&sample(1, &tcp(0), 2, "pass"));
            domain.finish(NOW_S);
            assert_eq!(domain.sequence, records, "{enterprise}");
        }
    }

    #[test]
    fn more_flows_than_a_message_holds_go_into_several_in_sequence() {
        let mut domain = Domain::new(1, 0);
        let frames: Vec<_> =
            (0..200).map(|port| sample(port, b"none of these is IP", 1, "")).collect();
        frames.iter().for_each(|frame| assert!(domain.frame(frame)));
        let templates = read_templates(&domain.templates(NOW_S));
        let (mut records, mut ports) = (0, Vec::new());
        for message in domain.finish(NOW_S) {
            assert!(message.len() <= DATAGRAM);
            assert_eq!(u32::from_be_bytes(message[8..12].try_into().unwrap()), records);
            let read = read_records(&templates, &message);
            records += read.len() as u32;
            ports.extend(read.iter().map(|record| number(record, INGRESS_INTERFACE)));
        }
        assert_eq!(ports, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn the_number_of_flows_is_bounded() {
        let mut domain = Domain::new(1, 0);
        for port in 0..FLOWS_MAX as u32 {
            assert!(domain.frame(&sample(port, b"", 1, "")));
        }
        assert!(!domain.frame(&sample(FLOWS_MAX as u32, b"", 1, "")));
        assert!(domain.frame(&sample(7, b"", 2, "")), "a flow that is there goes on");
    }

    proptest! {
        #[test]
        fn whatever_a_guest_sends_is_counted_once(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..160), 1..40),
        ) {
            let mut domain = Domain::new(1, 1);
            let templates = read_templates(&domain.templates(NOW_S));
            for frame in &frames {
                prop_assert!(domain.frame(&sample(1, frame, 1, "pass")));
            }
            let messages = domain.finish(NOW_S);
            let packets = |message: &Vec<u8>| -> u64 {
                read_records(&templates, message).iter().map(|record| number(record, PACKETS)).sum()
            };
            prop_assert_eq!(messages.iter().map(packets).sum::<u64>(), 100 * frames.len() as u64);
        }
    }
}
