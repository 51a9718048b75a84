//! Conditions as users write them: `rate>=50M and packets>=100`.

use crate::declined::PolicyReason;
use crate::heavy::Traffic;
use flow::Nanos;
use std::fmt;
use std::str::FromStr;

/// What a flow can be measured by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Bits a second, over 100 ms, smoothed by a half.
    Rate,
    /// Frames a second, likewise.
    Pps,
    /// Frames since the flow began.
    Packets,
    /// Bytes since the flow began.
    Bytes,
    /// Milliseconds since the flow began.
    Age,
}

impl What {
    const ALL: [Self; 5] = [Self::Rate, Self::Pps, Self::Packets, Self::Bytes, Self::Age];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Pps => "pps",
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::Age => "age",
        }
    }

    /// Whether it can become less again.
    const fn falls(self) -> bool {
        matches!(self, Self::Rate | Self::Pps)
    }

    fn of(self, traffic: &Traffic, now: Nanos) -> u64 {
        match self {
            Self::Rate => traffic.rate as u64,
            Self::Pps => traffic.pps as u64,
            Self::Packets => traffic.frames,
            Self::Bytes => traffic.bytes,
            Self::Age => now.since(traffic.first) / 1_000_000,
        }
    }
}

/// One comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// What is compared.
    pub what: What,
    /// `>=`, else `<`.
    pub is_least: bool,
    /// With what.
    pub value: u64,
}

/// Comparisons that must all be true.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition(pub Vec<Bound>);

/// Why a condition is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadCondition {
    /// Not a comparison.
    #[error(
        "{0:?} is no comparison: write rate>=50M, pps<1000, packets>=100, bytes>=1M or age>=10s, joined by \"and\""
    )]
    NoComparison(String),
    /// Not a number.
    #[error("{0:?} is no number: write 50M, 1.5G, 100 or 10s")]
    NoNumber(String),
    /// `when` asks for less, or `until` for more.
    #[error("{0:?} is on the wrong side: \"when\" takes >=, \"until\" takes <")]
    WrongSide(String),
    /// What never falls ends no stay.
    #[error("{} never falls: \"until\" takes rate and pps", .0.name())]
    NeverFalls(What),
    /// Both at nearly the same value.
    #[error("until {}<{until} lies too near when {}>={when}: a flow between them would flap; say {most} or less", .what.name(), .what.name())]
    TooNear {
        /// What is compared.
        what: What,
        /// Up.
        when: u64,
        /// Down.
        until: u64,
        /// The greatest `until`.
        most: u64,
    },
}

impl Condition {
    /// The condition of a move up.
    ///
    /// # Errors
    /// The text is none.
    pub fn when(text: &str) -> Result<Self, BadCondition> {
        let condition: Self = text.parse()?;
        match condition.0.iter().find(|bound| !bound.is_least) {
            Some(bound) => Err(BadCondition::WrongSide(bound.to_string())),
            None => Ok(condition),
        }
    }

    /// The condition of a move down from `when`; without a text, half of the rates of `when`.
    ///
    /// # Errors
    /// The text is none, or lies too near `when`.
    pub fn until(text: Option<&str>, when: &Self) -> Result<Self, BadCondition> {
        let Some(text) = text else {
            let falling = when.0.iter().filter(|bound| bound.what.falls());
            let half = |bound: &Bound| Bound { is_least: false, value: bound.value / 2, ..*bound };
            return Ok(Self(falling.map(half).collect()));
        };
        let until: Self = text.parse()?;
        for bound in &until.0 {
            bound.ends(when)?;
        }
        Ok(until)
    }

    /// Whether all is true; a condition without comparisons never is.
    ///
    /// # Errors
    /// What is not.
    pub fn is_met(&self, traffic: &Traffic, now: Nanos) -> Result<(), PolicyReason> {
        for &Bound { what, is_least, value: needs } in &self.0 {
            let is = what.of(traffic, now);
            if (is >= needs) != is_least {
                return Err(PolicyReason::BelowThreshold { what: what.name(), is, needs });
            }
        }
        if self.0.is_empty() { Err(PolicyReason::NotSeen) } else { Ok(()) }
    }
}

