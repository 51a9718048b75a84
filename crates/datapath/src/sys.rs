//! What the standard library does not offer: one machine instruction, one system call, and memory that two threads share without a lock.

#[expect(unsafe_code, reason = "lines of the ring change hands between two threads")]
pub(crate) mod ring;

/// The timestamp counter: constant rate, synchronous over cores on every x86 of the last fifteen years.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "reading the counter is an intrinsic marked unsafe")]
pub(crate) fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor, touches no memory, and Linux lets user space run it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds, where there is no timestamp counter.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn cycles() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How often the calling thread has lost its core to another one, or left it, since it began (getrusage(2)); about 0.2 us.
#[expect(unsafe_code, reason = "no safe wrapper of getrusage is at hand")]
pub(crate) fn switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage`, which lives here, or nothing.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: it began as all zeroes, a valid one: it consists of integers.
    let usage = unsafe { usage.assume_init() };
    usage.ru_nvcsw as u64 + usage.ru_nivcsw as u64
}
