//! Maps in our address space, and which structs may be read from maps.

use crate::mirror::Mirror;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

macro_rules! pod {
    ($($name:ty),* $(,)?) => {$(
        // SAFETY: `repr(C)` of integers and arrays of them, every gap a named field (the layout test adds up the sizes): no padding, and
        // every bit pattern is a value.
        unsafe impl aya::Pod for $name {}
    )*};
}
pub(crate) use pod;

/// An array map in our address space, whose values the programs change at any time.
pub(crate) struct Mapped<T> {
    start: NonNull<AtomicU64>,
    values: usize,
    _values: PhantomData<T>,
}

// SAFETY: the mapping belongs to this value alone, and is only accessed by atomic operations.
unsafe impl<T> Send for Mapped<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mapped<T> {}

impl<T: Mirror + aya::Pod> Mapped<T> {
    const WORDS: usize = {
        assert!(size_of::<T>().is_multiple_of(8), "the kernel rounds values up to 8 bytes");
        size_of::<T>() / 8
    };

    /// Maps `values` values of the mappable array map behind the descriptor; the caller compared the size of its values with `T`.
    pub(crate) fn new(fd: BorrowedFd<'_>, values: usize) -> io::Result<Self> {
        let (access, len) = (ProtFlags::READ | ProtFlags::WRITE, values * size_of::<T>());
        // SAFETY: no address is asked for, so no memory of others is replaced. The kernel refuses a length beyond the map's.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).expect("mmap never returns null");
        Ok(Self { start, values, _values: PhantomData })
    }

    /// Values that it has.
    pub(crate) fn len(&self) -> usize {
        self.values
    }

    /// # Panics
    /// There is no such word.
    fn word(&self, index: usize, word: usize) -> &AtomicU64 {
        assert!(index < self.values && word < Self::WORDS, "inside the map");
        // SAFETY: inside the mapping, by the assertion and the length of the mmap.
        let at = unsafe { self.start.add(index * Self::WORDS + word) };
        // SAFETY: mapped while `self` lives, aligned to 8 (the map is, to a page), and everybody uses it atomically or, in the kernel, by
        // single stores.
        unsafe { at.as_ref() }
    }

    /// The value now, word by word: a program may change it in between.
    pub(crate) fn get(&self, index: usize) -> T {
        let mut value = MaybeUninit::<T>::uninit();
        for word in 0..Self::WORDS {
            let now = self.word(index, word).load(Relaxed);
            // SAFETY: inside `value`, which is `WORDS` words long.
            let at = unsafe { value.as_mut_ptr().cast::<u64>().add(word) };
            // SAFETY: as above; `T` may be aligned to less than 8.
            unsafe { at.write_unaligned(now) };
        }
        // SAFETY: all its bytes are written, and every bit pattern is a value (`Pod`).
        unsafe { value.assume_init() }
    }

    /// Writes a value that no program looks at yet.
    pub(crate) fn set(&self, index: usize, value: &T) {
        for word in 0..Self::WORDS {
            // SAFETY: inside `value`, which is `WORDS` words long.
            let at = unsafe { std::ptr::from_ref(value).cast::<u64>().add(word) };
            // SAFETY: as above; `Pod` has no padding, so all its bytes are written; `T` may be aligned to less than 8.
            let now = unsafe { at.read_unaligned() };
            self.word(index, word).store(now, Relaxed);
        }
    }

    /// The field of 64 bits at that offset, which `offset_of!` names.
    pub(crate) fn u64_at(&self, index: usize, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "a field of 64 bits");
        self.word(index, offset / 8)
    }

    /// The field of 32 bits at that offset, which `offset_of!` names.
    pub(crate) fn u32_at(&self, index: usize, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "a field of 32 bits");
        let word = std::ptr::from_ref(self.word(index, offset / 8)).cast::<AtomicU32>();
        // SAFETY: one of the two halves of the word.
        let at = unsafe { word.add(offset % 8 / 4) };
        // SAFETY: mapped while `self` lives; the other half is never written together with it but in `set`, before anybody looks.
        unsafe { &*at }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        let len = self.values * size_of::<T>();
        // SAFETY: start and length are those of the mmap, and nothing borrowed from it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}
