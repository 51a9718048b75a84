//! VXLAN (RFC 7348): frames to and from another host in UDP datagrams, one port for each VNI and other end.
//!
//! The underlay is the host's own: the kernel routes, resolves neighbours and sums the outer checksum, and a port is a handful of UDP
//! sockets. Datagrams find their port in the kernel ([`xdp::TunnelDemux`]): every port has its own queue, which no other tenant fills. Where
//! suiro has the NIC itself, packets may go past the kernel, as its tables say ([`crate::bypass`], [`senders`]).
//!
//! * **Flows stay apart** on the way: a port sends from [32](senders::FLOWS) source ports, chosen by the inner flow (RFC 7348 §5), and from as many
//!   addresses as it is given: a network that cannot see the ports tells flows apart by these.
//! * **ECN** is RFC 6040's, **DSCP** uniform, a pipe or the flow's identity ([`wire::tunnel::Dscp`]).
//! * **One port for many VNIs**: without one of its own, a frame's tunnel id is its VNI, both ways ([`vni`]).
//! * **One port for many ends**: without a remote of its own, a frame goes to the end that its rules chose ([`destinations`]), over IPv4 and
//!   IPv6, and what anyone sends is received, with its sender's number ([`origin`]).
//! * **Encrypted** when there are keys: what would be a datagram is an ESP packet in one ([`security`]).
//! * **Never fragmented**: an outer packet that the path does not take is refused here, and the sender of the one inside is told ([`wire::too_big`]).
//! * **Large segments** are cut as they are put into datagrams, which leave in one system call (`UDP_SEGMENT`); a run of datagrams
//!   arrives in one (`UDP_GRO`) and is put together again ([`wire::merge`]). Small frames of one flow and length leave in one call, too.

mod control;
mod destinations;
mod group;
mod origin;
mod outgoing;
mod outside;
mod path;
mod places;
mod rx;
mod security;
mod seen;
mod senders;
mod tell;
#[cfg(feature = "testing")]
mod testing;
mod tunnel;
mod tx;
mod vni;
mod way;
mod zone;

pub(crate) use security::Ledger;
#[cfg(feature = "testing")]
pub use testing::Decapsulator;

use crate::bypass::{self, Came, Claims, Doors, Outlet, Whose};
use crate::chosen::Chosen;
use crate::common::Common;
use crate::ends::Ends;
use crate::error::OpenError;
use crate::interface::{cannot_enter, open_netns};
use crate::netns::Netns;
use crate::opened::OpenPort;
use crate::queue::{RxQueue, TxQueue};
use crate::underlay::Underlay;
use api::Forwarding;
use control::VxlanControl;
use destinations::{Destinations, Leg};
use group::{Membership, Others};
use origin::Origin;
use path::Path;
use rx::{Clamp, VxlanRx};
use security::{Sealed, Security, SpiGroups, refusers};
use senders::Senders;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use tell::{Answers, Teller};
use tunnel::Tunnel;
use tx::VxlanTx;
use vni::Received;
use way::Way;

/// The groups of sockets of a node.
#[derive(Default)]
pub(crate) struct Groups {
    plain: group::Groups,
    sealed: SpiGroups,
}

/// Chosen: the queues of one tunnel are the cores that its traffic may occupy.
const QUEUES_MAX: u16 = 64;

/// What the ports of a node share.
pub(crate) struct Node<'n> {
    pub(crate) groups: &'n Groups,
    pub(crate) ledger: &'n Arc<Ledger>,
    pub(crate) ends: &'n Arc<Ends>,
    pub(crate) doors: &'n Doors,
}

