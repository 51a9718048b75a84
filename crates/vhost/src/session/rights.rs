//! Who may open a socket of ours: set before the socket has its name, and changed while it is there.
//!
//! The file is held by descriptor, so that no name is looked up and no link followed. Lock order: the mutex is a leaf.

use crate::sys;
use rustix::fs::{AtFlags, Gid, Mode, Stat, Uid};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Who may open a socket that a port makes. Whoever may can have the guest's traffic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rights {
    /// User that owns it, by number; this process's when left out.
    pub owner: Option<u32>,
    /// Group that owns it, by number; the one that the kernel gave it when left out.
    pub group: Option<u32>,
    /// Permission bits.
    pub mode: u32,
}

/// For this process's user and group.
impl Default for Rights {
    fn default() -> Self {
        Self { owner: None, group: None, mode: 0o660 }
    }
}

/// A name that no user or group of the host has.
#[derive(Debug, thiserror::Error)]
pub enum UnknownAccount {
    /// No user has the name.
    #[error("there is no user {0}")]
    User(String),
    /// No group has the name.
    #[error("there is no group {0}")]
    Group(String),
    /// The host does not say.
    #[error("who {name} is cannot be looked up")]
    LookUp {
        /// The name.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

impl UnknownAccount {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::User(_) => "create it, or name one that `getent passwd` shows, or a number",
            Self::Group(_) => "create it, or name one that `getent group` shows, or a number",
            Self::LookUp { .. } => "give its number, or mend what /etc/nsswitch.conf names",
        }
    }
}

impl Rights {
    /// Rights in words: names or numbers of accounts, and permission bits; what is left out is as usual.
    ///
    /// # Errors
    /// The host has no such user or group.
    pub fn of(
        owner: Option<&str>,
        group: Option<&str>,
        mode: Option<u32>,
    ) -> Result<Self, UnknownAccount> {
        let owner = owner.map(|name| number(name, sys::user, UnknownAccount::User)).transpose()?;
        let group =
            group.map(|name| number(name, sys::group, UnknownAccount::Group)).transpose()?;
        Ok(Self { owner, group, mode: mode.unwrap_or(Self::default().mode) })
    }
}

/// The number that a name is, or else that the host has for it.
fn number(
    name: &str,
    look_up: fn(&CStr) -> io::Result<Option<u32>>,
    unknown: fn(String) -> UnknownAccount,
) -> Result<u32, UnknownAccount> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let failed = |source| UnknownAccount::LookUp { name: name.into(), source };
    let text = CString::new(name).map_err(|_| unknown(name.into()))?;
    look_up(&text).map_err(failed)?.ok_or_else(|| unknown(name.into()))
}

/// Rights that a port's socket shall have, and its file once there is one.
pub(super) struct Access(Mutex<State>);

struct State {
    rights: Rights,
    file: Option<SocketFile>,
}

impl Access {
    pub(super) fn new(rights: Rights) -> Self {
        Self(Mutex::new(State { rights, file: None }))
    }

    /// Gives a new socket its rights, and from now on those that [`Access::change`] is told.
    pub(super) fn guard(&self, file: OwnedFd) -> io::Result<()> {
        let file = SocketFile::new(file)?;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.give(state.rights)?;
        state.file = Some(file);
        Ok(())
    }

    /// Connections that are there stay.
    pub(super) fn change(&self, rights: Rights) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &state.file {
            file.give(rights).inspect_err(|_| {
                // They were so a moment ago; what is told is why they do not change.
                let _ = file.give(state.rights);
            })?;
        }
        state.rights = rights;
        Ok(())
    }
}

/// A socket's file and whose it was at first.
struct SocketFile {
    file: OwnedFd,
    first: (Uid, Gid),
}

impl SocketFile {
    fn new(file: OwnedFd) -> io::Result<Self> {
        let first = owners(&rustix::fs::fstat(&file)?);
        Ok(Self { file, first })
    }

    /// Takes away what is to go, then changes the owners, then adds what is to come: on the way nobody has more than before or after.
    fn give(&self, Rights { owner, group, mode }: Rights) -> io::Result<()> {
        let (user, first_group) = self.first;
        let wanted = (owner.map_or(user, Uid::from_raw), group.map_or(first_group, Gid::from_raw));
        let now = rustix::fs::fstat(&self.file)?;
        self.set_mode(now.st_mode & mode)?;
        if owners(&now) != wanted {
            let (user, group) = (Some(wanted.0), Some(wanted.1));
            rustix::fs::chownat(&self.file, "", user, group, AtFlags::EMPTY_PATH)
                .map_err(|error| refused("owner and group", "CAP_CHOWN", error))?;
        }
        self.set_mode(mode)
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        let itself = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::chmod(itself, Mode::from_raw_mode(mode))
            .map_err(|error| refused("mode", "CAP_FOWNER", error))
    }
}

fn owners(file: &Stat) -> (Uid, Gid) {
    (Uid::from_raw(file.st_uid), Gid::from_raw(file.st_gid))
}

fn refused(what: &str, capability: &str, error: rustix::io::Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::other(format!(
        "its {what} cannot be set ({error}): start the node with {capability}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn accounts_are_names_or_numbers_and_who_is_nobody_is_named() {
        let rights = Rights::of(Some("root"), Some("65533"), None).unwrap();
        assert_eq!(rights, Rights { owner: Some(0), group: Some(65533), mode: 0o660 });
        assert_eq!(Rights::of(None, None, None).unwrap(), Rights::default());
        let user = Rights::of(Some("no:such"), None, None).unwrap_err();
        assert_eq!(user.to_string(), "there is no user no:such");
        let group = Rights::of(None, Some("no:such"), Some(0o600)).unwrap_err();
        assert_eq!(group.to_string(), "there is no group no:such");
        assert!(group.remedy().contains("getent group"));
    }

    #[test]
    fn rights_change_as_told_and_go_back_to_what_they_were_at_first() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s");
        std::fs::write(&path, "").unwrap();
        let seen = || {
            let file = std::fs::metadata(&path).unwrap();
            (file.uid(), file.gid(), file.mode() & 0o777)
        };
        let (user, group, _) = seen();
        let access = Access::new(Rights::default());
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        access.guard(rustix::fs::open(&path, flags, Mode::empty()).unwrap()).unwrap();
        assert_eq!(seen(), (user, group, 0o660));
        if !rustix::process::geteuid().is_root() {
            let refused = access.change(Rights { owner: Some(0), ..Rights::default() });
            assert!(refused.unwrap_err().to_string().contains("CAP_CHOWN"));
            return assert_eq!(seen(), (user, group, 0o660));
        }
        access.change(Rights { owner: Some(65534), group: Some(65533), mode: 0o600 }).unwrap();
        assert_eq!(seen(), (65534, 65533, 0o600));
        access.change(Rights::default()).unwrap();
        assert_eq!(seen(), (user, group, 0o660));
    }
}
