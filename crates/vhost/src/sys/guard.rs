//! The SIGBUS guard: memory that its owner cut away becomes empty memory, and the process lives.
//!
//! A front-end can `ftruncate` the file whose mapping we read; the access then raises SIGBUS in the middle of a copy. The handler here
//! maps anonymous zero pages over the whole mapping, notes it, and returns: the access is repeated and succeeds. The ring's next
//! step finds the note and stops the ring. A page that the file does not have yet is made by the same handler ([`super::holes`]), as long as its
//! guest may cost that.
//!
//! A signal handler can be told nothing, so the list of mappings has to be a `static`: the one exception to the rule against them. Each entry
//! is a sequence lock: the handler may interrupt or run beside a thread that changes *another* mapping's entry, never its own, because no
//! one touches a mapping while it is being made or dropped.

use super::holes::{Touched, Watched};
use super::purse::Purse;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// Mappings at once. Chosen: 64 guests of 32 regions and their logs; a table that can grow could not be read in a handler.
const ENTRIES: usize = 4096;

/// One guarded mapping.
struct Entry {
    /// Odd while the entry changes hands.
    sequence: AtomicU32,
    taken: AtomicBool,
    start: AtomicUsize,
    len: AtomicUsize,
    /// Which pages were filled; null where holes are not watched.
    words: AtomicPtr<AtomicU64>,
    /// Who pays for them.
    purse: AtomicPtr<Purse>,
    loss: AtomicU8,
}

/// Why a mapping was replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// Its file was cut.
    Cut,
    /// Its guest had us touch more pages first than it may cost.
    Unpaid,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        sequence: AtomicU32::new(0),
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        words: AtomicPtr::new(std::ptr::null_mut()),
        purse: AtomicPtr::new(std::ptr::null_mut()),
        loss: AtomicU8::new(0),
    }
}; ENTRIES];

/// Mappings that were ever replaced: one word to look at instead of every mapping's.
static HITS: AtomicU32 = AtomicU32::new(0);

/// How often the handler replaced a mapping.
#[inline]
pub(crate) fn hits() -> u32 {
    HITS.load(Ordering::Acquire)
}

/// Entries that were ever used: the handler looks no further.
static USED: AtomicUsize = AtomicUsize::new(0);

/// What handled SIGBUS before us: a leaked box, written once.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// A place in the table, until released.
#[derive(Debug)]
pub(super) struct Guarded(usize);

impl Guarded {
    /// Why the handler replaced the mapping, if it did.
    #[inline]
    pub(super) fn loss(&self) -> Option<Loss> {
        match TABLE[self.0].loss.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Loss::Cut),
            _ => Some(Loss::Unpaid),
        }
    }

    /// Takes the mapping off the list; call before it is unmapped, and once.
    pub(super) fn release(&self) {
        TABLE[self.0].set(0, 0, None);
        TABLE[self.0].taken.store(false, Ordering::Release);
    }
}

impl Entry {
    fn set(&self, start: usize, len: usize, holes: Option<(*mut AtomicU64, *const Purse)>) {
        let nobody = (std::ptr::null_mut(), std::ptr::null());
        let (words, purse) = holes.unwrap_or(nobody);
        self.sequence.fetch_add(1, Ordering::AcqRel);
        self.start.store(start, Ordering::Release);
        self.len.store(len, Ordering::Release);
        self.words.store(words, Ordering::Release);
        self.purse.store(purse.cast_mut(), Ordering::Release);
        self.loss.store(0, Ordering::Release);
        self.sequence.fetch_add(1, Ordering::Release);
    }

    /// The mapping, if `address` lies in it.
    fn covers(&self, address: usize) -> Option<Watched> {
        let before = self.sequence.load(Ordering::Acquire);
        let found = Watched {
            start: self.start.load(Ordering::Acquire),
            len: self.len.load(Ordering::Acquire),
            words: self.words.load(Ordering::Acquire),
            purse: self.purse.load(Ordering::Acquire),
        };
        let settled = before.is_multiple_of(2) && before == self.sequence.load(Ordering::Acquire);
        (settled && address.wrapping_sub(found.start) < found.len).then_some(found)
    }
}

/// Guards a mapping from now on; `holes`: where the pages that we fill are noted, and by which purse they are paid.
///
/// # Errors
/// The table is full, or the handler cannot be installed.
pub(super) fn watch(
    base: NonNull<u8>,
    len: usize,
    holes: Option<(*mut AtomicU64, *const Purse)>,
) -> io::Result<Guarded> {
    install()?;
    let free = |entry: &Entry| {
        entry.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let place =
        TABLE.iter().position(free).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSPC))?;
    USED.fetch_max(place + 1, Ordering::AcqRel);
    TABLE[place].set(base.addr().get(), len, holes);
    Ok(Guarded(place))
}

