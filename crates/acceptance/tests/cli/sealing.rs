//! An encrypted tunnel that seals on a core of its own: who seals is counted, and a stream does not notice when that changes.

use crate::pair::{Kind, Pair};
use crate::restarts::{QUIET, beside};
use acceptance::{Place, privileged, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::read_to_string;

const NO_CAPABILITIES: &str = "0000000000000000";
const SEALED: Kind = Kind { is_v6: false, is_sealed: true };

/// The core that the host's tunnel seals on, and how many packets a thread of its own has sealed.
fn sealing(host: &Place) -> (Value, u64) {
    let sealing = host.json(&["port", "show", "sw0", "tun0"])["sealing"].take();
    (sealing["core"].clone(), sealing["packets"].as_u64().unwrap())
}

/// The cores that the node's sealing threads may be on.
fn threads(host: &Place) -> Vec<String> {
    let mut found = None;
    until("threads of tunnels have no privileges", || {
        found = unprivileged_threads(host);
        found.is_some()
    });
    found.unwrap()
}

/// The same; `None` while a thread of a tunnel has privileges.
fn unprivileged_threads(host: &Place) -> Option<Vec<String>> {
    let mut cores = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", host.pid())).unwrap() {
        let path = task.unwrap().path();
        let read = |name: &str| read_to_string(path.join(name)).unwrap_or_default();
        let (name, status) = (read("comm"), read("status"));
        let says =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
        let is_a_tunnels = ["suiro-seal\n", "suiro-esp\n"].contains(&name.as_str());
        if is_a_tunnels && ["CapEff", "CapPrm"].iter().any(|set| says(set) != Some(NO_CAPABILITIES))
        {
            return None;
        }
        cores.extend(says("Cpus_allowed_list").filter(|_| name == "suiro-seal\n").map(Into::into));
    }
    Some(cores)
}

fn seal_on(host: &Place, core: &str) {
    host.suiro(&["port", "mod", "sw0", "tun0", "--seal-core", core]);
}

#[test]
fn packets_are_sealed_on_the_core_that_was_asked_for_and_a_stream_does_not_notice_the_change() {
    if !privileged() {
        return;
    }
    let holes = beside(SEALED, |pair, stream| {
        let host = &pair.hosts[0];
        assert!(
            host.suiro(&["port", "show", "sw0", "tun0"]).contains("with forwarding (as usual)")
        );
        assert_eq!((threads(host), sealing(host).1), (vec![], 0));
        for core in [1, 0, 1] {
            seal_on(host, &core.to_string());
            let (shown, before) = sealing(host);
            stream.flow("it flows from there", QUIET);
            assert_eq!(shown, core);
            assert!(sealing(host).1 - before >= QUIET);
            // It has taken what woke it since, and so heard of its core.
            assert_eq!(threads(host), [core.to_string()]);
        }
        seal_on(host, "with-forwarding");
        let (core, own) = sealing(host);
        stream.flow("it flows from the worker again", QUIET);
        assert_eq!((core, threads(host)), (Value::Null, vec![]));
        assert_eq!(sealing(host).1, own, "the thread's count stands");
        seal_on(host, "auto");
        let why = host.json(&["port", "show", "sw0", "tun0"])["sealing"]["why"].clone();
        assert!(why.as_str().unwrap().starts_with("auto: "), "{why}");
    });
    assert_eq!(holes.len(), 0, "{holes:?}");
}

#[test]
fn a_core_to_seal_on_is_kept_over_a_crash_and_one_that_cannot_be_is_refused() {
    if !privileged() {
        return;
    }
    let mut pair = Pair::new(SEALED);
    let host = &mut pair.hosts[0];
    seal_on(host, "1");
    host.end(Signal::KILL);
    host.start();
    assert!(host.log().contains("port tun0 of switch sw0: open"), "{}", host.log());
    assert_eq!((sealing(host).0, threads(host)), (1.into(), vec!["1".to_owned()]));
    for (words, cause) in [
        (&["mod", "sw0", "tun0", "--seal-core", "9999"][..], "there is no core 9999"),
        (
            &["mod", "sw0", "g", "--seal-core", "1"],
            "`seal_core` means nothing on a port of type tap",
        ),
        (
            &[
                "add",
                "sw0",
                "t",
                "--type",
                "vxlan",
                "--remote",
                "::1",
                "--key",
                "1",
                "--seal-core",
                "1",
            ],
            "`seal_core` means nothing without `encrypt`",
        ),
        (&["mod", "sw0", "tun0", "--seal-core", "one"], "write a core's number"),
    ] {
        let said = host.says(&[&["port"][..], words].concat());
        assert!(said.code != 0 && said.err.contains(cause), "{words:?}: {}", said.err);
    }
}

#[test]
fn large_segments_of_tcp_cross_whoever_seals_them() {
    if !privileged() {
        return;
    }
    let pair = Pair::new(SEALED);
    for core in ["with-forwarding", "1"] {
        pair.hosts.iter().for_each(|host| seal_on(host, core));
        pair.transfer(64 << 20);
    }
    for host in &pair.hosts {
        assert!(sealing(host).1 > 64 << 20 >> 11, "segments of less than 2 KiB");
        let lost = host.json(&["port", "show", "sw0", "tun0"])["sealing"]["lost"].take();
        assert_eq!(lost, serde_json::json!([]));
    }
}
