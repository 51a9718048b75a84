//! sFlow version 5 (sFlow.org, "sFlow Version 5", July 2004; figures in XDR, RFC 4506).
//!
//! | structure | format | what of it |
//! |---|---|---|
//! | datagram | version 5 | agent, sub-agent, sequence, uptime |
//! | `flow_sample` | 1 | one frame: port, weight as `sampling_rate`, `sample_pool`, no output |
//! | `sampled_header` | 1 | Ethernet, length with its checksum, the first bytes |
//! | `counters_sample` | 2 | one port |
//! | `if_counters` | 1 | frames, bytes, discards; what is not known is all ones |
//! | `of_port` | 1004 | datapath id, and number of the port (sFlow.org, "sFlow OpenFlow Structures") |
//! | `port_name` | 1005 | `sw0:vm1` |
//! | of the operator | enterprise number, 1 | `core` unsigned int, `rung` string: where the frame was processed |
//!
//! A switch is a sub-agent, and its ports are that one's data sources by their OpenFlow numbers.

use super::bytes::Bytes;
use super::{DATAGRAM, Sample};
use std::collections::BTreeMap;
use std::net::IpAddr;

const VERSION: u32 = 5;
const FLOW_SAMPLE: u32 = 1;
const COUNTERS_SAMPLE: u32 = 2;
const SAMPLED_HEADER: u32 = 1;
const IF_COUNTERS: u32 = 1;
const OF_PORT: u32 = 1004;
const PORT_NAME: u32 = 1005;
/// Of an enterprise.
const PLACE: u32 = 1;
const ETHERNET: u32 = 1;
/// Bytes of Ethernet's checksum, which sFlow counts and ports take away.
const FCS: u32 = 4;
/// ifType ethernetCsmacd.
const ETHERNET_CSMACD: u32 = 6;
/// ifAdminStatus and ifOperStatus.
const ADMIN_UP: u32 = 1;
const OPER_UP: u32 = 2;
const NOT_KNOWN: u32 = u32::MAX;
/// A port's number has 24 bits in a data source, which has its class above.
const INDEX: u32 = 0x00ff_ffff;
/// Bytes of a frame that are shown: sFlow's usual number.
const HEADER: usize = 128;

/// What a port has counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Datapath id of its switch.
    pub datapath_id: u64,
    /// Its number.
    pub port: u32,
    /// What it is called.
    pub name: String,
    /// Bits a second; 0 if that is not known.
    pub speed: u64,
    /// Whether it may carry frames, and does.
    pub is_up: bool,
    /// In, then out: bytes, frames, discards, errors.
    pub directions: [Direction; 2],
}

/// What came in or went out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Direction {
    /// Bytes.
    pub bytes: u64,
    /// Frames.
    pub frames: u64,
    /// Frames that were lost.
    pub discards: u64,
    /// Frames that were wrong.
    pub errors: u64,
}

/// A sub-agent, which writes datagrams.
pub struct SubAgent {
    agent: IpAddr,
    number: u32,
    /// 0 for none: then nothing is said of places.
    enterprise: u32,
    datagrams: u32,
    /// Samples of each data source so far: of frames, of counters.
    samples: BTreeMap<u32, [u32; 2]>,
    /// Samples that wait, and how many these are.
    waiting: Bytes,
    count: u32,
}

impl SubAgent {
    /// One that has sent nothing yet.
    pub fn new(agent: IpAddr, number: u32, enterprise: u32) -> Self {
        let (samples, waiting) = (BTreeMap::new(), Bytes::default());
        Self { agent, number, enterprise, datagrams: 0, samples, waiting, count: 0 }
    }

    /// Adds a frame, of so many that its port has received so far. The datagram that it no longer fits into, if one is full.
    pub fn frame(&mut self, sample: &Sample<'_>, pool: u64, uptime_ms: u32) -> Option<Vec<u8>> {
        let mut body = Bytes::default();
        body.u32(self.sequence(sample.port, 0));
        body.u32(sample.port & INDEX);
        body.u32(sample.weight);
        body.u32(pool as u32);
        body.u32(0); // drops
        body.u32(sample.port & INDEX);
        body.u32(0); // output: not known
        let mut records = vec![(SAMPLED_HEADER, header(sample))];
        if self.enterprise > 0 {
            records.push((self.enterprise << 12 | PLACE, place(sample)));
        }
        put(&mut body, &records);
        self.add(FLOW_SAMPLE, &body, uptime_ms)
    }

