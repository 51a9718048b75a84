//! The one call whose safety the compiler cannot see.

use rustix::thread::UnshareFlags;
use std::io;

/// Leaves namespaces that the thread shares with others for new ones of its own.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn leave(namespaces: Namespaces) -> io::Result<()> {
    let flags = match namespaces {
        Namespaces::Network => UnshareFlags::NEWNET,
        Namespaces::Rest => {
            UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC
        }
    };
    // SAFETY: neither set has `FILES`, the flag by which descriptors of other threads could stop being valid here.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// Which.
pub(crate) enum Namespaces {
    /// The network's.
    Network,
    /// Mounts, processes to come, host name and IPC. Only a process with one thread can have mounts of its own.
    Rest,
}
