//! Who asks: what the connection says, and what that is worth.

use crate::sessions::Secret;
use api::{Role, Token};
use axum::http::{HeaderMap, header};
use domain::Name;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Who is at the other end of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A process of this host, by the unix socket: its user and its number, as the kernel knows them (unix(7), `SO_PEERCRED`).
    Here(Option<(u32, i32)>),
    /// Somebody at an address, by TLS; with the fingerprint of the certificate, if one of ours was shown.
    There(SocketAddr, Option<[u8; 32]>),
    /// Somebody at a loopback address of this host, without TLS.
    Near(SocketAddr),
}

impl Peer {
    /// Whether it came in on loopback, without TLS.
    pub fn is_near(&self) -> bool {
        matches!(self, Self::Near(_))
    }

    /// The address that it came from; loopback's where it came by the unix socket.
    pub fn address(&self) -> IpAddr {
        match self {
            Self::Here(_) => Ipv4Addr::LOCALHOST.into(),
            Self::There(address, _) | Self::Near(address) => address.ip(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(Some((uid, pid))) => write!(f, "user {uid} of this host, process {pid}"),
            Self::Here(None) => f.write_str("somebody of this host"),
            Self::There(address, _) | Self::Near(address) => address.fmt(f),
        }
    }
}

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Who may open the unix socket: may do everything.
    Root,
    /// A node, by its certificate.
    Node(Name),
    /// A user, by token or session.
    User {
        /// The name.
        name: String,
        /// Whose slices; none for an operator.
        tenant: Option<String>,
        /// What the user may do.
        role: Role,
        /// Until when token and password are good.
        until_s: u64,
    },
    /// Nobody whom the controller knows.
    Nobody,
}

impl Caller {
    /// Whether it may see all.
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::Root | Self::User { role: Role::Operator, .. })
    }

    /// Whether it may see what is of that tenant.
    pub fn sees(&self, tenant: &str) -> bool {
        match self {
            Self::Root | Self::User { role: Role::Operator, .. } => true,
            Self::User { tenant: own, .. } => own.as_deref() == Some(tenant),
            Self::Node(_) | Self::Nobody => false,
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Node(name) => write!(f, "node {name}"),
            Self::User { name, tenant: Some(tenant), .. } => write!(f, "user {name} of {tenant}"),
            Self::User { name, .. } => write!(f, "operator {name}"),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}

/// How a request shows whose it is, if its connection does not.
pub enum Shown {
    /// Not at all.
    Nothing,
    /// By a token of a user's.
    Token(Token),
    /// By the cookie of a session.
    Cookie(Secret),
}

impl Shown {
    /// What a request shows. Who shows a token means that.
    pub fn by(headers: &HeaderMap, peer: &Peer) -> Self {
        let cookie = || Secret::of(headers, peer.is_near()).map(Self::Cookie);
        bearer(headers).map(Self::Token).or_else(cookie).unwrap_or(Self::Nothing)
    }
}

/// The token that a request comes with, if it comes with one that can be read (RFC 6750).
fn bearer(headers: &HeaderMap) -> Option<Token> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ")?.parse().ok()
}
