//! Our own record of where packed rings stand, for front-ends that keep none.
//!
//! A split ring's used index lies in the guest's memory, a packed ring's position nowhere: a back-end tells it when it is asked to stop
//! (`VHOST_USER_GET_VRING_BASE`). One that was killed was not asked. QEMU (7.2, and no later one known) then hands the next process the base of
//! the last orderly stop, and knows no inflight region for network devices; the ring would wait for ever at a place that its driver has left.
//!
//! So each port has a small file, mapped and shared, whose pages outlive any process (they are the kernel's, and `run_dir` is on a tmpfs). Line 0
//! says what the file is, line `1 + n` belongs to ring `n`: 64 bytes each, a cache line that nobody else reads, so that the one store that a batch
//! costs goes to a line that is always ours. What stands there, when it is believed, and why a kill between any two stores
//! does no harm: `ring/packed/record.rs`.

use crate::ring::Base;
use crate::sys::{Area, MapError, Mapping};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// Line 0 of a file of this layout; another layout gets another text.
const TITLE: &[u8; LINE] = b"suiro: where the packed rings of a vhost-user port stand, v1\n\0\0\0";

/// Where a line says whether anything in it counts, and what it says then.
pub(crate) const STATE: usize = 0;
pub(crate) const VALID: u64 = 0x5155_4152_4956_0001;

/// A port's record cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: {step} failed", path.display())]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// What was tried.
    pub step: &'static str,
    /// The kernel's reason.
    pub source: io::Error,
}

/// The record of a port's rings.
#[derive(Debug)]
pub struct Records {
    mapping: Arc<Mapping>,
    rings: u16,
}

impl Records {
    /// Opens the record of a port with so many rings, or begins it. What stands there of rings that the port no longer has stays.
    ///
    /// # Errors
    /// The system refuses the file.
    pub fn open(path: &Path, rings: u16) -> Result<Self, RecordError> {
        let failed = |step| {
            move |error: rustix::io::Errno| RecordError {
                path: path.into(),
                step,
                source: error.into(),
            }
        };
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(failed("open"))?;
        let needed = LINE * (1 + usize::from(rings));
        extend(file.as_fd(), needed).map_err(failed("write"))?;
        let mapping =
            Mapping::new(file.as_fd(), 0, needed as u64).map_err(|error| RecordError {
                path: path.into(),
                step: "mmap",
                source: match error {
                    MapError::System(source) => source,
                    MapError::BadRange | MapError::Short { .. } => {
                        io::ErrorKind::InvalidData.into()
                    }
                },
            })?;
        Ok(Self { mapping, rings })
    }

    /// The line of ring `index`, for a start from what the front-end said now, or (`None`) for one that goes on where we stopped it.
    pub fn ring(&self, index: u16, said: Option<Base>) -> Option<RingRecord> {
        Some(RingRecord { area: self.line(index)?, said })
    }

    /// Forgets a ring: the front-end was told where it stands, or its driver begins anew.
    pub fn forget(&self, index: u16) {
        if let Some(line) = self.line(index) {
            line.store_u64(STATE, 0, Relaxed);
        }
    }

    fn line(&self, index: u16) -> Option<Area> {
        let at = LINE * (1 + usize::from(index));
        let area = Area::new(&self.mapping, at as u64, LINE, LINE);
        area.filter(|_| index < self.rings)
    }
}

/// Makes the file one of this layout with at least `needed` bytes, all of them written: a page that a full file system cannot give later would be
/// missed in the middle of a batch.
fn extend(file: std::os::fd::BorrowedFd<'_>, needed: usize) -> rustix::io::Result<()> {
    let mut title = [0; LINE];
    let is_ours = rustix::io::pread(file, &mut title, 0)? == LINE && title == *TITLE;
    if !is_ours {
        rustix::fs::ftruncate(file, 0)?;
    }
    let have = rustix::fs::fstat(file)?.st_size as usize;
    if have < needed {
        write_all(file, &vec![0; needed - have], have)?;
    }
    if is_ours { Ok(()) } else { write_all(file, TITLE, 0) }
}

fn write_all(
    file: std::os::fd::BorrowedFd<'_>,
    mut bytes: &[u8],
    mut at: usize,
) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::pwrite(file, bytes, at as u64)?;
        (bytes, at) = (&bytes[count..], at + count);
    }
    Ok(())
}

/// One ring's line, and what its front-end says.
#[derive(Clone, Debug)]
pub struct RingRecord {
    pub(crate) area: Area,
    pub(crate) said: Option<Base>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_begun_anew_and_one_of_ours_grows() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("vm1");
        std::fs::write(&path, [7; 100]).unwrap();
        let state = |records: &Records, ring| records.line(ring).unwrap().load_u64(STATE, Relaxed);
        let records = Records::open(&path, 2).unwrap();
        assert_eq!([state(&records, 0), state(&records, 1)], [0, 0]);
        assert!(records.line(2).is_none());
        records.line(1).unwrap().store_u64(STATE, VALID, Relaxed);
        let records = Records::open(&path, 4).unwrap();
        assert_eq!([1, 3].map(|ring| state(&records, ring)), [VALID, 0]);
        records.forget(1);
        assert_eq!(state(&Records::open(&path, 2).unwrap(), 1), 0);
    }

    #[test]
    fn a_link_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (path, other) = (home.path().join("vm1"), home.path().join("precious"));
        std::fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert_eq!(Records::open(&path, 2).unwrap_err().step, "open");
        assert_eq!(std::fs::read(&other).unwrap(), b"precious");
    }
}
