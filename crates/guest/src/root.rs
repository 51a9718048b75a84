//! A guest's view of the file system: the host's programs to read, nothing of the node's, and a `/tmp` of its own.

use crate::GuestError;
use crate::order::Order;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Where the new root is put together. The host's own is not changed: this process has mounts of its own.
const STAGE: &str = "/tmp";
/// What a guest has of its own, and what of the host is nobody's business.
const OWN: &[&str] = &[
    "proc",
    "sys",
    "tmp",
    "run",
    "files",
    "home",
    "root",
    "mnt",
    "media",
    "boot",
    "srv",
    "lost+found",
];
const NO_GAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Builds the root and enters it. The process must have left the host's mounts, and has one thread.
///
/// # Errors
/// The host refuses a mount.
pub(crate) fn enter(order: &Order) -> Result<(), GuestError> {
    let at = |step| GuestError::of(step, STAGE);
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(io::Error::from).map_err(at("leaving the host's mounts"))?;
    let hosts: Vec<_> = fs::read_dir("/").map_err(at("reading /"))?.flatten().collect();
    tmpfs(STAGE, "mode=755,size=4m").map_err(at("mounting its root"))?;
    for entry in hosts {
        let (name, from) = (entry.file_name(), entry.path());
        let to = Path::new(STAGE).join(&name);
        if OWN.iter().any(|own| name == *own) {
            continue;
        }
        take(&from, &to).map_err(GuestError::of("showing it a directory of the host", from))?;
    }
    furnish(order).map_err(at("furnishing its root"))?;
    for hidden in &order.hidden {
        hide(hidden).map_err(GuestError::of("hiding it", hidden))?;
    }
    change_root().map_err(at("entering its root"))
}

/// Links stay links; directories are shown, and cannot be written.
fn take(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !kind.is_dir() {
        return Ok(());
    }
    fs::create_dir(to)?;
    mount_bind_recursive(from, to)?;
    if from != Path::new("/dev") {
        mount_remount(to, MountFlags::BIND | MountFlags::RDONLY | NO_GAIN, "")?;
    }
    Ok(())
}

fn furnish(order: &Order) -> io::Result<()> {
    let stage = Path::new(STAGE);
    for own in ["proc", "sys", "tmp", "run", "files"] {
        fs::create_dir(stage.join(own))?;
    }
    // The host's, until its first process mounts its own.
    mount_bind_recursive("/proc", stage.join("proc"))?;
    let flags = NO_GAIN | MountFlags::RDONLY | MountFlags::NOEXEC;
    mount("sysfs", stage.join("sys"), "sysfs", flags, None)?;
    tmpfs(stage.join("tmp"), "mode=1777,size=16m")?;
    tmpfs(stage.join("run"), "mode=755,size=1m")?;
    if stage.join("dev/shm").is_dir() {
        tmpfs(stage.join("dev/shm"), "mode=1777,size=16m")?;
    }
    for (name, text) in &order.files {
        fs::write(stage.join("files").join(name), text)?;
    }
    let (own, shown) = (stage.join("files/.hosts"), stage.join("etc/hosts"));
    fs::write(&own, hosts_text(order))?;
    if shown.is_file() {
        mount_bind(own, shown)?;
    }
    mount_remount(STAGE, MountFlags::BIND | MountFlags::RDONLY | NO_GAIN, "")?;
    Ok(())
}

/// The text of its `/etc/hosts`.
fn hosts_text(order: &Order) -> String {
    let own: [(&str, Vec<IpAddr>); 2] = [
        ("localhost", vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()]),
        (&order.name, vec![[127, 0, 1, 1].into()]),
    ];
    let own = own.into_iter().filter(|(name, _)| !order.hosts.contains_key(*name));
    let given = order.hosts.iter().map(|(name, addresses)| (name.as_str(), addresses.clone()));
    let lines = own.chain(given).flat_map(|(name, addresses)| {
        addresses.into_iter().map(move |address| format!("{address}\t{name}\n"))
    });
    lines.collect()
}

fn hide(path: &Path) -> io::Result<()> {
    let shown = Path::new(STAGE).join(path.strip_prefix("/").unwrap_or(path));
    match shown.is_dir() {
        true => tmpfs(shown, "mode=555,size=4k"),
        false => Ok(()),
    }
}

fn tmpfs(at: impl AsRef<Path>, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    Ok(mount("tmpfs", at.as_ref(), "tmpfs", NO_GAIN, &*options)?)
}

fn change_root() -> io::Result<()> {
    std::env::set_current_dir(STAGE)?;
    // The old root lies upon the new one then, and is taken off (pivot_root(2), notes).
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_its_own_is_one_of_them() {
        let text = r#"{"name":"h1","netns":"/n","groups":[],"command":["true"],"hosts":{"ctl":["fd00::1","10.0.0.9"]},"files":{},"hidden":[],"inside":null}"#;
        let order: Order = serde_json::from_str(text).unwrap();
        assert_eq!(
            hosts_text(&order),
            "127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\th1\nfd00::1\tctl\n10.0.0.9\tctl\n"
        );
    }
}
