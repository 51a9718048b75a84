//! Datagrams to a collector.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A collector.
pub struct Collector {
    what: &'static str,
    to: SocketAddr,
    socket: Option<UdpSocket>,
    /// It was said that it cannot be reached.
    is_told: bool,
}

impl Collector {
    /// One that has been sent nothing yet.
    pub fn new(what: &'static str, to: SocketAddr) -> Self {
        tracing::info!("{what} samples go to {to}");
        Self { what, to, socket: None, is_told: false }
    }

    /// Sends it a datagram, or loses that. The log has the first of many losses.
    pub fn send(&mut self, datagram: &[u8]) {
        match self.try_send(datagram) {
            Ok(()) => self.is_told = false,
            Err(error) if !self.is_told => {
                let (what, to) = (self.what, self.to);
                let remedy =
                    "give [node] samples an address that this host has a way to, and restart suiro";
                tracing::warn!(remedy, "{what} samples: send to {to}: {error}");
                self.is_told = true;
            }
            Err(_) => {}
        }
    }

    fn try_send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let socket = match &self.socket {
            Some(socket) => socket,
            // Not connected: a collector that is away for a moment would have the next datagram refused.
            None => self.socket.insert(unconnected(self.to)?),
        };
        socket.send_to(datagram, self.to).map(drop)
    }
}

fn unconnected(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    // What the host has no room for is lost.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The address that datagrams to a collector come from, if there is a way to it.
pub fn agent_address(to: SocketAddr) -> Option<IpAddr> {
    let socket = unconnected(to).ok()?;
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}