    /// Adds a port's counters. The datagram that they no longer fit into, if one is full.
    pub fn counters(&mut self, counters: &Counters, uptime_ms: u32) -> Option<Vec<u8>> {
        let mut body = Bytes::default();
        body.u32(self.sequence(counters.port, 1));
        body.u32(counters.port & INDEX);
        let mut of_port = Bytes::default();
        of_port.u64(counters.datapath_id);
        of_port.u32(counters.port);
        let mut name = Bytes::default();
        name.opaque(counters.name.as_bytes());
        let all = [(IF_COUNTERS, if_counters(counters)), (OF_PORT, of_port), (PORT_NAME, name)];
        put(&mut body, &all);
        self.add(COUNTERS_SAMPLE, &body, uptime_ms)
    }

    /// The datagram with what waits, if anything does.
    pub fn finish(&mut self, uptime_ms: u32) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let mut datagram = Bytes::default();
        datagram.u32(VERSION);
        match self.agent {
            IpAddr::V4(address) => {
                datagram.u32(1);
                datagram.0.extend(address.octets());
            }
            IpAddr::V6(address) => {
                datagram.u32(2);
                datagram.0.extend(address.octets());
            }
        }
        self.datagrams = self.datagrams.wrapping_add(1);
        for value in [self.number, self.datagrams, uptime_ms, self.count] {
            datagram.u32(value);
        }
        datagram.0.append(&mut self.waiting.0);
        self.count = 0;
        Some(datagram.0)
    }

    fn sequence(&mut self, port: u32, of: usize) -> u32 {
        let sequence = &mut self.samples.entry(port).or_default()[of];
        *sequence = sequence.wrapping_add(1);
        *sequence
    }

    fn add(&mut self, format: u32, body: &Bytes, uptime_ms: u32) -> Option<Vec<u8>> {
        let is_full = self.waiting.0.len() + body.0.len() + 64 > DATAGRAM;
        let full = if is_full { self.finish(uptime_ms) } else { None };
        self.waiting.u32(format);
        self.waiting.opaque(&body.0);
        self.count += 1;
        full
    }
}

/// How many, and each with format and length.
fn put(body: &mut Bytes, records: &[(u32, Bytes)]) {
    body.u32(records.len() as u32);
    for (format, record) in records {
        body.u32(*format);
        body.opaque(&record.0);
    }
}

fn header(sample: &Sample<'_>) -> Bytes {
    let mut record = Bytes::default();
    for value in [ETHERNET, sample.len + FCS, FCS] {
        record.u32(value);
    }
    record.opaque(&sample.bytes[..sample.bytes.len().min(HEADER)]);
    record
}

fn place(sample: &Sample<'_>) -> Bytes {
    let mut record = Bytes::default();
    record.u32(sample.place.core);
    record.opaque(sample.place.rung.as_bytes());
    record
}