impl Bound {
    /// Whether it may end a stay that `when` began.
    fn ends(&self, when: &Condition) -> Result<(), BadCondition> {
        let &Self { what, is_least, value } = self;
        if is_least {
            return Err(BadCondition::WrongSide(self.to_string()));
        }
        if !what.falls() {
            return Err(BadCondition::NeverFalls(what));
        }
        for up in when.0.iter().filter(|up| up.what == what) {
            let most = up.value - up.value.div_ceil(5);
            if value > most {
                return Err(BadCondition::TooNear { what, when: up.value, until: value, most });
            }
        }
        Ok(())
    }
}

impl FromStr for Condition {
    type Err = BadCondition;

    fn from_str(text: &str) -> Result<Self, BadCondition> {
        text.split(" and ").map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Bound {
    type Err = BadCondition;

    fn from_str(text: &str) -> Result<Self, BadCondition> {
        let no_comparison = || BadCondition::NoComparison(text.into());
        let (name, is_least, value) = match (text.split_once(">="), text.split_once('<')) {
            (Some((name, value)), None) => (name, true, value),
            (None, Some((name, value))) => (name, false, value),
            _ => return Err(no_comparison()),
        };
        let what = What::ALL.into_iter().find(|what| what.name() == name.trim());
        let what = what.ok_or_else(no_comparison)?;
        Ok(Self { what, is_least, value: number(value.trim(), what)? })
    }
}

/// A number with a unit: k, M, G; for times ms, s, m, h.
fn number(text: &str, what: What) -> Result<u64, BadCondition> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let bad = || BadCondition::NoNumber(text.into());
    let times = match (what, unit) {
        (What::Age, "ms") => 1.0,
        (What::Age, "" | "s") => 1e3,
        (What::Age, "m") => 6e4,
        (What::Age, "h") => 3.6e6,
        (What::Age, _) => return Err(bad()),
        (_, "") => 1.0,
        (_, "k") => 1e3,
        (_, "M") => 1e6,
        (_, "G") => 1e9,
        _ => return Err(bad()),
    };
    let value: f64 = digits.parse().map_err(|_| bad())?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { Ok((value * times) as u64) } else { Err(bad()) }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_least { ">=" } else { "<" };
        write!(f, "{}{sign}", self.what.name())?;
        let units: [(u64, &str); 3] = match self.what {
            What::Age => [(3_600_000, "h"), (60_000, "m"), (1000, "s")],
            _ => [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")],
        };
        let fits = |&&(size, _): &&(u64, &str)| self.value > 0 && self.value.is_multiple_of(size);
        match units.iter().find(fits) {
            Some((size, unit)) => write!(f, "{}{unit}", self.value / size),
            None if self.what == What::Age => write!(f, "{}ms", self.value),
            None => write!(f, "{}", self.value),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, bound) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { " and " } else { "" })?;
            write!(f, "{bound}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn until_must_lie_a_fifth_below_when() {
        let when = Condition::when("rate>=50M and packets>=100").unwrap();
        let until = |text| Condition::until(Some(text), &when);
        assert!(until("rate<5M").is_ok() && until("rate<40M").is_ok());
        assert_eq!(
            until("rate<41M").unwrap_err().to_string(),
            "until rate<41000000 lies too near when rate>=50000000: a flow between them would flap; say 40000000 or less"
        );
        assert_eq!(until("packets<4"), Err(BadCondition::NeverFalls(What::Packets)));
        assert!(matches!(until("rate>=4"), Err(BadCondition::WrongSide(_))));
        assert_eq!(Condition::until(None, &when).unwrap().to_string(), "rate<25M");
    }

    #[test]
    fn what_is_no_condition_says_so() {
        for text in [
            "",
            "rate",
            "rate>50M",
            "speed>=5",
            "rate>=5M and",
            "rate>=x",
            "rate>=5X",
            "age>=5M",
            "rate>=-1",
        ] {
            assert!(Condition::when(text).is_err(), "{text}");
        }
        assert!(matches!(Condition::when("rate<5"), Err(BadCondition::WrongSide(_))));
    }

    proptest! {
        #[test]
        fn a_condition_is_read_as_it_is_written(
            bounds in proptest::collection::vec((0usize..5, any::<bool>(), 0u64..4_000_000_000_000), 1..4),
        ) {
            let bound = |&(what, is_least, value): &(usize, bool, u64)| Bound { what: What::ALL[what], is_least, value };
            let condition = Condition(bounds.iter().map(bound).collect());
            prop_assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
        }
    }
}
