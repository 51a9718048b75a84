//! A Linux bridge and an Open vSwitch daemon that are there already, in the namespace of the node itself.

use acceptance::{Background, Kind, Lab, Pings, privileged, sh, until};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Debian's Open vSwitch, its files in a directory of its own.
struct OpenVswitch {
    netns: String,
    directory: PathBuf,
    daemons: Vec<Background>,
}

impl OpenVswitch {
    fn start(lab: &Lab) -> Self {
        let (netns, directory) = (lab.netns.clone(), lab.path("ovs"));
        std::fs::create_dir(&directory).unwrap();
        let mut ovs = Self { netns, directory, daemons: Vec::new() };
        let (file, socket) = (ovs.path("conf.db"), ovs.path("db.sock"));
        sh(&["ovsdb-tool", "create", &file, SCHEMA]);
        ovs.daemon("ovsdb-server", &[&file, &format!("--remote=punix:{socket}")]);
        until("the database answers", || Path::new(&socket).exists());
        ovs.vsctl(&["--no-wait", "init"]);
        ovs.daemon("ovs-vswitchd", &[&format!("unix:{socket}")]);
        ovs.vsctl(&["add-br", "ovs0", "--", "set", "bridge", "ovs0", "datapath_type=netdev"]);
        ovs
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.netns, program]);
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(name, &self.directory);
        }
        command
    }

    fn daemon(&mut self, program: &str, words: &[&str]) {
        self.daemons.push(Background::start(self.command(program).args(words)));
    }

    fn vsctl(&self, words: &[&str]) {
        let database = format!("--db=unix:{}", self.path("db.sock"));
        let output =
            self.command("ovs-vsctl").args(["--timeout=15", &database]).args(words).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let log: Vec<_> = self.daemons.iter().map(Background::output).collect();
        assert!(output.status.success(), "ovs-vsctl {words:?}: {said}\n{}", log.join("\n"));
    }
}

#[test]
fn a_node_beside_a_linux_bridge_and_open_vswitch_disturbs_neither() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::new(&["g1", "g2", "b3", "b4", "o5", "o6"]);
    ["b3", "b4", "o5", "o6"].iter().for_each(|guest| lab.cable(guest));
    sh(&["ip", "-n", &lab.netns, "link", "add", "br0", "up", "type", "bridge"]);
    for guest in ["b3", "b4"] {
        sh(&["ip", "-n", &lab.netns, "link", "set", guest, "master", "br0"]);
    }
    let ovs = OpenVswitch::start(&lab);
    for guest in ["o5", "o6"] {
        ovs.vsctl(&["add-port", "ovs0", guest]);
    }
    let theirs = [Pings::start(&lab, "b3", "b4"), Pings::start(&lab, "o5", "o6")];
    lab.start();
    lab.suiro(&["switch", "add", "sw0"]);
    lab.connect("sw0", "g1", Kind::AfXdp);
    lab.connect("sw0", "g2", Kind::AfPacket);
    assert!(lab.talk("g1", "g2"), "{}", lab.log());
    theirs.iter().for_each(Pings::pass);
    lab.suiro(&["switch", "del", "sw0"]);
    lab.end(Signal::TERM);
    theirs.into_iter().for_each(Pings::end_without_loss);
    drop(ovs);
}
