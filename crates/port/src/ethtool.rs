//! Speed, queues and driver of an interface, by ethtool's `ioctl` (linux/ethtool.h).

use crate::sys::ioctl::{ETHTOOL_MAX, Name, ethtool};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

const GLINKSETTINGS: u32 = 0x4c;
const GCHANNELS: u32 = 0x3c;
const GRXRINGS: u32 = 0x2d;
const GRXCLSRLCNT: u32 = 0x2e;
const GRXFHINDIR: u32 = 0x38;
/// `struct ethtool_rxnfc`: `cmd`, `flow_type`, `data` (64 bits) at 8, a rule of 168 bytes, their number.
const RXNFC: usize = 192;
/// `struct ethtool_rxfh_indir` without its table: `cmd`, `size`.
const RXFH_INDIR: usize = 8;
/// `struct ethtool_channels`: `cmd`, four maxima, then `rx` at 20, `tx`, `other`, `combined` at 32.
const CHANNELS: usize = 36;
/// `struct ethtool_link_settings`: `cmd` 0..4, `speed` 4..8, …, `link_mode_masks_nwords` (i8) at 15.
const LINK_SETTINGS: usize = 48;
const MASK_WORDS: usize = 15;
const SPEED_UNKNOWN: u32 = u32::MAX;
const GDRVINFO: u32 = 0x03;
/// `struct ethtool_drvinfo`: `cmd` 0..4, `driver` 4..36, …
const DRVINFO: usize = 196;

/// Asks about one interface; belongs to the namespace it was made in.
pub(crate) struct Ethtool {
    socket: OwnedFd,
    name: Name,
}

impl Ethtool {
    /// In the calling thread's namespace.
    pub(crate) fn new(name: Name) -> io::Result<Self> {
        let (family, flags) = (rustix::net::AddressFamily::INET, rustix::net::SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(family, rustix::net::SocketType::DGRAM, flags, None)?;
        Ok(Self { socket, name })
    }

    /// Mbit/s; 0 when unknown.
    pub(crate) fn speed_mbps(&self) -> u32 {
        self.link_settings().map_or(0, |settings| match word(&settings, 4) {
            SPEED_UNKNOWN => 0,
            speed => speed,
        })
    }

    /// The first call is answered with the masks' length, negated; the second one with the settings.
    fn link_settings(&self) -> io::Result<[u8; ETHTOOL_MAX]> {
        let mut command = [0; ETHTOOL_MAX];
        command[..4].copy_from_slice(&GLINKSETTINGS.to_ne_bytes());
        ethtool(self.socket.as_fd(), self.name, &mut command[..LINK_SETTINGS])?;
        let words = (command[MASK_WORDS] as i8).saturating_neg();
        command[..LINK_SETTINGS].fill(0);
        command[..4].copy_from_slice(&GLINKSETTINGS.to_ne_bytes());
        command[MASK_WORDS] = words as u8;
        ethtool(self.socket.as_fd(), self.name, &mut command)?;
        Ok(command)
    }

    /// Rx queues in use (rtnetlink tells only how many were allocated); 1 where the driver does not say.
    pub(crate) fn rx_queues(&self) -> u32 {
        let mut command = [0; CHANNELS];
        command[..4].copy_from_slice(&GCHANNELS.to_ne_bytes());
        let asked = ethtool(self.socket.as_fd(), self.name, &mut command);
        asked.map_or(1, |()| (word(&command, 20) + word(&command, 32)).max(1))
    }

    /// The larger number of queues in use, of both directions; 1 where the driver does not say.
    pub(crate) fn queues(&self) -> u32 {
        let mut command = [0; CHANNELS];
        command[..4].copy_from_slice(&GCHANNELS.to_ne_bytes());
        let asked = ethtool(self.socket.as_fd(), self.name, &mut command);
        let larger = || word(&command, 20).max(word(&command, 24)) + word(&command, 32);
        asked.map_or(1, |()| larger().max(1))
    }

    /// The interface's number.
    pub(crate) fn index(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.socket, name)?)
    }

    /// The driver's name, if it tells.
    pub(crate) fn driver(&self) -> Option<String> {
        let mut command = [0; DRVINFO];
        command[..4].copy_from_slice(&GDRVINFO.to_ne_bytes());
        ethtool(self.socket.as_fd(), self.name, &mut command).ok()?;
        let name = command[4..36].split(|byte| *byte == 0).next()?;
        std::str::from_utf8(name).ok().map(str::to_owned)
    }

    /// Whether the driver names rings that a hash chooses among.
    pub(crate) fn has_rings(&self) -> bool {
        let rings = self.receive_facts(GRXRINGS);
        rings
            .is_ok_and(|facts| u64::from_ne_bytes(*facts[8..].first_chunk().expect("8 of 192")) > 1)
    }

    /// Whether the driver takes rules for single flows. Asked for their number, others say that they do not know the question.
    pub(crate) fn has_rules(&self) -> bool {
        self.receive_facts(GRXCLSRLCNT).is_ok()
    }

    /// Whether there is a table from hash to queue. Asked with room for none of it, the kernel tells its size.
    pub(crate) fn has_rss_table(&self) -> bool {
        let mut command = [0; RXFH_INDIR];
        command[..4].copy_from_slice(&GRXFHINDIR.to_ne_bytes());
        ethtool(self.socket.as_fd(), self.name, &mut command).is_ok() && word(&command, 4) > 0
    }

    fn receive_facts(&self, number: u32) -> io::Result<[u8; RXNFC]> {
        let mut command = [0; RXNFC];
        command[..4].copy_from_slice(&number.to_ne_bytes());
        ethtool(self.socket.as_fd(), self.name, &mut command)?;
        Ok(command)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
