//! Which numbers of each key are used, on disk: no nonce comes twice, and what was received before a restart is not received again.
//!
//! One small file for each key and direction, named by the key's fingerprint. What a sender may use is on disk before it is used
//! ([`Ledger::reserve`] flushes); what a receiver saw follows within a second. Keys in use are known to the whole process: two ports with one key
//! would give it away.

use esp::Counters;
use std::collections::HashSet;
use std::fs::{File, create_dir_all, read_to_string, rename};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names a key.
pub(super) type Fingerprint = [u8; 16];

/// The directory.
pub(crate) struct Ledger {
    directory: Option<PathBuf>,
    sending: Mutex<HashSet<Fingerprint>>,
}

/// A key that no one else of this process sends with, for as long as this lives.
pub(super) struct Claim {
    ledger: Arc<Ledger>,
    key: Fingerprint,
}

impl Ledger {
    /// In this directory, made when it is first needed; without one nothing can be encrypted.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, sending: Mutex::default() }
    }

    /// Takes a key to send with.
    ///
    /// # Errors
    /// Another port has it.
    pub(super) fn claim(self: &Arc<Self>, key: Fingerprint) -> io::Result<Claim> {
        if self.sending().insert(key) {
            return Ok(Claim { ledger: self.clone(), key });
        }
        Err(io::Error::other(
            "another port sends with the same key: give each tunnel keys of its own",
        ))
    }

    /// What a sender with this key may use next; `None`: it is not known here.
    pub(super) fn counters(&self, key: Fingerprint) -> io::Result<Option<Counters>> {
        let Some(text) = self.read(&sent(key))? else { return Ok(None) };
        let counters = parse(&text, ["sequence", "iv"]);
        counters
            .map(|[sequence, iv]| Some(Counters { sequence, iv }))
            .ok_or_else(|| self.broken(&sent(key)))
    }

    /// Puts on disk that everything below is used. When it returns, it is there.
    pub(super) fn reserve(&self, key: Fingerprint, below: Counters) -> io::Result<()> {
        self.write(&sent(key), &format!("sequence {}\niv {}\n", below.sequence, below.iv), true)
    }

    /// The highest number that was received with this key; 0 of one that is not known.
    pub(super) fn top(&self, key: Fingerprint) -> io::Result<u64> {
        let Some(text) = self.read(&received(key))? else { return Ok(0) };
        parse(&text, ["top"]).map(|[top]| top).ok_or_else(|| self.broken(&received(key)))
    }

    /// Notes the highest number that was received with this key.
    pub(super) fn note(&self, key: Fingerprint, top: u64) -> io::Result<()> {
        self.write(&received(key), &format!("top {top}\n"), false)
    }

    fn directory(&self) -> io::Result<&Path> {
        let nowhere = || io::Error::other("there is no directory for sequence numbers");
        self.directory.as_deref().ok_or_else(nowhere)
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match read_to_string(self.directory()?.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whole or not at all; `durable`: also after a power cut.
    fn write(&self, name: &str, text: &str, durable: bool) -> io::Result<()> {
        let directory = self.directory()?;
        create_dir_all(directory)?;
        let (path, new) = (directory.join(name), directory.join(format!("{name}.new")));
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        if durable {
            file.sync_all()?;
        }
        rename(new, path)?;
        if durable { File::open(directory)?.sync_all() } else { Ok(()) }
    }

    fn broken(&self, name: &str) -> io::Error {
        let path = self.directory.as_deref().unwrap_or(Path::new("")).join(name);
        io::Error::other(format!(
            "{} is damaged: which sequence numbers were used is not known; give the tunnel new keys",
            path.display()
        ))
    }

    fn sending(&self) -> MutexGuard<'_, HashSet<Fingerprint>> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.ledger.sending().remove(&self.key);
    }
}

fn sent(key: Fingerprint) -> String {
    format!("{}.sent", hex(key))
}

fn received(key: Fingerprint) -> String {
    format!("{}.received", hex(key))
}

fn hex(key: Fingerprint) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The numbers behind these names, one a line; nothing else may be there.
fn parse<const N: usize>(text: &str, names: [&str; N]) -> Option<[u64; N]> {
    let lines: Vec<_> = text.strip_suffix('\n')?.split('\n').collect();
    let mut numbers = [0; N];
    for (at, name) in names.iter().enumerate() {
        numbers[at] = lines.get(at)?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()?;
    }
    (lines.len() == N).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reserved_and_received_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = || Ledger::new(Some(dir.path().join("esp")));
        assert_eq!(
            (ledger().counters([1; 16]).unwrap(), ledger().top([1; 16]).unwrap()),
            (None, 0)
        );
        let counters = Counters { sequence: 1 << 40, iv: u64::MAX };
        ledger().reserve([1; 16], counters).unwrap();
        ledger().note([1; 16], 77).unwrap();
        assert_eq!(ledger().counters([1; 16]).unwrap(), Some(counters));
        assert_eq!((ledger().top([1; 16]).unwrap(), ledger().top([2; 16]).unwrap()), (77, 0));
    }

    #[test]
    fn a_damaged_file_is_no_new_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(Some(dir.path().to_owned()));
        for text in
            ["", "sequence 1\n", "sequence 1\niv 2", "sequence 1\niv 2\nx\n", "sequence -1\niv 2\n"]
        {
            std::fs::write(dir.path().join(sent([3; 16])), text).unwrap();
            let error = ledger.counters([3; 16]).unwrap_err();
            assert!(error.to_string().contains("new keys"), "{text:?}: {error}");
        }
        assert!(Ledger::new(None).counters([3; 16]).is_err());
    }

    #[test]
    fn one_key_has_one_sender() {
        let ledger = Arc::new(Ledger::new(None));
        let claim = ledger.claim([1; 16]).unwrap();
        assert!(ledger.claim([1; 16]).is_err());
        assert!(ledger.claim([2; 16]).is_ok());
        drop(claim);
        assert!(ledger.claim([1; 16]).is_ok());
    }
}
