//! Which words may stand for a thing: names, addresses and numbers as users write them.
//!
//! Each type is checked once, by its `FromStr`; the same check serves the configuration file, the API and the command line, so
//! all three give the same cause and the same remedy.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// A text that does not stand for what was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{given:?} is not {what}")]
pub struct BadText {
    /// The text.
    pub given: String,
    /// What it should have been.
    pub what: &'static str,
    /// How that is written.
    pub form: &'static str,
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident($inner:ty), $what:literal, $form:literal, $example:literal, $parse:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schema(value_type = String, example = $example)]
        pub struct $name($inner);

        impl FromStr for $name {
            type Err = BadText;

            fn from_str(text: &str) -> Result<Self, BadText> {
                let parse: fn(&str) -> Option<$inner> = $parse;
                parse(text).map(Self).ok_or_else(|| BadText { given: text.into(), what: $what, form: $form })
            }
        }

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
    };
}

macro_rules! shown_as_inner {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

text_type! {
    /// A switch's name. It becomes a file name (`<name>.mgmt`), so it is short and has no slash.
    SwitchName(String), "a switch name", "1 to 32 letters, digits, `_`, `-` or `.`, beginning with a letter, digit or `_`", "sw0",
    |text| plain_word(text, 32)
}
text_type! {
    /// A port's name, unique in its switch. 15 bytes, as OpenFlow carries it (`OFP_MAX_PORT_NAME_LEN` with its NUL).
    ///
    /// None is a number or a word that says a port in rules: `output:2` would mean port number 2, not the port called 2.
    PortName(String), "a port name", "1 to 15 letters, digits, `_`, `-` or `.`, beginning with a letter, digit or `_`; no number, and none of OpenFlow's words for ports (local, all, flood, normal, ...)", "guest1",
    |text| plain_word(text, 15).filter(|_| !means_a_port(text))
}
text_type! {
    /// A part's name, unique on the node.
    PartName(String), "a part's name", "1 to 64 letters, digits, `_`, `-` or `.`, beginning with a letter, digit or `_`", "lab",
    |text| plain_word(text, 64)
}
text_type! {
    /// A network interface's name, by the kernel's rule (`dev_valid_name`): at most 15 bytes, no slash, colon or space.
    IfName(String), "an interface name", "1 to 15 characters without `/`, `:` and spaces, as `ip link` shows it", "eth0",
    |text| is_interface(text).then(|| text.to_owned())
}
text_type! {
    /// What flows are steered at: an interface, or (`switch:NAME`) a switch, between its workers. No interface has a colon in its name.
    SteerPoint(String), "an interface or a switch", "an interface's name, as `ip link` shows it, or switch:NAME", "eth0",
    |text| {
        let is_switch = text.strip_prefix(crate::steer::SWITCH_PREFIX).is_some_and(|name| plain_word(name, 32).is_some());
        (is_switch || is_interface(text)).then(|| text.to_owned())
    }
}
text_type! {
    /// A network namespace: a name under `/run/netns`, or a path such as `/proc/1234/ns/net`.
    Netns(String), "a network namespace", "a name that `ip netns` shows, or an absolute path such as /proc/1234/ns/net", "guest1",
    |text| is_netns(text).then(|| text.to_owned())
}
text_type! {
    /// A Unix socket's file. `sun_path` holds 108 bytes with its NUL (unix(7)).
    SocketPath(String), "a socket's path", "an absolute path of at most 107 bytes, such as \"/run/suiro/vm1.sock\"", "/run/suiro/vm1.sock",
    |text| (text.len() <= 107 && text.starts_with('/') && !text.ends_with('/') && !text.contains(char::is_control)).then(|| text.to_owned())
}
text_type! {
    /// A file of a tunnel's keys.
    KeyPath(String), "the path of a file of keys", "an absolute path, such as \"/etc/suiro/tun0.keys\"", "/etc/suiro/tun0.keys",
    |text| (text.starts_with('/') && !text.ends_with('/') && !text.contains(char::is_control)).then(|| text.to_owned())
}
text_type! {
    /// A user of the host, by name or number.
    UserName(String), "a user", "a user's name, as `getent passwd` shows it, or number", "libvirt-qemu",
    |text| is_account(text).then(|| text.to_owned())
}
text_type! {
    /// A group of the host, by name or number.
    GroupName(String), "a group", "a group's name, as `getent group` shows it, or number", "kvm",
    |text| is_account(text).then(|| text.to_owned())
}
text_type! {
    /// Who may read, write and execute a file (chmod(1)).
    FileMode(u16), "a file's mode", "three octal digits, with or without a 0 before them, such as \"0660\"", "0660",
    |text| {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let plain = digits.len() == 3 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        plain.then(|| u16::from_str_radix(digits, 8).ok()).flatten()
    }
}
impl PartName {
    /// Whether it is that of a slice's part: a uid, 32 hexadecimal digits.
    pub fn is_a_slices(&self) -> bool {
        self.len() == 32 && self.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

shown_as_inner!(SwitchName PortName PartName IfName SteerPoint Netns SocketPath KeyPath UserName GroupName);

text_type! {
    /// An OpenFlow datapath id.
    Dpid(u64), "a datapath id", "1 to 16 hexadecimal digits, such as \"0000000000000001\"", "0000000000000001",
    |text| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let plain = (1..=16).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    }
}
text_type! {
    /// An OpenFlow cookie.
    Cookie(u64), "a cookie", "a number of 64 bits, such as \"0x2a\" or \"42\"", "0x2a",
    |text| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        None => text.parse().ok().filter(|_| !text.starts_with('+')),
    }
}
text_type! {
    /// An Ethernet address that one interface can have: not a group address, not zero.
    Mac([u8; 6]), "a unicast MAC address", "six pairs of hexadecimal digits, such as \"02:00:00:00:00:01\", the first one even", "02:00:00:00:00:01",
    parse_mac
}
text_type! {
    /// The other end of a vlink: switch and port.
    Peer((SwitchName, PortName)), "the other end of a vlink", "SWITCH:PORT, such as \"sw1:to-sw0\"", "sw1:to-sw0",
    |text| {
        let (switch, port) = text.split_once(':')?;
        Some((switch.parse().ok()?, port.parse().ok()?))
    }
}
text_type! {
    /// The DSCP outside a tunnel (RFC 2983): one for all packets, or `uniform`.
    Dscp(Option<u8>), "a DSCP", "0 to 63, or \"uniform\" for the one of the packet inside", "46",
    |text| {
        let number = || text.parse().ok().filter(|dscp| *dscp < 64 && !text.starts_with('+'));
        if text == "uniform" { Some(None) } else { number().map(Some) }
    }
}

impl Dscp {
    /// What it means at the tunnel's ends.
    pub fn get(&self) -> wire::tunnel::Dscp {
        self.0.map_or(wire::tunnel::Dscp::Uniform, wire::tunnel::Dscp::Pipe)
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(dscp) => dscp.fmt(f),
            None => f.write_str("uniform"),
        }
    }
}

