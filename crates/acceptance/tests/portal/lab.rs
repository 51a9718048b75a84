//! A domain of three sites on this machine, with its portal.

use acceptance::{Said, suiro};
use std::process::Command;

/// The domain; gone when dropped.
pub struct Lab {
    name: String,
    /// The portal's address.
    pub portal: String,
    /// The password of its users.
    pub password: String,
}

impl Lab {
    pub fn up() -> Self {
        let name = format!("p{:x}", std::process::id());
        let mut lab = Self { name, portal: String::new(), password: String::new() };
        let said = lab.lab("up");
        let line = said.lines().find_map(|line| line.strip_prefix("its portal: ")).unwrap();
        let words: Vec<&str> = line.split([' ', ',']).collect();
        (lab.portal, lab.password) = (words[0].into(), words.last().unwrap().to_string());
        lab
    }

    #[track_caller]
    fn lab(&self, verb: &str) -> String {
        let said = self.says(&["lab", "domain", verb, "--name", &self.name]);
        assert_eq!(said.code, 0, "{verb}: {}{}", said.out, said.err);
        said.out
    }

    /// A command of the operator's.
    pub fn says(&self, words: &[&str]) -> Said {
        let socket = format!("/run/suiro-{}/ctl/run/api.sock", self.name);
        let mut command = Command::new(suiro());
        Said::of(command.args(words).env("SUIRO_CONTROL", socket).output().unwrap())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let said = self.says(&["lab", "domain", "down", "--name", &self.name]);
        if said.code != 0 && !std::thread::panicking() {
            panic!("down: {}{}", said.out, said.err);
        }
    }
}
