//! Numbers, addresses and flags: read and printed as ovs-ofctl does.

use super::error::TextError;
use super::scan::Span;
use crate::oxm::{Format, OxmField};
use crate::port::Mac;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A decimal or `0x` number.
pub(super) fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => unsigned(hex, 16),
        None => unsigned(text, 10),
    }
}

/// Like `from_str_radix`, without the sign that it allows.
fn unsigned(digits: &str, radix: u32) -> Option<u64> {
    digits
        .chars()
        .all(|c| c.is_digit(radix))
        .then(|| u64::from_str_radix(digits, radix).ok())
        .flatten()
}

/// A number of at most `max`.
pub(super) fn number(word: Span<'_>, max: u64) -> Result<u64, TextError> {
    let value = integer(word.text).filter(|value| *value <= max);
    value.ok_or_else(|| {
        word.error("not a number that fits", format!("give a number from 0 to {max}"))
    })
}

/// A number that fits `T`.
pub(super) fn small<T: TryFrom<u64>>(word: Span<'_>, max: T) -> Result<T, TextError>
where
    u64: From<T>,
{
    let max = u64::from(max);
    let value = number(word, max)?;
    T::try_from(value)
        .map_err(|_| word.error("not a number that fits", format!("give a number from 0 to {max}")))
}

/// `value[/mask]` of a field.
pub(super) fn masked(field: OxmField, word: Span<'_>) -> Result<(u128, Option<u128>), TextError> {
    match field.spec().format {
        Format::TcpFlags => return tcp_flags(word),
        Format::Fragment => return fragment(word),
        _ => {}
    }
    let Some((value, mask)) = word.split("/") else { return Ok((exact(field, word)?, None)) };
    let value = exact(field, value)?;
    let mask = self::mask(field, mask)?;
    Ok((value & mask, Some(mask)))
}

fn exact(field: OxmField, word: Span<'_>) -> Result<u128, TextError> {
    match field.spec().format {
        Format::Mac => {
            mac(word).map(|mac| mac.0.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
        }
        Format::Ipv4 => ipv4(word).map(|ip| u128::from(ip.to_bits())),
        Format::Ipv6 => ipv6(word).map(Ipv6Addr::to_bits),
        _ => number(word, field.full() as u64).map(u128::from),
    }
}

fn mask(field: OxmField, word: Span<'_>) -> Result<u128, TextError> {
    let bits = u64::from(field.spec().bits);
    let address = matches!(field.spec().format, Format::Ipv4 | Format::Ipv6);
    match integer(word.text).filter(|_| address) {
        Some(length) if length <= bits => Ok(prefix(length as u32, bits as u32)),
        Some(_) => Err(word
            .error("a prefix longer than the address", format!("give a length from 0 to {bits}"))),
        None => exact(field, word),
    }
}

/// The mask of `length` leading bits out of `bits`.
fn prefix(length: u32, bits: u32) -> u128 {
    let all = u128::MAX >> (128 - bits);
    if length == 0 { 0 } else { all & all << (bits - length) }
}

pub(super) fn mac(word: Span<'_>) -> Result<Mac, TextError> {
    let octet = |text: &str| {
        unsigned(text, 16).and_then(|v| u8::try_from(v).ok()).filter(|_| !text.is_empty())
    };
    let octets: Option<Vec<u8>> = word.text.split(':').map(octet).collect();
    let mac = octets.and_then(|octets| octets.try_into().ok()).map(Mac);
    mac.ok_or_else(|| word.error("not a MAC address", "give six bytes, as in 02:00:00:00:00:01"))
}

fn ipv4(word: Span<'_>) -> Result<Ipv4Addr, TextError> {
    word.text
        .parse()
        .map_err(|_| word.error("not an IPv4 address", "give four numbers, as in 10.0.0.1"))
}

fn ipv6(word: Span<'_>) -> Result<Ipv6Addr, TextError> {
    word.text.parse().map_err(|_| word.error("not an IPv6 address", "give one, as in 2001:db8::1"))
}

/// Bit n of the TCP flags is `TCP_FLAGS[n]`.
const TCP_FLAGS: &[&str] = &["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"];

/// `+syn-ack` (those bits, others free), `syn|ack` (exactly those), or a number with or without mask.
fn tcp_flags(word: Span<'_>) -> Result<(u128, Option<u128>), TextError> {
    let full = OxmField::TcpFlags.full() as u64;
    if let Some((value, mask)) = word.split("/") {
        let (value, mask) = (number(value, full)?, number(mask, full)?);
        return Ok((u128::from(value & mask), Some(u128::from(mask))));
    }
    if let Some(value) = integer(word.text) {
        return Ok((u128::from(value), None)).and_then(|v| number(word, full).map(|_| v));
    }
    if word.text.starts_with(['+', '-']) { signed_flags(word) } else { listed_flags(word) }
}

fn flag(word: Span<'_>, name: &str) -> Result<u128, TextError> {
    let bit = TCP_FLAGS.iter().position(|flag| flag.eq_ignore_ascii_case(name));
    let remedy =
        "give flags as in +syn-ack or syn|ack, out of fin, syn, rst, psh, ack, urg, ece, cwr, ns";
    bit.map(|bit| 1 << bit).ok_or_else(|| word.error("not TCP flags", remedy))
}

fn signed_flags(word: Span<'_>) -> Result<(u128, Option<u128>), TextError> {
    let (mut value, mut mask) = (0, 0);
    let mut rest = word.text;
    while let Some(sign) = rest.chars().next() {
        let end = rest[1..].find(['+', '-']).map_or(rest.len(), |end| end + 1);
        let bit = flag(word, &rest[1..end])?;
        mask |= bit;
        value = if sign == '+' { value | bit } else { value & !bit };
        rest = &rest[end..];
    }
    Ok((value, Some(mask)))
}

fn listed_flags(word: Span<'_>) -> Result<(u128, Option<u128>), TextError> {
    let bits: Result<Vec<u128>, TextError> =
        word.text.split('|').map(|name| flag(word, name)).collect();
    Ok((bits?.iter().fold(0, |all, bit| all | bit), None))
}

/// Kinds of fragments by value and mask, as Open vSwitch names them (ovs-fields(7), `ip_frag`).
const FRAGMENTS: &[(&str, u128, u128)] =
    &[("no", 0, 3), ("yes", 1, 1), ("first", 1, 3), ("later", 3, 3), ("not_later", 0, 2)];

/// A kind of fragments, or a number with or without mask.
fn fragment(word: Span<'_>) -> Result<(u128, Option<u128>), TextError> {
    if let Some((_, value, mask)) =
        FRAGMENTS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word.text))
    {
        return Ok((*value, Some(*mask)));
    }
    let (value, mask) = word.split("/").map_or((word, None), |(value, mask)| (value, Some(mask)));
    let byte = |word: Span<'_>| {
        let read = integer(word.text).filter(|value| *value <= 0xff).map(u128::from);
        read.ok_or_else(|| {
            word.error("no kind of fragments", "write no, yes, first, later or not_later")
        })
    };
    let (value, mask) = (byte(value)?, mask.map(byte).transpose()?);
    Ok((value & mask.unwrap_or(u128::MAX), mask))
}

