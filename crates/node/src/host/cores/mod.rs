//! # Cores of this host
//!
//! **Question answered**: which cores are there, which two are threads of one, and which memory is near?
//!
//! From `/sys/devices/system/cpu` and `/sys/devices/system/node` (Documentation/ABI/stable/sysfs-devices-system-cpu and …-node). Only
//! cores that are online count; a host without NUMA has one node, 0.

mod list;

pub(crate) use list::{BadList, parse_list};

use place::{Core, CoreId, NumaNode};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A file that should say something about cores, and does not.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CoresError {
    /// Not readable.
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Not understood.
    #[error("{}: {source}", path.display())]
    List { path: PathBuf, source: BadList },
}

/// The cores that are online, by rising number, without loads and roles.
///
/// # Errors
/// The list of cores is missing or not understood. A core whose siblings or node are not told has none, and node 0.
pub(crate) fn online(sys: &Path) -> Result<Vec<Core>, CoresError> {
    let cpus = sys.join("devices/system/cpu");
    let nodes = nodes(&sys.join("devices/system/node"));
    let online = read_list(&cpus.join("online"))?;
    let core = |&id: &CoreId| {
        let mut core = Core::new(id);
        core.numa = nodes.get(&id).copied().unwrap_or_default();
        core.sibling = sibling(&cpus, id, &online);
        core
    };
    Ok(online.iter().map(core).collect())
}

/// As many cores as this process may use, numbered from 0: where there is no `/sys`.
pub(crate) fn counted() -> Vec<Core> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..=u16::MAX).take(count).map(|id| Core::new(CoreId(id))).collect()
}

/// Of a core with more than two threads (POWER has eight), the next one, and of the last the first.
fn sibling(cpus: &Path, id: CoreId, online: &[CoreId]) -> Option<CoreId> {
    let threads = read_list(&cpus.join(format!("cpu{id}/topology/thread_siblings_list"))).ok()?;
    let others = || threads.iter().copied().filter(|other| *other != id && online.contains(other));
    others().find(|other| *other > id).or_else(|| others().next())
}

/// Each core's node.
fn nodes(directory: &Path) -> BTreeMap<CoreId, NumaNode> {
    let ids = read_list(&directory.join("online")).unwrap_or_default();
    let cores_of = |node: CoreId| {
        let cores = read_list(&directory.join(format!("node{node}/cpulist"))).unwrap_or_default();
        cores.into_iter().map(move |core| (core, NumaNode(node.0)))
    };
    // The kernel writes lists of nodes as it writes lists of cores.
    ids.into_iter().flat_map(cores_of).collect()
}

fn read_list(path: &Path) -> Result<Vec<CoreId>, CoresError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| CoresError::Read { path: path.into(), source })?;
    parse_list(&text).map_err(|source| CoresError::List { path: path.into(), source })
}

#[cfg(test)]
mod tests;
