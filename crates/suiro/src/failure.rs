//! Errors as the command line reports them, and its exit codes.

use api::{ClientError, ErrorBody, Fault};
#[cfg(feature = "node")]
use node::run::RunError;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Refused, or failed.
const REFUSED: u8 = 1;
/// Not understood: what clap uses too.
const USAGE: u8 = 2;
/// No node to talk to, or none that answers.
const NO_NODE: u8 = 3;
/// Asked for: something would change, or a packet is dropped.
const DIFFERS: u8 = 4;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The node refused, or the command failed.
    Refused(Fault),
    /// The node refused, and found more than one thing wrong.
    Several(Box<ErrorBody>),
    /// A program in a guest ended with this status, and so does the command.
    Ended(u8),
    /// Something would change, and the exit code is to say so.
    Differs,
    /// A packet that was asked about is dropped, and the exit code is to say so.
    Dropped,
    /// What was typed makes no sense.
    Usage(Fault),
    /// No node is at the socket.
    NoNode(Fault),
    /// The node does not answer.
    Silent(Fault),
    /// The node did not run.
    #[cfg(feature = "node")]
    Run(RunError),
    /// A benchmark failed.
    #[cfg(feature = "lab")]
    Lab(anyhow::Error),
    /// Whoever read our output has gone.
    Closed,
}

impl Failure {
    /// Prints it, as text or as the API's errors look, and chooses the exit code.
    pub fn report(self, json: bool) -> ExitCode {
        let code = match &self {
            Self::Closed => return ExitCode::SUCCESS,
            Self::Differs | Self::Dropped => return ExitCode::from(DIFFERS),
            Self::Ended(status) => return ExitCode::from(*status),
            Self::Usage(_) => USAGE,
            Self::NoNode(_) | Self::Silent(_) => NO_NODE,
            Self::Refused(_) | Self::Several(_) => REFUSED,
            #[cfg(feature = "node")]
            Self::Run(_) => REFUSED,
            #[cfg(feature = "lab")]
            Self::Lab(_) => REFUSED,
        };
        match json {
            true => eprintln!("{}", serde_json::json!(self.body())),
            false => eprintln!("{self}"),
        }
        ExitCode::from(code)
    }

    fn body(self) -> ErrorBody {
        match self {
            Self::Several(body) => *body,
            other => other.fault().into(),
        }
    }

    /// What is told first.
    pub fn fault(self) -> Fault {
        match self {
            Self::Several(body) => body.error,
            Self::Refused(fault)
            | Self::Usage(fault)
            | Self::NoNode(fault)
            | Self::Silent(fault) => fault,
            #[cfg(feature = "node")]
            Self::Run(error) => Fault::new("node", "run", error.to_string(), "see its log"),
            #[cfg(feature = "lab")]
            Self::Lab(error) => Fault::new("lab", "run", format!("{error:#}"), "see above"),
            Self::Closed | Self::Differs | Self::Dropped | Self::Ended(_) => {
                Fault::new("output", "write it", "it is closed", "none is needed")
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(fault)
            | Self::Usage(fault)
            | Self::NoNode(fault)
            | Self::Silent(fault) => {
                write!(f, "error: {fault}")
            }
            #[cfg(feature = "node")]
            Self::Run(error) => write!(f, "error: {error}"),
            #[cfg(feature = "lab")]
            Self::Lab(error) => write!(f, "error: {error:#}"),
            Self::Several(body) => {
                write!(f, "error: {body}\n{} errors", 1 + body.others.len())
            }
            Self::Closed | Self::Differs | Self::Dropped | Self::Ended(_) => Ok(()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(body) if body.others.is_empty() => Self::Refused(body.error),
            ClientError::Refused(body) => Self::Several(body),
            ClientError::NoNode(fault) => Self::NoNode(fault),
            ClientError::Silent(fault) => Self::Silent(fault),
        }
    }
}

#[cfg(feature = "node")]
impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

#[cfg(feature = "lab")]
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Lab(error)
    }
}

/// For output: a closed pipe is no error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::Refused(Fault::new(
            "output",
            "write it",
            error.to_string(),
            "check where the output goes",
        ))
    }
}
