//! Where an encrypted tunnel's packets are sealed, as users say it.

use super::tunnel::Written;
use crate::BadText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The core that seals a tunnel's packets.
///
/// Read from a number or a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum SealCore {
    /// Each frame's own: the one of the worker that forwards it.
    WithForwarding,
    /// One that is free, if there is one.
    Auto,
    /// This one.
    Core(u16),
}

const WITH_FORWARDING: &str = "with-forwarding";
const AUTO: &str = "auto";

impl FromStr for SealCore {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        match text {
            WITH_FORWARDING => Ok(Self::WithForwarding),
            AUTO => Ok(Self::Auto),
            _ => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                let core = text.parse().ok().filter(|_| is_plain).map(Self::Core);
                core.ok_or_else(|| BadText {
                    given: text.into(),
                    what: "where packets are sealed",
                    form: "a core's number, \"auto\" for one that is free, or \"with-forwarding\"",
                })
            }
        }
    }
}

impl fmt::Display for SealCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithForwarding => f.write_str(WITH_FORWARDING),
            Self::Auto => f.write_str(AUTO),
            Self::Core(core) => core.fmt(f),
        }
    }
}

impl TryFrom<Written> for SealCore {
    type Error = BadText;

    fn try_from(written: Written) -> Result<Self, BadText> {
        written.text().parse()
    }
}

impl From<SealCore> for Written {
    fn from(core: SealCore) -> Self {
        match core {
            SealCore::Core(number) => Self::Number(number.into()),
            word => Self::Text(word.to_string()),
        }
    }
}

impl ToSchema for SealCore {}

impl PartialSchema for SealCore {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(u16::MAX))
            .description(Some("this core"));
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .examples([AUTO, WITH_FORWARDING])
            .description(Some("`auto` for a core that is free, `with-forwarding` for the worker that forwards the frame, or a number as text"));
        OneOfBuilder::new().item(number).item(word).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_seal_is_a_core_or_a_word_as_a_number_or_as_text() {
        for (text, core) in [
            ("0", SealCore::Core(0)),
            ("65535", SealCore::Core(u16::MAX)),
            ("auto", SealCore::Auto),
            ("with-forwarding", SealCore::WithForwarding),
        ] {
            assert_eq!(text.parse(), Ok(core));
            assert_eq!(core.to_string(), text);
            let json = serde_json::to_string(&core).unwrap();
            assert_eq!(serde_json::from_str::<SealCore>(&json).unwrap(), core, "{json}");
        }
        assert_eq!(serde_json::to_string(&SealCore::Core(3)).unwrap(), "3");
        for text in ["", "65536", "-1", "+1", "Auto", "with forwarding", "1,2"] {
            assert!(text.parse::<SealCore>().is_err(), "{text:?}");
        }
    }
}
