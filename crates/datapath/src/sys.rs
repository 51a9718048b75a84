//! The one machine instruction that the standard library does not offer, and memory that two threads share without a lock.

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
