//! The files of one `tls` table, read again when one of them has changed.

use super::credentials::{Credentials, TlsFault};
use api::{TlsSpec, chain};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Certificates that follow their files.
///
/// Connections that stand are not touched by a change. A change that cannot be used is reported once, and what was read before stays in
/// use: certificate and key cannot be replaced in one step, so a moment's mismatch must not cut a switch off.
pub struct Tls {
    spec: TlsSpec,
    last: Mutex<Option<Read>>,
}

/// What was read, and of which state of the files.
struct Read {
    stamps: [Stamp; 3],
    credentials: Arc<Credentials>,
}

/// Tells a file from what it becomes: inode, length, change time (seconds, nanoseconds).
type Stamp = Option<(u64, u64, i64, i64)>;

impl Tls {
    /// Nothing is read before [`Tls::credentials`].
    pub fn new(spec: TlsSpec) -> Arc<Self> {
        Arc::new(Self { spec, last: Mutex::new(None) })
    }

    /// The credentials as of now. Reads files, so it is for a thread that may wait.
    ///
    /// # Errors
    /// The files cannot be used, and never could.
    pub fn credentials(&self) -> Result<Arc<Credentials>, TlsFault> {
        let stamps =
            [&self.spec.certificate, &self.spec.key, &self.spec.ca].map(|path| stamp(path));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = last.as_ref().filter(|read| read.stamps == stamps) {
            return Ok(read.credentials.clone());
        }
        let credentials = match (Credentials::load(&self.spec), last.as_ref()) {
            (Ok(new), _) => Arc::new(new),
            (Err(fault), Some(read)) => {
                tracing::error!(
                    remedy = fault.remedy(),
                    "TLS files have changed: {}; those read before stay in use",
                    chain(&fault)
                );
                read.credentials.clone()
            }
            (Err(fault), None) => return Err(fault),
        };
        *last = Some(Read { stamps, credentials: credentials.clone() });
        Ok(credentials)
    }
}

fn stamp(path: &Path) -> Stamp {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.ctime(), found.ctime_nsec()))
}