/// Opens a tunnel.
pub(crate) fn open(
    (spec, keys): (&Common, &api::Vxlan),
    chosen: &Chosen,
    workers: usize,
    Node { groups, ledger, ends, doors }: Node<'_>,
) -> Result<OpenPort, OpenError> {
    let name = &spec.interface;
    let tunnel = Tunnel::from(keys);
    let failed = |step| move |source| OpenError::io(name, step, source);
    let queues = spec.queues.max(1);
    if queues > QUEUES_MAX {
        let interface = name.clone();
        return Err(OpenError::Queues { interface, asked: queues, available: QUEUES_MAX });
    }
    let netns = open_netns(spec)?;
    let security = Security::open(spec, &tunnel, ledger)?;
    let past = Past::open(spec, &tunnel, &netns, doors)?;
    let mtu = Arc::new(AtomicU32::new(spec.mtu.unwrap_or(0)));
    let made = netns.run(|| -> Result<_, OpenError> {
        // Of an encrypted tunnel what comes plain is received too, by one queue, to be refused.
        let plain = if security.is_some() { 1 } else { queues };
        let join = |leg: &Tunnel| groups.plain.join(name, leg, plain);
        let memberships = tunnel.legs().iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let claims = past.as_ref().map(Past::claims);
        let join =
            |security: &Arc<Security>| groups.sealed.join(spec, &tunnel, security.clone(), claims);
        let sealed = security.as_ref().map(join).transpose()?;
        let leg = |tunnel| leg(name, tunnel, security.clone(), &mtu, past.as_ref());
        let legs = tunnel.legs().into_iter().map(leg).collect::<Result<Vec<_>, _>>()?;
        let way =
            Way::new(&tunnel).map(Arc::new).map_err(failed("ask the kernel for its routes"))?;
        Ok((memberships, sealed, legs, way))
    });
    let (memberships, sealed, legs, way) = made.map_err(|source| cannot_enter(spec, source))??;
    // An encrypted tunnel goes over one family.
    let on = &chosen.seal_on;
    let seal = |sealed| {
        Sealed::new(name, on.clone(), sealed, legs[0].senders.clone(), legs[0].path.clone())
    };
    let sealed = sealed.map(seal).transpose()?;
    let answers = Answers::new(tell::ROOM, doors.bells().clone()).map(Arc::new);
    let answers = answers.map_err(failed("make an event counter"))?;
    let others: Vec<_> = memberships.iter().map(Membership::others).collect();
    let plain: Vec<_> = memberships.iter().map(|joined| joined.sockets.clone()).collect();
    // Of an end that is not known, what is left beside the longer header.
    let path = legs.last().expect("a tunnel goes over one family at least").path.clone();
    let inboxes = match (&past, &sealed) {
        (Some(_), Some(sealed)) => sealed.inboxes(),
        (Some(past), None) => {
            past.claims().inboxes(queues.into()).map_err(failed("make event counters"))?
        }
        (None, _) => Vec::new(),
    };
    let plainly = past.as_ref().filter(|_| sealed.is_none());
    let came = plainly.zip(inboxes.first()).map(|(past, inbox)| Came {
        place: past.place.clone(),
        underlay: past.underlay.clone(),
        port: tunnel.port,
        senders: tunnel.senders(),
        passage: inbox.passage().clone(),
    });
    let claims = plainly.map(|past| past.claimed(&tunnel, &inboxes));
    let senders = legs[0].senders.clone();
    let shown = (name.clone(), spec.mac.unwrap_or(chosen.mac));
    let control = VxlanControl::new(shown, tunnel.clone(), (path, way), memberships, sealed)
        .past(senders, claims, came);
    let facts = control.read();
    let mtu = facts.mtu.min(u16::MAX.into()) as u16;
    let (sockets, refused) = match control.sealed() {
        None => (plain, Vec::new()),
        Some(sealed) => (vec![sealed.sockets()], plain.concat()),
    };
    let each = || tunnel.is_flow_based().then(|| Destinations::new(ends.clone(), legs.clone()));
    let queue = |socket, (leg, others): (&Leg, &Others)| {
        let received = Received::of(tunnel.vni, others);
        let origin = Origin::new(ends.clone(), &leg.tunnel);
        let clamp = || each().map_or_else(|| Clamp::One(leg.path.clone()), Clamp::Each);
        VxlanRx::new(socket, &leg.tunnel, received, origin, mtu)
            .along(leg.path.clone())
            .clamped_to(tunnel.mss_clamp.then(clamp))
            .behind(control.sealed().map(Sealed::opening))
    };
    let legs_of = sockets.into_iter().zip(legs.iter().zip(&others));
    let rx = legs_of.flat_map(|(sockets, leg)| {
        sockets.into_iter().map(move |socket| (socket, leg)).collect::<Vec<_>>()
    });
    let with = |(index, (socket, leg))| {
        let answers = (index == 0).then(|| answers.clone());
        let rx = queue(socket, leg).with(answers, inboxes.get(index).cloned())?;
        Ok(Box::new(rx) as Box<dyn RxQueue>)
    };
    let rx = rx.enumerate().map(with).collect::<io::Result<Vec<_>>>();
    let rx = rx.map_err(failed("watch several files as one"))?;
    let rx = rx.into_iter().chain(refusers(refused, &tunnel)).collect();
    let Leg { senders, path, .. } = &legs[0];
    let teller = || Teller::new(answers.clone());
    let tx = (0..workers).map(|_| VxlanTx::new(senders.clone(), &tunnel, path.clone(), teller()));
    let tx = tx.map(|tx| tx.with_destinations(each()));
    let tx = tx.map(|tx| tx.behind(control.sealed().map(Sealed::sealer), tunnel.remote));
    let tx = tx.map(|tx| Box::new(tx) as Box<dyn TxQueue>).collect();
    Ok(OpenPort { facts, rx, tx, control: Box::new(control) })
}

