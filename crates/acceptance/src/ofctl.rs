//! Open vSwitch's own tool, speaking OpenFlow 1.3 unless told otherwise.

use crate::{Background, Lab, Said};
use std::process::Command;

/// `ovs-ofctl` for one switch.
pub struct Ofctl<'l> {
    lab: &'l Lab,
    /// The switch as ovs-ofctl calls it.
    pub target: String,
    version: &'static str,
}

impl<'l> Ofctl<'l> {
    /// Over TCP.
    pub fn tcp(lab: &'l Lab, port: u16) -> Self {
        Self { lab, target: format!("tcp:127.0.0.1:{port}"), version: "OpenFlow13" }
    }

    /// Over the management socket.
    pub fn management(lab: &'l Lab, switch: &str) -> Self {
        let socket = lab.path(&format!("run/{switch}.mgmt"));
        Self { lab, target: format!("unix:{}", socket.display()), version: "OpenFlow13" }
    }

    /// The same in version `OpenFlow10`, which is ovs-ofctl's own default.
    pub fn speaking_1_0(self) -> Self {
        Self { version: "OpenFlow10", ..self }
    }

    fn command(&self, verb: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        // `monitor` makes a control socket there.
        command.env("OVS_RUNDIR", self.lab.path("run"));
        command.args(["netns", "exec", &self.lab.netns, "ovs-ofctl", "-O", self.version]);
        command.args([verb, &self.target]).args(words);
        command
    }

    /// What `verb` says about the switch.
    pub fn says(&self, verb: &str, words: &[&str]) -> Said {
        let output = self.command(verb, words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Said { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// A command that must succeed; returns its output.
    #[track_caller]
    pub fn run(&self, verb: &str, words: &[&str]) -> String {
        let said = self.says(verb, words);
        assert_eq!(said.code, 0, "{verb} {words:?}: {}\nlog:\n{}", said.err, self.lab.log());
        said.out
    }

    /// Watches the switch's events.
    pub fn monitor(&self) -> Background {
        Background::start(&mut self.command("monitor", &["65534"]))
    }
}
