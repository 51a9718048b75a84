//! One node per run directory: a lock that the kernel releases with the process, however that ends.

use super::Right;
use api::GroupName;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a node that is ending may take, a million rules included.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes of a socket's path: `sun_path` without its NUL (unix(7)).
const SOCKET_PATH: usize = 107;

/// The run directory, ours until this is dropped.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _lock: File,
}

/// Why a run directory cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another node has it.
    #[error("run directory {}: another node runs there, process {owner}", path.display())]
    Taken {
        /// The directory.
        path: PathBuf,
        /// The other process, as it wrote itself.
        owner: String,
    },
    /// No socket fits into it.
    #[error("run directory {}: its path has {} bytes, and with the names of sockets more than the 107 of a socket's path", path.display(), path.as_os_str().len())]
    TooLong {
        /// The directory.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("run directory {}: {step} failed", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Why a group gets no socket to read by.
#[derive(Debug, thiserror::Error)]
pub enum ReadSocketError {
    /// The host has no such group.
    #[error(transparent)]
    Group(#[from] vhost::UnknownAccount),
    /// The system refuses.
    #[error("its socket cannot be bound and given to the group")]
    Io(#[from] io::Error),
}

impl ReadSocketError {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Group(unknown) => unknown.remedy(),
            Self::Io(_) => "start the node as root or with CAP_CHOWN, or leave the key out",
        }
    }
}

impl LockError {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Taken { owner, .. } => format!(
                "stop it (kill {owner}, or systemctl stop suiro), or give this node another [node] run_dir and state_dir"
            ),
            Self::TooLong { .. } => {
                "set [node] run_dir (--run-dir) to a shorter path, such as /run/suiro".into()
            }
            Self::Io { path, .. } => {
                format!("run as a user who may write {}, or set [node] run_dir", path.display())
            }
        }
    }
}

impl RunDir {
    /// Makes the directory and takes it, waiting a moment for a node that is just ending.
    ///
    /// # Errors
    /// Another node has it, or the system refuses.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        if path.as_os_str().len() + "/api.sock".len() > SOCKET_PATH {
            return Err(LockError::TooLong { path: path.into() });
        }
        let failed = |step| move |source| LockError::Io { path: path.into(), step, source };
        make_directory(path).map_err(failed("creating it"))?;
        let mut options = OpenOptions::new();
        // Whoever may open it could hold it.
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = options.open(path.join(api::LOCK));
        let mut lock = opened.map_err(failed("opening its lock file"))?;
        let owner = read_owner(&mut lock);
        if !within_patience(|| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            return Err(LockError::Taken { path: path.into(), owner });
        }
        // The kernel closes a dying process's files one by one: state and TAPs come after this lock.
        within_patience(|| has_ended(&owner));
        write_owner(&mut lock).map_err(failed("writing its lock file"))?;
        Ok(Self { path: path.into(), _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the local API listens.
    pub fn api_socket(&self) -> PathBuf {
        self.path.join("api.sock")
    }

    /// Where those are answered who have only this right.
    pub fn socket_of(&self, right: Right) -> PathBuf {
        self.path.join(right.socket())
    }

    /// Where `ovs-ofctl` finds a switch.
    pub fn management_socket(&self, switch: &str) -> PathBuf {
        self.path.join(format!("{switch}.mgmt"))
    }

    /// Where vhost-user ports note where their guests' packed rings stand; outlives the node, and needs a tmpfs, which `/run` is.
    pub fn ring_records(&self) -> PathBuf {
        self.path.join("rings")
    }

    /// Notes of offloads that AF_XDP ports switched off.
    ///
    /// They outlive the node, not the host: after a boot interfaces have their defaults.
    pub fn offload_notes(&self) -> PathBuf {
        self.path.join("offloads")
    }

    /// Removes the sockets that a killed node left: the lock says that nobody uses them.
    pub fn remove_stale_sockets(&self) {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let ours = path.extension().is_some_and(|kind| kind == "sock" || kind == "mgmt");
            if ours && std::fs::remove_file(&path).is_ok() {
                tracing::debug!("removed {} of an earlier node", path.display());
            }
        }
    }

    /// Binds the API's socket, for the group of the directory too (mode 0660).
    ///
    /// # Errors
    /// The system refuses.
    pub fn bind_api(&self) -> Result<tokio::net::UnixListener, LockError> {
        let path = self.api_socket();
        let failed = |step| move |source| LockError::Io { path: self.path.clone(), step, source };
        let listener = tokio::net::UnixListener::bind(&path).map_err(failed("binding api.sock"))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o660))
            .map_err(failed("setting the mode of api.sock"))?;
        Ok(listener)
    }

    /// Binds the socket of those who have only this right, for that group alone. Whoever gives files away needs `CAP_CHOWN`: before it is dropped.
    ///
    /// # Errors
    /// There is no such group, or the system refuses.
    pub fn bind_for(
        &self,
        right: Right,
        group: &GroupName,
    ) -> Result<UnixListener, ReadSocketError> {
        let rights = vhost::Rights::of(None, Some(group), None)?;
        let path = self.socket_of(right);
        // Until it is the group's nobody else can connect: that takes the right to write (unix(7)).
        let listener = UnixListener::bind(&path)?;
        std::os::unix::fs::chown(&path, None, rights.group)?;
        std::fs::set_permissions(&path, Permissions::from_mode(rights.mode))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

/// Makes a run directory through which all may pass: each socket says itself who may open it.
fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// Asks until the answer is yes, or [`PATIENCE`] is over.
fn within_patience(mut ask: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if ask() {
            return true;
        }
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the process that wrote the lock file is gone with all its threads. Another program under its number is not it.
fn has_ended(owner: &str) -> bool {
    let process = Path::new("/proc").join(owner);
    let Ok(stat) = std::fs::read_to_string(process.join("stat")) else { return true };
    let is_suiro = stat.contains("(suiro)");
    let is_zombie = stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X']));
    let threads = std::fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    !is_suiro || owner == std::process::id().to_string() || is_zombie && threads <= 1
}

fn read_owner(lock: &mut File) -> String {
    let mut text = String::new();
    // What cannot be read cannot be named.
    let _ = lock.read_to_string(&mut text);
    if text.trim().is_empty() { "unknown".into() } else { text.trim().into() }
}

fn write_owner(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_room_for_a_sockets_path_is_refused_with_a_shorter_one() {
        let path = Path::new("/tmp").join("x".repeat(100));
        let refused = RunDir::take(&path).unwrap_err();
        assert!(matches!(refused, LockError::TooLong { .. }), "{refused}");
        assert!(refused.remedy().contains("shorter") && !path.exists());
    }

    #[test]
    fn a_second_node_is_refused_and_told_the_first_ones_process() {
        let home = tempfile::tempdir().unwrap();
        let first = RunDir::take(home.path()).unwrap();
        let refused = RunDir::take(home.path()).unwrap_err();
        assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
        assert!(refused.remedy().contains("run_dir"));
        drop(first);
        RunDir::take(home.path()).unwrap();
    }

    #[test]
    fn only_sockets_of_ours_are_cleared_away() {
        let home = tempfile::tempdir().unwrap();
        let run_dir = RunDir::take(home.path()).unwrap();
        for name in ["api.sock", "sw0.mgmt", "notes.txt"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        run_dir.remove_stale_sockets();
        let mut left: Vec<_> = std::fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["lock", "notes.txt"]);
    }
}
