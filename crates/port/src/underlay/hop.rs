//! One look at the tables: route, interface, neighbour.

use netlink::{Link, Neighbour, Netlink, Route, Via};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// How packets to one address leave now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NextHop {
    /// Index of the interface that they leave by.
    pub(crate) interface: u32,
    /// Its name.
    pub(crate) name: String,
    /// MAC of who takes them there: their destination or a gateway.
    pub(crate) mac: [u8; 6],
    /// The interface's own MAC.
    pub(crate) from_mac: [u8; 6],
    /// The source address that was asked for, else the one that the kernel would choose.
    pub(crate) source: IpAddr,
    /// What the path takes, as far as known: bytes, IP header included. Never more than the interface's MTU.
    pub(crate) mtu: u32,
}

/// Why there is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NoHop {
    #[error("no route to {wanted}: {error}")]
    Route { wanted: Wanted, error: Errno },
    /// To ourselves, to nobody, or to many.
    #[error("the route to {wanted} is {kind}")]
    Kind { wanted: Wanted, kind: &'static str },
    #[error("the route to {wanted} has an encapsulation (lwtunnel)")]
    Encapsulated { wanted: Wanted },
    #[error("this host has no address to reach {wanted} from")]
    Sourceless { wanted: Wanted },
    #[error("interface {interface} is down")]
    Down { interface: String },
    #[error("interface {interface} has no Ethernet address")]
    NotEthernet { interface: String },
    #[error("{neighbour} on {interface} has not answered (neighbour {state})")]
    Neighbour { neighbour: IpAddr, interface: String, state: &'static str },
    #[error("the kernel does not tell the way to {wanted}: {error}")]
    Untold { wanted: Wanted, error: Errno },
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(super) remote: IpAddr,
    /// `None`: the kernel chooses.
    pub(super) source: Option<IpAddr>,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.remote)?;
        self.source.map_or(Ok(()), |source| write!(f, " from {source}"))
    }
}

/// What a look found.
pub(super) struct Found {
    pub(super) answer: Result<NextHop, NoHop>,
    /// The neighbour that the answer hangs on, if it came so far.
    pub(super) via: Option<Via>,
    /// The kernel does not know that neighbour for sure.
    pub(super) is_doubtful: bool,
}

/// Looks up the way there.
pub(super) fn look_up(netlink: &Netlink, wanted: Wanted) -> Found {
    let way = match Way::look_up(netlink, wanted) {
        Ok(way) => way,
        Err(none) => return Found { answer: Err(none), via: None, is_doubtful: false },
    };
    let via = Some(way.via);
    match netlink.neighbour(way.via) {
        Ok(neighbour) => {
            let is_doubtful = !neighbour.as_ref().is_some_and(Neighbour::is_confirmed);
            Found { answer: way.over(neighbour.as_ref()), via, is_doubtful }
        }
        Err(error) => {
            let answer = Err(NoHop::Untold { wanted, error: errno(&error) });
            Found { answer, via, is_doubtful: false }
        }
    }
}

/// A way there, but for the neighbour's MAC.
#[derive(Debug)]
struct Way {
    via: Via,
    link: Link,
    source: IpAddr,
    mtu: u32,
}

impl Way {
    fn look_up(netlink: &Netlink, wanted: Wanted) -> Result<Self, NoHop> {
        let Wanted { remote, source } = wanted;
        if source.is_some_and(|source| source.is_ipv4() != remote.is_ipv4()) {
            return Err(NoHop::Route { wanted, error: Errno::AFNOSUPPORT });
        }
        let route = netlink.route(remote, source);
        let route = route.map_err(|error| NoHop::Route { wanted, error: errno(&error) })?;
        let link = netlink.link_at(route.interface);
        let link = link.map_err(|error| NoHop::Untold { wanted, error: errno(&error) })?;
        // Gone since the route was told.
        let link = link.ok_or(NoHop::Route { wanted, error: Errno::NODEV })?;
        Self::new(wanted, &route, link)
    }

    fn new(wanted: Wanted, route: &Route, link: Link) -> Result<Self, NoHop> {
        if !route.is_unicast() {
            return Err(NoHop::Kind { wanted, kind: route.kind() });
        }
        if route.is_encapsulated {
            return Err(NoHop::Encapsulated { wanted });
        }
        if !link.up {
            return Err(NoHop::Down { interface: link.name });
        }
        // An address of another length reads as none.
        if link.mac == [0; 6] {
            return Err(NoHop::NotEthernet { interface: link.name });
        }
        let source = wanted.source.or(route.source).ok_or(NoHop::Sourceless { wanted })?;
        let ipv6_mtu = link.ipv6_mtu.filter(|_| wanted.remote.is_ipv6());
        let mtu = [route.mtu, ipv6_mtu].into_iter().flatten().fold(link.mtu, u32::min);
        let address = route.gateway.unwrap_or(wanted.remote);
        let via = Via { interface: link.index, address };
        Ok(Self { via, link, source, mtu })
    }

    /// The whole, over what the kernel knows of the neighbour.
    fn over(self, neighbour: Option<&Neighbour>) -> Result<NextHop, NoHop> {
        let Self { via: Via { interface, address }, link, source, mtu } = self;
        match neighbour.and_then(Neighbour::mac) {
            Some(mac) => {
                let (name, from_mac) = (link.name, link.mac);
                Ok(NextHop { interface, name, mac, from_mac, source, mtu })
            }
            None => {
                let state = neighbour.map_or("none", Neighbour::state);
                Err(NoHop::Neighbour { neighbour: address, interface: link.name, state })
            }
        }
    }
}

/// The system's; of an answer that cannot be read, `EBADMSG`.
fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::BADMSG)
}
