//! The kernel's `vxlan` interface as a port of the Linux bridge.

use super::{Side, State, VNI};
use anyhow::Result;

pub fn start(side: &Side<'_>) -> Result<State> {
    let Side { host, guest, local, remote, .. } = *side;
    let key = VNI.to_string();
    let ends = ["id", &key, "local", local, "remote", remote, "dstport", "4789"];
    host.ip(&[&["link", "add", "vx0", "type", "vxlan"][..], &ends].concat())?;
    host.ip(&["link", "add", "br0", "type", "bridge"])?;
    for interface in ["vx0", &guest.port] {
        host.ip(&["link", "set", interface, "master", "br0"])?;
        host.ip(&["link", "set", interface, "up"])?;
    }
    host.ip(&["link", "set", "br0", "up"])?;
    Ok(State::default())
}
