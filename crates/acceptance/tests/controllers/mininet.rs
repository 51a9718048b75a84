//! Mininet with suiro's switches (`clients/mininet`): its `pingall` over its usual topologies, under the node's own learning, os-ken, Faucet.

use acceptance::{Controller, Lab, privileged};
use std::path::Path;
use std::process::Command;

const CLASS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/mininet/suiro_mininet.py");
const TOPOLOGIES: [&str; 3] = ["single,3", "linear,4", "tree,2"];

/// A controller that `mn` does not call by telnet before: it cannot always read what it hears then.
const CONTROLLER: &str = "\
from mininet.node import RemoteController
class Uncalled(RemoteController):
    def checkListening(self):
        pass
controllers = {'uncalled': Uncalled}
";

/// What `mn` prints of a `pingall`. In a process namespace of its own: when it fails it kills whatever is called like its programs.
fn pingall(lab: &Lab, topology: &str, switch: &str, controller: &str) -> String {
    let mn = Path::new("/usr/bin/mn");
    assert!(mn.exists(), "{}: not there; run 'make setup'", mn.display());
    let uncalled = lab.path("uncalled.py");
    std::fs::write(&uncalled, CONTROLLER).unwrap();
    let custom = format!("{CLASS},{}", uncalled.display());
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.netns]);
    command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    // Nor may it remove files of others from there; only the node's directory stays.
    let alone = "exec 9<\"$0\" && mount -t tmpfs none /tmp && mkdir -p \"$0\" && \
        mount --no-canonicalize --bind /proc/self/fd/9 \"$0\" && exec \"$@\"";
    command.args(["sh", "-c", alone]).arg(lab.path(""));
    command.args(["timeout", "60"]).arg(mn).args(["--custom", &custom, "--switch", switch]);
    command.args(["--controller", controller, "--topo", topology, "--test", "pingall"]);
    command.env("SUIRO", acceptance::suiro()).env("SUIRO_API", lab.socket());
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// How often Faucet is tried: once, or what `make test-long` says.
fn rounds() -> u32 {
    std::env::var("SUIRO_FAUCET_ROUNDS").map_or(1, |text| text.parse().unwrap())
}

fn all_reach_all(lab: &Lab, topologies: &[&str], switch: &str, controller: &str) {
    for topology in topologies {
        let said = pingall(lab, topology, switch, controller);
        assert!(said.contains("Results: 0% dropped"), "{topology}: {said}\n{}", lab.log());
        let left = lab.json(&["switch", "list"]);
        assert!(!left.to_string().contains("s1"), "{topology}: {left}");
    }
}

#[test]
fn without_a_controller_every_host_reaches_every_other() {
    if privileged() {
        let lab = Lab::running(&[]);
        all_reach_all(&lab, &TOPOLOGIES, "suiro,failMode=standalone", "none");
    }
}

#[test]
fn under_os_ken_every_host_reaches_every_other() {
    if privileged() {
        let lab = Lab::running(&[]);
        let _controller = Controller::start(&lab);
        all_reach_all(&lab, &TOPOLOGIES, "suiro", "uncalled,ip=127.0.0.1,port=6653");
    }
}

#[test]
fn under_faucet_every_host_reaches_every_other() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&[]);
    let mut configuration = String::from("vlans: {office: {vid: 100}}\ndps:\n");
    for dpid in 1..=4 {
        configuration += &format!(
            "  s{dpid}: {{dp_id: {dpid}, hardware: Open vSwitch, interfaces: {{1: {{native_vlan: office}}, 2: {{native_vlan: office}}, 3: {{native_vlan: office}}}}}}\n"
        );
    }
    std::fs::write(lab.path("faucet.yaml"), configuration).unwrap();
    let _faucet = Controller::start_faucet(&lab);
    for round in 1..=rounds() {
        all_reach_all(&lab, &TOPOLOGIES, "suiro", "uncalled,ip=127.0.0.1,port=6653");
        println!("Faucet, round {round}: 0 % lost with {TOPOLOGIES:?}");
    }
}
