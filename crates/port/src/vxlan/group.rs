//! The sockets that share a UDP port in a namespace, and who of them gets what.

use super::any;
use super::places::{ByPlace, Group};
use crate::error::OpenError;
use crate::sys::datagram;
use crate::vxlan::tunnel::Tunnel;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xdp::TunnelDemux;

/// As a packet socket's: some 10 ms of a fast sender.
const RECEIVE_BUFFER: i32 = 32 << 20;
/// The nobody's socket keeps no byte: the least that the kernel allows, never read.
const LEAST_BUFFER: i32 = 1;

/// All groups of a node.
pub(crate) type Groups = ByPlace<TunnelDemux>;

/// A port's sockets in its group, which it leaves when this goes.
pub(super) struct Membership {
    pub(super) sockets: Vec<Arc<OwnedFd>>,
    group: Arc<Group<TunnelDemux>>,
    vni: Option<u32>,
    remotes: Vec<IpAddr>,
    first: u32,
}

/// What of a sender other ports of the group own.
#[derive(Clone)]
pub(super) struct Others {
    group: Arc<Group<TunnelDemux>>,
    remotes: Vec<IpAddr>,
}

impl Groups {
    /// Opens a port's receiving sockets in the calling thread's namespace.
    pub(super) fn join(
        &self,
        name: &str,
        tunnel: &Tunnel,
        queues: u16,
    ) -> Result<Membership, OpenError> {
        let failed = |step| move |source| OpenError::io(name, step, source);
        let group = self.group(name, tunnel)?;
        let (vni, remotes) = (tunnel.vni, tunnel.senders());
        let sockets =
            (0..queues).map(|_| receiver(tunnel).map(Arc::new)).collect::<io::Result<Vec<_>>>();
        let sockets = sockets.map_err(failed("open the receiving sockets"))?;
        let mut demux = lock(&group.demux);
        let refused = |source| failed("take over the tunnel's datagrams")(io::Error::other(source));
        for &remote in &remotes {
            if demux.is_owned(vni, remote).map_err(refused)? {
                let what = vni.map_or("every other VNI".into(), |vni| format!("VNI {vni}"));
                let of = match remote.is_unspecified() {
                    true => "every other sender".into(),
                    false => remote.to_string(),
                };
                return Err(OpenError::Busy {
                    interface: name.to_owned(),
                    holder: format!("another port has {what} of {of}"),
                    remedy: "choose another key, or delete the other port".into(),
                });
            }
        }
        let first = demux.add(vni, &remotes, &sockets).map_err(refused)?;
        drop(demux);
        Ok(Membership { sockets, group, vni, remotes, first })
    }

    fn group(&self, name: &str, tunnel: &Tunnel) -> Result<Arc<Group<TunnelDemux>>, OpenError> {
        let taken = || {
            OpenError::Busy {
            interface: name.to_owned(),
            holder: format!("UDP port {} is taken: another tunnel end is here", tunnel.port),
            remedy: "remove it (`ip -d link show type vxlan`, `ss -lunp`), or choose another UDP port at both ends"
                .into(),
        }
        };
        self.get(name, tunnel, taken, |nobody| TunnelDemux::new(nobody).map_err(io::Error::other))
    }
}

impl Membership {
    /// Datagrams of the group's UDP port that no port owns.
    pub(super) fn strays(&self) -> u64 {
        lock(&self.group.demux).strays().unwrap_or(0)
    }
}

impl Membership {
    /// Who is asked what other ports own.
    pub(super) fn others(&self) -> Others {
        Others { group: Arc::clone(&self.group), remotes: self.remotes.clone() }
    }
}

impl Others {
    /// Whether one of them owns this VNI of the sender, where that is asked for.
    pub(super) fn own(&self, vni: u32, from: Option<IpAddr>) -> bool {
        let mut demux = lock(&self.group.demux);
        let mut senders = self.remotes.iter().copied().chain(from);
        senders.any(|sender| demux.is_owned(Some(vni), sender).unwrap_or(true))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // What is refused here is over with the group's last socket.
        let mut demux = lock(&self.group.demux);
        let _ = demux.remove(self.vni, &self.remotes, self.first, self.sockets.len());
    }
}

/// The socket that gets what nobody owns.
///
/// # Errors
/// Someone else has the UDP port: asked with a socket that would not share it.
pub(super) fn first_of_group(tunnel: &Tunnel) -> io::Result<OwnedFd> {
    let alone = datagram::socket(tunnel.remote)?;
    datagram::bind(&alone, here(tunnel))?;
    // From then on it shares the port, and the group's first one joins it: for as long as a child of this process, not yet at its `exec`, has it
    // open as well, the port stays taken.
    datagram::set(&alone, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    let nobody = datagram::socket(tunnel.remote)?;
    datagram::set(&nobody, libc::SOL_SOCKET, libc::SO_RCVBUF, LEAST_BUFFER)?;
    datagram::set(&nobody, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    datagram::bind(&nobody, here(tunnel))?;
    Ok(nobody)
}

pub(super) fn receiver(tunnel: &Tunnel) -> io::Result<OwnedFd> {
    let socket = datagram::socket(tunnel.remote)?;
    let buffer = |option| datagram::set(&socket, libc::SOL_SOCKET, option, RECEIVE_BUFFER);
    buffer(libc::SO_RCVBUFFORCE).or_else(|_| buffer(libc::SO_RCVBUF))?;
    datagram::receive_runs(&socket, tunnel.remote.is_ipv4())?;
    if !tunnel.checksum {
        datagram::without_checksum(&socket, tunnel.remote.is_ipv4())?;
    }
    datagram::set(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    datagram::bind(&socket, here(tunnel))?;
    Ok(socket)
}

/// Any address: a group has one, and a port may be told its own later.
fn here(tunnel: &Tunnel) -> SocketAddr {
    SocketAddr::new(any(tunnel.remote.is_ipv4()), tunnel.port)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
