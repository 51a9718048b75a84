//! Interfaces whose frames come with checksums that nobody has finished.

use std::fs;
use std::path::Path;

/// What a user must know of a veth; `root` is `/sys/class/net`. Its far end hands over frames as they were sent, and with checksum offload their
/// UDP and TCP checksums are left to a device that there is not. The stack knows that of a frame on the core where it arrived; through another
/// core's queue the knowledge is lost, and the frame with it.
pub(super) fn note(root: &Path, interface: &str) -> Option<String> {
    is_veth(&root.join(interface)).then(|| {
        "a veth: its far end must finish checksums itself (there: ethtool -K INTERFACE tx off), else UDP and TCP frames that are sent to \
         another core are lost"
            .to_owned()
    })
}

/// Another interface belongs to it, it lies on none, and there is no device.
fn is_veth(interface: &Path) -> bool {
    let number = |name| fs::read_to_string(interface.join(name)).ok();
    let lies_on_another = fs::read_dir(interface).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("lower_"))
    });
    number("iflink").is_some_and(|link| number("ifindex").is_some_and(|index| index != link))
        && !lies_on_another
        && !interface.join("device").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_veth_is_told_from_a_card_a_bridge_and_a_vlan() {
        let root = tempfile::tempdir().unwrap();
        let interface = |name: &str, index: &str, link: &str, has: Option<&str>| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("ifindex"), index).unwrap();
            fs::write(path.join("iflink"), link).unwrap();
            has.into_iter().for_each(|has| fs::create_dir(path.join(has)).unwrap());
            note(root.path(), name).is_some()
        };
        assert!(interface("veth0", "7\n", "8\n", None));
        assert!(!interface("eth0", "2\n", "2\n", Some("device")));
        assert!(!interface("br0", "3\n", "3\n", None));
        assert!(!interface("eth0.5", "4\n", "2\n", Some("lower_eth0")));
        assert!(note(root.path(), "none").is_none());
    }
}
