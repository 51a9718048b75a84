//! Where controllers are called and where they may call: `tcp:`, `ssl:`, `ptcp:`, `pssl:`, in Open vSwitch's words.

use crate::{BadText, IfName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use utoipa::ToSchema;

/// OpenFlow's registered port (IANA `openflow`).
pub const OPENFLOW_PORT: u16 = 6653;

/// What carries an OpenFlow connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// TCP, readable by whoever is on the way.
    Tcp,
    /// TLS over TCP; both sides show a certificate.
    Tls,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Host {
    /// By its address.
    Ip(IpAddr),
    /// By its address on one link (RFC 4007): `fe80::…%` and the interface's name or index, looked up at each attempt.
    OnLink(Ipv6Addr, IfName),
    /// By its name, looked up at each attempt.
    Name(String),
}

/// A controller as it is called.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Target {
    /// What carries the connection.
    pub transport: Transport,
    /// Where it is.
    pub host: Host,
    /// Its port.
    pub port: u16,
}

/// An address of ours.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    /// What carries the connections.
    pub transport: Transport,
    /// Where to bind.
    pub address: SocketAddr,
    /// The interface of an address that counts on one link only.
    pub zone: Option<IfName>,
}

text_type! {
    /// A controller to connect to. The port may be left out: 6653.
    Controller(Target), "a controller", "tcp:HOST[:PORT] or ssl:HOST[:PORT], HOST a name or an address, such as \"tcp:127.0.0.1:6653\", \"ssl:ctl.example\" or \"tcp:[fe80::1%eth0]\"", "tcp:127.0.0.1:6653",
    parse_target
}
text_type! {
    /// Where to wait for controllers.
    Listen(Place), "an address to listen on", "ptcp:[PORT][:ADDRESS] or pssl:[PORT][:ADDRESS], such as \"ptcp:6654:127.0.0.1\"", "ptcp:6654:127.0.0.1",
    parse_place
}

impl Controller {
    /// How it is called.
    pub fn target(&self) -> &Target {
        &self.0
    }

    /// A controller at an address.
    pub fn at(transport: Transport, address: SocketAddr) -> Self {
        Self(Target { transport, host: Host::Ip(address.ip()), port: address.port() })
    }
}

impl Listen {
    /// Where to bind.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// What carries the connections.
    pub fn transport(&self) -> Transport {
        self.0.transport
    }

    /// The interface of an address that counts on one link only.
    pub fn zone(&self) -> Option<&IfName> {
        self.0.zone.as_ref()
    }

    /// What no two can have at once, whatever they carry.
    pub fn claim(&self) -> (SocketAddr, Option<IfName>) {
        (self.0.address, self.0.zone.clone())
    }

    /// A place to wait at; port 0 lets the kernel choose.
    pub fn at(transport: Transport, address: SocketAddr) -> Self {
        Self(Place { transport, address, zone: None })
    }

    /// The same address, `by` ports further on; `None` past the last port.
    pub fn shifted(&self, by: usize) -> Option<Self> {
        let port = u16::try_from(usize::from(self.0.address.port()) + by).ok()?;
        let address = SocketAddr::new(self.0.address.ip(), port);
        Some(Self(Place { address, ..self.0.clone() }))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Ip(address) => write!(f, "{address}"),
            Self::OnLink(address, zone) => write!(f, "[{address}%{zone}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.0.transport {
            Transport::Tcp => "tcp",
            Transport::Tls => "ssl",
        };
        write!(f, "{scheme}:{}:{}", self.0.host, self.0.port)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.0.transport {
            Transport::Tcp => "ptcp",
            Transport::Tls => "pssl",
        };
        let host = match (self.0.address.ip(), &self.0.zone) {
            (IpAddr::V6(address), Some(zone)) => Host::OnLink(address, zone.clone()),
            (address, _) => Host::Ip(address),
        };
        write!(f, "{scheme}:{}:{host}", self.0.address.port())
    }
}

fn parse_target(text: &str) -> Option<Target> {
    let (transport, rest) = after_scheme(text, "tcp:", "ssl:")?;
    let target = |host, port| Some(Target { transport, host, port });
    if let Some((address, zone, port)) = parse_zoned(rest) {
        return target(Host::OnLink(address, zone), port.unwrap_or(OPENFLOW_PORT));
    }
    if let Ok(whole) = rest.parse::<SocketAddr>() {
        let address = anywhere(whole.ip())?;
        return target(Host::Ip(address), Some(whole.port()).filter(|&port| port != 0)?);
    }
    if let Some(address) = parse_ip(rest) {
        return target(Host::Ip(address), OPENFLOW_PORT);
    }
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) => (name, parse_port(port)?),
        None => (rest, OPENFLOW_PORT),
    };
    target(Host::Name(is_host_name(name).then(|| name.to_owned())?), port)
}

/// `PORT[:ADDRESS]` as Open vSwitch writes it, or `ADDRESS:PORT` as everybody else does.
fn parse_place(text: &str) -> Option<Place> {
    let (transport, rest) = after_scheme(text, "ptcp:", "pssl:")?;
    let place = |address, port, zone| {
        Some(Place { transport, address: SocketAddr::new(address, port), zone })
    };
    if let Some((address, zone, Some(port))) = parse_zoned(rest) {
        return place(address.into(), port, Some(zone));
    }
    if let Ok(whole) = rest.parse::<SocketAddr>() {
        return place(anywhere(whole.ip())?, Some(whole.port()).filter(|&port| port != 0)?, None);
    }
    let (port, address) = rest.split_once(':').unwrap_or((rest, ""));
    let port = if port.is_empty() { OPENFLOW_PORT } else { parse_port(port)? };
    match parse_zoned(address) {
        Some((address, zone, None)) => place(address.into(), port, Some(zone)),
        Some(_) => None,
        None if address.is_empty() => place(Ipv4Addr::LOCALHOST.into(), port, None),
        None => place(parse_ip(address)?, port, None),
    }
}

