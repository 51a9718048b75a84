//! Which bytes does the kernel unpack as its first file system?
//!
//! The "newc" form of a cpio archive (Linux: Documentation/driver-api/early-userspace/buffer-format.rst): for each entry thirteen
//! numbers of eight hexadecimal digits behind a magic number, a name, the content; name and content padded to four bytes. Sixty lines
//! here instead of a package, because root is not needed to write a device node into an archive that is not unpacked here, and equal
//! content gives equal bytes: no time stamps, no owners, no inode numbers of the host.

use std::collections::BTreeSet;
use std::path::Path;

const MAGIC: &str = "070701";
const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive that grows in memory. Entries appear in the order in which they are added, directories by themselves before them.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory, and those above it. `path` begins with `/`, like every path here.
    pub fn directory(&mut self, path: &str) {
        let parts = path.match_indices('/').skip(1).map(|(end, _)| &path[..end]);
        for part in parts.chain([path]) {
            if self.directories.insert(part.to_owned()) {
                self.entry(part, DIRECTORY, (0, 0), &[]);
            }
        }
    }

    /// Adds an executable file.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.parents(path);
        self.entry(path, FILE, (0, 0), content);
    }

    /// Adds a character device of these numbers.
    pub fn character_device(&mut self, path: &str, (major, minor): (u32, u32)) {
        self.parents(path);
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// The archive with its trailer.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("/TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        let parent = Path::new(path).parent().and_then(Path::to_str).unwrap_or("/");
        if parent != "/" {
            self.directory(parent);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.entries += 1;
        let name = path.trim_start_matches('/');
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        // Inode, mode, owner and group, links, time, size, device of the archive (2), device (2), length of the name, checksum.
        let numbers = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(MAGIC.as_bytes());
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, mode and content of every entry, read back by the format's own rules.
    fn entries(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let (mut at, mut found) = (0, Vec::new());
        while at < bytes.len() {
            let number = |field: usize| {
                let digits = &bytes[at + 6 + 8 * field..][..8];
                u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap() as usize
            };
            assert_eq!(&bytes[at..at + 6], MAGIC.as_bytes());
            let (mode, size, name_size) = (number(1), number(6), number(11));
            let name = &bytes[at + 110..][..name_size - 1];
            let content = (at + 110 + name_size).next_multiple_of(4);
            found.push((
                String::from_utf8(name.to_vec()).unwrap(),
                mode as u32,
                bytes[content..content + size].to_vec(),
            ));
            at = (content + size).next_multiple_of(4);
        }
        found
    }

    #[test]
    fn directories_come_once_and_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.file("/a/b/one", b"1");
        archive.file("/a/b/two", b"22222");
        archive.character_device("/dev/console", (5, 1));
        let entries = entries(&archive.finish());
        let names: Vec<_> = entries.iter().map(|(name, _, _)| name.as_str()).collect();
        let wanted = ["a", "a/b", "a/b/one", "a/b/two", "dev", "dev/console", "TRAILER!!!"];
        assert_eq!(names, wanted);
        assert_eq!(entries[3], ("a/b/two".into(), FILE, b"22222".to_vec()));
    }

    #[test]
    fn equal_content_gives_equal_bytes() {
        let build = || {
            let mut archive = Archive::default();
            archive.file("/init", b"#!/bin/sh\n");
            archive.finish()
        };
        assert_eq!(build(), build());
        assert_eq!(build().len() % 4, 0);
    }
}