fn print_fragment(value: u128, mask: Option<u128>) -> String {
    let named = FRAGMENTS.iter().find(|(_, v, m)| (*v, Some(*m)) == (value, mask));
    match (named, mask) {
        (Some((name, ..)), _) => (*name).to_owned(),
        (None, Some(mask)) => format!("{value:#x}/{mask:#x}"),
        (None, None) => format!("{value:#x}"),
    }
}

/// `value` or `value/mask` of a field, in the field's own format.
pub(super) fn print(field: OxmField, value: u128, mask: Option<u128>) -> String {
    match (field.spec().format, mask) {
        (Format::TcpFlags, _) => print_tcp_flags(value, mask),
        (Format::Fragment, _) => print_fragment(value, mask),
        (Format::Ipv4 | Format::Ipv6, Some(mask)) => {
            format!("{}/{}", print_exact(field, value), print_prefix(field, mask))
        }
        (Format::Decimal, Some(mask)) => format!("{value:#x}/{mask:#x}"),
        (_, Some(mask)) => format!("{}/{}", print_exact(field, value), print_exact(field, mask)),
        (_, None) => print_exact(field, value),
    }
}

fn print_exact(field: OxmField, value: u128) -> String {
    match field.spec().format {
        Format::Mac => {
            let [.., a, b, c, d, e, f] = value.to_be_bytes();
            Mac([a, b, c, d, e, f]).to_string()
        }
        Format::Ipv4 => Ipv4Addr::from_bits(value as u32).to_string(),
        Format::Ipv6 => Ipv6Addr::from_bits(value).to_string(),
        Format::Decimal | Format::Port => value.to_string(),
        Format::Hex | Format::TcpFlags | Format::Fragment => format!("{value:#x}"),
    }
}

