//! Why steering could not be started, changed or ended.

use crate::MapError;
use crate::hook::HookError;
use aya::EbpfError;
use std::io;
use std::path::PathBuf;

/// A step of steering failed.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The kernel did not take a program.
    #[error("cannot {step}: needs Linux 5.18 with BTF, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    Load {
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: Box<EbpfError>,
    },
    /// Another XDP program is on the interface.
    #[error(
        "{interface} has another XDP program, {}: remove it first (ip link set dev {interface} xdp off)",
        program.as_deref().unwrap_or("whose name the kernel does not tell")
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The program's name.
        program: Option<String>,
    },
    /// It is steered already, by whoever pinned it.
    #[error("{interface} is steered already")]
    Steered {
        /// The interface.
        interface: String,
    },
    /// Frames that no rule names belong to a port of a switch.
    #[error("{interface} is an af_xdp port: frames that no rule names belong to it")]
    OfPort {
        /// The interface.
        interface: String,
    },
    /// A port's hook is generic. See [`SteerError::Refused`] for the reason.
    #[error(
        "{interface}: its hook is generic, and behind the driver Linux loses frames that are sent to another core"
    )]
    Generic {
        /// The interface.
        interface: String,
    },
    /// Its hook cannot be had.
    #[error("{interface}: no hook")]
    Hook {
        /// The interface.
        interface: String,
        /// The reason.
        source: HookError,
    },
    /// The driver does not run XDP programs itself. In generic mode the kernel (6.18, `skb_pp_cow_data`) forgets the length of the Ethernet
    /// header of a frame that it had to copy, and loses it on its way to another core: nobody is steered so.
    #[error(
        "{interface}: its driver runs no XDP program, and behind the driver Linux loses frames that are sent to another core: \
         use RPS for it (/sys/class/net/{interface}/queues/rx-*/rps_cpus)"
    )]
    Refused {
        /// The interface.
        interface: String,
        /// The reason.
        source: io::Error,
    },
    /// A pin could not be made, read or removed.
    #[error("{}: cannot {step}", path.display())]
    Pin {
        /// Which.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// Something of another version is pinned.
    #[error("{}: pinned by another version of suiro: run `suiro steer detach` of that version, or remove the directory", path.display())]
    Version {
        /// Which.
        path: PathBuf,
    },
    /// All slots are taken.
    #[error("{} interfaces are steered already, the most of one host: detach one", super::SLOTS)]
    Full,
    /// A map could not be read or written.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The embedded object lacks its program.
    #[error("the embedded object has no program {0}")]
    BrokenBuild(&'static str),
}

/// Entries could not be changed. Nothing was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Flows of the last change still have frames under way on their old cores.
    #[error(
        "the last change of entries is not settled: try again, or settle it at the price of order"
    )]
    Unsettled,
    /// Too many masks.
    #[error(
        "more than {} different masks: write the rules with fewer sets of fields",
        super::MASKS
    )]
    Masks,
    /// No unit or entry is free.
    #[error("no room for another entry: attach with a larger number of entries")]
    Full,
    /// The match is there already.
    #[error("an entry with the same match is there already, unit {unit}: delete it first")]
    Taken {
        /// Its unit.
        unit: place::UnitId,
    },
    /// No such entry.
    #[error("no entry has unit {unit}")]
    Missing {
        /// Its unit.
        unit: place::UnitId,
    },
    /// A map could not be written.
    #[error(transparent)]
    Map(#[from] MapError),
}
