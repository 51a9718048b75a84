//! What a switch does while its controller is away, and what becomes of its rules.

use crate::certificates::make_certificates;
use crate::controller::{TlsController, add_switch, await_connected};
use acceptance::{Kind, Lab, privileged, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

fn is_alone(lab: &Lab) -> bool {
    lab.json(&["switch", "show", "sw0"])["alone"] == true
}

#[test]
fn a_standalone_switch_forwards_when_its_timer_is_over_and_stops_when_its_controller_is_back() {
    const FAIL_AFTER: Duration = Duration::from_secs(2);
    if !privileged() {
        return;
    }
    let lab = Lab::running(&["g1", "g2"]);
    make_certificates(&lab);
    let controller = TlsController::wait(&lab);
    let seconds = FAIL_AFTER.as_secs().to_string();
    add_switch(&lab, &["--fail-mode", "standalone", "--fail-after-s", &seconds]);
    let session = controller.accept();
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::Tap);
    }
    await_connected(&lab, true);
    assert!(!is_alone(&lab) && lab.is_cut_off("g1", "g2"), "the controller has no entry");

    let gone = Instant::now();
    drop((controller, session));
    until("the switch forwards by itself", || is_alone(&lab));
    assert!(gone.elapsed() >= FAIL_AFTER, "after {:?}", gone.elapsed());
    assert!(lab.talk("g1", "g2") && lab.talk("g2", "g1"), "{}", lab.log());
    let shown = lab.suiro(&["switch", "show", "sw0"]);
    assert!(shown.contains("forwarding by itself now"), "{shown}");

    let controller = TlsController::wait(&lab);
    let _session = controller.accept();
    await_connected(&lab, true);
    assert!(!is_alone(&lab) && lab.is_cut_off("g1", "g2"), "the controller has no entry");
}

/// How many flows, groups and meters the switch has.
fn rules(lab: &Lab) -> [usize; 3] {
    let count = |value: &serde_json::Value| value.as_array().unwrap().len();
    [
        count(&lab.json(&["flow", "list", "sw0"])),
        count(&lab.json(&["group", "list", "sw0"])),
        count(&lab.json(&["meter", "list", "sw0"])),
    ]
}

#[test]
fn rules_outlive_their_controllers_absence_and_then_on_reconnect_decides() {
    if !privileged() {
        return;
    }
    for (on_reconnect, left) in [("flush", [0; 3]), ("keep", [1; 3])] {
        let mut lab = Lab::running(&[]);
        make_certificates(&lab);
        let controller = TlsController::wait(&lab);
        add_switch(&lab, &["--fail-mode", "secure", "--on-reconnect", on_reconnect]);
        let session = controller.accept();
        await_connected(&lab, true);
        lab.suiro(&["group", "add", "sw0", "group_id=1,type=all"]);
        lab.suiro(&["meter", "add", "sw0", "meter=1,kbps,band=type=drop,rate=1000"]);
        lab.suiro(&["flow", "add", "sw0", "arp,actions=meter:1,group:1"]);
        drop((controller, session));
        await_connected(&lab, false);
        assert_eq!(rules(&lab), [1; 3], "{on_reconnect}: while it is away");
        let controller = TlsController::wait(&lab);
        let session = controller.accept();
        await_connected(&lab, true);
        assert_eq!(rules(&lab), left, "{on_reconnect}: when it is back");
        drop((controller, session));
        lab.end(Signal::TERM);
        lab.start();
        assert_eq!(rules(&lab), left, "{on_reconnect}: after a restart");
    }
}
