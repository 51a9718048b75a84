//! Open vSwitch's userspace datapath, its tunnel over a bridge `br-phy` that has the wire and the host's address, as its documentation has
//! it (`userspace-vxlan`).

use super::super::ovs::{Ovs, PLAIN, tso_setting};
use super::super::{Attach, State};
use super::{Side, UPLINK, VNI};
use crate::netns::run;
use anyhow::Result;

/// The bridge of the wire, and the interface of its address.
const PHYSICAL: &str = "br-phy";

pub fn start(side: &Side<'_>, attach: Attach, tso: bool) -> Result<State> {
    let Side { host, guest, local, remote, .. } = *side;
    let directory = tempfile::tempdir()?;
    let mut ovs = Ovs::new(host, directory.path());
    ovs.boot(PLAIN, tso_setting(tso))?;
    ovs.add_port(guest, attach, tso)?;
    ovs.vsctl(&["add-br", PHYSICAL, "--", "set", "bridge", PHYSICAL, "datapath_type=netdev"])?;
    let prefix = if local.contains(':') { 64 } else { 24 };
    let address = format!("{local}/{prefix}");
    host.ip(&["addr", "del", &address, "dev", UPLINK])?;
    host.ip(&["addr", "add", &address, "dev", PHYSICAL])?;
    host.ip(&["link", "set", PHYSICAL, "up"])?;
    let off = ["-K", UPLINK, "tx", "off", "tso", "off", "gso", "off"];
    run(host.command("ethtool").args(off))?;
    ovs.add_interface(PHYSICAL, UPLINK, attach)?;
    let (remote, local) =
        (format!("options:remote_ip={remote}"), format!("options:local_ip={local}"));
    let key = format!("options:key={VNI}");
    let options = ["type=vxlan", &remote, &local, &key];
    ovs.vsctl(
        &[&["add-port", "br0", "tun0", "--", "set", "interface", "tun0"][..], &options].concat(),
    )?;
    Ok(State { processes: ovs.processes, _directory: Some(directory), management: None })
}
