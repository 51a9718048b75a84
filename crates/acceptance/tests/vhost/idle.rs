//! What ports cost while nothing happens.

use super::{Guests, privileged};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::time::Duration;
use testbed::driver::frontend::Shape;

const PORTS: usize = 64;
/// Chosen: a hundred times the resolution of the kernel's accounting (10 ms).
const SPAN: Duration = Duration::from_secs(2);

/// Processor time of a process, in ticks of 10 ms (proc(5), fields 14 and 15 of `stat`).
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    after_name.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Lets time pass in which the node shall not end.
fn pass(pid: u32, span: Duration) {
    let node = pidfd_open(Pid::from_raw(pid as i32).unwrap(), PidfdFlags::empty()).unwrap();
    let ended =
        poll(&mut [PollFd::new(&node, PollFlags::IN)], Some(&Timespec::try_from(span).unwrap()))
            .unwrap();
    assert_eq!(ended, 0, "the node ended");
}

#[test]
fn sixty_four_idle_guests_cost_a_few_percent_of_a_core_at_most() {
    if !privileged() {
        return;
    }
    let mut guests = Guests::called(PORTS);
    let pid = guests.lab.pid();
    let connected: Vec<_> =
        (1..=PORTS).map(|index| guests.connect(index, Shape::default())).collect();
    (1..=PORTS).for_each(|index| guests.until(index, "ready"));
    let before = ticks(pid);
    pass(pid, SPAN);
    let spent = ticks(pid) - before;
    assert!(spent <= 20, "{spent} of {} ticks with {PORTS} idle guests", SPAN.as_millis() / 10);
    drop(connected);
    guests.leave();
    (1..=PORTS).for_each(|index| guests.until(index, "waiting"));
    let before = ticks(pid);
    pass(pid, SPAN);
    let spent = ticks(pid) - before;
    assert!(
        spent <= 20,
        "{spent} of {} ticks with {PORTS} ports without a guest",
        SPAN.as_millis() / 10
    );
}
