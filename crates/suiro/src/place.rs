//! Where a controller is, as people write it: a socket's path, or an address.

use api::{BadText, CONTROL_PORT};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a controller is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControllerPlace {
    /// Its socket on this host.
    Socket(PathBuf),
    /// `HOST:PORT`.
    Address(String),
}

impl FromStr for ControllerPlace {
    type Err = BadText;

    /// What has a slash is a path. An address without a port has the usual one; IPv6 addresses stand in brackets.
    fn from_str(text: &str) -> Result<Self, BadText> {
        if text.contains('/') {
            return Ok(Self::Socket(text.into()));
        }
        let bad = || BadText {
            given: text.into(),
            what: "a controller's place",
            form: "HOST, HOST:PORT, [IPV6]:PORT, or a socket's path",
        };
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| bad())?),
            _ => (text, CONTROL_PORT),
        };
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_fine = !host.is_empty() && port != 0 && host.contains(':') == is_bracketed;
        if is_fine { Ok(Self::Address(format!("{host}:{port}"))) } else { Err(bad()) }
    }
}

impl fmt::Display for ControllerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Address(address) => f.write_str(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_slash_is_a_socket_and_an_address_may_leave_its_port_out() {
        let of = |text: &str| text.parse::<ControllerPlace>().map(|place| place.to_string()).ok();
        assert_eq!(of("/run/x.sock").as_deref(), Some("/run/x.sock"));
        assert_eq!(of("./x").as_deref(), Some("./x"));
        assert_eq!(of("ctl").as_deref(), Some("ctl:7443"));
        assert_eq!(of("192.0.2.1:99").as_deref(), Some("192.0.2.1:99"));
        assert_eq!(of("[2001:db8::1]").as_deref(), Some("[2001:db8::1]:7443"));
        assert_eq!(of("[2001:db8::1]:99").as_deref(), Some("[2001:db8::1]:99"));
        for bad in ["", ":99", "ctl:", "ctl:x", "ctl:0", "2001:db8::1", "ctl:70000"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
