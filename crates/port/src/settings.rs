//! Offloads that ports switched and MTUs that they raised, noted so that they are put back whatever becomes of the process.
//!
//! A note is written before its setting changes, and removed when that is as before. The port that closes does so. After a kill, the next
//! process has the same directory: a port of the same interface takes its note over, so that the setting never changes between the two, and
//! what no port takes over is put back. The directory must be on a tmpfs: a host that starts anew has its interfaces' defaults again.
//! A namespace is noted by path and inode, and never held open: that would keep alive what its owner removes.

use crate::netns::{Netns, NetnsRef, everywhere};
use netlink::{Change, Netlink, Offloads};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The namespace of the calling thread; the process's would be that of its first thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// How a note of an MTU begins.
const MTU: &str = "mtu=";
/// How a note of offloads that were off begins; without it they were on.
const OFF: &str = "off=";

/// How the file of a note ends that is being written: nothing has changed by it yet.
const NEW: &str = "new";

/// An interface, as a note names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The file of its namespace.
    pub(crate) netns: PathBuf,
    /// Inode of the namespace. Another one under the same path is not it.
    pub(crate) inode: u64,
    /// Its index there.
    pub(crate) index: u32,
}

impl Place {
    /// The interface of that index in that namespace.
    pub(crate) fn new(netns: Option<&NetnsRef>, index: u32) -> io::Result<Self> {
        let netns = netns.map_or_else(|| OWN.into(), NetnsRef::path);
        let inode = fs::metadata(&netns)?.ino();
        Ok(Self { netns, inode, index })
    }

    /// Whether it is the same interface, by whatever path.
    fn is(&self, other: &Self) -> bool {
        (self.inode, self.index) == (other.inode, other.index)
    }

    /// Opens its namespace: under the path that it had, or where else it is to be reached by now. A process that leads there may end meanwhile.
    fn open(&self) -> io::Result<Netns> {
        let is_it =
            |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.ino() == self.inode);
        let open = |path| Netns::open(Some(&NetnsRef::Path(path))).ok();
        let anywhere = || everywhere().filter(is_it).find_map(open);
        let found = Some(self.netns.clone()).filter(is_it).and_then(open).or_else(anywhere);
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Asks for its offloads; nobody is there to be asked if the namespace is another one now.
    pub(crate) fn offloads<T: Send>(
        &self,
        ask: impl FnOnce(&Offloads) -> io::Result<T> + Send,
    ) -> io::Result<T> {
        self.run(|| ask(&Offloads::new()?))
    }

    /// Does something in its namespace.
    fn run<T: Send>(&self, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        // No privilege is needed to stay.
        let is_here = fs::metadata(OWN)?.ino() == self.inode;
        let netns = if is_here { Netns::open(None) } else { self.open() };
        netns?.run(what)?
    }
}

/// What was otherwise at one interface before a port changed it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Note {
    place: Place,
    was: Was,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Was {
    /// These offloads were on, or off.
    Offloads(Vec<String>, Is),
    /// The MTU was the first, and has been the second since.
    Mtu(u32, u32),
}

/// An offload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Is {
    On,
    Off,
}

impl Note {
    /// One that is gone has nothing to be put back, and an MTU that somebody else changed meanwhile is theirs.
    fn put_back(&self) -> io::Result<()> {
        let index = self.place.index;
        let put = match &self.was {
            Was::Offloads(names, was) => {
                self.place.offloads(|offloads| offloads.set(index, names, *was == Is::On))
            }
            &Was::Mtu(was, now) => self.place.run(|| {
                let netlink = Netlink::new()?;
                match netlink.link_at(index)? {
                    Some(link) if link.mtu == now => netlink.change(index, Change::Mtu(was)),
                    _ => Ok(()),
                }
            }),
        };
        match put {
            Err(error) if is_gone(&error) => Ok(()),
            put => put,
        }
    }

    /// `index inode offload,offload path`, or `index inode mtu=1500,1504 path`.
    fn to_line(&self) -> String {
        let Place { netns, inode, index } = &self.place;
        let was = match &self.was {
            Was::Offloads(names, Is::On) => names.join(","),
            Was::Offloads(names, Is::Off) => format!("{OFF}{}", names.join(",")),
            Was::Mtu(was, now) => format!("{MTU}{was},{now}"),
        };
        format!("{index} {inode} {was} {}\n", netns.display())
    }
}

