//! What can be wrong with the store.

use super::database::FORMAT_VERSION;
use std::io;
use std::path::{Path, PathBuf};

/// Why the state cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be made.
    #[error("state directory {}: creating it failed", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has the file open.
    #[error("state file {}: another process has it open", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened, for a reason that lies outside it.
    #[error("state file {}: opening failed", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<redb::DatabaseError>,
    },
    /// The file is not, or no longer, a store.
    #[error("state file {}: damaged: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        cause: String,
    },
    /// The disk does not give back what is in the file.
    #[error("state file {}: reading failed", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A later release wrote the file.
    #[error("state file {}: format {found} is newer than {FORMAT_VERSION}, the newest this release reads", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// A damaged file could not be renamed.
    #[error("state file {}: damaged, and setting it aside failed", path.display())]
    SetAside {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A commit failed.
    #[error("state file: writing failed")]
    Write(#[source] Box<redb::Error>),
}

impl StoreError {
    pub(super) fn opening(path: &Path, source: redb::DatabaseError) -> Self {
        use redb::{DatabaseError, StorageError};
        let path = path.to_path_buf();
        match source {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse { path },
            DatabaseError::Storage(StorageError::Io(ref error)) if !tells_damage(error) => {
                Self::Open { path, source: Box::new(source) }
            }
            other => Self::Damaged { path, cause: other.to_string() },
        }
    }

    pub(super) fn reading(path: &Path, source: redb::Error) -> Self {
        let path = path.to_path_buf();
        match source {
            redb::Error::Io(source) if !tells_damage(&source) => Self::Read { path, source },
            other => Self::Damaged { path, cause: other.to_string() },
        }
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Directory { path, .. } => {
                format!("run as a user who may create {}, or set [node] state_dir", path.display())
            }
            Self::InUse { .. } => {
                "stop the other node, or give each node its own [node] state_dir and run_dir".into()
            }
            Self::Open { path, .. } | Self::Read { path, .. } => {
                format!("check the rights and the file system of {}", path.display())
            }
            Self::Damaged { path, .. } | Self::SetAside { path, .. } => {
                format!(
                    "restore {} from a backup, or remove it with: suiro node --purge",
                    path.display()
                )
            }
            Self::Format { .. } => {
                "start the newer release, or remove the state with: suiro node --purge".into()
            }
            Self::Write(_) => {
                "free space on the file system of [node] state_dir; suiro retries every second"
                    .into()
            }
        }
    }
}

/// Whether an error says that a file is not what it should be, rather than that the disk fails.
fn tells_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fails_is_not_called_damage() {
        let reading = |kind: io::ErrorKind| {
            StoreError::reading(Path::new("state.redb"), redb::Error::Io(kind.into()))
        };
        assert!(matches!(reading(io::ErrorKind::Other), StoreError::Read { .. }));
        assert!(matches!(reading(io::ErrorKind::UnexpectedEof), StoreError::Damaged { .. }));
    }
}
