//! Open vSwitch with DPDK from Debian's package: one PMD on the switch's core, `dpdkvhostuserclient` ports, exact-match cache as it comes.

use super::super::ovs::{Ovs, WITH_DPDK};
use super::super::{GENERATORS_CORE, SWITCH_CORE};
use super::{Kind, Running, Work, last_lines, port_name};
use crate::hugepages::Reserved;
use crate::netns::Namespace;
use crate::unbroken;
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pages of 2 MiB: enough for the packet buffers of jumbo frames.
const HUGE_PAGES: u64 = 1536;

/// Longest frame of ports without `mtu_request`.
const STANDARD_FRAME: usize = 1518;

pub fn start(kind: Kind, sockets: &[PathBuf], frame: usize) -> Result<Running> {
    ensure!(
        Path::new(WITH_DPDK).exists(),
        "{WITH_DPDK} is not there; run 'make setup' (package openvswitch-switch-dpdk)"
    );
    let pages = Reserved::new(HUGE_PAGES)?;
    let namespace = Namespace::create(if kind == Kind::OvsDpdkTso { "dpdktso" } else { "dpdk" })?;
    let directory = tempfile::tempdir()?;
    let mut ovs = Ovs::new(&namespace, directory.path());
    // Without files in a huge page file system, nothing is left behind however it ends.
    let tso = format!("userspace-tso-enable={}", kind == Kind::OvsDpdkTso);
    let settings = [
        &tso,
        "dpdk-init=true",
        "dpdk-socket-mem=1024",
        &format!("dpdk-lcore-mask={:#x}", 1 << GENERATORS_CORE),
        r#"dpdk-extra="--in-memory --no-pci --no-telemetry""#,
    ];
    ovs.boot(WITH_DPDK, &settings)?;
    let log = directory.path().join("vswitchd.log");
    add_ports(&ovs, sockets, frame).with_context(|| last_lines(&log))?;
    let control = ovs.control();
    let (processes, management) = (ovs.processes, directory.path().join("br0.mgmt"));
    Ok(Running { kind, processes, management, control, _pages: Some(pages), namespace, directory })
}

fn add_ports(ovs: &Ovs<'_>, sockets: &[PathBuf], frame: usize) -> Result<()> {
    ovs.vsctl(&["set-fail-mode", "br0", "secure"])?;
    for (number, socket) in (1..).zip(sockets) {
        let name = port_name(number);
        let path = format!("options:vhost-server-path={}", socket.display());
        let request = format!("ofport_request={number}");
        let mut words = vec!["add-port", "br0", &name, "--", "set", "interface", &name];
        words.extend(["type=dpdkvhostuserclient", &path, &request]);
        // Before the first guest connects, and only for jumbo frames: it changes the buffers.
        let mtu = format!("mtu_request={frame}");
        if frame > STANDARD_FRAME {
            words.push(&mtu);
        }
        ovs.vsctl(&words)?;
    }
    Ok(())
}

/// Asks as `ovs-appctl` does (JSON-RPC 1.0), without a process for it.
pub fn work(control: &Path) -> Result<Work> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(br#"{"id":0,"method":"dpif-netdev/pmd-stats-show","params":[]}"#)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    let answer: serde_json::Value = loop {
        let len = unbroken(|| stream.read(&mut buffer))?;
        ensure!(len > 0, "the answer ended early");
        answer.extend_from_slice(&buffer[..len]);
        if let Ok(value) = serde_json::from_slice(&answer) {
            break value;
        }
    };
    let text = answer["result"].as_str().context("no counters in the answer")?;
    let core = format!("core_id {SWITCH_CORE}:");
    let (_, pmd) = text.split_once(&core).context("no PMD on the switch's core")?;
    let pmd = pmd.split("thread").next().unwrap_or_default();
    let figure = |name| figure(pmd, name);
    Ok(Work {
        frames: figure("packets received").context("packets received")?,
        // Lines of cycles are left out while they are 0.
        busy: figure("processing cycles").unwrap_or(0),
        idle: figure("idle cycles").unwrap_or(0),
        upcalls: figure("miss with success upcall").unwrap_or(0)
            + figure("miss with failed upcall").unwrap_or(0),
    })
}

/// The number after `name:`.
fn figure(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_name() {
        let text = "\n  packets received: 120\n  idle cycles: 77 (12.1%)\n  avg cycles per packet: 3.0 (9/3)\n";
        assert_eq!(figure(text, "packets received"), Some(120));
        assert_eq!(figure(text, "idle cycles"), Some(77));
        assert_eq!(figure(text, "processing cycles"), None);
    }
}
