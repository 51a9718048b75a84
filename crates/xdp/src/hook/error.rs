//! Why an interface has no hook, or a stage no program.

use super::{Mode, program_name};
use crate::error::errno;
use aya::EbpfError;
use aya::programs::ProgramError;
use netlink::{Link, Netlink};
use std::io;

/// A step of the hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// There is no such interface in this network namespace.
    #[error("there is no such interface")]
    NoInterface,
    /// A program that is not ours is on the interface.
    #[error("another XDP program is on it: {}", name.as_deref().unwrap_or("its name is not known"))]
    Occupied {
        /// The kernel's number of the program.
        program: u32,
        /// Its name.
        name: Option<String>,
    },
    /// The hook is there, at another place than is wanted.
    #[error("its hook is {}, and {} is wanted", found.name(), wanted.name())]
    OtherMode {
        /// What is wanted.
        wanted: Mode,
        /// What it is.
        found: Mode,
    },
    /// The driver does not run programs there.
    #[error("{} XDP refused: {source}", mode.name())]
    Refused {
        /// Where.
        mode: Mode,
        /// The reason.
        source: io::Error,
    },
    /// The kernel did not take the maps or a program.
    #[error("cannot {step}")]
    Load {
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: Box<EbpfError>,
    },
    /// The kernel is older than `bpf_link` for XDP: the program would outlive suiro.
    #[error("the kernel has no bpf_link for XDP (needs 5.9)")]
    NoLink,
    /// The embedded object lacks a program or a map.
    #[error("the embedded object has no {0}")]
    BrokenBuild(&'static str),
    /// Anything else.
    #[error("cannot {step}: {source}")]
    System {
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl HookError {
    pub(super) fn system(step: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { step, source }
    }

    pub(crate) fn load<E: Into<EbpfError>>(step: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Load { step, source: Box::new(error.into()) }
    }

    /// The program on an interface, which is not ours.
    pub(super) fn occupied(link: &Link) -> Self {
        Self::Occupied { program: link.xdp_program, name: program_name(link.xdp_program) }
    }

    /// Tells "occupied" from other refusals to attach.
    pub(super) fn refused(index: u32, mode: Mode, error: ProgramError) -> Self {
        match errno(&error) {
            // EEXIST: a program at the other place; EBUSY: at this one.
            Some(libc::EBUSY | libc::EEXIST) => {
                let link = Netlink::new().and_then(|netlink| netlink.link_at(index));
                Self::occupied(&link.ok().flatten().unwrap_or_default())
            }
            Some(code) => Self::Refused { mode, source: io::Error::from_raw_os_error(code) },
            None => Self::Refused { mode, source: io::Error::other(error) },
        }
    }

    /// The kernel's error number behind it, if there is one.
    pub fn errno(&self) -> Option<i32> {
        errno(self)
    }
}
