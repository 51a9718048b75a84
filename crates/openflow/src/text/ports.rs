//! Ports by number, by reserved name, and by the names that a switch gives them.

use super::error::TextError;
use super::scan::Span;
use super::value;
use crate::ids::PortNo;

/// Gives the number of a port by its name.
pub type Resolve<'a> = &'a dyn Fn(&str) -> Option<PortNo>;

/// Gives the name of a port by its number.
pub type Name<'a> = &'a dyn Fn(PortNo) -> Option<String>;

/// A [`Resolve`] that knows no names.
pub fn no_ports(_: &str) -> Option<PortNo> {
    None
}

/// A [`Name`] that knows no names.
pub fn no_names(_: PortNo) -> Option<String> {
    None
}

const RESERVED: &[(&str, PortNo)] = &[
    ("IN_PORT", PortNo::IN_PORT),
    ("TABLE", PortNo::TABLE),
    ("NORMAL", PortNo::NORMAL),
    ("FLOOD", PortNo::FLOOD),
    ("ALL", PortNo::ALL),
    ("CONTROLLER", PortNo::CONTROLLER),
    ("LOCAL", PortNo::LOCAL),
    ("ANY", PortNo::ANY),
];

/// The reserved port of that name, whatever the case; `NONE` is 1.0's name of `ANY`.
pub(super) fn reserved(name: &str) -> Option<PortNo> {
    let named = RESERVED.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, port)| *port);
    named.or(name.eq_ignore_ascii_case("NONE").then_some(PortNo::ANY))
}

/// The reserved port's name.
pub(super) fn reserved_name(port: PortNo) -> Option<&'static str> {
    RESERVED.iter().find(|(_, p)| *p == port).map(|(name, _)| *name)
}

/// Reads a port: a number, a reserved name, or a name that `resolve` knows.
///
/// # Errors
/// When it is none of them.
pub fn parse_port(text: &str, resolve: Resolve<'_>) -> Result<PortNo, TextError> {
    port(Span::whole(text), resolve)
}

/// See [`parse_port`]. OpenFlow 1.0's 16-bit reserved numbers are read as what they mean, as ovs-ofctl does.
pub(super) fn port(word: Span<'_>, resolve: Resolve<'_>) -> Result<PortNo, TextError> {
    if let Some(port) = known_port(word.text, resolve) {
        return Ok(port);
    }
    Err(word.error(
        "no port has this name",
        "give a port's number or name, or LOCAL, IN_PORT, NORMAL, FLOOD, ALL, CONTROLLER",
    ))
}

/// The port of that text, if it is one.
pub(super) fn known_port(text: &str, resolve: Resolve<'_>) -> Option<PortNo> {
    let number = |n: u64| match n {
        0xff00..=0xffff if n >= 0xfff8 => Some(PortNo(n as u32 | 0xffff_0000)),
        n => u32::try_from(n).ok().map(PortNo),
    };
    value::integer(text).and_then(number).or_else(|| reserved(text)).or_else(|| resolve(text))
}

/// A port's reserved name, the name that `name` knows, or its number.
pub fn print_port(port: PortNo, name: Name<'_>) -> String {
    match reserved_name(port) {
        Some(reserved) => reserved.to_owned(),
        None => name(port).filter(|n| reads_back(n)).unwrap_or_else(|| port.0.to_string()),
    }
}

/// Whether a name can stand in a flow without being taken for a number, a reserved port or punctuation.
fn reads_back(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty()
        && name.chars().all(plain)
        && value::integer(name).is_none()
        && reserved(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_be_misread_are_printed_as_numbers() {
        let name = |text: &'static str| move |_| Some(text.to_owned());
        assert_eq!(print_port(PortNo(3), &name("veth0")), "veth0");
        assert_eq!(print_port(PortNo(3), &name("7")), "3");
        assert_eq!(print_port(PortNo(3), &name("local")), "3");
        assert_eq!(print_port(PortNo(3), &name("a,b")), "3");
        assert_eq!(print_port(PortNo::LOCAL, &name("br0")), "LOCAL");
    }

    #[test]
    fn ports_are_read_by_number_reserved_name_and_name() {
        let resolve = |name: &str| (name == "veth0").then_some(PortNo(9));
        assert_eq!(parse_port("0x10", &resolve), Ok(PortNo(16)));
        assert_eq!(parse_port("local", &resolve), Ok(PortNo::LOCAL));
        assert_eq!(parse_port("65534", &resolve), Ok(PortNo::LOCAL));
        assert_eq!(parse_port("veth0", &resolve), Ok(PortNo(9)));
        assert_eq!(parse_port("veth1", &resolve).unwrap_err().word, "veth1");
    }
}