impl Cookie {
    /// The cookie of this number.
    pub fn new(cookie: u64) -> Self {
        Self(cookie)
    }

    /// Its number.
    pub fn get(&self) -> u64 {
        self.0
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Dpid {
    /// A datapath id from its number.
    pub fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0
    }

    /// The id of a switch that was given none: the same one at each start, and different between nodes as their `node_id`s are.
    ///
    /// 48 bits as a locally administered unicast MAC address, since many controllers print the low half as one.
    pub fn derived(node_id: &str, name: &SwitchName) -> Self {
        let hash = node_id
            .bytes()
            .chain([0])
            .chain(name.bytes())
            .fold(FNV_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        let folded = (hash ^ hash >> 48) & 0xffff_ffff_ffff;
        Self(folded & !(1 << 40) | 1 << 41)
    }
}

// FNV-1a, 64 bits: stable for ever, which the standard library's hasher does not promise.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Mac {
    /// The six bytes.
    pub fn bytes(&self) -> [u8; 6] {
        self.0
    }

    /// An address as an interface has it; `None` for one that no interface can have.
    pub fn new(bytes: [u8; 6]) -> Option<Self> {
        (bytes[0] & 1 == 0 && bytes != [0; 6]).then_some(Self(bytes))
    }
}

impl FileMode {
    /// The nine bits.
    pub fn bits(&self) -> u32 {
        self.0.into()
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl Peer {
    /// The switch.
    pub fn switch(&self) -> &SwitchName {
        &self.0.0
    }

    /// The port.
    pub fn port(&self) -> &PortName {
        &self.0.1
    }

    /// Names an end.
    pub fn new(switch: SwitchName, port: PortName) -> Self {
        Self((switch, port))
    }
}

impl fmt::Display for Dpid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.switch(), self.port())
    }
}

