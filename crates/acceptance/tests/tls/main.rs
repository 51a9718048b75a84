//! Controllers by TLS, as their users meet them: `openssl` and `ovs-ofctl` at the other end, controllers that come and go, certificates
//! that are replaced, and guests whose traffic shows who decides.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod absence;
mod auxiliary;
mod certificates;
mod controller;
mod files;
mod messages;

use acceptance::{Lab, Said, privileged};
use certificates::{file_of, make_certificates, tls_options};
use std::process::{Command, Stdio};

const PORT: &str = "6655";

/// A node whose switch waits by TLS.
fn lab() -> Lab {
    let lab = Lab::running(&[]);
    add_switch(&lab);
    lab
}

/// Makes certificates, and the switch that waits by TLS.
fn add_switch(lab: &Lab) {
    make_certificates(lab);
    let listen = format!("pssl:{PORT}");
    let tls = tls_options(lab);
    let tls: Vec<_> = tls.iter().map(String::as_str).collect();
    lab.suiro(&[&["switch", "add", "sw0", "--listen", &listen][..], &tls].concat());
}

/// Runs a command in the node's namespace.
fn run(lab: &Lab, words: &[&str]) -> Said {
    let mut command = Command::new("timeout");
    command.args(["10", "ip", "netns", "exec", &lab.netns]).args(words).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    Said { code, out: text(&output.stdout), err: text(&output.stderr) }
}

fn ofctl(lab: &Lab, scheme: &str, owner: &str) -> Said {
    let target = format!("{scheme}:127.0.0.1:{PORT}");
    let [certificate, key] = ["pem", "key"].map(|kind| file_of(lab, &format!("{owner}.{kind}")));
    let ca = file_of(lab, "ca.pem");
    let tls = ["-p", &key, "-c", &certificate, "-C", &ca];
    run(lab, &[&["ovs-ofctl", "-O", "OpenFlow13"][..], &tls, &["dump-flows", &target]].concat())
}

fn s_client(lab: &Lab, owner: Option<&str>, version: &str) -> Said {
    let at = format!("127.0.0.1:{PORT}");
    let ca = file_of(lab, "ca.pem");
    let mut words =
        vec!["openssl", "s_client", "-connect", &at, "-CAfile", &ca, version, "-ign_eof"];
    let [certificate, key] =
        ["pem", "key"].map(|kind| file_of(lab, &format!("{}.{kind}", owner.unwrap_or_default())));
    if owner.is_some() {
        words.extend(["-cert", &certificate, "-key", &key]);
    }
    run(lab, &words)
}

/// What the switch says went wrong last at its address.
fn last_error(lab: &Lab) -> String {
    lab.json(&["switch", "show", "sw0"])["endpoints"][0]["last_error"]["cause"].to_string()
}

#[test]
fn ovs_ofctl_programs_a_switch_by_tls() {
    if !privileged() {
        return;
    }
    let lab = lab();
    lab.suiro(&["flow", "add", "sw0", "priority=9,arp,actions=NORMAL"]);
    let said = ofctl(&lab, "ssl", "ctl");
    assert!(said.out.contains("priority=9,arp"), "{}{}\n{}", said.out, said.err, lab.log());
    let endpoint = lab.json(&["switch", "show", "sw0"])["endpoints"][0].clone();
    assert_eq!(
        (&endpoint["state"], &endpoint["last_error"]),
        (&"listening".into(), &serde_json::Value::Null)
    );
}

#[test]
fn each_wrong_certificate_gets_its_own_alert_and_the_switch_says_why() {
    if !privileged() {
        return;
    }
    let lab = lab();
    for (owner, alert, cause) in [
        (Some("stranger"), "alert unknown ca", "is of no CA in our `ca` file"),
        (Some("old"), "alert certificate expired", "the peer's certificate has expired"),
        (None, "alert certificate required", "the peer shows no certificate"),
    ] {
        let said = s_client(&lab, owner, "-tls1_3");
        assert!(said.err.contains(alert), "{owner:?}: {}", said.err);
        assert!(last_error(&lab).contains(cause), "{owner:?}: {}", last_error(&lab));
    }
    let said = s_client(&lab, Some("stranger"), "-tls1_2");
    assert!(said.err.contains("alert unknown ca"), "{}", said.err);
    assert!(s_client(&lab, Some("ctl"), "-tls1_1").code != 0, "TLS 1.1 is broken");
    let shown = lab.suiro(&["switch", "show", "sw0"]);
    assert!(shown.contains("last error,") && shown.contains("remedy:"), "{shown}");
    assert!(lab.log().contains("a caller was refused"), "{}", lab.log());
}

#[test]
fn plain_openflow_at_a_tls_address_is_told_to_use_tls() {
    if !privileged() {
        return;
    }
    let lab = lab();
    let said = ofctl(&lab, "tcp", "ctl");
    assert!(said.err.contains("OFPHFC_INCOMPATIBLE"), "{}", said.err);
    assert!(
        last_error(&lab).contains("the peer speaks OpenFlow without TLS"),
        "{}",
        last_error(&lab)
    );
}
