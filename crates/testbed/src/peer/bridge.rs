//! The Linux bridge.

use super::State;
use crate::netns::{Guest, Namespace, run};
use anyhow::Result;

pub fn start(switch: &Namespace, guests: &[Guest; 2], offloads: bool) -> Result<State> {
    switch.ip(&["link", "add", "br0", "type", "bridge"])?;
    for guest in guests {
        switch.ip(&["link", "set", &guest.port, "master", "br0"])?;
        if !offloads {
            let off = ["-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off"];
            run(guest.namespace.command("ethtool").args(off))?;
        }
    }
    switch.ip(&["link", "set", "br0", "up"])?;
    Ok(State::default())
}
