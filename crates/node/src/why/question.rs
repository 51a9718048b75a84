//! What a user says of a packet, made a frame; what was not said stays unknown.
//!
//! A packet that is named has no VLAN tag, is no fragment and carries no metadata unless that is said. All else that its headers have and that was
//! not said is open: whoever comes to depend on it says so.

use crate::switch::translate;
use api::{Fault, WhyQuestion};
use flow::{Asked, PortNo};
use openflow::text;
use port::Ends;
use wire::build::Frame;
use wire::{Field, Gso, Key, VLAN_PRESENT, eth_type, ip_proto};

/// TTL of a packet of which none is said. Chosen: what hosts send.
const TTL: u8 = 64;
/// The longest frame: a large segment.
const LONGEST: u32 = 65_550;

/// A packet in question.
pub struct Question {
    /// The port that it comes in by.
    pub in_port: PortNo,
    /// The frame.
    pub frame: Asked,
    /// What was taken to be so.
    pub assumed: Vec<String>,
}

/// Reads a question about a packet that comes in at a switch.
///
/// # Errors
/// What is wrong with it, or missing.
pub fn read(
    thing: &str,
    question: &WhyQuestion,
    ports: text::Resolve<'_>,
    ends: &Ends,
) -> Result<Question, Fault> {
    let (words, ttl) = take_ttl(thing, &question.flow)?;
    let (key, mask) = matched(thing, &words, ports, ends)?;
    if mask.get(Field::InPort) != Field::InPort.full() {
        let remedy = "say in_port=PORT, by name or number: suiro port list";
        return Err(missing(thing, "the port that it comes in by is missing", remedy));
    }
    let in_port = key.get(Field::InPort) as PortNo;
    if question.len.is_some_and(|len| len > LONGEST) {
        let cause = format!("no frame is longer than {LONGEST} bytes");
        return Err(missing(thing, cause, "say a shorter --len"));
    }
    match &question.packet {
        Some(packet) => {
            let bytes = bytes(thing, packet)?;
            let mut frame = Asked::whole(&bytes, in_port);
            lengthen(&mut frame, question.len);
            cut(&mut frame, question.gso);
            for field in [Field::TunnelId, Field::TunSrc, Field::Metadata] {
                frame.key.set(field, key.get(field));
            }
            Ok(Question { in_port, frame, assumed: Vec::new() })
        }
        None => Ok(of_text((key, mask), ttl, question.len)),
    }
}

fn of_text((key, mask): (Key, Key), ttl: Option<u8>, len: Option<u32>) -> Question {
    let in_port = key.get(Field::InPort) as PortNo;
    let bytes = Frame::of_key(&key, ttl.unwrap_or(TTL)).finish();
    let mut frame = Asked::whole(&bytes, in_port);
    // What no header says, and what a header says that is not there as a whole.
    frame.key = frame.key.without(&mask).union(&key);
    frame.known = known(&key, &mask);
    lengthen(&mut frame, len);
    let says = |field: Field| mask.get(field) == field.full();
    let is_ip = eth_type::is_ip(key.get(Field::EthType) as u16);
    let assumed = [
        (!says(Field::VlanVid)).then(|| "untagged".to_owned()),
        (is_ip && !says(Field::IpFrag)).then(|| "no fragment".to_owned()),
        (is_ip && ttl.is_none()).then(|| format!("nw_ttl={TTL}")),
        len.is_none().then(|| format!("{} bytes", frame.frame_len)),
    ];
    Question { in_port, frame, assumed: assumed.into_iter().flatten().collect() }
}

fn lengthen(frame: &mut Asked, len: Option<u32>) {
    let missing = len.unwrap_or_default().saturating_sub(frame.frame_len);
    frame.frame_len += missing;
    frame.body = frame.body.iter().copied().chain((0..missing).map(|_| 0)).collect();
}

/// A large segment, that is cut where the destination takes none.
fn cut(frame: &mut Asked, gso: Option<u16>) {
    let Some(size) = gso.filter(|&size| size > 0) else { return };
    frame.offload.gso_size = size;
    let (of_type, proto) = (frame.key.get(Field::EthType), frame.key.get(Field::IpProto) as u8);
    frame.offload.gso = match proto {
        ip_proto::TCP if of_type == u128::from(eth_type::IPV4) => Gso::TcpV4,
        ip_proto::TCP => Gso::TcpV6,
        _ => Gso::Udp,
    };
}

/// The bits that were said, and those that are so where a packet is named.
fn known(key: &Key, mask: &Key) -> Key {
    let mut open = Key::default();
    for &field in Field::ALL {
        if is_open(field, key, mask) {
            open.set(field, field.full());
        }
    }
    Asked::ALL.without(&open).union(mask)
}

