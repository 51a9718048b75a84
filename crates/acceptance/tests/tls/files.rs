//! Certificate files that change while the node runs.

use crate::certificates::{file_of, make_certificates, replace};
use crate::controller::{Calling, call};
use crate::{PORT, last_error, ofctl};
use acceptance::{Lab, privileged, until};
use openflow::Message;
use rustix::process::Signal;

/// A configuration whose switch waits by TLS; `key` is on line 10.
fn configuration(lab: &Lab, key: &str) -> String {
    let [certificate, key, ca] = ["sw.pem", key, "ca.pem"].map(|file| file_of(lab, file));
    format!(
        "[[switch]]\nname = \"sw0\"\nlisten = [\"pssl:{PORT}\"]\n[switch.tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\nca = \"{ca}\"\n"
    )
}

/// A node with that configuration.
fn configured() -> Lab {
    let mut lab = Lab::new(&[]);
    make_certificates(&lab);
    lab.configure(&configuration(&lab, "sw.key"));
    lab.start();
    lab
}

fn is_served(session: &mut Calling) -> bool {
    session.ask(&Message::BarrierRequest) == Message::BarrierReply
}

/// Makes the node read its configuration again, and waits until it says what came of it.
fn reload(lab: &Lab, outcome: &str) {
    let before = lab.log().matches(outcome).count();
    lab.signal(Signal::HUP);
    until(outcome, || lab.log().matches(outcome).count() > before);
}

const DONE: &str = "SIGHUP: the configuration is read again";
const REFUSED: &str = "the configuration file is not in force";

#[test]
fn wrong_files_are_refused_at_the_start_with_their_line() {
    if !privileged() {
        return;
    }
    let lab = Lab::new(&[]);
    make_certificates(&lab);
    lab.configure(&configuration(&lab, "ctl.key"));
    let said = lab.node_says(&["--check"]);
    let wrong = "ctl.key does not belong to the certificate";
    assert!(said.code != 0 && said.err.contains(wrong), "{}", said.err);
    assert!(said.err.contains("node.toml:10: switch sw0: key:"), "{}", said.err);
}

#[test]
fn new_files_count_from_sighup_on_and_a_live_session_goes_on() {
    if !privileged() {
        return;
    }
    let lab = configured();
    let mut live = call(&lab, "ctl");
    assert!(is_served(&mut live));
    for (new, file) in
        [("other-ca.pem", "ca.pem"), ("other-sw.pem", "sw.pem"), ("other-sw.key", "sw.key")]
    {
        replace(&lab, new, file);
    }
    reload(&lab, DONE);
    // `ovs-ofctl` believes the new authority only, so this is the switch's new certificate, too.
    let said = ofctl(&lab, "ssl", "stranger");
    assert_eq!(said.code, 0, "{}\n{}", said.err, lab.log());
    let said = ofctl(&lab, "ssl", "ctl");
    assert_ne!(said.code, 0, "{}", said.out);
    // The other end may know first.
    let is_told = || last_error(&lab).contains("is of no CA in our `ca` file");
    until("the switch says whom it refused, and why", is_told);
    assert!(is_served(&mut live), "the session of before");
    assert!(is_served(&mut call(&lab, "stranger")), "a session of now");
}

#[test]
fn broken_files_are_told_at_sighup_with_their_remedy_and_those_of_before_stay_in_use() {
    if !privileged() {
        return;
    }
    let lab = configured();
    let mut live = call(&lab, "ctl");
    replace(&lab, "sw.key", "good.key");
    replace(&lab, "sw.pem", "good.pem");
    let [certificate, key] = ["sw.pem", "sw.key"].map(|file| file_of(&lab, file));

    replace(&lab, "ctl.key", "sw.key");
    reload(&lab, REFUSED);
    let log = lab.log();
    let mismatch = format!("key: {key} does not belong to the certificate {certificate}");
    assert!(log.contains(&mismatch) && log.contains("node.toml:10: switch sw0"), "{log}");
    assert!(log.contains("remedy: name the pair that was made together"), "{log}");
    assert_eq!(ofctl(&lab, "ssl", "ctl").code, 0, "{}", lab.log());
    assert!(lab.log().contains("those read before stay in use"), "{}", lab.log());

    replace(&lab, "good.key", "sw.key");
    std::fs::remove_file(&certificate).unwrap();
    reload(&lab, REFUSED);
    let log = lab.log();
    assert!(log.contains(&format!("certificate: {certificate} cannot be read: No such")), "{log}");
    assert!(log.contains("remedy: make the file, or correct its path"), "{log}");
    assert_eq!(ofctl(&lab, "ssl", "ctl").code, 0, "{}", lab.log());

    replace(&lab, "good.pem", "sw.pem");
    reload(&lab, DONE);
    assert_eq!(ofctl(&lab, "ssl", "ctl").code, 0, "{}", lab.log());
    assert!(is_served(&mut live), "the session of before");
}