/// A prefix length if the mask is one, else the mask as an address.
fn print_prefix(field: OxmField, mask: u128) -> String {
    let bits = u32::from(field.spec().bits);
    let length = mask.count_ones();
    if mask == prefix(length, bits) { length.to_string() } else { print_exact(field, mask) }
}

/// Bits without a name are printed as numbers, together with all others, so that they read back.
fn print_tcp_flags(value: u128, mask: Option<u128>) -> String {
    let named = (1 << TCP_FLAGS.len()) - 1;
    let names =
        |bits: u128| TCP_FLAGS.iter().enumerate().filter(move |(bit, _)| bits >> bit & 1 == 1);
    match mask {
        Some(mask) if mask & !named != 0 || mask == 0 => format!("{value:#x}/{mask:#x}"),
        Some(mask) => names(mask)
            .map(|(bit, name)| format!("{}{name}", if value >> bit & 1 == 1 { '+' } else { '-' }))
            .collect(),
        None if value & !named != 0 || value == 0 => format!("{value:#x}").replace("0x0", "0"),
        None => names(value).map(|(_, name)| *name).collect::<Vec<_>>().join("|"),
    }
}

/// Seconds with three or nine decimals, or none, as ovs-ofctl prints ages.
pub(super) fn print_duration(seconds: u32, nanos: u32) -> String {
    match nanos {
        0 => format!("{seconds}s"),
        n if n % 1_000_000 == 0 => format!("{seconds}.{:03}s", n / 1_000_000),
        n => format!("{seconds}.{n:09}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: OxmField, text: &str) -> Option<(u128, Option<u128>)> {
        masked(field, Span::whole(text)).ok()
    }

    #[test]
    fn numbers_have_no_sign_and_no_rest() {
        assert_eq!(integer("0x1F"), Some(31));
        assert_eq!([integer("+1"), integer("-1"), integer("1x"), integer("")], [None; 4]);
    }

    #[test]
    fn addresses_take_prefix_lengths_and_masks() {
        assert_eq!(read(OxmField::Ipv4Src, "10.1.2.3/8"), Some((0x0a00_0000, Some(0xff00_0000))));
        assert_eq!(
            read(OxmField::Ipv4Src, "10.1.2.3/255.0.255.0"),
            Some((0x0a00_0200, Some(0xff00_ff00)))
        );
        assert_eq!(read(OxmField::Ipv4Src, "10.1.2.3/33"), None);
        assert_eq!(read(OxmField::Ipv6Dst, "::1/0"), Some((0, Some(0))));
        assert_eq!(read(OxmField::EthDst, "1:2:3:4:5"), None);
    }

    #[test]
    fn tcp_flags_read_back_as_printed() {
        for text in ["+syn-ack", "syn|ack", "0", "0x800", "0x0/0x800", "ns"] {
            let (value, mask) = read(OxmField::TcpFlags, text).unwrap();
            assert_eq!(print(OxmField::TcpFlags, value, mask), text);
        }
        assert_eq!(read(OxmField::TcpFlags, "+sin"), None);
        assert_eq!(read(OxmField::TcpFlags, "+"), None);
    }

    #[test]
    fn ages_have_no_more_decimals_than_they_need() {
        assert_eq!(print_duration(5, 0), "5s");
        assert_eq!(print_duration(5, 1_000_000), "5.001s");
        assert_eq!(print_duration(5, 1), "5.000000001s");
    }
}
