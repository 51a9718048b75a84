//! What an interface can do to spread the frames it receives over cores, before any program of ours runs.

use crate::error::OpenError;
use crate::ethtool::Ethtool;
use crate::sys::ioctl::Name;
use netlink::{Netlink, XdpFeatures, xdp_features};
use std::fs;
use std::io;
use std::path::Path;

/// An interface's abilities on the receiving side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abilities {
    /// Rx queues in use.
    pub rx_queues: u32,
    /// It spreads frames over several queues by a hash (RSS).
    pub is_rss: bool,
    /// It has a table that says which queue a hash means.
    pub has_rss_table: bool,
    /// It takes rules for single flows (ntuple, Flow Director).
    pub has_ntuple: bool,
    /// Its driver runs XDP programs and lets them redirect; `None` where the kernel (before 6.3) does not tell.
    pub has_xdp: Option<bool>,
    /// The kernel spreads its frames over cores by a hash (RPS is configured).
    pub is_rps: bool,
}

/// Abilities of an interface in the calling thread's namespace. Needs no privilege.
///
/// # Errors
/// There is no such interface, or the kernel does not answer.
pub fn abilities(interface: &str) -> Result<Abilities, OpenError> {
    let failed = |step| move |source| OpenError::io(interface, step, source);
    let missing = || OpenError::Missing {
        interface: interface.into(),
        place: "this network namespace".into(),
    };
    let name = Name::new(interface).ok_or_else(missing)?;
    let found = Netlink::new().and_then(|netlink| netlink.link(interface));
    let link = found.map_err(failed("read the interface's state"))?.ok_or_else(missing)?;
    let ethtool = Ethtool::new(name).map_err(failed("open a socket for ethtool"))?;
    let xdp = xdp_features(link.index).map_err(failed("read its XDP features"))?;
    let rx_queues = ethtool.rx_queues();
    Ok(Abilities {
        rx_queues,
        is_rss: rx_queues > 1 && ethtool.has_rings(),
        has_rss_table: ethtool.has_rss_table(),
        has_ntuple: ethtool.has_rules(),
        has_xdp: xdp.map(XdpFeatures::can_redirect),
        is_rps: is_rps(Path::new("/sys/class/net"), interface),
    })
}

/// Whether any queue's `rps_cpus` names a core (Documentation/networking/scaling.rst).
fn is_rps(net: &Path, interface: &str) -> bool {
    let names_a_core = |entry: io::Result<fs::DirEntry>| {
        let mask = fs::read_to_string(entry.ok()?.path().join("rps_cpus")).ok()?;
        Some(mask.bytes().any(|digit| digit.is_ascii_hexdigit() && digit != b'0'))
    };
    let queues = fs::read_dir(net.join(interface).join("queues"));
    queues.is_ok_and(|mut queues| queues.any(|entry| names_a_core(entry) == Some(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_one_queue_and_no_abilities() {
        let found = abilities("lo").unwrap();
        assert!(matches!(found.has_xdp, None | Some(false)), "{found:?}");
        assert_eq!(
            Abilities { has_xdp: None, ..found },
            Abilities { rx_queues: 1, ..Abilities::default() }
        );
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = abilities("no-such-if").unwrap_err().to_string();
        assert!(error.contains("no-such-if"), "{error}");
        assert!(abilities("no/such").is_err());
    }

    #[test]
    fn rps_is_on_when_any_queue_names_a_core() {
        let net = tempfile::tempdir().unwrap();
        for (queue, mask) in [("rx-0", "00000000,00000000\n"), ("rx-1", "00000000,00000000\n")] {
            let queue = net.path().join("eth0/queues").join(queue);
            fs::create_dir_all(&queue).unwrap();
            fs::write(queue.join("rps_cpus"), mask).unwrap();
        }
        fs::create_dir_all(net.path().join("eth0/queues/tx-0")).unwrap();
        assert!(!is_rps(net.path(), "eth0"));
        fs::write(net.path().join("eth0/queues/rx-1/rps_cpus"), "00000000,0000000c\n").unwrap();
        assert!(is_rps(net.path(), "eth0"));
        assert!(!is_rps(net.path(), "eth1"));
    }
}