impl FromStr for Note {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().filter(|word| !word.is_empty()).ok_or(());
        let index = word()?.parse().map_err(drop)?;
        let inode = word()?.parse().map_err(drop)?;
        let was = word()?;
        let names = |names: &str| names.split(',').map(str::to_owned).collect();
        let was = match (was.strip_prefix(MTU), was.strip_prefix(OFF)) {
            (Some(mtus), _) => {
                let (was, now) = mtus.split_once(',').ok_or(())?;
                Was::Mtu(was.parse().map_err(drop)?, now.parse().map_err(drop)?)
            }
            (None, Some(were)) => Was::Offloads(names(were), Is::Off),
            (None, None) => Was::Offloads(names(was), Is::On),
        };
        Ok(Self { place: Place { netns: word()?.into(), inode, index }, was })
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

/// Where ports keep their notes; without a directory they live as long as the process.
#[derive(Default)]
pub(crate) struct Notes {
    directory: Option<PathBuf>,
    /// Files that ports of this process have.
    owned: Mutex<BTreeSet<PathBuf>>,
}

impl Notes {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory: Some(directory), owned: Mutex::default() }
    }

    /// What a port changed: nothing yet, but for what it takes over.
    pub(crate) fn of(&self, port: &Place) -> Changed {
        let name = format!("{}-{}", port.inode, port.index);
        let file = self.directory.as_ref().map(|path| path.join(name));
        let notes = file.as_ref().and_then(|file| read(file).ok()).unwrap_or_default();
        Changed { file, is_taken_over: !notes.is_empty(), notes }
    }

    /// The port is open: what it took over is its own.
    pub(crate) fn own(&self, changed: &mut Changed) {
        changed.is_taken_over = false;
        self.owned().extend(changed.file.clone());
    }

    fn owned(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts back what no port has taken over.
    ///
    /// # Errors
    /// The first one; the others are tried all the same.
    pub(crate) fn put_back_others(&self) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let owned = self.owned();
        let mut outcome = Ok(());
        for file in entries.flatten().map(|entry| entry.path()) {
            if owned.contains(&file) || file.extension().is_some_and(|ending| ending == NEW) {
                continue;
            }
            let notes = read(&file)?;
            let mut left = Changed { file: Some(file), notes, is_taken_over: false };
            outcome = outcome.and(left.put_back());
        }
        outcome
    }
}

/// A line that cannot be read is not ours.
fn read(file: &Path) -> io::Result<Vec<Note>> {
    Ok(fs::read_to_string(file)?.lines().filter_map(|line| line.parse().ok()).collect())
}

/// What one port changed; put back when this is dropped.
#[derive(Default)]
pub(crate) struct Changed {
    file: Option<PathBuf>,
    notes: Vec<Note>,
    /// Some of it was changed by a process before, and the port is not open yet: if it does not come to that, the notes stay.
    is_taken_over: bool,
}

impl Changed {
    /// Switches those of `names` that are not so; returns which are so by this port, and which the driver keeps as they were.
    pub(crate) fn switch(
        &mut self,
        place: &Place,
        names: &[&str],
        to: Is,
    ) -> io::Result<(Vec<String>, Vec<String>)> {
        let was = if to == Is::On { Is::Off } else { Is::On };
        let those = |are_on: Vec<String>| -> Vec<String> {
            let is = |name: &&&str| are_on.iter().any(|on| *on == **name) == (was == Is::On);
            names.iter().filter(is).map(|&name| name.to_owned()).collect()
        };
        let wanted = those(place.offloads(|offloads| offloads.state(place.index))?.wanted(names));
        if !wanted.is_empty() {
            self.note_offloads(place, &wanted, was);
            self.write()?;
        }
        let after = place.offloads(|offloads| {
            offloads.set(place.index, &wanted, to == Is::On)?;
            offloads.state(place.index)
        })?;
        let switched = self.offloads(place, was).iter().filter(|name| names.contains(&&***name));
        Ok((switched.cloned().collect(), those(after.active(names))))
    }

    /// Offloads that were so at an interface.
    fn offloads(&self, place: &Place, were: Is) -> &[String] {
        let found = self.notes.iter().find_map(|note| match &note.was {
            Was::Offloads(names, was) if *was == were && note.place.is(place) => Some(&names[..]),
            _ => None,
        });
        found.unwrap_or_default()
    }

