//! suiro, as a user has it: a node in the receiving host's namespace, and `suiro steer …`.

use super::super::cipher::Cipher;
use super::super::hosts::{Hosts, address};
use super::super::layout::Layout;
use super::{Told, binary};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::netns::run;
use testbed::process::Process;

/// Longest start of a node. Chosen: ten times what it takes.
const START: Duration = Duration::from_secs(20);

/// Seconds that a command waits for the node. Chosen: a loaded host takes 15 and more to verify the programs on a core that it emulates.
const PATIENCE_S: &str = "120";

/// A node in the receiving host, with no switch.
pub struct Node {
    api: PathBuf,
    cipher: Cipher,
    _process: Process,
    directory: tempfile::TempDir,
}

impl Node {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// It does not; its log says why.
    pub fn start(hosts: &Hosts, cipher: Cipher) -> Result<Self> {
        let directory = tempfile::tempdir().context("a directory for the node")?;
        let (path, log) = (directory.path().to_owned(), directory.path().join("node.log"));
        let config = path.join("node.toml");
        let place = path.display();
        std::fs::write(
            &config,
            format!("[node]\nrun_dir = \"{place}\"\nstate_dir = \"{place}\"\n"),
        )?;
        // `ip netns exec` gives it a /sys of its own as well: what it pins there is in nobody's way, and goes with it. It ends with this process, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "ip", "netns", "exec", hosts.host.name()]);
        command.arg(binary()?).args(["node", "--config"]).arg(&config);
        let process = Process::start(&mut command, &log)?;
        let node = Self { api: path.join("api.sock"), cipher, _process: process, directory };
        let deadline = Instant::now() + START;
        while node.run(&["status"]).is_err() {
            if Instant::now() >= deadline {
                bail!(
                    "the node does not answer: {}",
                    std::fs::read_to_string(&log).unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(node)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(binary()?);
        run(command.arg("--api").arg(&self.api).args(["--timeout", PATIENCE_S]).args(arguments))
    }

    /// Steers `eth0` by the paper's policy: what no rule names stays, and what is placed is not moved unless told so.
    ///
    /// # Errors
    /// What suiro says.
    pub fn steer(&self, told: Told<'_>, layout: &Layout) -> Result<()> {
        let cores = format!("0-{}", layout.host - 1);
        let reserved = told.priority.map_or("none".into(), |_| layout.rx.to_string());
        let moves = if told.moves { "on" } else { "off" };
        let policy = ["--cores", &cores, "--reserved", &reserved, "--moves", moves];
        self.run(&[&["steer", "policy", "set", "vse"][..], &policy].concat())?;
        for vm in told.vms {
            let (name, number) = (name(vm.number), vm.number.to_string());
            let (address, core) = (address(vm.number), vm.core.map(|core| core.to_string()));
            let words = ["steer", "vm", "add", &name, "--id", &number];
            // A machine with addresses is known by these, which encryption hides: then by the flow control field.
            let address = (self.cipher == Cipher::InPlace).then_some(["--address", &address]);
            let cores = core.iter().flat_map(|core| ["--cores", core]);
            self.run(
                &words
                    .into_iter()
                    .chain(address.into_iter().flatten())
                    .chain(cores)
                    .collect::<Vec<_>>(),
            )?;
            self.add_rule(vm.number, told)?;
        }
        self.add_idle_rules(told.idle_rules)?;
        let attach = ["steer", "attach", "eth0", "--unmatched", "stay", "--rules", "131072"];
        let by_fcf: &[_] = if self.cipher == Cipher::Esp { &["--fcf"] } else { &[] };
        self.run(&[&attach[..], by_fcf].concat()).map(drop)
    }

    /// Adds a VM's rule, or replaces it.
    ///
    /// # Errors
    /// What suiro says.
    pub fn add_rule(&self, vm: u8, told: Told<'_>) -> Result<()> {
        self.run(&["steer", "flow", "add", &rule(vm, told)]).map(drop)
    }

    /// What suiro says of where a VM's flow goes, and why.
    ///
    /// # Errors
    /// What suiro says instead.
    pub fn why(&self, vm: u8) -> Result<String> {
        self.run(&["steer", "why", &format!("ip,vm_id={vm}")])
    }

    fn add_idle_rules(&self, count: u32) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let path: &Path = &self.directory.path().join("rules");
        let lines: Vec<_> = (0..count).map(idle_rule).collect();
        std::fs::write(path, lines.join("\n") + "\n")?;
        let file = path.to_str().context("the rules' file: path is not UTF-8")?;
        self.run(&["steer", "flow", "add", "--file", file]).map(drop)
    }

    /// Takes all of it back.
    ///
    /// # Errors
    /// What suiro said first; the rest is done nevertheless.
    pub fn leave(&self, vms: &[u8]) -> Result<()> {
        let results =
            [self.run(&["steer", "detach", "eth0"]), self.run(&["steer", "flow", "del", "--all"])];
        let forgotten: Vec<_> =
            vms.iter().map(|&vm| self.run(&["steer", "vm", "del", &name(vm)])).collect();
        results.into_iter().chain(forgotten).collect::<Result<Vec<_>>>().map(drop)
    }
}

fn name(vm: u8) -> String {
    format!("vm{vm}")
}

/// The rule for a VM's flow: by the VM's address inside the tunnel.
fn rule(vm: u8, told: Told<'_>) -> String {
    let fixed = told.fixed.and_then(|(of, core)| (of == vm).then_some(core));
    let place = match (told.core.or(fixed), told.priority) {
        (Some(core), _) => format!("place(core={core})"),
        (None, Some(first)) if first == vm => "place(core=auto,priority)".into(),
        (None, Some(_)) => "place(core=auto,own)".into(),
        (None, None) => "place(core=auto)".into(),
    };
    format!("ip,vm_id={vm} actions={place}")
}

/// A rule for an address that nothing is sent to.
fn idle_rule(number: u32) -> String {
    let [_, high, middle, low] = number.to_be_bytes();
    format!("ip,nw_dst=10.{}.{middle}.{low} actions=place(core=auto)", 100 + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_the_vm_and_who_goes_first() {
        let told = Told { priority: Some(1), ..Told::default() };
        assert_eq!(rule(2, Told::default()), "ip,vm_id=2 actions=place(core=auto)");
        assert!(rule(1, told).ends_with("place(core=auto,priority)"));
        assert!(rule(2, told).ends_with("place(core=auto,own)"));
        let fixed = Told { fixed: Some((2, 1)), ..Told::default() };
        assert!(
            rule(2, fixed).ends_with("place(core=1)")
                && rule(1, fixed).ends_with("place(core=auto)")
        );
        assert!(rule(2, Told { core: Some(3), ..told }).ends_with("place(core=3)"));
    }

    #[test]
    fn idle_rules_are_all_different_and_name_no_vm() {
        assert_eq!(idle_rule(0), "ip,nw_dst=10.100.0.0 actions=place(core=auto)");
        assert_eq!(idle_rule(99_999), "ip,nw_dst=10.101.134.159 actions=place(core=auto)");
    }
}
