//! Why the agent does not do what it was asked.

use openflow::text::TextError;
use place::steering::{EnforceError, OpenError};
use std::error::Error;

/// A request refused.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The interface is not steered.
    #[error("it is not steered")]
    NotSteered {
        /// Its name.
        interface: String,
    },
    /// The interface is steered in another way.
    #[error("it is steered already, with other options")]
    OtherOptions {
        /// Its name.
        interface: String,
    },
    /// The interface cannot be steered.
    #[error("{source}")]
    Open {
        /// Its name.
        interface: String,
        /// Why.
        source: OpenError,
    },
    /// The kernel refuses a change.
    #[error("{source}")]
    Enforce {
        /// The interface.
        interface: String,
        /// Why.
        source: EnforceError,
    },
    /// A rule's text says nothing that can be done.
    #[error("{source}")]
    Text {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: TextError,
    },
    /// A rule names a machine whose frames cannot be told.
    #[error("{cause}")]
    Machine {
        /// The rule.
        rule: String,
        /// Why they cannot.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// There is no such declared machine.
    #[error("no machine of that name is declared")]
    NoVm {
        /// Its name.
        name: String,
    },
    /// A machine cannot be declared so.
    #[error("{cause}")]
    BadVm {
        /// Its name.
        name: String,
        /// Why.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A policy or an interface's options contradict themselves or the host.
    #[error("{cause}")]
    Setting {
        /// Of what.
        thing: String,
        /// Why.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// A flow leaves open what its core depends on.
    #[error("its core depends on {field}, which is not said")]
    Incomplete {
        /// The flow.
        flow: String,
        /// What must be said.
        field: &'static str,
    },
    /// It does not say which interface.
    #[error("{cause}")]
    Which {
        /// Why that must be said.
        cause: &'static str,
    },
}

/// What a program does about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SteerErrorKind {
    /// What was asked about is not there.
    NotFound,
    /// It contradicts something that is there.
    Conflict,
    /// It can never be right.
    Invalid,
    /// The host does not allow it now.
    Impossible,
    /// There is no room for more rules, or for more different sets of fields.
    Full,
}

impl SteerError {
    /// Its kind.
    pub fn kind(&self) -> SteerErrorKind {
        match self {
            Self::NotSteered { .. } | Self::NoVm { .. } => SteerErrorKind::NotFound,
            Self::OtherOptions { .. } => SteerErrorKind::Conflict,
            Self::Open { source: OpenError::NoInterface, .. } => SteerErrorKind::NotFound,
            Self::Open { source: OpenError::Occupied { .. }, .. } => SteerErrorKind::Conflict,
            Self::Enforce { source, .. } if is_full(source) => SteerErrorKind::Full,
            Self::Open { .. } | Self::Enforce { .. } => SteerErrorKind::Impossible,
            Self::Text { .. }
            | Self::Machine { .. }
            | Self::BadVm { .. }
            | Self::Setting { .. }
            | Self::Incomplete { .. }
            | Self::Which { .. } => SteerErrorKind::Invalid,
        }
    }

    /// What it is about.
    pub fn thing(&self) -> String {
        match self {
            Self::NotSteered { interface }
            | Self::OtherOptions { interface }
            | Self::Open { interface, .. }
            | Self::Enforce { interface, .. } => api::steer::called(interface),
            Self::Text { text, .. } => format!("rule {text:?}"),
            Self::Machine { rule, .. } => format!("rule {rule:?}"),
            Self::NoVm { name } | Self::BadVm { name, .. } => format!("machine {name}"),
            Self::Setting { thing, .. } => thing.clone(),
            Self::Incomplete { flow, .. } => format!("flow {flow:?}"),
            Self::Which { .. } => "steering".into(),
        }
    }

    /// What was being done to it.
    pub fn step(&self) -> &'static str {
        match self {
            Self::NotSteered { .. } => "find it",
            Self::OtherOptions { .. } | Self::Open { .. } => "attach it",
            Self::Enforce { source, .. } => source.step(),
            Self::Text { .. } => "read it",
            Self::Machine { .. } => "find the frames of its machine",
            Self::NoVm { .. } => "forget it",
            Self::BadVm { .. } => "declare it",
            Self::Setting { .. } => "change it",
            Self::Incomplete { .. } => "follow it",
            Self::Which { .. } => "choose the interface",
        }
    }

    /// Why it failed: the whole chain, outermost first.
    pub fn cause(&self) -> String {
        let mut next = match self {
            Self::Text { source, .. } => {
                return format!("column {}: {:?}: {}", source.at + 1, source.word, source.problem);
            }
            // Its step is told apart.
            Self::Enforce { source, .. } => Some(source.why() as &(dyn Error + 'static)),
            other => Some(other as &(dyn Error + 'static)),
        };
        let mut texts: Vec<String> = Vec::new();
        while let Some(error) = next {
            let text = shortened(error.to_string());
            if !texts.iter().any(|outer| outer.contains(&text)) {
                texts.push(text);
            }
            next = error.source();
        }
        texts.join(": ")
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotSteered { .. } => {
                "see `suiro steer list`; attach it with `suiro steer attach`".into()
            }
            Self::OtherOptions { interface } => {
                format!("detach it first: suiro steer detach {interface}")
            }
            Self::Open { interface, source } => source.remedy(interface),
            Self::Enforce { source, .. } if is_full(source) => {
                "delete rules, or write them with fewer different sets of fields and masks".into()
            }
            Self::Enforce { .. } => {
                "see `suiro doctor`; if it names nothing, please report this with the node's log"
                    .into()
            }
            Self::Text { source, .. } => source.remedy.clone().into_owned(),
            Self::Machine { remedy, .. } | Self::Setting { remedy, .. } => remedy.clone(),
            Self::NoVm { .. } => {
                "see `suiro steer vm list`; one that was found is not declared".into()
            }
            Self::BadVm { remedy, .. } => (*remedy).into(),
            Self::Incomplete { field, .. } => format!("add {field}=…"),
            Self::Which { .. } => "name it with --on, from `suiro steer list`".into(),
        }
    }
}

/// Whether an enforcer has no room.
fn is_full(error: &EnforceError) -> bool {
    matches!(error, EnforceError::Full { .. } | EnforceError::TooManyMasks { .. })
}

/// Longest part of a cause. Chosen: a paragraph.
const CAUSE_MAX: usize = 400;

/// A refused program comes with a protocol of its verification, of thousands of lines: how it begins and how it ends says why.
fn shortened(text: String) -> String {
    if text.len() <= CAUSE_MAX {
        return text;
    }
    let part = |text: &str, from: usize, to: usize| {
        text.chars().skip(from).take(to - from).collect::<String>()
    };
    let length = text.chars().count();
    let half = CAUSE_MAX / 2;
    let (begin, end) = (part(&text, 0, half), part(&text, length.saturating_sub(half), length));
    format!("{} … {}", begin.trim_end(), end.trim()).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_for_a_rule_is_told_from_a_kernel_that_refuses() {
        let step = "add entries";
        let kind = |source| SteerError::Enforce { interface: "eth0".into(), source }.kind();
        let full = kind(EnforceError::Full { step, source: "9 entries".into() });
        let masks = kind(EnforceError::TooManyMasks { step, source: "32 masks".into() });
        assert_eq!([full, masks], [SteerErrorKind::Full; 2]);
        assert_eq!(
            kind(EnforceError::Refused { step, source: "no".into() }),
            SteerErrorKind::Impossible
        );
    }

    #[test]
    fn a_cause_of_thousands_of_lines_keeps_its_begin_and_its_end() {
        let long = format!("refused: {}too large\n", "line\n".repeat(10_000));
        let short = shortened(long);
        assert!(short.len() < 500 && short.starts_with("refused") && short.ends_with("too large"));
        assert_eq!(shortened("as it is".into()), "as it is");
    }
}