/// `ADDRESS%ZONE` or `[ADDRESS%ZONE]`, the latter perhaps with a port behind it.
fn parse_zoned(text: &str) -> Option<(Ipv6Addr, IfName, Option<u16>)> {
    let (inner, after) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => (text, ""),
    };
    let port = match after {
        "" => None,
        after => Some(parse_port(after.strip_prefix(':')?)?),
    };
    let (address, zone) = inner.split_once('%')?;
    let address = address.parse().ok().filter(Ipv6Addr::is_unicast_link_local)?;
    Some((address, zone.parse().ok()?, port))
}

/// The address, unless it counts on one link only and so says nothing without that link.
fn anywhere(address: IpAddr) -> Option<IpAddr> {
    let is_on_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    (!is_on_link).then_some(address)
}

fn after_scheme<'t>(text: &'t str, tcp: &str, tls: &str) -> Option<(Transport, &'t str)> {
    let plain = text.strip_prefix(tcp).map(|rest| (Transport::Tcp, rest));
    plain.or_else(|| text.strip_prefix(tls).map(|rest| (Transport::Tls, rest)))
}

fn parse_port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port != 0)
}

fn parse_ip(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().and_then(anywhere)
}

/// RFC 1123 §2.1, and `_`, which container names have. A name whose last label is a number would be a mistyped address.
fn is_host_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last_is_number =
        || text.rsplit('.').next().is_some_and(|label| label.bytes().all(|b| b.is_ascii_digit()));
    text.len() <= 253 && text.split('.').all(is_label) && !last_is_number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same<T: FromStr<Err = BadText> + fmt::Display>(text: &str, shown: &str) {
        assert_eq!(text.parse::<T>().map_err(|bad| bad.to_string()).unwrap().to_string(), shown);
        assert_eq!(shown.parse::<T>().map_err(|bad| bad.to_string()).unwrap().to_string(), shown);
    }

    #[test]
    fn a_controller_is_named_by_address_or_name_and_its_port_may_be_left_out() {
        same::<Controller>("tcp:127.0.0.1:6633", "tcp:127.0.0.1:6633");
        same::<Controller>("tcp:10.0.0.1", "tcp:10.0.0.1:6653");
        same::<Controller>("tcp:[::1]:6633", "tcp:[::1]:6633");
        same::<Controller>("tcp:::1", "tcp:[::1]:6653");
        same::<Controller>("ssl:[2001:db8::1]", "ssl:[2001:db8::1]:6653");
        same::<Controller>("ssl:ctl.example", "ssl:ctl.example:6653");
        same::<Controller>("tcp:localhost:7000", "tcp:localhost:7000");
        same::<Controller>("tcp:[fe80::1%eth0]:6633", "tcp:[fe80::1%eth0]:6633");
        same::<Controller>("ssl:fe80::1%7", "ssl:[fe80::1%7]:6653");
        same::<Controller>("tcp:os_ken-1:7000", "tcp:os_ken-1:7000");
    }

    #[test]
    fn a_place_to_listen_is_written_in_either_order() {
        same::<Listen>("ptcp:", "ptcp:6653:127.0.0.1");
        same::<Listen>("ptcp:6654", "ptcp:6654:127.0.0.1");
        same::<Listen>("ptcp:6654:0.0.0.0", "ptcp:6654:0.0.0.0");
        same::<Listen>("pssl::[::]", "pssl:6653:[::]");
        same::<Listen>("pssl:6654:::1", "pssl:6654:[::1]");
        same::<Listen>("pssl:10.0.0.1:6655", "pssl:6655:10.0.0.1");
        same::<Listen>("pssl:[::1]:6655", "pssl:6655:[::1]");
        same::<Listen>("ptcp:6654:fe80::1%eth0", "ptcp:6654:[fe80::1%eth0]");
        same::<Listen>("ptcp:[fe80::1%eth0]:6654", "ptcp:6654:[fe80::1%eth0]");
    }

    #[test]
    fn what_would_mislead_is_refused() {
        for text in [
            "127.0.0.1:6653",
            "tcp:",
            "tcp:1.2.3.4:0",
            "tcp:1.2.3",
            "tcp:256.1.1.1:6653",
            "tcp:host:",
            "tcp:host:70000",
            "tcp:-x",
            "tcp:a..b",
            "tls:1.2.3.4",
            "ptcp:6653",
            "ssl:a b",
            "tcp:[fe80::1]:6653",
            "tcp:fe80::1",
            "tcp:[fe80::1%]:6653",
            "tcp:[::1%eth0]:6653",
        ] {
            assert!(text.parse::<Controller>().is_err(), "{text:?} was accepted");
        }
        for text in [
            "ptcp:0",
            "ptcp:70000",
            "tcp:6653",
            "ptcp:6653:host",
            "pssl:1.2.3.4:0",
            "6653",
            "ptcp:6653:fe80::1",
            "ptcp:6653:[fe80::1%eth0]:1",
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text:?} was accepted");
        }
    }
}
