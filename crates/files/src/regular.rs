//! Regular files of bounded length.
//!
//! Invariant: what is read was seen to be a regular file on the same descriptor, so a path that is exchanged meanwhile changes nothing.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use thiserror::Error;

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The path leads to something else.
    #[error("it is {0}, not a regular file")]
    Other(&'static str),
    /// It is longer than any file of its kind.
    #[error("it has more than {most} bytes, the most for such a file")]
    TooLong {
        /// The bound.
        most: u64,
    },
    /// It should be text.
    #[error("it is not text in UTF-8")]
    NotText,
}

impl ReadError {
    /// What to do; `own` where only the caller knows.
    pub fn remedy(&self, own: impl FnOnce(&io::Error) -> String) -> String {
        match self {
            Self::System(error) => own(error),
            Self::Other(_) => "give the path of a regular file".into(),
            Self::TooLong { .. } => "see that the path is right, and shorten the file".into(),
            Self::NotText => "see that the path is right, and write the file as UTF-8".into(),
        }
    }
}

/// A regular file, open.
#[derive(Debug)]
pub struct Regular {
    file: File,
    meta: Metadata,
    most: u64,
}

/// Opens a file of at most so many bytes.
///
/// # Errors
/// It is not there, may not be read, is longer, or is no regular file.
pub fn open(path: &Path, most: u64) -> Result<Regular, ReadError> {
    let file = super::handle(path).map_err(|error| match error.raw_os_error() {
        // open(2): what a socket answers.
        Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => {
            ReadError::Other("a socket")
        }
        _ => error.into(),
    })?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(ReadError::Other(kind(meta.file_type())));
    }
    if meta.len() > most {
        return Err(ReadError::TooLong { most });
    }
    Ok(Regular { file, meta, most })
}

/// The whole of a file of at most so many bytes.
///
/// # Errors
/// As [`open`], or it cannot be read.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    open(path, most)?.read()
}

/// The whole text of a file of at most so many bytes.
///
/// # Errors
/// As [`read`], or it is no text.
pub fn read_text(path: &Path, most: u64) -> Result<String, ReadError> {
    String::from_utf8(read(path, most)?).map_err(|_| ReadError::NotText)
}

impl Regular {
    /// Whose it is, and who may do what.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// All of it. It may grow meanwhile: the bound holds all the same.
    ///
    /// # Errors
    /// The disk, or it has grown past its bound.
    pub fn read(self) -> Result<Vec<u8>, ReadError> {
        // Room from the beginning: bytes that are moved leave copies behind, and these may be keys.
        let mut bytes = Vec::with_capacity(self.meta.len() as usize + 1);
        self.file.take(self.most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.most {
            return Err(ReadError::TooLong { most: self.most });
        }
        Ok(bytes)
    }
}

fn kind(found: FileType) -> &'static str {
    match () {
        () if found.is_dir() => "a directory",
        () if found.is_fifo() => "a FIFO",
        () if found.is_socket() => "a socket",
        () if found.is_char_device() => "a character device",
        () if found.is_block_device() => "a block device",
        () => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_is_no_regular_file_is_named_at_once_and_not_read() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink(at("fifo"), at("link")).unwrap();
        let cases = [
            (at("fifo"), "it is a FIFO, not a regular file"),
            (at("link"), "it is a FIFO, not a regular file"),
            (at("socket"), "it is a socket, not a regular file"),
            (home.path().into(), "it is a directory, not a regular file"),
            ("/dev/zero".into(), "it is a character device, not a regular file"),
            ("/proc/self/fd/0/x".into(), "Not a directory (os error 20)"),
        ];
        for (path, said) in cases {
            assert_eq!(read(&path, 100).unwrap_err().to_string(), said, "{}", path.display());
        }
    }

    #[test]
    fn a_file_is_read_whole_up_to_its_bound_and_no_further() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        for (length, is_read) in [(0, true), (99, true), (100, true), (101, false)] {
            fs::write(&path, vec![7; length]).unwrap();
            match read(&path, 100) {
                Ok(bytes) => assert!(is_read && bytes == vec![7; length]),
                Err(error) => {
                    assert!(!is_read && matches!(error, ReadError::TooLong { most: 100 }))
                }
            }
        }
    }

    #[test]
    fn a_file_that_grows_while_it_is_open_keeps_its_bound() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "short").unwrap();
        let file = open(&path, 100).unwrap();
        fs::write(&path, vec![7; 101]).unwrap();
        assert!(matches!(file.read(), Err(ReadError::TooLong { most: 100 })));
        // Files of /proc have no length, and are regular.
        assert!(read_text(Path::new("/proc/self/stat"), 10_000).unwrap().contains("files"));
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read_text(&path, 100), Err(ReadError::NotText)));
    }
}
