//! Numbers of ports, as users write them: `7`, or `local`.

use crate::BadText;
use openflow::PortNo;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A port's OpenFlow number: 1 to 65279, or the switch's local port (`OFPP_LOCAL`, OpenFlow 1.3.5 §4.5).
///
/// Read from a number or a text, shown as `ovs-ofctl` shows it. 1.0's number of the local port (65534) is read as what it means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct PortNumber(u32);

/// The word for the local port; any case is read.
const LOCAL: &str = "LOCAL";
/// `OFPP_LOCAL` of OpenFlow 1.0.0 §5.2.1.
const LOCAL_OF_1_0: u32 = 0xfffe;

impl PortNumber {
    /// The highest ordinary number, valid in OpenFlow 1.0 too (`OFPP_MAX` is 0xff00 there; 256 numbers below it stay free for suiro).
    pub const MAX: u32 = 0xfeff;
    /// The switch's local port.
    pub const LOCAL: Self = Self(PortNo::LOCAL.0);

    /// The number, if a port may have it.
    pub fn new(number: u32) -> Option<Self> {
        match number {
            1..=Self::MAX => Some(Self(number)),
            LOCAL_OF_1_0 => Some(Self::LOCAL),
            _ if number == PortNo::LOCAL.0 => Some(Self::LOCAL),
            _ => None,
        }
    }

    /// The number that OpenFlow 1.3 gives it.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Whether it is one that any port may have.
    pub fn is_ordinary(&self) -> bool {
        *self != Self::LOCAL
    }
}

impl FromStr for PortNumber {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || BadText {
            given: text.into(),
            what: "a port number",
            form: "a number from 1 to 65279, or \"local\" for the switch's local port",
        };
        if text.eq_ignore_ascii_case(LOCAL) {
            return Ok(Self::LOCAL);
        }
        text.parse().ok().and_then(Self::new).ok_or_else(bad)
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LOCAL => f.write_str(LOCAL),
            Self(number) => write!(f, "{number}"),
        }
    }
}

/// Both forms that a number may have in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for PortNumber {
    type Error = BadText;

    fn try_from(written: Written) -> Result<Self, BadText> {
        match written {
            Written::Number(number) => number.to_string().parse(),
            Written::Text(text) => text.parse(),
        }
    }
}

/// An ordinary number stays one, as releases before the local port wrote it.
impl From<PortNumber> for Written {
    fn from(number: PortNumber) -> Written {
        match number {
            PortNumber::LOCAL => Written::Text(LOCAL.into()),
            PortNumber(number) => Written::Number(number.into()),
        }
    }
}

impl ToSchema for PortNumber {}

impl PartialSchema for PortNumber {
    fn schema() -> utoipa::openapi::RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Self::LOCAL.0))
            .description(Some("1 to 65279, or 4294967294 for the switch's local port"));
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .examples(["local"])
            .description(Some("`local`, or a number as text"));
        OneOfBuilder::new().item(number).item(word).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_port_is_read_by_word_and_by_the_number_of_either_version() {
        for text in ["local", "LOCAL", "4294967294", "65534"] {
            assert_eq!(text.parse(), Ok(PortNumber::LOCAL), "{text}");
        }
        for json in ["\"local\"", "4294967294", "65534"] {
            assert_eq!(serde_json::from_str::<PortNumber>(json).unwrap(), PortNumber::LOCAL);
        }
        assert_eq!(PortNumber::LOCAL.get(), 0xffff_fffe);
        assert_eq!(PortNumber::LOCAL.to_string(), "LOCAL");
    }

    #[test]
    fn numbers_are_written_as_they_were_before_there_was_a_local_port() {
        assert_eq!(serde_json::to_string(&PortNumber::new(7).unwrap()).unwrap(), "7");
        assert_eq!(serde_json::to_string(&PortNumber::LOCAL).unwrap(), "\"LOCAL\"");
    }

    #[test]
    fn reserved_numbers_are_no_ports() {
        for text in
            ["0", "65280", "70000", "4294967293", "4294967295", "99999999999", "-1", "in_port", ""]
        {
            assert!(text.parse::<PortNumber>().is_err(), "{text}");
        }
    }
}
