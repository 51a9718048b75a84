//! Why a port could not be opened or changed, and what the user can do about it.

use crate::host_use::HostUse;
use crate::netns::NetnsRef;
use std::io;
use std::path::PathBuf;

/// The step that fails while an interface is away: at its going, and at each look that finds none.
pub const AWAY: &str = "find the interface";

/// [`crate::open()`] failed; nothing that it changed remains.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel takes 1 to 15 bytes without `/` or white space.
    #[error("\"{interface}\" cannot be an interface's name")]
    BadName {
        /// The name given.
        interface: String,
    },
    /// The namespace cannot be entered.
    #[error("{interface}: network namespace {netns} cannot be entered")]
    Netns {
        /// The interface.
        interface: String,
        /// The namespace.
        netns: NetnsRef,
        /// The kernel's reason.
        source: io::Error,
    },
    /// No such interface.
    #[error("{interface}: there is no such interface in {place}")]
    Missing {
        /// The interface.
        interface: String,
        /// The namespace, in words.
        place: String,
    },
    /// An interface of that name is there, but not one this kind of port can use.
    #[error("{interface}: {why}")]
    WrongInterface {
        /// The interface.
        interface: String,
        /// What it is instead.
        why: String,
    },
    /// Another program (or another port of ours) holds the interface.
    #[error("{interface}: in use by another program ({holder})")]
    Busy {
        /// The interface.
        interface: String,
        /// What shows it: "TAP queue attached", "XDP program 17".
        holder: String,
        /// How to free it.
        remedy: String,
    },
    /// The kernel cannot keep the interface's frames from the host's own stack.
    #[error("{interface}: its frames cannot be kept from the host's own stack")]
    Isolation {
        /// The interface.
        interface: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The process lacks a capability.
    #[error("{interface}: no permission to {step}")]
    Permission {
        /// The interface.
        interface: String,
        /// What was tried.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The MTU does not fit.
    #[error("{interface}: MTU {mtu} is not possible: {why}")]
    Mtu {
        /// The interface.
        interface: String,
        /// The MTU.
        mtu: u32,
        /// The bound and where it comes from.
        why: String,
    },
    /// More queues wanted than there are.
    #[error("{interface}: {asked} queues wanted, it has {available}")]
    Queues {
        /// The interface.
        interface: String,
        /// Queues wanted.
        asked: u16,
        /// Queues there.
        available: u16,
    },
    /// The XDP mode asked for, or any at all, is refused.
    #[error("{interface}: AF_XDP is not possible: {}", refused.join("; "))]
    Xdp {
        /// The interface.
        interface: String,
        /// Each mode tried, with the reason.
        refused: Vec<String>,
    },
    /// The host itself would lose what it uses the interface for.
    #[error("{interface}: the host uses it ({uses}) and would be cut off")]
    HostUse {
        /// The interface.
        interface: String,
        /// For what.
        uses: HostUse,
    },
    /// VLAN tags of its frames would be lost.
    #[error("{interface}: AF_XDP would lose VLAN tags: {why}")]
    Tags {
        /// The interface.
        interface: String,
        /// What keeps them beside frames, and why that cannot be changed.
        why: String,
    },
    /// A tunnel's file of keys is not to be used.
    #[error("{interface}: keys of {}: {cause}", file.display())]
    Keys {
        /// The interface.
        interface: String,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        cause: String,
        /// How to mend it.
        remedy: String,
    },
    /// Its socket is for nobody that the host knows.
    #[error("{interface}: its socket is for nobody")]
    Account {
        /// The port.
        interface: String,
        /// Who is missing.
        source: vhost::UnknownAccount,
    },
    /// Anything else.
    #[error("{interface}: {step} failed")]
    System {
        /// The interface.
        interface: String,
        /// What was tried.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl OpenError {
    /// Wraps an I/O error, telling missing privilege apart.
    pub(crate) fn io(interface: &str, step: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { interface, step, source },
            _ => Self::System { interface, step, source },
        }
    }

    /// What was being done.
    pub fn step(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "read the interface's name",
            Self::Netns { .. } => "enter the network namespace",
            Self::Missing { .. } => AWAY,
            Self::WrongInterface { .. } | Self::Busy { .. } | Self::HostUse { .. } => {
                "take the interface"
            }
            Self::Isolation { .. } => "keep it from the host's stack",
            Self::Mtu { .. } => "set the MTU",
            Self::Queues { .. } => "open the queues",
            Self::Xdp { .. } => "attach the XDP program",
            Self::Tags { .. } => "keep VLAN tags in frames",
            Self::Keys { .. } => "read its keys",
            Self::Account { .. } => "give its socket away",
            Self::Permission { step, .. } | Self::System { step, .. } => step,
        }
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::BadName { .. } => "use 1 to 15 letters, digits, '-', '_' or '.'".into(),
            Self::Netns { netns, .. } => format!("create it first (`ip netns add {netns}`), or correct `netns`"),
            Self::Missing { interface, .. } => format!("create it (`ip link add {interface} …`), or correct `interface`"),
            Self::WrongInterface { .. } => {
                "choose another interface, or free this one of what holds it (`ip link set … nomaster`), or take the port type that fits it".into()
            }
            Self::Isolation { .. } => {
                "load the kernel's modules (`modprobe -a sch_ingress cls_bpf`), or let the host receive its frames, too (`--host`, `host = true`)".into()
            }
            Self::Busy { remedy, .. } | Self::Keys { remedy, .. } => remedy.clone(),
            Self::Account { source, .. } => source.remedy().into(),
            Self::Permission { .. } => {
                "run as root, or with CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_BPF and CAP_IPC_LOCK".into()
            }
            Self::Mtu { .. } => "set a smaller `mtu`, or use type = \"af_packet\" for this interface".into(),
            Self::Queues { interface, available, .. } => {
                format!("set `queues` to {available} or less, or give it more (`ethtool -L {interface} …`)")
            }
            Self::Xdp { .. } => "use type = \"af_packet\", or xdp_mode = \"auto\"".into(),
            Self::HostUse { .. } => {
                "move addresses and routes to another interface (a TAP of the switch: --number local), or allow it: --take-over, take_over = true; af_packet may leave both their frames: --host, host = true"
                    .into()
            }
            Self::Tags { .. } => {
                "use type = \"af_packet\"; or give the other end's namespace a name (`ip netns attach NAME PID`)".into()
            }
            Self::System { source, .. } => match source.raw_os_error() {
                Some(libc::EMFILE) => "raise the limit of open files (LimitNOFILE=)".into(),
                Some(libc::ENOMEM | libc::ENOBUFS) => "free memory, or raise the memlock limit (LimitMEMLOCK=)".into(),
                Some(libc::ENOENT) => "load the kernel module that is missing (`modprobe tun`)".into(),
                _ => "see the kernel's log (`dmesg`) for its reason".into(),
            },
        }
    }
}