/// Whether a packet has the field, or may have it, and it could be anything.
fn is_open(field: Field, key: &Key, mask: &Key) -> bool {
    use Field::{
        ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa, EthDst, EthSrc, EthType, IcmpCode, IcmpType, IpDscp,
        IpEcn, IpFrag, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Flabel, Ipv6NdSll, Ipv6NdTarget,
        Ipv6NdTll, Ipv6Src, MplsBos, MplsLabel, MplsTc, PbbIsid, PbbUca, TcpFlags, TpDst, TpSrc,
        VlanPcp, VlanVid,
    };
    let said = |field: Field| (mask.get(field) == field.full()).then(|| key.get(field) as u16);
    let of_type = |types: &[u16]| said(EthType).is_none_or(|is| types.contains(&is));
    let of_proto = |protos: &[u8]| {
        of_type(&[eth_type::IPV4, eth_type::IPV6])
            && key.get(IpFrag) & 2 == 0
            && said(IpProto).is_none_or(|is| protos.contains(&(is as u8)))
    };
    match field {
        EthDst | EthSrc | EthType => true,
        VlanPcp => key.get(VlanVid) & u128::from(VLAN_PRESENT) != 0,
        ArpOp | ArpSha | ArpSpa | ArpTha | ArpTpa => of_type(&[eth_type::ARP]),
        IpDscp | IpEcn | IpProto => of_type(&[eth_type::IPV4, eth_type::IPV6]),
        Ipv4Src | Ipv4Dst => of_type(&[eth_type::IPV4]),
        Ipv6Src | Ipv6Dst | Ipv6Flabel => of_type(&[eth_type::IPV6]),
        MplsLabel | MplsTc | MplsBos => of_type(&[eth_type::MPLS, eth_type::MPLS_UPSTREAM]),
        PbbIsid | PbbUca => of_type(&[eth_type::PBB]),
        TpSrc | TpDst => of_proto(&[ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP]),
        TcpFlags => of_proto(&[ip_proto::TCP]),
        IcmpType | IcmpCode => of_proto(&[ip_proto::ICMP, ip_proto::ICMPV6]),
        Ipv6NdTarget | Ipv6NdSll | Ipv6NdTll => {
            of_proto(&[ip_proto::ICMPV6])
                && of_type(&[eth_type::IPV6])
                && said(IcmpType).is_none_or(|is| matches!(is, 135 | 136))
        }
        _ => false,
    }
}

/// The words of a flow without its TTL, which no match knows, and the TTL.
fn take_ttl(thing: &str, flow: &str) -> Result<(String, Option<u8>), Fault> {
    let is_ttl = |word: &&str| word.trim().starts_with("nw_ttl=");
    let (ttls, words): (Vec<&str>, Vec<&str>) = flow.split(',').partition(is_ttl);
    let ttl = ttls.first().map(|word| word.trim()["nw_ttl=".len()..].parse()).transpose();
    let ttl = ttl.map_err(|_| missing(thing, "nw_ttl is no number", "say nw_ttl=0 to 255"))?;
    Ok((words.join(","), ttl))
}

fn matched(
    thing: &str,
    words: &str,
    ports: text::Resolve<'_>,
    ends: &Ends,
) -> Result<(Key, Key), Fault> {
    let request = text::parse_filter(words, ports).map_err(|error| {
        let cause =
            format!("{words:?}, column {}: {:?}: {}", error.at + 1, error.word, error.problem);
        Fault::new(thing, "read the packet", cause, &*error.remedy)
    })?;
    let filter = translate::filter(&request, ends);
    Ok((filter.key, filter.mask))
}

/// Bytes from hexadecimal digits, as they are or as `tcpdump -xx` prints them.
fn bytes(thing: &str, packet: &str) -> Result<Vec<u8>, Fault> {
    let refused = |cause: &str| {
        missing(thing, cause, "give the bytes from the Ethernet header on, as in tcpdump -xx")
    };
    let words = packet.split_whitespace().filter(|word| !word.ends_with(':'));
    let digits: Vec<u8> = words.flat_map(str::bytes).collect();
    let digit = |&digit: &u8| (digit as char).to_digit(16).map(|digit| digit as u8);
    let values: Option<Vec<u8>> = digits.iter().map(digit).collect();
    let values =
        values.ok_or_else(|| refused("the packet has letters that are no hexadecimal digits"))?;
    let (pairs, odd) = values.as_chunks::<2>();
    match () {
        () if !odd.is_empty() => Err(refused("the packet has an odd number of digits")),
        () if pairs.len() < 14 => Err(refused("the packet is shorter than an Ethernet header")),
        () if pairs.len() > LONGEST as usize => Err(refused("the packet is longer than any frame")),
        () => Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
    }
}

fn missing(thing: &str, cause: impl Into<String>, remedy: &str) -> Fault {
    Fault::new(thing, "read the packet", cause, remedy)
}