/// Installs the handler, once for the process.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED.get_or_init(install_once).map_err(io::Error::from_raw_os_error)
}

fn install_once() -> Result<(), i32> {
    let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    let mut previous = Box::new(MaybeUninit::<libc::sigaction>::zeroed());
    // SAFETY: a null new action only asks; `previous` is room for the answer.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), previous.as_mut_ptr()) } != 0 {
        return Err(errno());
    }
    // Before the handler is there, so that it always finds it. All-zero, as it began, is a value too (the default action).
    PREVIOUS.store(Box::into_raw(previous).cast(), Ordering::Release);
    // SAFETY: all-zero is a value of `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler only uses what signal handlers may: atomics and system calls.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(errno());
    }
    Ok(())
}

extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel hands a SA_SIGINFO handler a valid `siginfo_t`.
    let info_of_it = unsafe { &*info };
    // SAFETY: SIGBUS has an address.
    let address = unsafe { info_of_it.si_addr() } as usize;
    let used = USED.load(Ordering::Acquire);
    let guarded = TABLE[..used].iter().find_map(|entry| Some((entry, entry.covers(address)?)));
    let Some((entry, watched)) = guarded else { return pass_on(signal, info, context) };
    let touched = if watched.words.is_null() { Touched::Gone } else { watched.touch(address) };
    let loss = match touched {
        Touched::Filled => return,
        Touched::Gone => 1,
        Touched::Unpaid => 2,
    };
    if replace(watched.start, watched.len) {
        entry.loss.store(loss, Ordering::Release);
        HITS.fetch_add(1, Ordering::Release);
    } else {
        pass_on(signal, info, context);
    }
}

/// Maps zero pages over a whole mapping; false when the kernel refuses.
fn replace(start: usize, len: usize) -> bool {
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let at = std::ptr::without_provenance_mut(start);
    // SAFETY: exactly the range of a live mapping of ours, whose bytes are only touched by copies and atomics that expect any
    // change. `mmap` does not allocate or lock in the C library. `errno` is the interrupted code's, which is a copy: it makes no calls.
    let mapped = unsafe { libc::mmap(at, len, protection, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Not our memory: what would have happened without us.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.load(Ordering::Acquire);
    // SAFETY: set before the handler was installed, from a leaked box, and never written again.
    let previous = unsafe { &*previous };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access is repeated after our return and then ends the process as it would have; a fault cannot be ignored.
            let default = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: all-zero is a value of `sigaction`, the default action.
            unsafe { libc::sigaction(signal, default.as_ptr(), std::ptr::null_mut()) };
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: a handler with SA_SIGINFO has this type.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler without SA_SIGINFO has this type.
            let handler =
                unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Mapping;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    /// Set in the process that this test starts, of itself.
    const CHILD: &str = "SUIRO_TEST_BUS_ERROR";

    fn memory() -> OwnedFd {
        let file = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        file
    }

    /// Touches memory of no mapping of ours that has been cut away.
    fn touch_foreign_memory() {
        let (ours, foreign) = (memory(), memory());
        let _guarded = Mapping::new(ours.as_fd(), 0, 4096).unwrap();
        let at = std::ptr::null_mut();
        // SAFETY: a new mapping.
        let start =
            unsafe { mmap(at, 4096, ProtFlags::READ, MapFlags::SHARED, &foreign, 0) }.unwrap();
        ftruncate(&foreign, 0).unwrap();
        // SAFETY: mapped; what happens is what is tested.
        let _ = unsafe { start.cast::<u8>().read_volatile() };
    }

    #[test]
    fn a_bus_error_elsewhere_ends_the_process_as_ever() {
        if std::env::var_os(CHILD).is_some() {
            return touch_foreign_memory();
        }
        let name = "sys::guard::tests::a_bus_error_elsewhere_ends_the_process_as_ever";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([name, "--exact"]).env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::null());
        assert_eq!(child.status().unwrap().signal(), Some(libc::SIGBUS));
    }

    #[test]
    fn a_mapping_cut_away_reads_as_zeros_and_says_so() {
        let file = memory();
        rustix::io::pwrite(&file, &[7; 4096], 0).unwrap();
        let mapping = Mapping::new(file.as_fd(), 0, 4096).unwrap();
        let area = crate::sys::Area::new(&mapping, 0, 4096, 8).unwrap();
        assert_eq!(area.load_u16(0, Ordering::Relaxed), 0x0707);
        let before = hits();
        ftruncate(&file, 0).unwrap();
        assert_eq!(mapping.loss(), None);
        assert_eq!(area.load_u16(0, Ordering::Relaxed), 0);
        assert!(mapping.loss() == Some(Loss::Cut) && hits() > before);
        assert_eq!(Mapping::new(memory().as_fd(), 0, 4096).unwrap().loss(), None);
    }
}
