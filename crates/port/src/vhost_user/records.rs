//! Which file keeps where a port's packed rings stand ([`vhost::Records`]).

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use vhost::{RecordError, Records};

/// The file of one socket: a guest is known by it, whatever its port is called and wherever it is added again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RecordFile(PathBuf);

impl RecordFile {
    /// The one of `socket` in `directory`. A socket's path has at most 107 bytes (unix(7)), a file's name 255.
    pub(super) fn new(directory: &Path, socket: &Path) -> Self {
        let name = socket.to_string_lossy().replace('/', "%");
        Self(directory.join(name))
    }

    /// Opens it for so many rings, and makes it and its directory if need be.
    pub(super) fn open(&self, rings: u16) -> Result<Records, RecordError> {
        let directory = self.0.parent().unwrap_or(Path::new("/"));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(
            |source| RecordError { path: directory.into(), step: "make the directory", source },
        )?;
        Records::open(&self.0, rings)
    }

    /// Removes it.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_socket_has_a_file_of_its_own() {
        let file =
            |socket: &str| RecordFile::new(Path::new("/run/suiro/rings"), Path::new(socket)).0;
        assert_eq!(file("/run/vm/1.sock"), Path::new("/run/suiro/rings/%run%vm%1.sock"));
        assert_ne!(file("/a/b"), file("/ab"));
    }
}
