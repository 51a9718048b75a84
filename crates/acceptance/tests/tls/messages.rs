//! Messages that TLS hides from the network: root sees them in a capture, and nobody else.

use crate::ofctl;
use acceptance::{Background, Lab, privileged, until};
use rustix::process::Signal;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A capture of the switch's sessions, by that user.
fn capture(lab: &Lab, user: &str, file: &str) -> Background {
    let running = || lab.http("GET", "/v1/captures", "").1.matches("\"capture\":").count();
    let before = running();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    command.arg(lab.path("suiro")).args(["capture", "openflow:sw0", "-w", file]);
    let capture = Background::start(command.env("SUIRO_API", lab.socket()));
    until("the capture runs", || running() > before);
    capture
}

#[test]
fn messages_over_tls_are_in_clear_for_root_and_hidden_from_others() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::new(&[]);
    lab.configure("capture_group = \"daemon\"\n");
    for directory in ["", "run"] {
        let path = lab.path(directory);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o711)).unwrap();
    }
    std::fs::copy(acceptance::suiro(), lab.path("suiro")).unwrap();
    let open = lab.path("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    lab.start();
    crate::add_switch(&lab);
    let [roots, others] = ["root", "daemon"].map(|user| open.join(format!("{user}.pcapng")));
    let captures = [("root", &roots), ("daemon", &others)]
        .map(|(user, file)| capture(&lab, user, &file.display().to_string()));
    let said = ofctl(&lab, "ssl", "ctl");
    assert_eq!(said.code, 0, "{}", said.err);
    let management = format!("unix:{}", lab.path("run/sw0.mgmt").display());
    let words = ["ovs-ofctl", "-O", "OpenFlow13", "dump-groups", &management];
    assert_eq!(crate::run(&lab, &words).code, 0);
    captures.into_iter().for_each(|capture| drop(capture.end(Signal::INT)));

    let count = |file: &std::path::Path, filter: &str| {
        let mut command = Command::new("tshark");
        let output = command.arg("-r").arg(file).args(["-Y", filter]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    let asked = "openflow_v4.type == 18 && frame.comment contains \"tls=yes\"";
    assert_eq!(count(&roots, asked), 1, "root sees the request in clear");
    assert_eq!(count(&others, "frame.comment contains \"tls=yes\""), 0);
    let visits = "frame.comment contains \"peer=socket\" && openflow_v4.type == 18";
    assert_eq!([&roots, &others].map(|file| count(file, visits)), [1, 1], "plain ones for both");
}