fn if_counters(counters: &Counters) -> Bytes {
    let mut record = Bytes::default();
    record.u32(counters.port & INDEX);
    record.u32(ETHERNET_CSMACD);
    record.u64(counters.speed);
    record.u32(0); // ifDirection: not known
    record.u32(if counters.is_up { ADMIN_UP | OPER_UP } else { 0 });
    for (direction, is_in) in counters.directions.iter().zip([true, false]) {
        record.u64(direction.bytes);
        // Of its kinds none is counted apart: all frames stand as unicast.
        for value in [direction.frames as u32, NOT_KNOWN, NOT_KNOWN] {
            record.u32(value);
        }
        record.u32(direction.discards as u32);
        record.u32(direction.errors as u32);
        if is_in {
            record.u32(NOT_KNOWN); // ifInUnknownProtos
        }
    }
    record.u32(0); // ifPromiscuousMode: not known
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Place;

    const UPTIME: u32 = 4000;

    fn sub_agent(enterprise: u32) -> SubAgent {
        SubAgent::new("192.0.2.1".parse().unwrap(), 3, enterprise)
    }

    fn sample(bytes: &[u8]) -> Sample<'_> {
        let place = Place { core: 1, rung: "whole" };
        Sample { at_ns: 5, port: 2, len: bytes.len() as u32, bytes, weight: 1000, place }
    }

    /// Whole words, as XDR has them.
    fn words(bytes: &[u8]) -> Vec<u32> {
        assert_eq!(bytes.len() % 4, 0);
        bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn a_frame_is_as_the_specification_has_it() {
        let mut agent = sub_agent(0);
        assert_eq!(agent.frame(&sample(&[0xab; 62]), 70_000, UPTIME), None);
        let words = words(&agent.finish(UPTIME).unwrap());
        let datagram = [5, 1, 0xc000_0201, 3, 1, UPTIME, 1];
        let flow_sample = [1, 32 + 8 + 16 + 64, 1, 2, 1000, 70_000, 0, 2, 0, 1];
        let raw_header = [1, 16 + 64, 1, 66, 4, 62];
        assert_eq!(words[..23], [&datagram[..], &flow_sample, &raw_header].concat());
        assert_eq!(words[23..38], [0xabab_abab; 15]);
        assert_eq!(words[38..], [0xabab_0000]);
        assert_eq!(agent.finish(UPTIME), None, "nothing waits");
    }

    #[test]
    fn of_the_place_is_said_what_an_enterprise_number_is_given_for() {
        let mut agent = sub_agent(0x1234);
        agent.frame(&sample(&[0; 64]), 1, UPTIME);
        let words = words(&agent.finish(UPTIME).unwrap());
        let place = [0x0123_4001, 16, 1, 5, u32::from_be_bytes(*b"whol"), 0x6500_0000];
        assert_eq!(words[words.len() - 6..], place);
        assert_eq!(words[16], 2, "records");
    }

    #[test]
    fn counters_are_as_the_specification_has_them() {
        let mut agent = sub_agent(0);
        let direction = |of: u64| Direction {
            bytes: of << 40,
            frames: of << 33 | of,
            discards: of + 1,
            errors: of + 2,
        };
        let directions = [direction(1), direction(5)];
        let speed = 10_000_000_000;
        let (datapath_id, name) = (0x1_0000_0002, "sw0:vm1".into());
        let counters = Counters { datapath_id, port: 2, name, speed, is_up: true, directions };
        agent.counters(&counters, UPTIME);
        let words = words(&agent.finish(UPTIME).unwrap());
        assert_eq!(words[7..13], [2, 88 + 20 + 20 + 20, 1, 2, 3, 1]);
        let port = [88, 2, 6, 2, 1_410_065_408, 0, 3];
        let received = [256, 0, 1, NOT_KNOWN, NOT_KNOWN, 2, 3, NOT_KNOWN];
        let sent = [1280, 0, 5, NOT_KNOWN, NOT_KNOWN, 6, 7, 0];
        let of_port = [1004, 12, 1, 2, 2];
        let name = [1005, 12, 7, u32::from_be_bytes(*b"sw0:"), u32::from_be_bytes(*b"vm1\0")];
        assert_eq!(words[13..], [&port[..], &received, &sent, &of_port, &name].concat());
    }

    #[test]
    fn a_datagram_is_sent_before_it_becomes_too_long_and_each_has_its_number() {
        let mut agent = sub_agent(7);
        let datagrams: Vec<_> =
            (0..100).filter_map(|pool| agent.frame(&sample(&[1; 2000]), pool, UPTIME)).collect();
        let last = agent.finish(UPTIME).unwrap();
        let all: Vec<_> = datagrams.iter().chain([&last]).map(|datagram| words(datagram)).collect();
        assert!(datagrams.iter().all(|datagram| (1000..=DATAGRAM).contains(&datagram.len())));
        assert_eq!(all.iter().map(|words| words[6]).sum::<u32>(), 100);
        assert!((1..).zip(&all).all(|(number, words)| words[4] == number));
    }
}
