//! Which threads run before others.

/// Has the calling thread run before all ordinary ones (the lowest priority of `SCHED_FIFO`), or as one of them. Threads that it starts are ordinary. Without
/// the privilege nothing changes.
pub(crate) fn set_prompt(is_prompt: bool) {
    let (policy, priority) = if is_prompt {
        (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
    } else {
        (libc::SCHED_OTHER, 0)
    };
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameter` outlives the call, which only reads it; 0 is the calling thread.
    let _ = unsafe { libc::sched_setscheduler(0, policy, &parameter) };
}
