//! The tc hook behind an interface's receive: filters there, and one of ours that takes every frame.
//!
//! Packet sockets and XDP get a frame before this hook, the host's own stack after it (`__netif_receive_skb_core`). Our filter is a classic BPF
//! program of two instructions, sent with the request: it needs neither `CAP_BPF` nor an action's module.

use crate::codec::{
    Message, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, Request, attributes, read_u32, terminated, text,
};
use crate::link::nested;
use crate::socket::Netlink;
use std::io;

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;

/// `struct tcmsg` (linux/rtnetlink.h): `family` 0, `index` 4..8, `handle` 8..12, `parent` 12..16, `info` 16..20.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
// `TCA_BPF_…` (linux/pkt_cls.h).
const OPS_LEN: u16 = 4;
const OPS: u16 = 5;
const FLAGS: u16 = 8;
const FLAGS_GEN: u16 = 9;
/// The program's result is the verdict.
const DIRECT_ACTION: u32 = 1;
/// A card must not drop what a socket is to have.
const SKIP_HARDWARE: u32 = 1;

// Qdisc `clsact`, or `ingress` in its place, and its two hooks (linux/pkt_sched.h).
const CLSACT: u32 = 0xffff_fff1;
const HANDLE: u32 = 0xffff_0000;
/// What the interface receives.
pub const INGRESS: u32 = 0xffff_fff2;
/// What it sends.
pub const EGRESS: u32 = 0xffff_fff3;

/// The first in line.
const PRIORITY: u32 = 1;
/// `TC_ACT_STOLEN`: freed, and not counted as lost.
const STOLEN: u32 = 4;

/// A filter at a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// `bpf`, `flower` …
    pub kind: String,
    /// Lower ones come first.
    pub priority: u16,
    /// Its number among those of its priority.
    pub handle: u32,
    /// Whose it is, if it is a filter that takes every frame for an owner.
    pub owner: Option<u32>,
}

impl Netlink {
    /// The filters at a hook of an interface; none where it has no such qdisc.
    pub fn filters(&self, index: u32, hook: u32) -> io::Result<Vec<Filter>> {
        let request = Request::new(RTM_GETTFILTER, &tcmsg(index, 0, hook, 0)).flagged(NLM_F_DUMP);
        let mut found = Vec::new();
        self.ask(request, |message| found.extend(parse_filter(message)))?;
        Ok(found)
    }

    /// The interfaces of the namespace that have such a qdisc.
    pub fn filtered(&self) -> io::Result<Vec<u32>> {
        let request = Request::new(RTM_GETQDISC, &tcmsg(0, 0, 0, 0)).flagged(NLM_F_DUMP);
        let mut found = Vec::new();
        self.ask(request, |message| found.extend(parse_qdisc(message)))?;
        Ok(found)
    }

    /// Gives an interface the qdisc; `false`: it had one.
    pub fn add_clsact(&self, index: u32) -> io::Result<bool> {
        let request = Request::new(RTM_NEWQDISC, &tcmsg(index, HANDLE, CLSACT, 0))
            .flagged(NLM_F_CREATE | NLM_F_EXCL)
            .attribute(TCA_KIND, &terminated("clsact"));
        match self.ask(request, |_| ()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        }
    }

    /// Takes the qdisc away, with every filter.
    pub fn del_clsact(&self, index: u32) -> io::Result<()> {
        self.ask(Request::new(RTM_DELQDISC, &tcmsg(index, HANDLE, CLSACT, 0)), |_| ())
    }

    /// Adds the filter that takes every frame, before all others.
    pub fn add_taker(&self, index: u32, handle: u32, owner: u32) -> io::Result<()> {
        let request = Request::new(RTM_NEWTFILTER, &tcmsg(index, handle, INGRESS, info()))
            .flagged(NLM_F_CREATE | NLM_F_EXCL)
            .attribute(TCA_KIND, &terminated("bpf"))
            .nested(TCA_OPTIONS, |options| program_of(options, owner));
        self.ask(request, |_| ())
    }