/// A family's way out, in the calling thread's namespace.
fn leg(
    name: &str,
    tunnel: Tunnel,
    security: Option<Arc<Security>>,
    mtu: &Arc<AtomicU32>,
    past: Option<&Past>,
) -> Result<Leg, OpenError> {
    let failed = |step| move |source| OpenError::io(name, step, source);
    let senders = Senders::new(&tunnel).map_err(failed("open the sending sockets"))?;
    let senders = match past {
        None => senders,
        Some(past) => senders
            .past_the_kernel(|ports| past.outlet(&tunnel, security.is_some(), ports))
            .map_err(failed("read the sending sockets' ports"))?,
    };
    let path = Path::new(&tunnel, mtu.clone());
    let path = path.map_err(failed("open the socket that asks for the path"))?;
    Ok(Leg { senders: Arc::new(senders), path: Arc::new(path.behind(security)), tunnel })
}

/// What a tunnel needs to go past the kernel.
struct Past {
    place: Arc<bypass::Place>,
    underlay: Arc<Underlay>,
}

impl Past {
    /// If the tunnel shall.
    fn open(
        spec: &Common,
        tunnel: &Tunnel,
        netns: &Netns,
        doors: &Doors,
    ) -> Result<Option<Self>, OpenError> {
        let name = &spec.interface;
        if tunnel.forwarding == Forwarding::Kernel {
            return Ok(None);
        }
        if tunnel.is_flow_based() || tunnel.vni.is_none() {
            let why = "a tunnel past the kernel has one other end and one VNI: where rules choose them, the kernel forwards";
            return Err(OpenError::WrongInterface { interface: name.clone(), why: why.into() });
        }
        let failed = |step| move |source| OpenError::io(name, step, source);
        let place = doors.place(netns).map_err(failed("look at the network namespace"))?;
        let underlay = place.underlay(spec.netns.as_ref());
        let underlay = underlay.map_err(failed("follow the kernel's routes and neighbours"))?;
        Ok(Some(Self { place, underlay }))
    }

    fn outlet(&self, tunnel: &Tunnel, is_sealed: bool, ports: Vec<u16>) -> Outlet {
        let &Tunnel { remote: to, ttl, checksum, .. } = tunnel;
        let port = if is_sealed { esp::udp::PORT } else { tunnel.port };
        let ends = bypass::Ends { to, port, ttl, checksum };
        let ways = match &tunnel.local[..] {
            [] => vec![self.underlay.watch(to, None)],
            local => local.iter().map(|&from| self.underlay.watch(to, Some(from))).collect(),
        };
        Outlet::new(self.place.clone(), ends, ways, ports)
    }

    fn claims(&self) -> Claims {
        Claims::new(self.place.clone(), self.underlay.clone())
    }

    /// The claims of a tunnel that is not encrypted.
    fn claimed(&self, tunnel: &Tunnel, inboxes: &[Arc<bypass::Inbox>]) -> Claims {
        let mut claims = self.claims();
        for sender in tunnel
            .vni
            .iter()
            .flat_map(|&vni| tunnel.senders().into_iter().map(move |sender| (vni, sender)))
        {
            claims.claim(Whose::Vni(tunnel.port, sender.0, sender.1), inboxes.into());
        }
        claims
    }
}

/// No address in particular.
fn any(is_v4: bool) -> IpAddr {
    if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}
