//! Rates in bits per second, as users write them: `100M`, `2.5G`, or the number itself.

use crate::BadText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// A rate in bits per second, 1 kbit/s to 1 Tbit/s.
///
/// Below, a single frame would wait for minutes. Above, 63 bits would not hold what a worker lends a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BitRate(u64);

impl BitRate {
    /// Least rate.
    pub const MIN: u64 = 1_000;
    /// Highest rate.
    pub const MAX: u64 = 1_000_000_000_000;

    /// A rate, if it is in range.
    pub fn new(bits_per_s: u64) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&bits_per_s).then_some(Self(bits_per_s))
    }

    /// Bits per second.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

/// A rate, 1k to 1T. Read from text or from an integer, shown as the shortest text that means exactly it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema,
)]
#[serde(try_from = "Written", into = "String")]
#[schema(value_type = String, example = "100M")]
pub struct Rate(BitRate);

/// Units are powers of 1000, as everywhere in bit/s. The largest comes first.
const UNITS: [(&str, u64); 4] =
    [("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)];

/// Most digits after the point that can matter: a thousandth of a unit's thousandth, four times over.
const FRACTION_MAX: usize = 12;

impl Rate {
    /// The rate that the workers hold.
    pub fn bits(self) -> BitRate {
        self.0
    }

    /// Its text means exactly so many bits per second, or is none.
    fn read(text: &str) -> Option<u64> {
        let unit = UNITS.iter().find_map(|(name, scale)| {
            // Nobody means kelvin, and a millibit is no rate.
            let digits =
                text.strip_suffix(name).or_else(|| text.strip_suffix('K').filter(|_| *name == "k"));
            Some((digits?, *scale))
        });
        let (digits, scale) = unit.unwrap_or((text, 1));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !plain(whole) || !plain(fraction) || fraction.len() > FRACTION_MAX {
            return None;
        }
        let parts = 10_u64.pow(fraction.len() as u32);
        let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale);
        let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
        (part % u128::from(parts) == 0)
            .then(|| whole.checked_add((part / u128::from(parts)) as u64))
            .flatten()
    }
}

impl FromStr for Rate {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || BadText {
            given: text.into(),
            what: "a rate",
            form: "bits per second from 1k to 1T, such as \"100M\", \"2.5G\" or 64000",
        };
        Self::read(text).and_then(BitRate::new).map(Self).ok_or_else(bad)
    }
}

/// Both forms that a rate may have in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for Rate {
    type Error = BadText;

    fn try_from(written: Written) -> Result<Self, BadText> {
        match written {
            Written::Number(bits) => bits.to_string().parse(),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> String {
        rate.to_string()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.get();
        let unit = UNITS.iter().find(|(_, scale)| bits.is_multiple_of(*scale));
        match unit {
            Some((name, scale)) => write!(f, "{}{name}", bits / scale),
            None => write!(f, "{bits}"),
        }
    }
}

/// A port's rate as a change to it says it: a rate, or `none` for what the interface can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Written", into = "String")]
#[schema(value_type = String, example = "none")]
pub struct NewRate(pub Option<Rate>);

const NONE: &str = "none";

impl FromStr for NewRate {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        if text == NONE { Ok(Self(None)) } else { text.parse().map(|rate| Self(Some(rate))) }
    }
}

impl TryFrom<Written> for NewRate {
    type Error = BadText;

    fn try_from(written: Written) -> Result<Self, BadText> {
        match written {
            Written::Text(text) => text.parse(),
            number => Rate::try_from(number).map(|rate| Self(Some(rate))),
        }
    }
}

impl From<NewRate> for String {
    fn from(NewRate(rate): NewRate) -> String {
        rate.map_or_else(|| NONE.into(), String::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Option<u64> {
        text.parse::<Rate>().ok().map(|rate| rate.bits().get())
    }

    #[test]
    fn a_rate_is_text_with_a_unit_or_a_number() {
        let same = [("64000", 64_000), ("64k", 64_000), ("64K", 64_000), ("2.5G", 2_500_000_000)];
        let more = [("1T", 1_000_000_000_000), ("0.001M", 1000), ("1.000001M", 1_000_001)];
        for (text, wanted) in same.into_iter().chain(more) {
            assert_eq!(bits(text), Some(wanted), "{text}");
        }
        assert_eq!(serde_json::from_str::<Rate>("64000").unwrap(), "64k".parse().unwrap());
        assert_eq!(serde_json::from_str::<Rate>("\"64k\"").unwrap(), "64k".parse().unwrap());
    }

    #[test]
    fn what_is_no_rate_or_not_a_whole_number_of_bits_is_refused() {
        for text in [
            "",
            "k",
            ".5M",
            "5.M",
            "1.2",
            "1.0001k",
            "100m",
            "-1k",
            "+1k",
            "1 M",
            "0",
            "999",
            "2T",
            "99999999999T",
            "1e6",
        ] {
            assert_eq!(bits(text), None, "{text:?}");
        }
        assert!(serde_json::from_str::<Rate>("-5").is_err());
    }

    #[test]
    fn a_rate_is_shown_as_the_shortest_text_that_is_read_as_the_same() {
        for (bits, shown) in
            [(1000, "1k"), (1_500_000, "1500k"), (100_000_000, "100M"), (1_000_001, "1000001")]
        {
            let rate = Rate(BitRate::new(bits).unwrap());
            assert_eq!((rate.to_string(), shown.parse()), (shown.into(), Ok(rate)));
        }
    }

    #[test]
    fn a_rate_can_be_taken_back() {
        assert_eq!("none".parse(), Ok(NewRate(None)));
        assert_eq!(serde_json::to_string(&NewRate("5M".parse().ok())).unwrap(), "\"5M\"");
    }

    #[test]
    fn rates_outside_the_range_are_none() {
        assert_eq!([0, 999, 1_000_000_000_001].map(BitRate::new), [None; 3]);
        assert_eq!(BitRate::new(1000).map(BitRate::get), Some(1000));
    }
}
