//! What the way to the other end takes now, as the kernel knows it: from its routes and from what routers on the way told it.

use super::security::Security;
use super::zone::Link;
use crate::sys::datagram;
use crate::vxlan::tunnel::Tunnel;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use wire::mss;

/// Bytes of the frame's own header, which an MTU does not count.
pub(super) const ETHERNET: u32 = 14;
/// What an underlay takes of which nothing is known.
const USUAL: u32 = 1500;
/// How long an answer is good for where asking for every packet would cost too much. Chosen: 10 questions a second are nothing.
const FRESH_MS: u64 = 100;

/// The way of one tunnel, of which all its halves know; of a tunnel to many ends, the way to one, or (`to` no address) to nobody yet.
pub(super) struct Path {
    /// Connected anew for every question; nothing is sent on it. All the ways of a port ask with one.
    probe: Arc<Mutex<OwnedFd>>,
    to: SocketAddr,
    link: Link,
    overhead: u32,
    /// Of an encrypted port.
    security: Option<Arc<Security>>,
    /// The last answer; 0: none yet.
    known: AtomicU32,
    /// The MTU that was asked for, of all the ways of a port; 0: as much as the path takes.
    wanted: Arc<AtomicU32>,
    opened: Instant,
    /// When it was asked for by [`Path::recent_mtu`], in ms since then.
    asked: AtomicU64,
}

impl Path {
    /// From the calling thread's namespace.
    pub(super) fn new(tunnel: &Tunnel, wanted: Arc<AtomicU32>) -> io::Result<Self> {
        let link = Link::of(tunnel)?;
        let probe = link.socket(tunnel)?;
        if let Some(&local) = tunnel.local.first() {
            datagram::bind(&probe, SocketAddr::new(local, 0))?;
        }
        let to = SocketAddr::new(tunnel.remote, tunnel.port);
        let (overhead, opened) = (tunnel.overhead(), Instant::now());
        let (known, asked) = (0.into(), 0.into());
        let probe = Arc::new(Mutex::new(probe));
        Ok(Self { probe, to, link, overhead, security: None, known, wanted, opened, asked })
    }

    /// The way of the same port to this end, of the same family.
    pub(super) fn towards(&self, end: IpAddr) -> Self {
        let (probe, wanted) = (self.probe.clone(), self.wanted.clone());
        let (to, security) = (SocketAddr::new(end, self.to.port()), self.security.clone());
        let (known, asked) = (0.into(), 0.into());
        Self {
            probe,
            to,
            link: self.link,
            security,
            known,
            wanted,
            asked,
            overhead: self.overhead,
            opened: self.opened,
        }
    }

    /// The same of a port that is encrypted.
    pub(super) fn behind(self, security: Option<Arc<Security>>) -> Self {
        Self { security, ..self }
    }

    /// The MTU of the packets inside: what is left of the path's. To nobody, the usual one.
    ///
    /// # Errors
    /// There is no way.
    pub(super) fn mtu(&self) -> io::Result<u32> {
        if self.to.ip().is_unspecified() {
            return Ok(self.usual_mtu());
        }
        let mtu = self.ask(|probe| datagram::path_mtu(probe, self.to.is_ipv4()))?;
        self.known.store(mtu, Relaxed);
        Ok(self.inside(mtu))
    }

    /// This end's address on the way, as the kernel chooses it.
    ///
    /// # Errors
    /// There is no way.
    pub(super) fn source(&self) -> io::Result<IpAddr> {
        self.ask(|probe| datagram::local(probe)).map(|local| local.ip())
    }

    /// Asks the kernel about the way.
    fn ask<T>(&self, what: impl FnOnce(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let probe = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        // Bound to no address that it had by an earlier route.
        datagram::disconnect(&*probe)?;
        self.link.bind(&*probe)?;
        datagram::connect(&*probe, self.to)?;
        what(&probe)
    }

    /// Bytes of the longest frame that the port shall send, its header and tags included: `usize::MAX`, whatever the path takes.
    pub(super) fn longest(&self) -> usize {
        match self.wanted() {
            0 => usize::MAX,
            mtu => (mtu + ETHERNET) as usize,
        }
    }

    /// The MTU that was asked for; 0: none.
    pub(super) fn wanted(&self) -> u32 {
        self.wanted.load(Relaxed)
    }

    pub(super) fn want(&self, mtu: u32) {
        self.wanted.store(mtu, Relaxed);
    }

    /// The same as it was within the last tenth of a second, or when there last was a way.
    pub(super) fn recent_mtu(&self, now: Instant) -> u32 {
        let now = now.saturating_duration_since(self.opened).as_millis() as u64;
        let known = self.known.load(Relaxed);
        if known != 0 && now.saturating_sub(self.asked.load(Relaxed)) < FRESH_MS {
            return self.inside(known);
        }
        self.asked.store(now, Relaxed);
        self.mtu().unwrap_or_else(|_| self.inside(if known == 0 { USUAL } else { known }))
    }

    /// Bytes of the longest frame that the port sends and the path carried within the last tenth of a second.
    pub(super) fn carries(&self) -> usize {
        let carries = (self.recent_mtu(Instant::now()) + ETHERNET) as usize;
        carries.min(self.longest())
    }

    /// Of nothing known.
    pub(super) fn usual_mtu(&self) -> u32 {
        self.inside(USUAL)
    }

    /// Lowers what a frame offers, if it is TCP's SYN, to what the path carries.
    pub(super) fn clamp(&self, frame: &mut [u8], is_partial: bool) {
        if mss::is_syn(frame) {
            mss::clamp(frame, self.carries(), is_partial);
        }
    }

    /// Bytes that are around a frame without its Ethernet header, the outer one not counted; those of an encrypted packet at most.
    pub(super) fn overhead(&self) -> u32 {
        USUAL - self.usual_mtu()
    }

    fn inside(&self, mtu: u32) -> u32 {
        match &self.security {
            None => mtu.saturating_sub(self.overhead + ETHERNET),
            Some(security) => security.fits(mtu),
        }
    }
}
