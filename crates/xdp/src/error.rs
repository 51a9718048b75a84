//! Why the program could not be loaded, attached or asked.

use aya::EbpfError;
use std::error::Error;
use std::io;

/// Loading or attaching failed.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The kernel did not take the maps or the program.
    #[error("cannot {step}")]
    Load {
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: Box<EbpfError>,
    },
    /// The memory or the namespace that the transmitter needs was refused.
    #[error("cannot make room for the transmitter: {source}")]
    Memory {
        /// The reason.
        source: io::Error,
    },
    /// A map of the program could not be filled.
    #[error("the program's maps cannot be filled")]
    Fill {
        /// The reason.
        source: MapError,
    },
    /// The embedded object lacks its program.
    #[error("the embedded object has no program")]
    BrokenBuild,
}

impl AttachError {
    /// The kernel's error number behind it, if there is one.
    pub fn errno(&self) -> Option<i32> {
        errno(self)
    }
}

/// The first kernel error in the chain of causes.
pub(crate) fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let code = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    code.or_else(|| error.source().and_then(errno))
}

/// A map could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The embedded object lacks it.
    #[error("the embedded object has no map {map}")]
    Missing {
        /// Its name.
        map: &'static str,
    },
    /// It has all entries that it can have.
    #[error("map {map} is full")]
    Full {
        /// Its name.
        map: &'static str,
    },
    /// The kernel takes no such interface into it.
    #[error("map {map}: interface refused")]
    Redirect {
        /// Its name.
        map: &'static str,
        /// The reason.
        source: Box<aya::maps::xdp::XdpMapError>,
    },
    /// The kernel refused.
    #[error("map {map}: access refused")]
    Access {
        /// Its name.
        map: &'static str,
        /// The reason.
        source: Box<aya::maps::MapError>,
    },
}

impl MapError {
    pub(crate) fn access(map: &'static str) -> impl Fn(aya::maps::MapError) -> Self {
        move |source| Self::Access { map, source: Box::new(source) }
    }

    pub(crate) fn redirect(map: &'static str) -> impl Fn(aya::maps::xdp::XdpMapError) -> Self {
        move |source| Self::Redirect { map, source: Box::new(source) }
    }
}
