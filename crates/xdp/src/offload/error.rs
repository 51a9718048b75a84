//! Why a port has no rung past the worker.

use crate::hook::HookError;
use aya::EbpfError;
use std::io;
use std::path::{Path, PathBuf};

/// A step failed.
#[derive(Debug, thiserror::Error)]
pub enum OffloadError {
    /// The kernel did not take maps or programs.
    #[error("cannot {step}: needs Linux 6.6, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    Load {
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: Box<EbpfError>,
    },
    /// A pin could not be made, read or removed.
    #[error("{}: cannot {step}", path.display())]
    Pin {
        /// Its path.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// It is not what its layout says.
    #[error("{} is not what suiro pinned: remove all of it (`suiro node --purge`)", path.display())]
    Version {
        /// Its path.
        path: PathBuf,
    },
    /// The rung does not take a frame of its flow.
    #[error("the rung's programs do not let a frame go when they are tried")]
    NotRun,
    /// All ports of a host are taken.
    #[error("{ports} ports have flows past the worker already, and a host has no more places")]
    Ports {
        /// How many.
        ports: u32,
    },
    /// The interface's hook cannot be had.
    #[error("cannot take the stage of the interface's hook")]
    Hook(#[from] HookError),
    /// The embedded object lacks something.
    #[error("the embedded object has no {0}")]
    BrokenBuild(&'static str),
}

impl OffloadError {
    pub(super) fn load<E: Into<EbpfError>>(step: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Load { step, source: Box::new(error.into()) }
    }

    pub(super) fn pin(path: &Path, step: &'static str) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Pin { path: path.clone(), step, source }
    }
}
