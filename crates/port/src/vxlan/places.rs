//! Groups of sockets that share a UDP port, one for each port of a namespace that any tunnel uses.

use super::group::first_of_group;
use crate::error::OpenError;
use crate::vxlan::tunnel::Tunnel;
use std::fs::metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Namespace (device and inode), IPv4, UDP port.
type Place = (u64, u64, bool, u16);

/// All groups of a node whose datagrams a `D` sorts. A group is there as long as somebody holds it.
pub(crate) struct ByPlace<D>(Mutex<Vec<(Place, Weak<Group<D>>)>>);

/// One group.
pub(super) struct Group<D> {
    /// Who gets what.
    pub(super) demux: Mutex<D>,
    /// First of the group, and the last to go.
    _nobody: OwnedFd,
}

impl<D> Default for ByPlace<D> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<D> ByPlace<D> {
    /// The group of the tunnel's UDP port in the calling thread's namespace, for the port `name`. If there is none it is made; `sort` loads
    /// the program at its first socket.
    ///
    /// # Errors
    /// `taken` if somebody else has the UDP port, or what the system refused.
    pub(super) fn get(
        &self,
        name: &str,
        tunnel: &Tunnel,
        taken: impl FnOnce() -> OpenError,
        sort: impl FnOnce(&OwnedFd) -> io::Result<D>,
    ) -> Result<Arc<Group<D>>, OpenError> {
        let failed = |step| move |source| OpenError::io(name, step, source);
        let place = namespace(tunnel).map_err(failed("look at the network namespace"))?;
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|(_, group)| group.strong_count() > 0);
        let found = groups.iter().find(|(other, _)| *other == place);
        if let Some(group) = found.and_then(|(_, group)| group.upgrade()) {
            return Ok(group);
        }
        let nobody = first_of_group(tunnel).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => taken(),
            _ => failed("open the tunnel's UDP port")(source),
        })?;
        let demux = sort(&nobody).map_err(failed("load the program that sorts datagrams"))?;
        let group = Arc::new(Group { demux: Mutex::new(demux), _nobody: nobody });
        groups.push((place, Arc::downgrade(&group)));
        Ok(group)
    }
}

/// The place of a tunnel's group: in the calling thread's namespace.
fn namespace(tunnel: &Tunnel) -> io::Result<Place> {
    let file = metadata("/proc/thread-self/ns/net")?;
    Ok((file.dev(), file.ino(), tunnel.remote.is_ipv4(), tunnel.port))
}
