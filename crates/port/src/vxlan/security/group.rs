//! The sockets that share UDP port 4500 in a namespace, and which SPI is whose.

use super::Security;
use crate::bypass::{Claims, Inbox, Whose};
use crate::common::Common;
use crate::error::OpenError;
use crate::vxlan::QUEUES_MAX;
use crate::vxlan::group::receiver;
use crate::vxlan::places::{ByPlace, Group};
use crate::vxlan::tunnel::Tunnel;
use esp::udp;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xdp::{MapError, SpiDemux};

/// All groups of a node.
pub(crate) type Groups = ByPlace<SpiDemux>;

/// A port's sockets in its group, which it leaves when this goes.
pub(in crate::vxlan) struct Membership {
    pub(super) sockets: Vec<Arc<OwnedFd>>,
    pub(super) security: Arc<Security>,
    group: Arc<Group<SpiDemux>>,
    /// By socket.
    places: Vec<u32>,
    owned: Mutex<Vec<u32>>,
    /// By socket, of a port whose packets come past the kernel as well.
    pub(super) inboxes: Vec<Arc<Inbox>>,
    claims: Option<Mutex<Claims>>,
    is_v4: bool,
}

impl Groups {
    /// Opens a port's receiving sockets in the calling thread's namespace, which get the packets of the SAs by turns; one for each SA when
    /// nothing is said of queues.
    pub(in crate::vxlan) fn join(
        &self,
        spec: &Common,
        tunnel: &Tunnel,
        security: Arc<Security>,
        claims: Option<Claims>,
    ) -> Result<Membership, OpenError> {
        let (name, spis) = (&*spec.interface, security.spis());
        let failed = |step| move |source| OpenError::io(name, step, source);
        let tunnel = Tunnel { port: udp::PORT, ..tunnel.clone() };
        let group = self.group(name, &tunnel)?;
        let queues =
            if spec.queues == 0 { spis.len().min(QUEUES_MAX.into()) } else { spec.queues.into() };
        let sockets =
            (0..queues).map(|_| receiver(&tunnel).map(Arc::new)).collect::<io::Result<_>>();
        let sockets: Vec<_> = sockets.map_err(failed("open the receiving sockets"))?;
        let inboxes = match &claims {
            Some(claims) => claims.inboxes(sockets.len()),
            None => Ok(Vec::new()),
        };
        let mut member = Membership {
            sockets,
            security,
            group,
            places: Vec::new(),
            owned: Mutex::default(),
            inboxes: inboxes.map_err(failed("make event counters"))?,
            claims: claims.map(Mutex::new),
            is_v4: tunnel.remote.is_ipv4(),
        };
        let mut demux = lock(&member.group.demux);
        for socket in &member.sockets {
            let place = demux.add(socket).map_err(|source| refused(name, source))?;
            member.places.push(place);
        }
        drop(demux);
        member.check(&spis)?;
        member.own(&spis)?;
        Ok(member)
    }

    fn group(&self, name: &str, tunnel: &Tunnel) -> Result<Arc<Group<SpiDemux>>, OpenError> {
        let taken = || OpenError::Busy {
            interface: name.to_owned(),
            holder: format!("UDP port {}, ESP's, is taken", udp::PORT),
            remedy: "end the IKE daemon or whatever has it (`ss -lunp sport = 4500`)".into(),
        };
        self.get(name, tunnel, taken, |nobody| SpiDemux::new(nobody).map_err(io::Error::other))
    }
}

impl Membership {
    /// Whether no other port has one of these.
    fn check(&self, spis: &[u32]) -> Result<(), OpenError> {
        let mut demux = lock(&self.group.demux);
        let owned = lock(&self.owned);
        for &spi in spis.iter().filter(|spi| !owned.contains(spi)) {
            if demux.is_owned(spi).map_err(|source| refused(&self.security.name, source))? {
                return Err(OpenError::Busy {
                    interface: self.security.name.clone(),
                    holder: format!("another port receives with SPI {spi:#x}"),
                    remedy: "choose another spi_in here and spi_out at the other end".into(),
                });
            }
        }
        Ok(())
    }

    /// Takes these, by turns for its queues.
    fn own(&self, spis: &[u32]) -> Result<(), OpenError> {
        let mut demux = lock(&self.group.demux);
        let mut owned = lock(&self.owned);
        for (&spi, &place) in spis.iter().zip(self.places.iter().cycle()) {
            if !owned.contains(&spi) {
                demux.own(spi, place).map_err(|source| refused(&self.security.name, source))?;
                owned.push(spi);
                self.claim(spi, place);
            }
        }
        Ok(())
    }

    /// Has an SA's packets come past the kernel too, to the queue that has this place.
    fn claim(&self, spi: u32, place: u32) {
        let queue = self.places.iter().position(|&other| other == place);
        let inbox = queue.and_then(|queue| self.inboxes.get(queue));
        if let (Some(claims), Some(inbox)) = (&self.claims, inbox) {
            lock(claims).claim(Whose::Spi(self.is_v4, spi), [inbox.clone()].into());
        }
    }

    /// Gives back the SPIs that are not among these.
    fn keep(&self, spis: &[u32]) {
        if let Some(claims) = &self.claims {
            lock(claims).keep(|whose| matches!(whose, Whose::Spi(_, spi) if spis.contains(&spi)));
        }
        let mut demux = lock(&self.group.demux);
        lock(&self.owned).retain(|spi| {
            let is_kept = spis.contains(spi);
            if !is_kept {
                // What is refused here is over with the group's last socket.
                let _ = demux.disown(*spi);
            }
            is_kept
        });
    }

    /// Takes the keys of the file as it is now into use. Packets of an SA that is kept do not notice.
    ///
    /// # Errors
    /// The file or one of its SAs cannot be used; everything is as it was.
    pub(super) fn reload(&self) -> Result<(), OpenError> {
        let security = &self.security;
        let sas = security.reloaded()?;
        let spis = sas.spis();
        self.check(&spis)?;
        security.sas.store(Arc::new(sas));
        self.keep(&spis);
        self.own(&spis)
    }

    /// Datagrams of the group's UDP port that no port owns.
    pub(super) fn strays(&self) -> u64 {
        lock(&self.group.demux).strays().unwrap_or(0)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.keep(&[]);
        let mut demux = lock(&self.group.demux);
        self.places.iter().for_each(|place| demux.remove(*place));
    }
}

fn refused(name: &str, source: MapError) -> OpenError {
    OpenError::io(name, "take over the SAs' packets", io::Error::other(source))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