/// A [`crate::PortControl`] call failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The keys that it was to take into use are not to be used; those before them are in use on.
    #[error("its keys stay as they were")]
    Keys {
        /// What is wrong with them.
        source: OpenError,
    },
    /// Its socket's rights cannot be those; they are as they were.
    #[error("its socket's rights stay as they were")]
    Rights {
        /// Who is missing.
        source: OpenError,
    },
    /// The interface has vanished.
    #[error("{interface}: the interface is gone")]
    Gone {
        /// The interface.
        interface: String,
    },
    /// The MTU does not fit.
    #[error("{interface}: MTU {mtu} is not possible: {why}")]
    Mtu {
        /// The interface.
        interface: String,
        /// The MTU.
        mtu: u32,
        /// The bound and where it comes from.
        why: String,
    },
    /// The port has nothing that could become another.
    #[error("{interface}: {key} does not change on an open port")]
    Fixed {
        /// The interface.
        interface: String,
        /// The key.
        key: String,
    },
    /// Anything else.
    #[error("{interface}: {step} failed")]
    System {
        /// The interface.
        interface: String,
        /// What was tried.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl ControlError {
    /// Wraps an I/O error, telling a vanished interface apart.
    pub(crate) fn io(interface: &str, step: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => Self::Gone { interface },
            _ => Self::System { interface, step, source },
        }
    }

    /// What was being done.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Keys { .. } => "read its keys again",
            Self::Rights { .. } => "give its socket away",
            Self::Gone { .. } => AWAY,
            Self::Mtu { .. } => "set the MTU",
            Self::Fixed { .. } => "change it",
            Self::System { step, .. } => step,
        }
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Keys { source } | Self::Rights { source } => source.remedy(),
            Self::Gone { interface } => {
                format!("create {interface} again; the port comes back by itself")
            }
            Self::Mtu { .. } => "choose an MTU inside the bound".into(),
            Self::Fixed { .. } => "remove the port and add it anew".into(),
            Self::System { .. } => "see the kernel's log (`dmesg`) for its reason".into(),
        }
    }
}
