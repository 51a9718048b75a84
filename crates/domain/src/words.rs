//! Which words may stand for a thing of a slice or of the domain: names, sizes, shares of cores, times, ends of links, addresses.
//!
//! Each type is checked once, by its `FromStr`. What is printed is read back as the same value.

use api::BadText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Serde and OpenAPI by `FromStr` and `Display`.
macro_rules! as_text {
    ($($name:ident, $example:literal;)*) => {$(
        impl TryFrom<String> for $name {
            type Error = BadText;

            fn try_from(text: String) -> Result<Self, BadText> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl utoipa::ToSchema for $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let text = utoipa::openapi::schema::Type::String;
                utoipa::openapi::schema::ObjectBuilder::new().schema_type(text).examples([$example]).into()
            }
        }
    )*};
}

as_text! {
    Name, "demo"; SliceKey, "red/demo"; Uid, "9f31c2aa00000000000000000000c0de"; Size, "64M"; Cpu, "0.5"; Delay, "4ms"; End, "s1:1";
    Address, "10.0.0.1/24"; Moment, "2027-03-31T18:00:00+09:00";
}

fn bad(given: &str, what: &'static str, form: &'static str) -> BadText {
    BadText { given: given.into(), what, form }
}

/// The name of a thing: of a tenant, site, slice, switch, guest, link.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Longest name. Chosen: three of them and two signs fit a line and a kernel's path.
pub const NAME_MAX: usize = 40;

impl FromStr for Name {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if plain && first && text.len() <= NAME_MAX && !text.ends_with('-') {
            return Ok(Self(text.into()));
        }
        let form = "1 to 40 small letters, digits and `-`, a letter first and no `-` last";
        Err(bad(text, "a name", form))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::ops::Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A slice among all: `tenant/slice`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SliceKey {
    /// Whose.
    pub tenant: Name,
    /// Which.
    pub slice: Name,
}

impl FromStr for SliceKey {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let (tenant, slice) = text
            .split_once('/')
            .ok_or_else(|| bad(text, "a slice", "TENANT/SLICE, such as red/demo"))?;
        Ok(Self { tenant: tenant.parse()?, slice: slice.parse()? })
    }
}

impl fmt::Display for SliceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.slice)
    }
}

/// One life of a slice's name: 128 random bits. A name made again gets another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uid(pub u128);

impl Uid {
    /// The first eight digits, which names in the kernel begin with.
    pub fn short(self) -> String {
        self.to_string()[..8].into()
    }

    /// A number that belongs to this life and that text, the same everywhere and for ever (FNV-1a, 64 bits).
    pub fn hash(self, text: &str) -> u64 {
        let bytes = self.0.to_be_bytes().into_iter().chain(text.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // Texts that differ in their last letter alone differ everywhere.
        let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }
}

impl FromStr for Uid {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let uid = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        uid.map(Self).ok_or_else(|| bad(text, "a uid", "32 hexadecimal digits"))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A decimal number with at most three digits after its point, in thousandths.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || fraction.len() > 3 {
        return None;
    }
    let fraction = format!("{fraction:0<3}").parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

/// The shortest text of thousandths.
fn in_decimals(thousandths: u64) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Bytes of memory or disk. Units are powers of 1024, as QEMU's and systemd's.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Size(pub u64);

const SIZES: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];

impl FromStr for Size {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let unit = SIZES.iter().find_map(|(unit, scale)| {
            text.strip_suffix("iB").unwrap_or(text).strip_suffix(unit).map(|rest| (rest, *scale))
        });
        let (digits, scale) = unit.unwrap_or((text, 1));
        let scaled = thousandths(digits.trim_end()).and_then(|n| n.checked_mul(scale));
        let whole = scaled.filter(|n| n % 1000 == 0 || scale > 1).map(|n| n / 1000);
        let form = "bytes, or a number with K, M, G or T (powers of 1024), such as 64M or 1.5G";
        whole.map(Self).ok_or_else(|| bad(text, "a size", form))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = SIZES.iter().find(|(_, scale)| self.0 > 0 && self.0.is_multiple_of(*scale));
        match unit {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Size {
    /// As sentences say it: `1.5 GiB`; in the largest unit that says it exactly.
    pub fn in_words(self) -> String {
        let exact = |scale: u64| self.0 >= scale && (self.0 % scale * 1000).is_multiple_of(scale);
        let unit = SIZES.iter().find(|(_, scale)| exact(*scale));
        let Some((unit, scale)) = unit else { return format!("{} bytes", self.0) };
        let thousandths = self.0 / scale * 1000 + self.0 % scale * 1000 / scale;
        format!("{} {unit}iB", in_decimals(thousandths))
    }
}

/// A share of cores, in thousandths.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Cpu(pub u32);

impl FromStr for Cpu {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let milli = thousandths(text).and_then(|milli| u32::try_from(milli).ok());
        let form = "a number of cores with at most three digits after the point, such as 0.5";
        milli.map(Self).ok_or_else(|| bad(text, "a share of cores", form))
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_decimals(self.0.into()))
    }
}

impl Cpu {
    /// As sentences say it: `0.5 cores`, `1 core`.
    pub fn in_words(self) -> String {
        format!("{self} core{}", if self.0 == 1000 { "" } else { "s" })
    }
}

/// A time that frames take, in microseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Delay(pub u64);

impl FromStr for Delay {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let unit = [("us", 1), ("ms", 1000), ("s", 1_000_000)]
            .into_iter()
            .find_map(|(unit, scale)| text.strip_suffix(unit).map(|rest| (rest, scale)));
        let scaled =
            unit.and_then(|(digits, scale)| thousandths(digits.trim_end())?.checked_mul(scale));
        let micros = scaled.filter(|n| n % 1000 == 0).map(|n| n / 1000);
        let form = "a number with us, ms or s, such as 4ms or 500us";
        micros.map(Self).ok_or_else(|| bad(text, "a time", form))
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 {
            return write!(f, "{}us", self.0);
        }
        write!(f, "{}ms", in_decimals(self.0))
    }
}

