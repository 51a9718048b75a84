//! What a packet socket cannot tell the kernel of a frame, told by a program at the interface's way out (tcx egress, Linux 6.6).
//!
//! * An outer VLAN tag is beside the frame. So it counts as no byte of it at a veth, which drops frames above its MTU and one tag, and at a
//!   packet socket, which refuses them.
//! * A large segment is in a tunnel, whose headers are so and so long. Without, the kernel does not find the packet to cut.
//!
//! A worker says which ([`Told`]) where a frame's time to leave would be (`SCM_TXTIME`), which takes no privilege, on a socket that was made for it
//! ([`MARK`]). Frames of other sockets are left alone. Without the program such a frame reaches nobody as another one would.
//!
//! What enters by a TAP has nobody to speak for it, and all of it is suiro's: there a second program (`suiro_inner`, tcx ingress) sees by itself which large
//! frame is in GRE or IP in IP, as a TAP has no mark for those.

use crate::error::AttachError;
use crate::object;
use crate::verified::verified;
use aya::EbpfError;
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType};
use wire::segment::{TunnelBy, TunnelHeaders};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/outer.bpf.o"));

// As in bpf/abi.h.
/// The mark (`SO_MARK`) of the socket that such frames leave by.
pub const MARK: u32 = 0x5e6f_7472;
const PROVIDER_TAG: u64 = 0x01;
const TAG: u64 = 0x02;
const TUNNEL: u64 = 0x04;
const V6: u64 = 0x08;
const INNER_V6: u64 = 0x10;
const GRE: u64 = 0x20;
const UDP: u64 = 0x40;
const ETHERNET: u64 = 0x80;
/// Most bytes of a tunnel's headers.
const BYTES: usize = 128;

/// What the program is told of a frame, in place of its time to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told(pub u64);

impl Told {
    /// Of a frame with these two tags, of which the first was taken out; [`Told::UNTOLD_TAG`] stands in place of the second. `None` for tags that the
    /// kernel does not know so.
    pub fn tags(tags: [u8; 8]) -> Option<Self> {
        let [outer, inner_kind, inner] =
            [[tags[2], tags[3]], [tags[4], tags[5]], [tags[6], tags[7]]].map(u16::from_be_bytes);
        let what = match u16::from_be_bytes([tags[0], tags[1]]) {
            0x8100 => TAG,
            0x88a8 => PROVIDER_TAG,
            _ => return None,
        };
        let told = what << 48 | u64::from(outer) << 16 | u64::from(inner);
        (inner_kind == 0x8100).then_some(Self(told))
    }

    /// A tag that no frame has: VID 4095.
    pub const UNTOLD_TAG: [u8; 4] = [0x81, 0, 0x0f, 0xff];

    /// Of a large frame in a tunnel; `None` if its headers are longer than the program takes.
    pub fn tunnel(tunnel: &TunnelHeaders) -> Option<Self> {
        let flag = |is: bool, flag: u64| if is { flag } else { 0 };
        let what = TUNNEL
            | flag(tunnel.is_v6, V6)
            | flag(tunnel.is_inner_v6, INNER_V6)
            | flag(tunnel.by == TunnelBy::Gre, GRE)
            | flag(tunnel.by == TunnelBy::Udp, UDP)
            | flag(tunnel.has_ethernet, ETHERNET);
        (tunnel.len <= BYTES).then_some(Self(what << 48 | tunnel.len as u64))
    }
}

/// Which way frames take through an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Out of the host, told by their socket.
    Out,
    /// Into the host, by a TAP that is suiro's.
    In,
}

impl Way {
    fn program(self) -> (&'static str, TcAttachType) {
        match self {
            Self::Out => ("suiro_outer", TcAttachType::Egress),
            Self::In => ("suiro_inner", TcAttachType::Ingress),
        }
    }
}

/// The program on an interface. It goes with this value, or with the process.
pub struct Outer {
    _link: SchedClassifierLink,
}

impl Outer {
    /// Puts it on the interface of that name in the calling thread's network namespace, before the programs of others.
    ///
    /// # Errors
    /// No permission, or a kernel without tcx.
    pub fn new(interface: &str, way: Way) -> Result<Self, AttachError> {
        let (name, hook) = way.program();
        let load = |step: &'static str| {
            move |source: EbpfError| AttachError::Load { step, source: Box::new(source) }
        };
        let step = "load the program of outer headers";
        let mut ebpf = object::load(OBJECT).map_err(load(step))?;
        let program = ebpf.program_mut(name).ok_or(AttachError::BrokenBuild)?;
        let program: &mut SchedClassifier =
            program.try_into().map_err(|_: ProgramError| AttachError::BrokenBuild)?;
        verified(|| program.load()).map_err(|error| load(step)(error.into()))?;
        let order = TcAttachOptions::TcxOrder(LinkOrder::first());
        let attached = program.attach_with_options(interface, hook, order);
        let link = attached.and_then(|id| program.take_link(id));
        let step = "put the program of outer headers on the interface (tcx)";
        Ok(Self { _link: link.map_err(|error| load(step)(error.into()))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_header() {
        let header = include_str!("../bpf/abi.h");
        let define = |name: &str| {
            let line = header.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
            let number = line.and_then(|line| line.split_whitespace().nth(2)).expect(name);
            match number.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).expect(name),
                None => number.parse().expect(name),
            }
        };
        let ours = [
            ("OUTER_MARK", u64::from(MARK)),
            ("OUTER_PROVIDER_TAG", PROVIDER_TAG),
            ("OUTER_TAG", TAG),
            ("OUTER_TUNNEL", TUNNEL),
            ("OUTER_V6", V6),
            ("OUTER_INNER_V6", INNER_V6),
            ("OUTER_GRE", GRE),
            ("OUTER_UDP", UDP),
            ("OUTER_ETHERNET", ETHERNET),
            ("OUTER_BYTES", BYTES as u64),
        ];
        ours.iter().for_each(|&(name, value)| assert_eq!(define(name), value, "{name}"));
    }

    #[test]
    fn only_tags_that_the_kernel_can_have_beside_a_frame_are_told() {
        let told = |kind: [u8; 2], inner: [u8; 2]| {
            Told::tags([kind[0], kind[1], 0x20, 5, inner[0], inner[1], 0, 6])
        };
        assert_eq!(told([0x88, 0xa8], [0x81, 0]), Some(Told(0x0001_0000_2005_0006)));
        assert_eq!(told([0x81, 0], [0x81, 0]), Some(Told(0x0002_0000_2005_0006)));
        for (kind, inner) in [([0x91, 0], [0x81, 0]), ([0x81, 0], [8, 0]), ([8, 0], [0x45, 0])] {
            assert_eq!(told(kind, inner), None);
        }
    }
}
