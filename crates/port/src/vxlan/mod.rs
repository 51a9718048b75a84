//! VXLAN (RFC 7348): frames to and from another host in UDP datagrams, one port for each VNI and other end.
//!
//! The underlay is the host's own: the kernel routes, resolves neighbours and sums the outer checksum, and a port is a handful of UDP
//! sockets. Datagrams find their port in the kernel ([`xdp::TunnelDemux`]): every port has its own queue, which no other tenant fills.
//!
//! * **Flows stay apart** on the way: a port sends from [`FLOWS`] source ports, chosen by the inner flow (RFC 7348 §5), and from as many
//!   addresses as it is given: a network that cannot see the ports tells flows apart by these.
//! * **ECN** is RFC 6040's, **DSCP** uniform, a pipe or the flow's identity ([`wire::tunnel::Dscp`]).
//! * **One port for many VNIs**: without one of its own, a frame's tunnel id is its VNI, both ways ([`vni`]).
//! * **Encrypted** when there are keys: what would be a datagram is an ESP packet in one ([`security`]).
//! * **Never fragmented**: an outer packet that the path does not take is refused here, and the sender of the one inside is told ([`wire::too_big`]).
//! * **Large segments** are cut as they are put into datagrams, which leave in one system call (`UDP_SEGMENT`); a run of datagrams
//!   arrives in one (`UDP_GRO`) and is put together again ([`wire::merge`]). Small frames of one flow and length leave in one call, too.

mod answers;
mod control;
mod group;
mod outgoing;
mod path;
mod rx;
mod security;
mod tell;
mod testing;
mod tx;
mod vni;

pub(crate) use security::Ledger;
pub use security::{SaFacts, SealOn, Sealing, Security};
pub use testing::Decapsulator;

use crate::error::OpenError;
use crate::interface::{cannot_enter, open_netns};
use crate::open::OpenPort;
use crate::queue::{RxQueue, TxQueue};
use crate::spec::{PortSpec, Tunnel};
use crate::sys::datagram;
use answers::Answers;
use control::VxlanControl;
use path::Path;
use rx::VxlanRx;
use security::{Sealed, SpiGroups, refusers};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tell::Teller;
use tx::VxlanTx;
use vni::Received;

/// The groups of sockets of a node.
#[derive(Default)]
pub(crate) struct Groups {
    plain: group::Groups,
    sealed: SpiGroups,
}

/// Source ports of one port: enough for the receive queues of any host that suiro meets, and few descriptors.
const FLOWS: usize = 32;
/// Chosen: the queues of one tunnel are the cores that its traffic may occupy.
const QUEUES_MAX: u16 = 64;

/// Opens a tunnel to one other end.
pub(crate) fn open(
    spec: &PortSpec,
    workers: usize,
    groups: &Groups,
    ledger: &Arc<Ledger>,
) -> Result<OpenPort, OpenError> {
    let name = &spec.interface;
    let Some(tunnel) = spec.tunnel.clone() else {
        let why = "a VXLAN port needs another end and a VNI";
        return Err(OpenError::WrongInterface { interface: name.clone(), why });
    };
    let queues = spec.queues.max(1);
    if queues > QUEUES_MAX {
        let interface = name.clone();
        return Err(OpenError::Queues { interface, asked: queues, available: QUEUES_MAX });
    }
    let netns = open_netns(spec)?;
    let security = Security::open(spec, &tunnel, ledger)?;
    let made = netns.run(|| -> Result<_, OpenError> {
        // Of an encrypted tunnel what comes plain is received too, by one queue, to be refused.
        let plain = if security.is_some() { 1 } else { queues };
        let membership = groups.plain.join(name, &tunnel, plain)?;
        let join = |security: &Arc<Security>| groups.sealed.join(spec, &tunnel, security.clone());
        let sealed = security.as_ref().map(join).transpose()?;
        let senders = senders(&tunnel)
            .map_err(|source| OpenError::io(name, "open the sending sockets", source))?;
        let path = Path::new(&tunnel, spec.mtu.unwrap_or(0)).map_err(|source| {
            OpenError::io(name, "open the socket that asks for the path", source)
        })?;
        Ok((membership, sealed, senders, Arc::new(path.behind(security.clone()))))
    });
    let (membership, sealed, senders, path) =
        made.map_err(|source| cannot_enter(spec, source))??;
    let senders: Arc<[OwnedFd]> = senders.into();
    let sealed = sealed
        .map(|sealed| Sealed::new(spec, sealed, senders.clone(), path.clone()))
        .transpose()?;
    let plain = membership.sockets.clone();
    let answers = Answers::new().map(Arc::new);
    let answers = answers.map_err(|source| OpenError::io(name, "make an event counter", source))?;
    let rest = membership.others();
    let control = VxlanControl::new(spec, tunnel.clone(), path.clone(), membership, sealed);
    let facts = control.read();
    let mtu = facts.mtu.min(u16::MAX.into()) as u16;
    let clamp = tunnel.mss_clamp.then_some(&path);
    let (sockets, refused) = match control.sealed() {
        None => (plain, Vec::new()),
        Some(sealed) => (sealed.sockets(), plain),
    };
    let received = || Received::of(tunnel.vni, &rest);
    let opening = || control.sealed().map(Sealed::opening);
    let queue = |socket| VxlanRx::new(socket, &tunnel, received(), mtu).clamped_to(clamp);
    let rx = sockets.into_iter().map(|socket| queue(socket).behind(opening()));
    let mut rx: Vec<VxlanRx> = rx.collect();
    let first = rx.remove(0).with(answers.clone());
    rx.insert(0, first.map_err(|source| OpenError::io(name, "watch two files as one", source))?);
    let rx = rx.into_iter().map(|rx| Box::new(rx) as Box<dyn RxQueue>);
    let rx = rx.chain(refusers(refused, &tunnel)).collect();
    let teller = || Teller::new(path.clone(), answers.clone());
    let tx = (0..workers).map(|_| VxlanTx::new(senders.clone(), &tunnel, path.clone(), teller()));
    let tx = tx.map(|tx| tx.behind(control.sealed().map(Sealed::sealer), tunnel.remote));
    let tx = tx.map(|tx| Box::new(tx) as Box<dyn TxQueue>).collect();
    Ok(OpenPort { facts, rx, tx, control: Box::new(control) })
}

/// The sending sockets, each with a source port of its own; they take turns with this end's addresses.
fn senders(tunnel: &Tunnel) -> io::Result<Vec<OwnedFd>> {
    let is_v4 = tunnel.remote.is_ipv4();
    let local = |flow: usize| match tunnel.local.len() {
        0 => any(is_v4),
        addresses => tunnel.local[flow % addresses],
    };
    let sender = |flow| {
        let socket = datagram::socket(tunnel.remote)?;
        datagram::send_whole(&socket, is_v4, tunnel.ttl)?;
        if !tunnel.checksum {
            datagram::without_checksum(&socket, is_v4)?;
        }
        datagram::bind(&socket, SocketAddr::new(local(flow), 0))?;
        Ok(socket)
    };
    (0..FLOWS).map(sender).collect()
}

/// No address in particular.
fn any(is_v4: bool) -> IpAddr {
    if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}