/// A port of a switch or guest, as one end of a link: `s1:2`, or `s1:up` for a port that is known by a name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct End {
    /// The switch or guest.
    pub of: Name,
    /// Its port.
    pub port: EndPort,
}

/// Which port an end is.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum EndPort {
    /// The switch's port of that OpenFlow number.
    Number(u16),
    /// The guest's port of that name; the switch's, which has the lowest free number then, and keeps it.
    Named(Name),
}

/// Highest number of a port that a slice may ask for: OpenFlow 1.0's bound, less what suiro keeps for itself.
pub const PORT_MAX: u16 = 0xfeff;

impl FromStr for End {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let form = "SWITCH:NUMBER, SWITCH:NAME or GUEST:PORT, such as s1:2 (ports from 1 to 65279)";
        let none = || bad(text, "an end", form);
        let (of, port) = text.split_once(':').ok_or_else(none)?;
        let number = || port.parse().ok().filter(|n| (1..=PORT_MAX).contains(n));
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        let port = if digits {
            number().map(EndPort::Number)
        } else {
            port.parse().ok().map(EndPort::Named)
        };
        Ok(Self { of: of.parse().map_err(|_| none())?, port: port.ok_or_else(none)? })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.port {
            EndPort::Number(number) => write!(f, "{}:{number}", self.of),
            EndPort::Named(name) => write!(f, "{}:{name}", self.of),
        }
    }
}

/// An address with the length of its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Bits of its prefix.
    pub prefix: u8,
}

impl FromStr for Address {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let form = "an address and the length of its prefix, such as 10.0.0.1/24";
        let none = || bad(text, "an address", form);
        let (address, prefix) = text.split_once('/').ok_or_else(none)?;
        let address: IpAddr = address.parse().map_err(|_| none())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.parse().ok().filter(|bits| *bits <= longest).ok_or_else(none)?;
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// A moment, as RFC 3339 writes it; kept as written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment {
    text: String,
    unix_s: i64,
}

impl Moment {
    /// Seconds since 1970 in UTC, without leap seconds.
    pub fn unix_s(&self) -> i64 {
        self.unix_s
    }

