//! Where programs, links and maps are pinned, so that they outlive the process.
//!
//! ```text
//! <root>/host/…               one copy for the host: what each core does
//! <root>/interfaces/<name>/…  one for each steered interface
//! ```
//! In each directory the pin [`LINK`] is made last and removed first: without it, the rest is what a killed process left half done.

use super::error::SteerError;
use crate::bpffs;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where everything is unless the user says otherwise.
pub const PIN_ROOT: &str = "/sys/fs/bpf/suiro/steer";
/// The pin that says that a directory is complete.
pub(crate) const LINK: &str = "link";

/// The directories below one root.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    root: PathBuf,
}

impl Pins {
    /// Those that are there.
    pub(crate) fn below(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Makes the root; mounts the file system where it belongs by convention.
    pub(crate) fn at(root: &Path) -> Result<Self, SteerError> {
        let pins = Self::below(root);
        bpffs::ready(root).map_err(pin_error(root, bpffs::STEP))?;
        pins.make().map_err(pin_error(root, bpffs::STEP))?;
        Ok(pins)
    }

    fn make(&self) -> io::Result<()> {
        fs::create_dir_all(self.host())?;
        fs::create_dir_all(self.interfaces())
    }

    /// Holds off other processes until it is dropped. Another process may have removed everything while this one waited: then it is made
    /// anew, and that is locked.
    pub(crate) fn lock(&self) -> Result<File, SteerError> {
        loop {
            let file = match self.make().and_then(|()| File::open(&self.root)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.map_err(pin_error(&self.root, "open it"))?,
            };
            let locked = flock(&file, FlockOperation::LockExclusive);
            locked.map_err(|errno| pin_error(&self.root, "lock it")(errno.into()))?;
            if self.is_root(&file) {
                return Ok(file);
            }
        }
    }

    /// True of the directory that everybody finds under this path.
    fn is_root(&self, file: &File) -> bool {
        let number = |found: io::Result<fs::Metadata>| found.ok().map(|found| found.ino());
        number(file.metadata()) == number(fs::metadata(&self.root))
    }

    pub(crate) fn host(&self) -> PathBuf {
        self.root.join("host")
    }

    fn interfaces(&self) -> PathBuf {
        self.root.join("interfaces")
    }

    /// The file system takes no dots, and an interface's name no colon.
    pub(crate) fn interface(&self, name: &str) -> PathBuf {
        self.interfaces().join(name.replace('.', ":"))
    }

    /// Names of the interfaces that are completely pinned.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.interfaces()).into_iter().flatten().flatten();
        let complete = entries.filter(|entry| entry.path().join(LINK).exists());
        let mut names: Vec<_> = complete
            .filter_map(|entry| Some(entry.file_name().to_str()?.replace(':', ".")))
            .collect();
        names.sort();
        names
    }

    /// Removes the root, and what is empty above it as far as it was ours to make.
    pub(crate) fn remove(&self) -> Result<(), SteerError> {
        remove(&self.host())?;
        for directory in [self.interfaces(), self.root.clone()] {
            match fs::remove_dir(&directory) {
                // Another process has made it anew, and waits for the lock.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(pin_error(&directory, "remove it")(error));
                }
                _ => {}
            }
        }
        let ours = self.root.ancestors().skip(1).take_while(|path| path.ends_with("suiro"));
        for directory in ours {
            // Another part of suiro may have pins there.
            let _ = fs::remove_dir(directory);
        }
        Ok(())
    }
}

/// Removes a directory of pins, the link first; no directory is none.
pub(crate) fn remove(directory: &Path) -> Result<(), SteerError> {
    let links = [directory.join(LINK)];
    let pins = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    for pin in links.into_iter().filter(|link| link.exists()).chain(pins) {
        match fs::remove_file(&pin) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(pin_error(&pin, "remove it")(error));
            }
            _ => {}
        }
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(pin_error(directory, "remove it")(error))
        }
        _ => Ok(()),
    }
}

pub(crate) fn pin_error(path: &Path, step: &'static str) -> impl FnOnce(io::Error) -> SteerError {
    let path = path.to_owned();
    move |source| SteerError::Pin { path, step, source }
}
