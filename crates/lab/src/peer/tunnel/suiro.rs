//! Ourselves: a node on each host.

use super::super::suiro::start_node;
use super::super::{Attach, State};
use super::{Side, VNI};
use anyhow::Result;
use tempfile::NamedTempFile;

pub fn start(side: &Side<'_>, attach: Attach) -> Result<State> {
    let Side { local, remote, .. } = side;
    let port = format!(
        "\n[[switch.port]]\nname = \"tun0\"\ntype = \"vxlan\"\nlocal = \"{local}\"\nremote = \"{remote}\"\nkey = {VNI}\n"
    );
    let Some(keys) = side.keys else {
        return start_node(side.host, std::slice::from_ref(side.guest), attach, &port);
    };
    let file = NamedTempFile::new()?; // of mode 600
    std::fs::write(&file, keys)?;
    let port = format!("{port}encrypt = \"{}\"\n", file.path().display());
    start_node(side.host, std::slice::from_ref(side.guest), attach, &port)
}
