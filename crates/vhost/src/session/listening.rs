//! A socket of ours: it has its rights before it has its name.
//!
//! A socket that gets its rights by its path may lend them to another file: whoever may write to its directory puts a link in between.
//! So it is bound in a directory that nobody else may enter, gets its owner and mode by descriptor, and moves to its name last.

use super::door::connect;
use super::rights::Access;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Our own socket, and its file as long as it is ours.
pub(super) struct Listening {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the file: another one of that name is another's.
    identity: (u64, u64),
}

impl Listening {
    pub(super) fn open(path: &Path, access: &Access) -> Result<Self, String> {
        let shown = path.display();
        remove_stale(path)?;
        let opened = Private::beside(path).and_then(|private| private.listen(path, access));
        opened.map_err(|error: io::Error| match error.kind() {
            ErrorKind::NotFound => format!("the directory of {shown} does not exist: create it"),
            ErrorKind::PermissionDenied => {
                format!("{shown} may not be made: choose a directory that the node may write to")
            }
            _ => format!("{shown} cannot be listened on: {error}"),
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let is_ours = |file: std::fs::Metadata| (file.dev(), file.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // Gone already: as wanted.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The socket's first name, in a directory where nobody else can be.
const FIRST: &str = "s";

/// A directory beside a socket's path that nobody else may enter; it goes when it is dropped.
struct Private {
    parent: OwnedFd,
    name: String,
    inside: OwnedFd,
}

impl Private {
    fn beside(path: &Path) -> io::Result<Self> {
        let directory = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let parent = rustix::fs::open(parent, OFlags::PATH | directory, Mode::empty())?;
        let name = format!(".suiro-{:016x}", RandomState::new().build_hasher().finish());
        rustix::fs::mkdirat(&parent, &*name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | directory;
        let inside = rustix::fs::openat(&parent, &*name, flags, Mode::empty())?;
        let private = Self { parent, name, inside };
        // Whoever may write to the parent may have put another one in its place.
        let found = rustix::fs::fstat(&private.inside)?;
        let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || found.st_mode & 0o077 != 0 {
            return Err(io::Error::other("another directory was put into the place of ours"));
        }
        Ok(private)
    }

    fn listen(&self, path: &Path, access: &Access) -> io::Result<Listening> {
        let first = format!("/proc/self/fd/{}/{FIRST}", self.inside.as_raw_fd());
        let socket = UnixListener::bind(first)?;
        socket.set_nonblocking(true)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.inside, FIRST, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        access.guard(file)?;
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let no_other = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&self.inside, FIRST, &self.parent, name, no_other)?;
        Ok(Listening { socket, path: path.into(), identity: (found.st_dev, found.st_ino) })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // The socket has left it, or is of no use.
        let _ = rustix::fs::unlinkat(&self.inside, FIRST, AtFlags::empty());
        let _ = rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR);
    }
}

/// Removes a socket that no one listens on any more: a process that was killed left it.
fn remove_stale(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let Ok(file) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !file.file_type().is_socket() {
        return Err(format!("{shown} is there and no socket: remove it, or choose another path"));
    }
    match connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| {
                format!("{shown} was left by a process that ended and cannot be removed: {error}")
            }),
        _ => Err(format!(
            "another program listens on {shown} (`ss -xlp` names it): end it, or choose another path"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::rights::Rights;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_socket_has_its_mode_and_leaves_nothing_but_itself() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("vm.sock");
        let listening = Listening::open(&path, &Access::new(Rights::default())).unwrap();
        assert_eq!(mode(&path), 0o660);
        let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(connect(&path).is_ok());
        drop(listening);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_comes_under_its_name_meanwhile_is_neither_replaced_nor_given_rights() {
        let home = tempfile::tempdir().unwrap();
        let (path, secret) = (home.path().join("vm.sock"), home.path().join("secret"));
        std::fs::write(&secret, "secret").unwrap();
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        let private = Private::beside(&path).unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        let refused = private.listen(&path, &Access::new(Rights::default())).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(mode(&secret), 0o600);
    }
}