/// Whether rules and commands take this text for a port's number, or for one of those that OpenFlow reserves (1.3.5 §7.2.1).
fn means_a_port(text: &str) -> bool {
    const WORDS: [&str; 9] =
        ["in_port", "table", "normal", "flood", "all", "controller", "local", "none", "any"];
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_number = text.bytes().all(|b| b.is_ascii_digit())
        || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    is_number || WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn plain_word(text: &str, longest: usize) -> Option<String> {
    let first = text.bytes().next()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    (text.len() <= longest && text.bytes().all(plain) && !b"-.".contains(&first))
        .then(|| text.to_owned())
}

fn is_interface(text: &str) -> bool {
    let bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    (1..=15).contains(&text.len()) && !text.contains(bad) && text != "." && text != ".."
}

/// Names of directory services have spaces and backslashes in them; a database's line is divided by colons (passwd(5)).
fn is_account(text: &str) -> bool {
    let bad = |c: char| c == ':' || c == '/' || c.is_control();
    (1..=255).contains(&text.len()) && !text.contains(bad) && !text.starts_with(['-', '+', ' '])
}

fn is_netns(text: &str) -> bool {
    let clean = !text.is_empty() && !text.contains(char::is_control);
    clean && (text.starts_with('/') || !text.contains('/') && text != "." && text != "..")
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts
            .next()
            .filter(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    (parts.next().is_none() && Mac::new(bytes).is_some()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_parses_to_the_same_value() {
        fn check<T: FromStr<Err = BadText> + fmt::Display + PartialEq + fmt::Debug>(
            texts: &[&str],
        ) {
            for text in texts {
                let value: T = text.parse().unwrap();
                assert_eq!(value.to_string().parse::<T>().unwrap(), value, "{text}");
            }
        }
        check::<Dpid>(&["1", "00000000000000ff", "0xabc", "ffffffffffffffff"]);
        check::<Cookie>(&["0", "0xffffffffffffffff", "42"]);
        check::<Mac>(&["02:00:00:00:00:01", "FE:ff:ff:ff:ff:ff"]);
        check::<Peer>(&["sw1:to-sw0"]);
        check::<Netns>(&["guest1", "/proc/1/ns/net"]);
        check::<Dscp>(&["0", "63", "uniform"]);
        check::<UserName>(&["libvirt-qemu", "64055", "DOMAIN\\domain users"]);
        check::<FileMode>(&["0660", "600", "0000", "777"]);
        check::<SocketPath>(&["/run/suiro/vm1.sock", &format!("/{}", "x".repeat(106))]);
    }

    #[test]
    fn texts_that_would_mislead_are_refused() {
        fn refuse<T: FromStr<Err = BadText> + fmt::Debug>(texts: &[&str]) {
            for text in texts {
                assert!(text.parse::<T>().is_err(), "{text:?} was accepted");
            }
        }
        refuse::<SwitchName>(&["", "../x", "a/b", ".hidden", "-x", "a b", &"x".repeat(33), "ü"]);
        refuse::<PortName>(&["sixteen-bytes-xx", ""]);
        refuse::<PortName>(&["2", "007", "0x1f", "in_port", "LOCAL", "All", "normal", "any"]);
        for name in ["2a", "p2", "0xg", "local0", "x0"] {
            assert_eq!(name.parse::<PortName>().unwrap().to_string(), name);
        }
        refuse::<SteerPoint>(&["", "a:1", "switch:", "switch:a/b"]);
        for name in ["eth0", "switch:sw0"] {
            assert_eq!(name.parse::<SteerPoint>().unwrap().to_string(), name);
        }
        refuse::<IfName>(&["", ".", "..", "a/b", "a:1", "a b", "sixteen-bytes-xx"]);
        refuse::<Netns>(&["", "a/b", "..", "x\n"]);
        refuse::<Dscp>(&["", "64", "-1", "+1", "pipe"]);
        refuse::<SocketPath>(&[
            "",
            "vm1.sock",
            "/run/",
            "/run/\n",
            &format!("/{}", "x".repeat(107)),
        ]);
        refuse::<UserName>(&["", "-R", "a:b", "../x", "x\n"]);
        refuse::<FileMode>(&["", "66", "0668", "+660", "00660", "1660", "rw-", "0o660"]);
        refuse::<KeyPath>(&["", "tun0.keys", "/etc/", "/etc/\n"]);
        refuse::<Dpid>(&["", "0x", "12345678901234567", "+1", "x"]);
        refuse::<Mac>(&[
            "01:00:00:00:00:01",
            "00:00:00:00:00:00",
            "2:0:0:0:0:1",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "+2:00:00:00:00:01",
        ]);
        refuse::<Peer>(&["sw1", "sw1:", ":p", "a:b:c"]);
    }

    #[test]
    fn a_derived_datapath_id_is_stable_and_looks_like_a_local_mac() {
        let name: SwitchName = "sw0".parse().unwrap();
        let id = Dpid::derived("node-a", &name);
        assert_eq!(id, Dpid::derived("node-a", &name));
        assert_ne!(id, Dpid::derived("node-b", &name));
        assert_eq!(id.get() >> 40 & 0b11, 0b10);
    }
}
