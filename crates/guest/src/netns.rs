//! Network namespaces with names, as `ip netns` makes them: a file under `/run/netns` on which the namespace is mounted.

use crate::GuestError;
use crate::sys::{Namespaces, leave};
use netlink::{Change, Netlink};
use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/run/netns";
/// Of `statfs`, for a namespace's file (linux/magic.h).
const NSFS_MAGIC: i64 = 0x6e73_6673;

/// The file of a name.
pub fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Whether a namespace has this name.
pub fn is_there(name: &str) -> bool {
    rustix::fs::statfs(path(name)).is_ok_and(|found| found.f_type == NSFS_MAGIC)
}

/// Makes a namespace of this name, with its loopback up. One that is there is kept.
///
/// # Errors
/// The host refuses.
pub fn make(name: &str) -> Result<(), GuestError> {
    if is_there(name) {
        return Ok(());
    }
    let file = path(name);
    let at = |step| GuestError::of(step, file.clone());
    share_directory().map_err(at("preparing /run/netns"))?;
    File::create(&file).map_err(at("naming its namespace"))?;
    let made = apart(|| {
        leave(Namespaces::Network)?;
        mount_bind("/proc/thread-self/ns/net", &file)?;
        Netlink::new()?.change(1, Change::Up(true))
    });
    if made.is_err() {
        let _ = fs::remove_file(&file);
    }
    made.map_err(at("making its namespace"))
}

/// Gives the namespace of a process its name again, which went with the mounts that its node had.
///
/// # Errors
/// The process has ended, or the host refuses.
pub fn name_again(name: &str, process: u32) -> Result<(), GuestError> {
    let (file, from) = (path(name), PathBuf::from(format!("/proc/{process}/ns/net")));
    let at = |step| GuestError::of(step, file.clone());
    share_directory().map_err(at("preparing /run/netns"))?;
    File::create(&file).map_err(at("naming its namespace"))?;
    mount_bind(from, &file).map_err(io::Error::from).map_err(at("naming its namespace again"))
}

/// Removes a namespace's name; the namespace goes with the last process and descriptor in it.
pub fn remove(name: &str) {
    let file = path(name);
    // Gone already is as good.
    let _ = unmount(&file, UnmountFlags::DETACH);
    let _ = fs::remove_file(&file);
}

/// Does `work` in a namespace.
///
/// # Errors
/// There is none of that name, it cannot be entered, or `work` fails.
pub fn within<R: Send>(name: &str, work: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
    let file = files::handle(&path(name))?;
    apart(move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    })
}

/// On a thread of its own, which takes its namespace with it when it ends.
fn apart<R: Send>(work: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Names are to be seen, and to go, in every mount namespace: as `ip netns` does it.
fn share_directory() -> io::Result<()> {
    if !Path::new(DIRECTORY).is_dir() {
        fs::create_dir_all(DIRECTORY)?;
        fs::set_permissions(DIRECTORY, Permissions::from_mode(0o755))?;
    }
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    if mount_change(DIRECTORY, shared).is_ok() {
        return Ok(());
    }
    // Not a mount of its own yet.
    mount_bind_recursive(DIRECTORY, DIRECTORY)?;
    Ok(mount_change(DIRECTORY, shared)?)
}
