//! The few commands of `bpf(2)` that aya keeps to itself: a link by its number, a pin of any descriptor, an array of programs.

#![expect(unsafe_code, reason = "bpf(2) takes pointers, and gives descriptors")]

use aya::maps::MapData;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `enum bpf_cmd` of linux/bpf.h.
#[derive(Clone, Copy)]
enum Command {
    LookUp = 1,
    Update = 2,
    Delete = 3,
    Pin = 6,
    LinkById = 30,
}

/// `union bpf_attr` as far as these commands look at it. The rest of the kernel's is taken as zero.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    words: [u64; 4],
}

/// Runs a command; its result if that is not negative.
///
/// # Safety
/// Each pointer in `attributes` points to what the command reads or writes there, for the whole call.
unsafe fn bpf(command: Command, attributes: &mut Attributes) -> io::Result<i32> {
    let (pointer, size) = (std::ptr::from_mut(attributes), size_of::<Attributes>());
    // SAFETY: the kernel reads and writes `size` bytes at `pointer`, which are ours, and what they point to, which the caller answers for.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_int, pointer, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// The link of that number.
pub(super) fn link_by_id(id: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes { words: [id.into(), 0, 0, 0] };
    // SAFETY: the command reads numbers only.
    let fd = unsafe { bpf(Command::LinkById, &mut attributes) }?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Pins what a descriptor stands for.
pub(super) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes =
        Attributes { words: [path.as_ptr().addr() as u64, fd.as_raw_fd() as u64, 0, 0] };
    // SAFETY: `path` is a string with its final 0, and lives for the whole call.
    unsafe { bpf(Command::Pin, &mut attributes) }.map(drop)
}

/// A map of programs that a program can call, `BPF_MAP_TYPE_PROG_ARRAY`.
pub(super) struct ProgramArray(pub(super) OwnedFd);

impl ProgramArray {
    /// The one behind a map of aya's, whose type says that it is one.
    pub(super) fn of(map: &MapData) -> io::Result<Self> {
        Ok(Self(map.fd().as_fd().try_clone_to_owned()?))
    }

    /// The number of the program there.
    pub(super) fn get(&self, index: u32) -> io::Result<Option<u32>> {
        let mut program = 0_u32;
        let found = self.run(Command::LookUp, &index, std::ptr::from_mut(&mut program));
        match found {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            found => found.map(|()| Some(program)),
        }
    }

    /// Puts a program there.
    pub(super) fn set(&self, index: u32, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut program = program.as_raw_fd() as u32;
        self.run(Command::Update, &index, std::ptr::from_mut(&mut program))
    }

    /// Has no program there; none before is no error.
    pub(super) fn clear(&self, index: u32) -> io::Result<()> {
        match self.run(Command::Delete, &index, std::ptr::null_mut()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            cleared => cleared,
        }
    }

    /// `map_fd`, `key`, `value`, `flags`.
    fn run(&self, command: Command, index: &u32, value: *mut u32) -> io::Result<()> {
        let map = self.0.as_fd().as_raw_fd() as u64;
        let key = std::ptr::from_ref(index).addr() as u64;
        let mut attributes = Attributes { words: [map, key, value.expose_provenance() as u64, 0] };
        // SAFETY: the map's keys and values have 4 bytes; `index` is one, and `value` points to one wherever the command uses it. Both live
        // for the whole call.
        unsafe { bpf(command, &mut attributes) }.map(drop)
    }
}