    /// That second, in UTC.
    pub fn at(unix_s: i64) -> Self {
        // Years of four digits: RFC 3339 has no others.
        let unix_s = unix_s.clamp(-62_167_219_200, 253_402_300_799);
        let (days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
        // As in `unix_seconds`: days since 0000-03-01, by eras of 400 years.
        let days = days + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let m = (5 * of_year + 2) / 153;
        let (d, month) = (of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
        let year = era * 400 + year + i64::from(month <= 2);
        let (h, min, s) = (second / 3600, second / 60 % 60, second % 60);
        let text = format!("{year:04}-{month:02}-{d:02}T{h:02}:{min:02}:{s:02}Z");
        Self { text, unix_s }
    }
}

impl FromStr for Moment {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let form = "date, time and zone, such as 2027-03-31T18:00:00+09:00";
        let unix_s = unix_seconds(text).ok_or_else(|| bad(text, "a moment", form))?;
        Ok(Self { text: text.into(), unix_s })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// RFC 3339 §5.6, whole seconds.
fn unix_seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok()).flatten()
    };
    let sign = |at: usize, signs: &str| text.get(at..=at).is_some_and(|s| signs.contains(s));
    let shape = sign(4, "-") && sign(7, "-") && sign(10, "Tt ") && sign(13, ":") && sign(16, ":");
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let east = match text.get(19..)? {
        "Z" | "z" => 0,
        zone if zone.len() == 6 && sign(19, "+-") && sign(22, ":") => {
            let offset = number(20, 22)? * 3600 + number(23, 25)? * 60;
            if zone.starts_with('-') { -offset } else { offset }
        }
        _ => return None,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let valid = shape && (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
    // Days since 1970 by the civil calendar, years beginning in March so that the leap day is the last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let date =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
            - 719_469;
    valid.then_some(date * 86_400 + hour * 3600 + minute * 60 + second - east)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_as_the_same_value() {
        fn check<T: FromStr<Err = BadText> + fmt::Display + PartialEq + fmt::Debug>(
            texts: &[&str],
        ) {
            for text in texts {
                let value: T = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                assert_eq!(value.to_string().parse::<T>().unwrap(), value, "{text}");
            }
        }
        check::<Name>(&["a", "s1", "a-b", "tokyo"]);
        check::<SliceKey>(&["red/demo"]);
        check::<Uid>(&["9f31c2aa00000000000000000000c0de"]);
        check::<Size>(&["0", "64M", "1.5G", "1536", "2GiB", "17"]);
        check::<Cpu>(&["0.1", "1", "2.125"]);
        check::<Delay>(&["500us", "4ms", "0.5ms", "1.5s", "0us"]);
        check::<End>(&["s1:2", "h1:eth1"]);
        check::<Address>(&["10.0.0.1/24", "2001:db8::1/64"]);
    }

    #[test]
    fn texts_that_would_mislead_are_refused() {
        fn refuse<T: FromStr<Err = BadText> + fmt::Debug>(texts: &[&str]) {
            for text in texts {
                assert!(text.parse::<T>().is_err(), "{text:?} was accepted");
            }
        }
        refuse::<Name>(&["", "A", "1a", "-a", "a-", "a.b", "a_b", &"x".repeat(41)]);
        refuse::<Size>(&["", "M", "1.5", "-1", "1X", "99999999T"]);
        refuse::<Cpu>(&["", "0.0001", "-1", "1e3", "4294968"]);
        refuse::<Delay>(&["", "4", "0.5us", "-1ms"]);
        refuse::<End>(&["s1", "s1:0", "s1:65280", ":1", "s1:", "s1:2:3"]);
        refuse::<Address>(&["10.0.0.1", "10.0.0.1/33", "10.0.0/24"]);
        refuse::<Moment>(&["2027-02-29T00:00:00Z", "2027-03-31", "2027-03-31T24:00:00Z", "now"]);
    }

    #[test]
    fn a_second_is_told_as_the_moment_that_it_is() {
        let mut seed = 7_u64;
        let random = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 20) as i64 % 253_402_300_800
        };
        let some = [0, -1, 951_825_600, 951_782_400, 4_107_542_400, 253_402_300_799];
        for unix_s in some.into_iter().chain((0..10_000).map(random)) {
            let text = Moment::at(unix_s).to_string();
            assert_eq!(text.parse::<Moment>().unwrap().unix_s(), unix_s, "{text}");
        }
        assert_eq!(Moment::at(951_825_600).to_string(), "2000-02-29T12:00:00Z");
        assert_eq!(Moment::at(i64::MAX).to_string(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn a_moment_is_the_same_second_in_every_zone() {
        let unix = |text: &str| text.parse::<Moment>().unwrap().unix_s();
        assert_eq!(unix("1970-01-01T00:00:00Z"), 0);
        assert_eq!(unix("2000-02-29T12:00:00Z"), 951_825_600);
        assert_eq!(unix("2027-03-31T18:00:00+09:00"), unix("2027-03-31T09:00:00Z"));
    }
}
