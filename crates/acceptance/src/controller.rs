//! os-ken's applications (the demo's learning switch among them) and Faucet, as processes in the node's namespace.

use crate::{Background, Lab};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The interpreter with os-ken.
pub fn python() -> PathBuf {
    let given = std::env::var_os("SUIRO_PYTHON").map(PathBuf::from);
    let python = given.unwrap_or_else(|| Path::new(ROOT).join(".venv/bin/python"));
    assert!(python.exists(), "{}: no Python with os-ken there; run make setup", python.display());
    python
}

/// A program of the environment that Faucet has for itself, beside os-ken's.
fn faucet_program(name: &str) -> PathBuf {
    let path = python().with_file_name("..").join("faucet/bin").join(name);
    assert!(path.exists(), "{}: no Faucet there; run make setup", path.display());
    path
}

/// A running controller in the node's namespace.
pub struct Controller(Background);

impl Controller {
    /// Where it waits for switches.
    pub const ADDRESS: &str = "127.0.0.1:6653";

    /// Starts the demo's learning switch.
    pub fn start(lab: &Lab) -> Self {
        Self::start_program(lab, "demo/learning_switch.py")
    }

    /// Starts an os-ken application, a file of the project that takes the address as its argument.
    pub fn start_program(lab: &Lab, program: &str) -> Self {
        Self::start_with(lab, program, &[])
    }

    /// The same with further arguments.
    pub fn start_with(lab: &Lab, program: &str, arguments: &[&str]) -> Self {
        let mut command = Self::inside(lab);
        command.arg(python()).arg("-u").arg(Path::new(ROOT).join(program)).arg(Self::ADDRESS);
        Self(Background::start(command.args(arguments)))
    }

    /// Starts Faucet with `faucet.yaml` and its logs in the node's directory.
    pub fn start_faucet(lab: &Lab) -> Self {
        let (host, port) = Self::ADDRESS.split_once(':').unwrap();
        let mut command = Self::inside(lab);
        command.env("FAUCET_CONFIG", lab.path("faucet.yaml"));
        // Its log comes with its other output.
        command.env("FAUCET_LOG", "STDOUT").env("FAUCET_EXCEPTION_LOG", "STDOUT");
        command.env("FAUCET_PROMETHEUS_ADDR", "127.0.0.1");
        command.arg(faucet_program("osken-manager"));
        command.arg(format!("--ofp-listen-host={host}"));
        command.arg(format!("--ofp-tcp-listen-port={port}")).arg("faucet.faucet");
        Self(Background::start(&mut command))
    }

    fn inside(lab: &Lab) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &lab.netns]);
        command
    }

    /// What it said so far.
    pub fn output(&self) -> String {
        self.0.output()
    }

    /// Tells it to read its configuration again.
    pub fn reload(&self) {
        let pid = Pid::from_raw(self.0.pid() as i32).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    }

    /// Kills it as `kill -9` does.
    pub fn kill(self) {
        self.0.end(Signal::KILL);
    }
}