    fn note_offloads(&mut self, place: &Place, names: &[String], were: Is) {
        let known = self.offloads(place, were);
        let more = names.iter().filter(|name| !known.contains(name));
        let all = known.iter().chain(more).cloned().collect();
        let is_it = |note: &Note| {
            matches!(note.was, Was::Offloads(_, was) if was == were) && note.place.is(place)
        };
        self.notes.retain(|note| !is_it(note));
        self.notes.push(Note { place: place.clone(), was: Was::Offloads(all, were) });
    }

    /// Has the MTU be so many bytes more than `mtu`, what it is to be again, by `change`.
    pub(crate) fn raise_mtu(
        &mut self,
        place: &Place,
        (mtu, by): (u32, u32),
        change: impl FnOnce(Change) -> io::Result<()>,
    ) -> io::Result<()> {
        self.notes.retain(|note| !matches!(note.was, Was::Mtu(..)));
        self.notes.push(Note { place: place.clone(), was: Was::Mtu(mtu, mtu + by) });
        self.write()?;
        change(Change::Mtu(mtu + by))
    }

    /// The MTU that an interface is said to have, which has `mtu`: without what it was raised by.
    pub(crate) fn mtu(&self, mtu: u32) -> u32 {
        let raised = self.notes.iter().find_map(|note| match note.was {
            Was::Mtu(was, now) if now == mtu => Some(was),
            _ => None,
        });
        raised.unwrap_or(mtu)
    }

    /// Leaves everything as it is, and the notes to the next process.
    pub(crate) fn leave(&mut self) {
        self.notes.clear();
        self.file = None;
    }

    /// Everything as it was.
    ///
    /// # Errors
    /// The kernel refuses, or the note cannot be removed.
    pub(crate) fn put_back(&mut self) -> io::Result<()> {
        let mut outcome = Ok(());
        for note in self.notes.drain(..) {
            outcome = outcome.and(note.put_back());
        }
        outcome.and(self.file.take().map_or(Ok(()), |file| removed(&file)))
    }

    fn write(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let text: String = self.notes.iter().map(Note::to_line).collect();
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        // Each has its own: ports open together.
        let new = file.with_extension(NEW);
        fs::write(&new, text)?;
        fs::rename(new, file)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if !self.is_taken_over {
            // Whoever wants to know has asked before.
            let _ = self.put_back();
        }
    }
}

/// Puts back what ports of a process that was killed had switched off, as their notes in this directory say.
///
/// # Errors
/// The first one; the others are tried all the same.
pub fn put_back(directory: &Path) -> io::Result<()> {
    Notes::new(directory.to_owned()).put_back_others()
}

fn removed(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(index: u32) -> Note {
        let place = Place { netns: "/run/netns/a guest".into(), inode: 4026531840, index };
        let was = match index {
            8 => Was::Mtu(1500, 1504),
            9 => Was::Offloads(vec!["rx-gro".into()], Is::Off),
            _ => Was::Offloads(vec!["rx-gro".into(), "tx-vlan-hw-insert".into()], Is::On),
        };
        Note { place, was }
    }

    #[test]
    fn a_note_reads_back_as_it_was_written() {
        for index in [7, 8, 9] {
            assert_eq!(note(index).to_line().trim_end().parse(), Ok(note(index)));
        }
        for damaged in ["", "7", "7 1 rx-gro", "x 1 rx-gro /a", "7 1  /a", "7 1 mtu=1500 /a"] {
            assert_eq!(damaged.parse::<Note>(), Err(()), "{damaged}");
        }
    }

    #[test]
    fn what_is_gone_meanwhile_needs_no_putting_back_and_its_note_goes() {
        let home = tempfile::tempdir().unwrap();
        let notes = vec![note(7), note(8), note(9)];
        let left = Changed { file: Some(home.path().join("1-2")), notes, is_taken_over: false };
        left.write().unwrap();
        std::mem::forget(left);
        put_back(home.path()).unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        put_back(&home.path().join("never-made")).unwrap();
    }

    #[test]
    fn notes_that_are_written_at_once_are_each_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let notes = Notes::new(directory.path().to_owned());
        let write = |index| {
            let mut changed = notes.of(&note(index).place);
            for _ in 0..500 {
                changed.notes = vec![note(index)];
                changed.write().unwrap();
                assert_eq!(read(changed.file.as_ref().unwrap()).unwrap(), changed.notes);
            }
            changed.leave();
        };
        std::thread::scope(|scope| {
            for index in 10..14 {
                scope.spawn(move || write(index));
            }
        });
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in ".{0,80}") {
            let _ = line.parse::<Note>();
        }
    }
}
