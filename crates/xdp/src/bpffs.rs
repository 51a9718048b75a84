//! The kernel's file system of pins.

use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};
use std::ffi::CStr;
use std::io;
use std::path::Path;

/// Where it is by convention.
const BPFFS: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC` of linux/magic.h.
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
/// What fails without it, and the remedy.
pub(crate) const STEP: &str =
    "make it: needs a mounted bpf file system (mount -t bpf bpf /sys/fs/bpf)";

/// Sees to it that pins can be made below `root`: mounts the file system where it belongs by convention, and nowhere else.
pub(crate) fn ready(root: &Path) -> io::Result<()> {
    if root.starts_with(BPFFS) && !is_bpffs(Path::new(BPFFS)) {
        mount("bpf", BPFFS, "bpf", MountFlags::empty(), None::<&CStr>)?;
    }
    let parent = root.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    if is_bpffs(parent) { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.f_type as u64 == BPF_FS_MAGIC)
}
