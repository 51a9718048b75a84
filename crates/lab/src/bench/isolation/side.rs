//! How an attacker gets switches and ports beside the victim's: from suiro, or from Open vSwitch.

use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;
use testbed::netns::{Namespace, run};
use testbed::peer::Running;
use testbed::traffic::openflow::Client;

/// Whose host it is.
#[derive(Clone, Copy)]
pub enum Side<'r> {
    Suiro(&'r Running),
    Ovs(&'r Running),
}

impl Side<'_> {
    /// Makes a switch that learns, or one that only has its rules.
    pub fn switch(&self, name: &str, learns: bool) -> Result<()> {
        let mode = if learns { "standalone" } else { "secure" };
        match self {
            Self::Suiro(_) => self.suiro(&["switch", "add", name, "--fail-mode", mode]),
            Self::Ovs(_) => {
                let mode = format!("fail_mode={mode}");
                let words = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev"];
                self.ovs("ovs-vsctl", &[&words[..], &[&mode]].concat())
            }
        }
    }

    /// Makes a port of a switch, whose interface of the same name is in the attacker's namespace and up.
    pub fn tap(&self, switch: &str, name: &str, number: u32, inside: &Namespace) -> Result<()> {
        let text = number.to_string();
        match self {
            Self::Suiro(_) => {
                let kind = ["--type", "tap", "--netns", inside.name(), "--interface", name];
                let of = ["port", "add", switch, name, "--number", &text];
                self.suiro(&[&of[..], &kind].concat())?;
            }
            Self::Ovs(running) => {
                let number = format!("ofport_request={number}");
                let add = ["add-port", switch, name, "--", "set", "interface", name];
                self.ovs("ovs-vsctl", &[&add[..], &["type=internal", &number]].concat())?;
                running.switch().ip(&["link", "set", name, "netns", inside.name()])?;
            }
        }
        inside.ip(&["link", "set", name, "up"]).map(drop)
    }

    /// Takes a switch away, with its ports.
    pub fn remove(&self, name: &str) -> Result<()> {
        match self {
            Self::Suiro(_) => self.suiro(&["switch", "del", name]),
            Self::Ovs(_) => self.ovs("ovs-vsctl", &["del-br", name]),
        }
    }

    /// Takes a port out.
    pub fn untap(&self, switch: &str, name: &str) -> Result<()> {
        match self {
            Self::Suiro(_) => self.suiro(&["port", "del", switch, name]),
            Self::Ovs(_) => self.ovs("ovs-vsctl", &["del-port", switch, name]),
        }
    }

    /// Joins two switches by ports of this number.
    pub fn link(&self, one: &str, other: &str, number: u32) -> Result<()> {
        let [here, there] = [one, other].map(|switch| format!("{switch}{number}"));
        let text = number.to_string();
        for (switch, name, peer, far) in [(one, &here, &there, other), (other, &there, &here, one)]
        {
            match self {
                Self::Suiro(_) => {
                    let peer = format!("{far}:{peer}");
                    let of = ["port", "add", switch, name, "--number", &text];
                    self.suiro(&[&of[..], &["--type", "vlink", "--peer", &peer]].concat())?;
                }
                Self::Ovs(_) => {
                    let (peer, number) =
                        (format!("options:peer={peer}"), format!("ofport_request={number}"));
                    let add = ["add-port", switch, name, "--", "set", "interface", name];
                    let of = ["type=patch", &peer, &number];
                    self.ovs("ovs-vsctl", &[&add[..], &of].concat())?;
                }
            }
        }
        Ok(())
    }

    /// Adds rules of a switch, in the syntax of `ovs-ofctl`.
    pub fn flows(&self, switch: &str, rules: &[String]) -> Result<()> {
        self.add("add-flows", switch, rules)
    }

    /// Adds groups of a switch, likewise.
    pub fn groups(&self, switch: &str, groups: &[String]) -> Result<()> {
        self.add("add-groups", switch, groups)
    }

    /// `ovs-ofctl` speaks to either.
    fn add(&self, what: &str, switch: &str, lines: &[String]) -> Result<()> {
        let file = self.running().directory()?.join("attack.txt");
        std::fs::write(&file, lines.join("\n") + "\n")?;
        let socket = format!("unix:{}", self.socket(switch)?.display());
        let file = file.to_str().context("a path that is no text")?;
        self.ovs("ovs-ofctl", &["-O", "OpenFlow13", what, &socket, file])
    }

    /// A session with a switch.
    pub fn session(&self, switch: &str) -> Result<Client> {
        Client::connect(&self.socket(switch)?)
    }

    /// A command of suiro's, which finds the node.
    pub fn suiro_command(&self) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe().context("own binary")?);
        command.env("SUIRO_API", self.running().directory()?.join("api.sock"));
        Ok(command)
    }

    /// What `suiro … --json` prints.
    pub fn asked(&self, words: &[&str]) -> Result<Value> {
        let text = run(self.suiro_command()?.arg("--json").args(words))?;
        serde_json::from_str(&text).with_context(|| format!("suiro {}", words.join(" ")))
    }

    fn socket(&self, switch: &str) -> Result<std::path::PathBuf> {
        Ok(self.running().directory()?.join(format!("{switch}.mgmt")))
    }

    fn running(&self) -> &Running {
        match self {
            Self::Suiro(running) | Self::Ovs(running) => running,
        }
    }

    fn suiro(&self, words: &[&str]) -> Result<()> {
        run(self.suiro_command()?.args(words)).map(drop)
    }

    fn ovs(&self, program: &str, words: &[&str]) -> Result<()> {
        run(self.running().ovs_command(program)?.args(words)).map(drop)
    }
}
