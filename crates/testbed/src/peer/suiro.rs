//! Ourselves, as a user would start us: a configuration file and the binary.

use super::{Attach, Process, State};
use crate::netns::{Guest, Namespace};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn start(
    switch: &Namespace,
    guests: &[Guest; 2],
    attach: Attach,
    cores: &[usize],
) -> Result<State> {
    start_node(switch, guests, attach, (cores, ""))
}

/// Starts a node of workers on these cores, with a switch of these guests and the ports that `more` describes.
pub(super) fn start_node(
    switch: &Namespace,
    guests: &[Guest],
    attach: Attach,
    (cores, more): (&[usize], &str),
) -> Result<State> {
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("node.toml");
    std::fs::write(&config, configuration(directory.path(), guests, attach, cores)? + more)?;
    let binary = std::env::current_exe().context("own binary")?;
    let binary = binary.to_str().context("own binary: path is not UTF-8")?;
    let log = directory.path().join("node.log");
    let mut command = switch.command_with_mounts(binary);
    let process = Process::start(command.args(["node", "--config"]).arg(&config), &log)?;
    let management = directory.path().join("sw0.mgmt");
    let mut state = State {
        processes: vec![process],
        _directory: Some(directory),
        management: Some(management),
    };
    wait_for_ports(&mut state, guests, attach, &log)?;
    Ok(state)
}

fn configuration(
    directory: &Path,
    guests: &[Guest],
    attach: Attach,
    cores: &[usize],
) -> Result<String> {
    let directory = directory.display();
    let mut text = format!(
        "[node]\nrun_dir = \"{directory}\"\nstate_dir = \"{directory}\"\ncores = {cores:?}\n\n[[switch]]\nname = \"sw0\"\nfail_mode = \"standalone\"\nmax_packet_in_per_s = 100000000\n"
    );
    for (number, guest) in guests.iter().enumerate() {
        let (name, netns) = (&guest.port, guest.namespace.name());
        writeln!(text, "\n[[switch.port]]\nname = \"{name}\"\nnumber = {}", number + 1)?;
        match attach.of(number) {
            Attach::Tap => {
                writeln!(text, "type = \"tap\"\ninterface = \"eth0\"\nnetns = \"{netns}\"")?
            }
            attach => text += &interface(name, attach)?,
        }
    }
    Ok(text)
}

/// What a port of an existing interface has in its configuration.
pub(super) fn interface(name: &str, attach: Attach) -> Result<String> {
    let of = |kind: &str, more: &str| format!("type = \"{kind}\"\ninterface = \"{name}\"\n{more}");
    Ok(match attach {
        Attach::AfPacket => of("af_packet", ""),
        Attach::AfXdpNative => of("af_xdp", "xdp_mode = \"native\"\n"),
        Attach::AfXdpGeneric => of("af_xdp", "xdp_mode = \"generic\"\n"),
        Attach::Tap | Attach::TapAndAfPacket | Attach::Kernel => {
            bail!("suiro has no port of this kind")
        }
    })
}

/// Waits for the node's socket, then for the guests' interfaces, and gives these their addresses.
fn wait_for_ports(state: &mut State, guests: &[Guest], attach: Attach, log: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    let management = state.management.clone().context("management socket")?;
    let taps = guests.iter().enumerate().filter(|&(index, _)| attach.of(index) == Attach::Tap);
    let ready = |(_, guest): (_, &Guest)| guest.namespace.ip(&["link", "show", "eth0"]).is_ok();
    while !(management.exists() && taps.clone().all(ready)) {
        if Instant::now() >= deadline {
            bail!(
                "the node did not come up within 10 s:\n{}",
                std::fs::read_to_string(log).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    taps.clone().try_for_each(|(_, guest)| guest.configure("eth0"))
}
