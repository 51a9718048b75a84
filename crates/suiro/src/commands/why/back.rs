//! The way back: what becomes of the reply, which comes in where the packet left.

use crate::commands::Context;
use crate::failure::Failure;
use api::{Fault, Method, WhyAnswer, WhyExit, WhyQuestion};
use serde::Serialize;

/// Fields that trade places in a reply.
const PAIRS: [(&str, &str); 8] = [
    ("dl_src", "dl_dst"),
    ("nw_src", "nw_dst"),
    ("ipv6_src", "ipv6_dst"),
    ("tp_src", "tp_dst"),
    ("arp_spa", "arp_tpa"),
    ("arp_sha", "arp_tha"),
    ("tun_src", "tun_dst"),
    ("tun_ipv6_src", "tun_ipv6_dst"),
];
/// What a request says, and its reply: ARP, echoes of both kinds, and the first two segments of TCP.
const REPLIES: [(&str, &str); 4] = [
    ("arp_op=1", "arp_op=2"),
    ("icmp_type=8", "icmp_type=0"),
    ("icmp_type=128", "icmp_type=129"),
    ("tcp_flags=0x2", "tcp_flags=0x12"),
];
/// Exits of which the reply is followed. Chosen: a flood has one for each port.
const EXITS: usize = 8;

/// The reply's way from one of the packet's exits.
#[derive(Serialize)]
pub struct Back {
    /// Where it comes in.
    pub from: String,
    /// What becomes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyAnswer>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Fault>,
}

/// Asks what becomes of the reply, from each exit.
pub fn ask(context: &Context, answer: &WhyAnswer, len: Option<u32>) -> Result<Vec<Back>, Failure> {
    answer.exits.iter().take(EXITS).map(|exit| from(context, exit, len)).collect()
}

fn from(context: &Context, exit: &WhyExit, len: Option<u32>) -> Result<Back, Failure> {
    let path = format!("/v1/switches/{}/why", exit.switch);
    let question = WhyQuestion { flow: reply(exit), len, ..WhyQuestion::default() };
    let from = format!("{}:{}", exit.switch, exit.port);
    match context.client.send(Method::POST, &path, &question).map_err(Failure::from) {
        Ok(why) => Ok(Back { from, why: Some(why), unknown: None }),
        Err(Failure::Refused(fault)) => Ok(Back { from, why: None, unknown: Some(fault) }),
        Err(failure) => Err(failure),
    }
}

/// The reply to what leaves there, as a flow.
fn reply(exit: &WhyExit) -> String {
    let words = exit.packet.split(',').filter(|word| !word.is_empty()).map(answered);
    let words: Vec<String> =
        std::iter::once(format!("in_port={}", exit.port)).chain(words).collect();
    words.join(",")
}

fn answered(word: &str) -> String {
    if let Some((_, reply)) = REPLIES.iter().find(|(request, _)| *request == word) {
        return (*reply).to_owned();
    }
    let Some((field, value)) = word.split_once('=') else { return word.to_owned() };
    let other = PAIRS.iter().find_map(|&(one, other)| match field {
        _ if field == one => Some(other),
        _ if field == other => Some(one),
        _ => None,
    });
    other.map_or_else(|| word.to_owned(), |other| format!("{other}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_addresses_and_ports_the_other_way_round() {
        for (packet, wanted) in [
            (
                "tcp,dl_src=02::1,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=4000,tp_dst=80",
                "in_port=vm2,tcp,dl_dst=02::1,nw_dst=10.0.0.1,nw_src=10.0.0.2,tp_dst=4000,tp_src=80",
            ),
            ("arp,arp_op=1,arp_tpa=10.0.0.2", "in_port=vm2,arp,arp_op=2,arp_spa=10.0.0.2"),
            ("icmp6,ipv6_dst=::1,icmp_type=128", "in_port=vm2,icmp6,ipv6_src=::1,icmp_type=129"),
            (
                "tun_id=7,tun_dst=192.0.2.1,tcp,tcp_flags=0x2",
                "in_port=vm2,tun_id=7,tun_src=192.0.2.1,tcp,tcp_flags=0x12",
            ),
            ("", "in_port=vm2"),
        ] {
            let exit = WhyExit {
                switch: "sw0".into(),
                port: "vm2".into(),
                queue: 0,
                packet: packet.into(),
                bytes: 60,
                wait: None,
            };
            assert_eq!(reply(&exit), wanted);
        }
    }
}
