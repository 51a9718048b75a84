//! Ourselves: a node on each host.

use super::super::suiro::{interface, start_node};
use super::super::{Attach, SWITCH_CORE, State};
use super::{Side, UPLINK, VNI, Wire};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// The host's own interface, where a switch has the wire.
const HOST: &str = "host0";

/// For the node to make it.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn start(side: &Side<'_>, attach: Attach, wire: Wire) -> Result<State> {
    if wire == Wire::Kernels {
        return start_with(side, attach, "", "");
    }
    let Side { host, local, .. } = *side;
    let address = format!("{local}/{}", if local.contains(':') { 64 } else { 24 });
    host.ip(&["addr", "del", &address, "dev", UPLINK])?;
    let forwarding = if wire == Wire::SwitchsPastKernel { "forwarding = \"own\"\n" } else { "" };
    let wire = interface(UPLINK, attach)?;
    let uplink = format!(
        "\n[[switch]]\nname = \"wan\"\n[[switch.port]]\nname = \"wire\"\n{wire}[[switch.port]]\nname = \"host\"\ntype = \"tap\"\ninterface = \"{HOST}\"\n"
    );
    let state = start_with(side, attach, forwarding, &uplink)?;
    let deadline = Instant::now() + PATIENCE;
    while host.ip(&["link", "show", HOST]).is_err() {
        ensure!(Instant::now() < deadline, "the node did not make {HOST} within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let dad: &[&str] = if local.contains(':') { &["nodad"] } else { &[] };
    host.ip(&[&["addr", "add", &address, "dev", HOST][..], dad].concat())?;
    Ok(state)
}

/// With these lines for the tunnel, and these behind all.
fn start_with(side: &Side<'_>, attach: Attach, lines: &str, behind: &str) -> Result<State> {
    let Side { local, remote, .. } = side;
    let port = format!(
        "\n[[switch.port]]\nname = \"tun0\"\ntype = \"vxlan\"\nlocal = \"{local}\"\nremote = \"{remote}\"\nkey = {VNI}\n{lines}"
    );
    let Some(keys) = side.keys else {
        let rest = port + behind;
        return start_node(
            side.host,
            std::slice::from_ref(side.guest),
            attach,
            (&[SWITCH_CORE], &rest),
        );
    };
    let file = NamedTempFile::new()?; // of mode 600
    std::fs::write(&file, keys)?;
    let rest = format!("{port}encrypt = \"{}\"\n{behind}", file.path().display());
    start_node(side.host, std::slice::from_ref(side.guest), attach, (&[SWITCH_CORE], &rest))
}