    /// Takes it away.
    pub fn del_taker(&self, index: u32, handle: u32) -> io::Result<()> {
        let request = Request::new(RTM_DELTFILTER, &tcmsg(index, handle, INGRESS, info()))
            .attribute(TCA_KIND, &terminated("bpf"));
        self.ask(request, |_| ())
    }
}

fn tcmsg(index: u32, handle: u32, parent: u32, info: u32) -> [u8; TCMSG] {
    let mut bytes = [0; TCMSG];
    for (at, value) in [(4, index), (8, handle), (12, parent), (16, info)] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// Priority above, protocol (every one, network order) below.
fn info() -> u32 {
    PRIORITY << 16 | u32::from((libc::ETH_P_ALL as u16).to_be())
}

/// `struct sock_filter`: `code` 0..2, two jumps, `k` 4..8. The first instruction only carries the owner's number.
fn program(owner: u32) -> [u8; 16] {
    let load = (libc::BPF_LD | libc::BPF_IMM) as u16;
    let ret = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut bytes = [0; 16];
    for (at, (code, value)) in [(0, (load, owner)), (8, (ret, STOLEN))] {
        bytes[at..at + 2].copy_from_slice(&code.to_ne_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

fn program_of(options: Request, owner: u32) -> Request {
    let program = program(owner);
    let instructions = (program.len() / 8) as u16;
    options
        .attribute(OPS_LEN, &instructions.to_ne_bytes())
        .attribute(OPS, &program)
        .attribute(FLAGS, &DIRECT_ACTION.to_ne_bytes())
        .attribute(FLAGS_GEN, &SKIP_HARDWARE.to_ne_bytes())
}

/// A filter in an `RTM_NEWTFILTER`. Those without a handle stand for their priority.
fn parse_filter(message: Message<'_>) -> Option<Filter> {
    let (header, rest) = message.body.split_first_chunk::<TCMSG>()?;
    let handle = read_u32(&header[8..])?;
    let info = read_u32(&header[16..])?;
    let value = |wanted| attributes(rest).find(|&(kind, _)| kind == wanted).map(|(_, value)| value);
    let kind = text(value(TCA_KIND)?);
    let ops = value(TCA_OPTIONS).and_then(|options| nested(options, OPS));
    (message.kind == RTM_NEWTFILTER && handle != 0).then(|| Filter {
        owner: ops.filter(|_| kind == "bpf").and_then(owner),
        priority: (info >> 16) as u16,
        kind,
        handle,
    })
}

/// The owner's number in a program of ours.
fn owner(ops: &[u8]) -> Option<u32> {
    let owner = ops.get(4..8).and_then(read_u32)?;
    (ops == program(owner)).then_some(owner)
}

/// The interface of an `RTM_NEWQDISC` about such a qdisc.
fn parse_qdisc(message: Message<'_>) -> Option<u32> {
    let (header, _) = message.body.split_first_chunk::<TCMSG>()?;
    let is_one = message.kind == RTM_NEWQDISC && read_u32(&header[8..])? == HANDLE;
    read_u32(&header[4..]).filter(|_| is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::messages;
    use proptest::prelude::*;

    #[test]
    fn our_filter_is_known_again_with_its_owner_and_no_other_is() {
        let read = |fill: &dyn Fn(Request) -> Request| {
            let bytes = Request::new(RTM_NEWTFILTER, &tcmsg(3, 7, INGRESS, info()))
                .attribute(TCA_KIND, b"bpf\0")
                .nested(TCA_OPTIONS, fill)
                .finish(1);
            messages(&bytes).find_map(parse_filter).unwrap()
        };
        let ours = read(&|options| program_of(options, 0xdead_beef));
        assert_eq!((ours.priority, ours.handle, ours.owner), (1, 7, Some(0xdead_beef)));
        let passes = |options: Request| options.attribute(OPS, &[6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(&passes).owner, None);
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_a_panic(kind in 30..50u16, body in prop::collection::vec(any::<u8>(), 0..80)) {
            let message = Message { kind, sequence: 0, body: &body };
            parse_filter(message);
            parse_qdisc(message);
        }
    }
}
