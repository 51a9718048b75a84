//! Why an enforcement point does not do what it was asked.

use std::error::Error;

type Source = Box<dyn Error + Send + Sync>;

/// A request to an enforcer that failed.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// No room for more entries.
    #[error("{step} failed")]
    Full {
        /// What was tried.
        step: &'static str,
        /// How many there is room for.
        source: Source,
    },
    /// A frame would cost too much.
    #[error("{step} failed")]
    TooManyMasks {
        /// What was tried.
        step: &'static str,
        /// How many there may be.
        source: Source,
    },
    /// The kernel or the workers refuse.
    #[error("{step} failed")]
    Refused {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: Source,
    },
}

impl EnforceError {
    /// The error of a step that was refused.
    pub fn refused<E: Error + Send + Sync + 'static>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Refused { step, source: Box::new(source) }
    }

    /// What was tried.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Full { step, .. }
            | Self::TooManyMasks { step, .. }
            | Self::Refused { step, .. } => step,
        }
    }

    /// Why it failed.
    pub fn why(&self) -> &(dyn Error + Send + Sync + 'static) {
        match self {
            Self::Full { source, .. }
            | Self::TooManyMasks { source, .. }
            | Self::Refused { source, .. } => &**source,
        }
    }
}

/// Why an interface is not steered.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no interface of that name.
    #[error("there is no interface of that name here")]
    NoInterface,
    /// Another program has the place.
    #[error("another XDP program is on it: {program}")]
    Occupied {
        /// Its name and number.
        program: String,
    },
    /// The kernel refuses.
    #[error("{step} failed")]
    Refused {
        /// What was tried.
        step: &'static str,
        /// What the user can do.
        remedy: String,
        /// Why it failed.
        #[source]
        source: Source,
    },
}

impl OpenError {
    /// What the user can do.
    pub fn remedy(&self, interface: &str) -> String {
        match self {
            Self::NoInterface => {
                "see `ip link` for the interfaces of this network namespace".into()
            }
            Self::Occupied { program } if program.starts_with("suiro_") => {
                "it is another version's of suiro: end that node, or detach with that version"
                    .into()
            }
            Self::Occupied { .. } => format!(
                "see whose it is with `ip link show {interface}`; end that program, or remove its own with `ip link set dev {interface} xdp off`"
            ),
            Self::Refused { remedy, .. } => remedy.clone(),
        }
    }
}
