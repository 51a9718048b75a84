//! What the programs decide, once more under Debian 12's kernel, in a machine: its verifier follows programs by other rules than a newer one,
//! and cuts out what it takes for dead. Only tests that wait for nothing: an emulated core may be slow.

use std::time::Duration;
use testbed::guest::{Guest, GuestSpec};

/// What the tests make interfaces of. Nothing loads them by itself in a machine that has no `/sbin/modprobe`.
const MODULES: [&str; 1] = ["veth"];

/// What has a callback of `bpf_loop()`, but a walk over more than four masks; and the search for entries.
const TESTS: &str = "placement:: dissect:: checksum::an_open_checksum exits::the_highest_priority";

/// Longest run. Chosen: several times what two busy cores need.
const LIMIT: Duration = Duration::from_secs(240);

#[test]
fn what_the_programs_decide_holds_under_linux_6_1() {
    let myself = std::env::current_exe().expect("this program");
    let name = myself.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let spec = GuestSpec::new("linux").cpus(2).in_turn().memory_mib(1024);
    let spec = spec.modules(&MODULES).program(myself);
    let guest = Guest::boot(&spec).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(guest.release.starts_with("6.1."), "Linux {}", guest.release);
    let said = guest.says(&format!("{name} --test-threads=1 {TESTS}"), LIMIT);
    let said = said.unwrap_or_else(|error| panic!("{error:#}"));
    println!("Linux {}:\n{}", guest.release, said.output);
    assert_eq!(said.status, 0);
    assert!(said.output.contains("placement::the_program_places_as_the_policies_do ... ok"));
}
