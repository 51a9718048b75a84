//! Fences, and the counter.

/// As `fence(Ordering::SeqCst)`: what was written before is visible before anything after is read. That one is `mfence` here, which also waits for
/// what is none of ours (62 cycles); a locked instruction orders ordinary memory likewise (AMD64 Architecture Programmer's Manual 2, §7.1; 16
/// cycles). Two for each batch of 32 frames: 3 cycles a frame.
#[inline(always)]
pub(crate) fn full_fence() {
    #[cfg(target_arch = "x86_64")]
    {
        let mut word = 0_u32;
        // SAFETY: it leaves the word, which is ours, as it is. The compiler takes it for code that may touch any memory, and moves nothing over it.
        unsafe {
            std::arch::asm!("lock or dword ptr [{}], 0", in(reg) &raw mut word, options(nostack));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// What was stored before, past the caches too, is visible before what is stored after.
#[inline(always)]
pub(crate) fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence; the compiler takes it for code that may touch any memory, and moves nothing over it.
    unsafe {
        std::arch::asm!("sfence", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
}

/// The timestamp counter; it stands still where there is none.
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC exists on every x86-64 processor, touches no memory, and Linux lets user space run it.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}
