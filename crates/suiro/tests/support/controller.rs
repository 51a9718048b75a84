//! The controller of the demo: os-ken's learning switch.

use super::{Background, Lab};
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

/// A running controller in the node's namespace.
pub struct Controller(Background);

impl Controller {
    /// Where it waits for switches.
    pub const ADDRESS: &str = "127.0.0.1:6653";

    /// Starts it.
    pub fn start(lab: &Lab) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &lab.netns]).arg(python());
        command.arg(Path::new(ROOT).join("demo/learning_switch.py")).arg(Self::ADDRESS);
        Self(Background::start(&mut command))
    }

    /// What it said so far.
    pub fn output(&self) -> String {
        self.0.output()
    }

    /// Kills it as `kill -9` does.
    pub fn kill(self) {
        self.0.end(rustix::process::Signal::KILL);
    }
}
