//! Interfaces that vanish under traffic, and interfaces of other programs.

use crate::Bystanders;
use crate::bystanders::{fault_says, says};
use acceptance::{Background, Kind, Lab, Pings, privileged, python, sh, until};
use std::process::Command;

fn is_at_fault(lab: &Lab, port: &str) -> bool {
    lab.json(&["port", "show", "sw0", port])["fault"].is_object()
}

#[test]
fn an_interface_that_vanishes_under_traffic_is_a_fault_until_it_comes_back() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&["g1", "g2", "g3"]);
    let lab = &bystanders.lab;
    for (guest, kind) in ["g1", "g2", "g3"].into_iter().zip(Kind::ALL) {
        lab.connect("sw0", guest, kind);
    }
    for (guest, other) in [("g2", "g3"), ("g3", "g2"), ("g2", "g1")] {
        let traffic = Pings::start(lab, other, guest);
        sh(&["ip", "-n", &lab.netns, "link", "del", guest]);
        until("the port is at fault", || is_at_fault(lab, guest));
        fault_says(lab, guest, &[&format!("port {guest} of switch sw0"), "create"]);
        lab.cable(guest);
        until("the port is back", || !is_at_fault(lab, guest));
        traffic.pass();
    }
    let traffic = Pings::start(lab, "g2", "g1");
    sh(&["ip", "-n", &lab.guest("g1"), "link", "del", "eth0"]);
    until("suiro makes its TAP anew", || {
        let netns = lab.guest("g1");
        let shown = Command::new("ip").args(["-n", &netns, "link", "show", "eth0"]).output();
        shown.unwrap().status.success() && !is_at_fault(lab, "g1")
    });
    lab.set_up("g1");
    traffic.pass();
    bystanders.lost_nothing();
}

/// The smallest XDP program: every frame passes.
const PASS: &str = "__attribute__((section(\"xdp\"), used)) int pass(void *frame) { return 2; }\n";

#[test]
fn an_interface_with_an_xdp_program_of_somebody_else_is_left_alone() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&["g1"]);
    let lab = &bystanders.lab;
    lab.cable("g1");
    let (source, object) = (lab.path("pass.c"), lab.path("pass.o"));
    std::fs::write(&source, PASS).unwrap();
    let (source, object) = (source.to_str().unwrap(), object.to_str().unwrap());
    sh(&["clang", "-O2", "-target", "bpf", "-c", source, "-o", object]);
    sh(&["ip", "-n", &lab.netns, "link", "set", "g1", "xdp", "obj", object, "sec", "xdp"]);
    let said = lab.says(&["port", "add", "sw0", "g1", "--type", "af_xdp"]);
    assert_eq!(said.code, 1, "{}", said.out);
    let parts =
        ["port g1 of switch sw0: take the interface", "in use by another program", "XDP program"];
    says(&said.err, &parts);
    says(&said.err, &["remedy: ", "ip link set dev g1 xdp off"]);
    let shown = Command::new("ip").args(["-n", &lab.netns, "link", "show", "g1"]).output().unwrap();
    says(&String::from_utf8_lossy(&shown.stdout), &["prog/xdp"]);
    sh(&["ip", "-n", &lab.netns, "link", "set", "g1", "xdp", "off"]);
    lab.suiro(&["port", "add", "sw0", "g1", "--type", "af_xdp"]);
    bystanders.lost_nothing();
}

/// Opens TAP `held` and keeps it, as a virtual machine does.
const HOLD: &str = "import fcntl, signal, struct
tap = open('/dev/net/tun', 'rb+', buffering=0)
fcntl.ioctl(tap, 0x400454ca, struct.pack('16sH22x', b'held', 0x1002))
print('held', flush=True)
signal.pause()
";

#[test]
fn a_tap_that_another_process_holds_is_left_to_it() {
    if !privileged() {
        return;
    }
    let bystanders = Bystanders::with(&[]);
    let lab = &bystanders.lab;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.netns]).arg(python()).args(["-c", HOLD]);
    let holder = Background::start(&mut command);
    until("the TAP is held", || holder.output().contains("held\n"));
    let said = lab.says(&["port", "add", "sw0", "held", "--type", "tap"]);
    assert_eq!(said.code, 1, "{}", said.out);
    says(&said.err, &["port held of switch sw0: take the interface", "in use by another program"]);
    says(&said.err, &["remedy: stop the program that has it open"]);
    sh(&["ip", "-n", &lab.netns, "link", "show", "held"]);
    drop(holder);
    until("the TAP is free", || {
        lab.says(&["port", "add", "sw0", "held", "--type", "tap"]).code == 0
    });
    bystanders.lost_nothing();
}
