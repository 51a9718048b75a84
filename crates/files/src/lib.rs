//! # files: paths that somebody else names
//!
//! **Question answered**: how is a file opened whose path a tenant or a configuration names, so that no thread waits for it?
//!
//! * [`regular`]: a regular file of bounded length, read whole.
//! * [`handle`]: a file that stands for something else (a namespace), opened and not read.
//!
//! A FIFO that nobody writes to keeps whoever opens it for ever (fifo(7)); a device may never end. Both are told apart before anything is read.

pub mod regular;

use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file for reading and waits for nobody; what it is, the caller must find out.
///
/// # Errors
/// It is not there, or may not be read.
pub fn handle(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(open(path, flags, Mode::empty())?.into())
}
