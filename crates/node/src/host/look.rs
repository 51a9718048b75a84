//! One look at the host, from the files in which the kernel describes it.

use super::{cores, machines};
use std::path::{Path, PathBuf};
use steer::Surroundings;

/// Where the kernel's files are. Tests make their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self::under(Path::new("/"))
    }
}

impl Roots {
    /// Those of a host whose root directory is here.
    pub fn under(root: &Path) -> Self {
        Self { proc: root.join("proc"), sys: root.join("sys") }
    }
}

/// Finds this host's cores and virtual machines. Needs no privilege, unless `/proc` is mounted so that it hides others' processes.
///
/// What cannot be read is left out: processes come and go while we look.
pub fn look_around() -> Surroundings {
    Roots::default().look_around()
}

impl Roots {
    /// As [`look_around`], there.
    pub fn look_around(&self) -> Surroundings {
        let cores = cores::online(&self.sys).unwrap_or_else(|error| {
            tracing::warn!("the host's cores: {error}: taking them to be numbered without gaps");
            cores::counted()
        });
        let ids: Vec<_> = cores.iter().map(place::Core::id).collect();
        let vms = machines::running(&self.proc, &ids).unwrap_or_else(|error| {
            tracing::warn!("virtual machines: {error}: declare them with suiro steer vm add");
            Vec::new()
        });
        Surroundings { cores, vms }
    }
}
