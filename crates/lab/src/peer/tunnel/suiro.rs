//! Ourselves: a node on each host.

use super::super::suiro::start_node;
use super::super::{Attach, State};
use super::{Side, VNI};
use anyhow::Result;

pub fn start(side: &Side<'_>, attach: Attach) -> Result<State> {
    let Side { local, remote, .. } = side;
    let port = format!(
        "\n[[switch.port]]\nname = \"tun0\"\ntype = \"vxlan\"\nlocal = \"{local}\"\nremote = \"{remote}\"\nkey = {VNI}\n"
    );
    start_node(side.host, std::slice::from_ref(side.guest), attach, &port)
}
