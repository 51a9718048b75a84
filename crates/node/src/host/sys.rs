//! The one call of this crate whose safety the compiler cannot see.

/// Buffers of this size and more come from the kernel one by one, and go back to it. Chosen: room of a port or a table, and no frame or message.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1 << 20;

/// Has large buffers given back to the kernel when they are freed. The GNU allocator raises its bound by itself to what was freed once, up to 32 MiB;
/// a node whose tenants come and go kept 20 MiB and more of holes then. Call it before other threads begin.
pub fn give_back_large_buffers() {
    // SAFETY: it sets a number of the allocator under the allocator's own lock; memory that was given out stays as it is.
    #[cfg(target_env = "gnu")]
    let done = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    #[cfg(target_env = "gnu")]
    debug_assert_eq!(done, 1, "the allocator takes any bound up to 32 MiB");
}
