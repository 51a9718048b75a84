//! The file that the store has open, and the name where it belongs.
//!
//! A name can be taken away, or given to another file, while a file is open. The store keeps hold of its own file, so it never takes another one for
//! it, and notices when the name is no longer its.

use super::StoreError;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file and its name.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Keeps the file, whatever becomes of the name.
    pin: File,
}

/// Takes away what an earlier release or a copy left open. On a disk that cannot be written it stays so.
fn close_to_others(file: &File) {
    if file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0) {
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
}

impl Place {
    /// Finds the file or makes it, for its owner alone: it tells all tenants' rules.
    ///
    /// # Errors
    /// What is there can be no store, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let damaged = |cause: &str| StoreError::Damaged { path: path.into(), cause: cause.into() };
        let failed = |source: io::Error| StoreError::Open {
            path: path.into(),
            source: Box::new(redb::DatabaseError::Storage(source.into())),
        };
        // Opening a FIFO would wait for who writes to it.
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => return Err(damaged("it is no regular file")),
            Ok(found) if found.len() == 0 => return Err(damaged("it is empty")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
                made.map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        let pin = File::open(path).map_err(failed)?;
        close_to_others(&pin);
        Ok(Self { path: path.into(), pin })
    }

    /// The name where the file belongs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether that still names it.
    pub fn is_there(&self) -> bool {
        let id = |of: std::fs::Metadata| (of.dev(), of.ino());
        let named = std::fs::metadata(&self.path).map(id);
        named.is_ok_and(|named| self.pin.metadata().map(id).is_ok_and(|ours| ours == named))
    }

    /// Opens it once more, under whatever name it has by now.
    ///
    /// # Errors
    /// The system refuses.
    pub fn again(&self, options: &OpenOptions) -> io::Result<File> {
        options.open(format!("/proc/self/fd/{}", self.pin.as_raw_fd()))
    }

    /// Moves it to where another file belongs.
    ///
    /// # Errors
    /// The directory refuses.
    pub fn move_to(&mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.path = path.into();
        Ok(())
    }
}
