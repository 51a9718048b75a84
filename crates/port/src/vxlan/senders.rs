//! How a tunnel's datagrams leave: past the kernel where that is asked for and can be, else by sockets.

use super::any;
use super::zone::Link;
use crate::bypass::{Datagrams, Outlet};
use crate::gather::reason;
use crate::sys::datagram::{self, Address};
use crate::sys::parts::Part;
use crate::vxlan::tunnel::Tunnel;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::DropReason;

/// Source ports of one port: enough for the receive queues of any host that suiro meets, and few descriptors.
pub(super) const FLOWS: usize = 32;

/// The ways out of a port, by flow; all workers share them.
pub(super) struct Senders {
    /// Each with a source port of its own; they take turns with this end's addresses.
    sockets: Vec<OwnedFd>,
    outlet: Option<Arc<Outlet>>,
}

impl Senders {
    /// In the calling thread's namespace.
    pub(super) fn new(tunnel: &Tunnel) -> io::Result<Self> {
        let is_v4 = tunnel.remote.is_ipv4();
        let link = Link::of(tunnel)?;
        let sources = link.sources(tunnel)?;
        let local = |flow: usize| match sources.len() {
            0 => any(is_v4),
            addresses => sources[flow % addresses],
        };
        let sender = |flow| {
            let socket = link.socket(tunnel)?;
            datagram::send_whole(&socket, is_v4, tunnel.ttl)?;
            if !tunnel.checksum {
                datagram::without_checksum(&socket, is_v4)?;
            }
            bind(&socket, local(flow), ports_of(tunnel, flow))?;
            Ok(socket)
        };
        let sockets = (0..FLOWS).map(sender).collect::<io::Result<_>>()?;
        Ok(Self { sockets, outlet: None })
    }

    /// The same, past the kernel where it can be.
    pub(super) fn past_the_kernel(
        self,
        outlet: impl FnOnce(Vec<u16>) -> Outlet,
    ) -> io::Result<Self> {
        let ports =
            self.sockets.iter().map(|socket| datagram::local(socket).map(|local| local.port()));
        let ports = ports.collect::<io::Result<_>>()?;
        Ok(Self { outlet: Some(Arc::new(outlet(ports))), ..self })
    }

    /// How many flows the ways tell apart.
    pub(super) fn flows(&self) -> usize {
        self.sockets.len()
    }

    /// The socket of a flow, of a port whose datagrams all go through the kernel.
    pub(super) fn socket(&self, flow: usize) -> Option<&OwnedFd> {
        self.outlet.is_none().then(|| &self.sockets[flow])
    }

    /// Where a flow's datagrams leave from: the address is none where the kernel chooses it.
    pub(super) fn local(&self, flow: usize) -> io::Result<SocketAddr> {
        datagram::local(&self.sockets[flow])
    }

    /// Past the kernel.
    pub(super) fn outlet(&self) -> Option<&Arc<Outlet>> {
        self.outlet.as_ref()
    }

    /// Sends datagrams of a flow. `is_apart`: one by one, for they have no checksums, and the kernel cuts none such.
    pub(super) fn send(
        &self,
        (flow, to): (usize, &Address),
        run: Datagrams<'_>,
        is_apart: bool,
    ) -> Result<(), DropReason> {
        if let Some(sent) = self.outlet.as_ref().and_then(|outlet| outlet.send(flow, run)) {
            return sent;
        }
        let Datagrams { bytes, segment, count, ds } = run;
        let together = (count > 1).then_some(segment as u16);
        let socket = &self.sockets[flow];
        let sent = match is_apart {
            true => datagram::send_apart(socket, to, bytes, segment, ds),
            false => datagram::send(socket, to, &[Part::private(bytes)], together, ds),
        };
        sent.map_err(
            |error| if together.is_some() { reason_of_run(&error) } else { reason(&error) },
        )
    }
}

/// Source ports that RFC 7348 §5 recommends: the dynamic ones, which IANA gives to nobody.
const DYNAMIC: u32 = 16_384;
const FIRST: u32 = 65_536 - DYNAMIC;
/// Where another program has a port, so far away is the next that is tried. Chosen: prime, so a tunnel's own flows do not meet.
const STEP: u32 = 4099;
const TRIES: u32 = 8;

/// The source ports that a flow would have, the best first: the same at each start, so that what a rung puts around a flow outlives the node.
fn ports_of(tunnel: &Tunnel, flow: usize) -> impl Iterator<Item = u16> {
    let Tunnel { remote, vni, port, zone, local, .. } = tunnel;
    let text = format!("{remote} {vni:?} {port} {zone:?} {local:?}");
    let first = wire::checksum::crc32c(text.as_bytes()) % DYNAMIC + flow as u32;
    (0..TRIES).map(move |attempt| (FIRST + (first + attempt * STEP) % DYNAMIC) as u16)
}

/// Binds a socket to one of those, or where others have them all to any.
fn bind(socket: &OwnedFd, address: IpAddr, ports: impl Iterator<Item = u16>) -> io::Result<()> {
    let to = |port| datagram::bind(socket, SocketAddr::new(address, port));
    let is_free = |bound: &io::Result<()>| {
        !bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    ports.map(to).find(is_free).unwrap_or_else(|| to(0))
}

/// Why the kernel refused a run: Linux before 6.14 says `EINVAL` where one of its datagrams is too long.
fn reason_of_run(error: &io::Error) -> DropReason {
    let is_too_big = error.raw_os_error() == Some(libc::EINVAL);
    if is_too_big { DropReason::TooBig } else { reason(error) }
}
