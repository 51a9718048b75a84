//! Figure 2 of the VS-extend paper: a host and its virtual machines register with a controller, os-ken with suiro's package, which then
//! programs on which cores their flows are processed, and reads what came of it.

use acceptance::{Controller, Lab, privileged, python, sh, until};
use std::process::Command;

const CONTROLLER: &str = "clients/python/examples/vse_controller.py";
/// What of the node's namespace the guest talks to; declared as a machine's address, so that its frames are that machine's.
const HOST: &str = "h99";

/// A node whose end of the cable to `g1` is steered.
fn lab() -> Lab {
    let lab = Lab::running(&["g1"]);
    lab.cable("g1");
    let address = format!("{}/24", Lab::ip(HOST));
    sh(&["ip", "-n", &lab.netns, "addr", "add", &address, "dev", "g1"]);
    lab.suiro(&["steer", "attach", "g1"]);
    lab
}

fn says(controller: &Controller, lab: &Lab, line: &str) {
    let mut output = String::new();
    let start = std::time::Instant::now();
    while !output.contains(line) {
        assert!(start.elapsed().as_secs() < 20, "no {line:?} in\n{output}\nlog:\n{}", lab.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
        output = controller.output();
    }
}

fn registers_and_is_programmed(protocol: &str, version: &str) {
    let lab = lab();
    let controller =
        Controller::start_with(&lab, CONTROLLER, &["--priority-tenant", "7", "--every", "0.2"]);
    let address = format!("tcp:{}", Controller::ADDRESS);
    let add = ["switch", "add", "sw0", "--controller", &address, "--protocols", protocol];
    lab.suiro(&[&add[..], &["--steering", "program"]].concat());
    says(&controller, &lab, &format!("connected, OpenFlow {version}; SUBSCRIBE"));
    says(&controller, &lab, "policy vse, threshold 50.0%, may program");
    says(&controller, &lab, "  g1 (veth): native");

    lab.suiro(&[
        "steer",
        "vm",
        "add",
        "vm1",
        "--id",
        "1",
        "--tenant",
        "7",
        "--address",
        &Lab::ip(HOST),
    ]);
    lab.suiro(&["steer", "vm", "add", "vm2", "--id", "2", "--tenant", "8", "--cores", "0"]);
    says(&controller, &lab, "VM_STATUS added: vm1, id 1, tenant 7, cores any");
    says(&controller, &lab, "PLACE_MOD add priority=100,vm_id=1 actions=place(core=auto,priority)");
    says(&controller, &lab, "PLACE_MOD add priority=100,vm_id=2 actions=place(core=auto,own)");
    until("the entries are there", || {
        let rules = lab.suiro(&["steer", "flow", "dump"]);
        rules.contains("vm_id=1,actions=place(core=auto,priority)") && rules.contains("vm_id=2")
    });
    let flows = lab.suiro(&["flow", "list", "sw0"]);
    assert!(flows.contains(&format!("nw_dst={}", Lab::ip(HOST))), "{flows}");

    assert!(lab.talk("g1", HOST), "{}", lab.log());
    says(&controller, &lab, "CORE_STATS core 0: driver");
    says(&controller, &lab, "PLACEMENT_STATS g1 vm_id=1 place(core=auto,priority): core ");

    lab.suiro(&["steer", "vm", "del", "vm2"]);
    says(&controller, &lab, "VM_STATUS deleted: vm2");
    until("its entry is gone", || !lab.suiro(&["steer", "flow", "dump"]).contains("vm_id=2"));
    let said = controller.output();
    assert!(!said.contains("refused") && !said.contains("Traceback"), "{said}");
}

#[test]
fn the_papers_protocol_runs_end_to_end_by_openflow_1_3() {
    if privileged() {
        registers_and_is_programmed("1.3", "1.3");
    }
}

#[test]
fn the_papers_protocol_runs_end_to_end_by_openflow_1_0() {
    if privileged() {
        registers_and_is_programmed("1.0", "1.0");
    }
}

#[test]
fn a_controller_that_may_only_read_programs_nothing() {
    if !privileged() {
        return;
    }
    let lab = lab();
    let controller = Controller::start_with(&lab, CONTROLLER, &[]);
    let address = format!("tcp:{}", Controller::ADDRESS);
    lab.suiro(&["switch", "add", "sw0", "--controller", &address, "--steering", "read"]);
    says(&controller, &lab, "may only read");
    lab.suiro(&["steer", "vm", "add", "vm1", "--id", "1"]);
    says(&controller, &lab, "no entry for vm1: this controller may not program the host");
    lab.suiro(&["switch", "mod", "sw0", "--steering", "off"]);
    // Connected anew, it asks again, and the switch does not know the extension any more.
    says(&controller, &lab, "error type 1 code 3");
    let rules = lab.suiro(&["steer", "flow", "dump"]);
    assert!(!rules.contains("vm_id"), "{rules}");
}

#[test]
fn the_python_package_reads_and_writes_what_its_specification_says() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python");
    let run = Command::new(python())
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", package])
        .output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains(" passed"), "{said}");
}
