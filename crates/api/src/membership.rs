//! Who may talk to a domain's controller: tokens, certificates of nodes, users.
//!
//! A token names the authority that it is for by the fingerprint of its certificate, so whoever has one knows the right controller from any other.

use crate::{BadText, Pin};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// The name that every controller's certificate is for: its address may be any.
pub const CONTROLLER_NAME: &str = "control.suiro";
/// The port of a controller if its address has none. Chosen: beside OpenFlow's, unassigned.
pub const CONTROL_PORT: u16 = 7443;

/// What a token is good for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TokenKind {
    /// A host becomes a node.
    Join,
    /// A person, or a program of one, asks.
    User,
}

impl TokenKind {
    const ALL: [Self; 2] = [Self::Join, Self::User];

    fn word(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::User => "user",
        }
    }
}

/// A secret that the controller has given out: `join-ID-SECRET-AUTHORITY`, the last three in hexadecimal digits.
///
/// It is printed where it must be, and in no debugging output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token {
    /// What it is good for.
    pub kind: TokenKind,
    /// Which one, as lists show it.
    pub id: [u8; 4],
    /// The secret.
    pub secret: [u8; 32],
    /// The fingerprint of the authority's certificate.
    pub authority: [u8; 32],
}

impl Token {
    /// The authority's fingerprint.
    pub fn authority(&self) -> Pin {
        Pin::new(self.authority)
    }

    /// Which one, as lists show it.
    pub fn id(&self) -> String {
        digits(&self.id)
    }
}

impl FromStr for Token {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let mut words = text.trim().split('-');
        let mut token = || {
            let kind = words.next()?;
            let kind = TokenKind::ALL.into_iter().find(|known| known.word() == kind)?;
            let token = Self {
                kind,
                id: bytes(words.next()?)?,
                secret: bytes(words.next()?)?,
                authority: bytes(words.next()?)?,
            };
            words.next().is_none().then_some(token)
        };
        token().ok_or_else(|| BadText {
            // What was nearly a token stays out of logs.
            given: text.chars().take(4).chain("…".chars()).collect(),
            what: "a token",
            form: "it as it was printed, whole: join-… or user-… with 8, 64 and 64 hexadecimal digits",
        })
    }
}

impl TryFrom<String> for Token {
    type Error = BadText;

    fn try_from(text: String) -> Result<Self, BadText> {
        text.parse()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.to_string()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secret, authority) = (digits(&self.secret), digits(&self.authority));
        write!(f, "{}-{}-{secret}-{authority}", self.kind.word(), self.id())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} token {}", self.kind.word(), self.id())
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut found = [0; N];
    if text.len() != 2 * N
        || !text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    {
        return None;
    }
    for (byte, pair) in found.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(found)
}

/// A host asks to become a node of the domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// Which node.
    pub node: String,
    /// That it may.
    #[schema(value_type = String)]
    pub token: Token,
    /// A certificate signing request (PKCS #10) in PEM form. Only its key is used.
    pub request: String,
}

/// A node asks for its next certificate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// A certificate signing request (PKCS #10) in PEM form. Only its key is used.
    pub request: String,
}

/// A node's certificate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Joined {
    /// In PEM form.
    pub certificate: String,
    /// From when on it is good, in seconds since 1970.
    pub from_s: u64,
    /// Until when.
    pub until_s: u64,
}

/// A join token that is wished for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinTokenSpec {
    /// Which nodes may join by it, each once.
    pub nodes: Vec<String>,
    /// For how many seconds.
    pub for_s: u64,
}

/// A token as it is shown once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// The token.
    #[schema(value_type = String)]
    pub token: Token,
    /// Until when it is good, in seconds since 1970.
    pub until_s: u64,
}

/// A join token as lists show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JoinTokenView {
    /// Which one.
    pub id: String,
    /// Until when it is good, in seconds since 1970.
    pub until_s: u64,
    /// Nodes that may join by it, and from which address those have that did.
    pub nodes: BTreeMap<String, Option<String>>,
}

/// What a user may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See the tenant's slices.
    Viewer,
    /// See and change them.
    User,
    /// Everything, in the whole domain.
    Operator,
}

impl Role {
    /// The words users write.
    pub const WORDS: [&'static str; 3] = ["viewer", "user", "operator"];

    /// The word.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

impl FromStr for Role {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let all = [Self::Viewer, Self::User, Self::Operator];
        all.into_iter().find(|role| role.word() == text).ok_or_else(|| BadText {
            given: text.into(),
            what: "a role",
            form: "viewer, user or operator",
        })
    }
}

/// A user that is wished for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserSpec {
    /// Whose slices; none for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What the user may do.
    pub role: Role,
    /// For how many seconds token and password are good.
    pub for_s: u64,
}

/// A user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserView {
    /// The name.
    pub name: String,
    /// Whose slices; none for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What the user may do.
    pub role: Role,
    /// Until when token and password are good, in seconds since 1970; none for the host's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<u64>,
}

/// A change that somebody made, or wanted to make.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditLine {
    /// Which one, from 1.
    pub number: u64,
    /// When, in seconds since 1970.
    pub at_s: u64,
    /// Who: `user alice of red from 192.0.2.7:40112`, `root`.
    pub who: String,
    /// What: the request.
    pub what: String,
    /// The answer's status.
    pub status: u16,
    /// Why it was refused, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token { kind: TokenKind::Join, id: [0x3f, 0, 1, 0xff], secret: [7; 32], authority: [9; 32] }
    }

    #[test]
    fn a_token_reads_as_it_was_printed_and_nothing_else_is_one() {
        let text = token().to_string();
        assert_eq!(text.parse::<Token>().unwrap(), token());
        assert_eq!(format!(" {text}\n").parse::<Token>().unwrap(), token());
        let user = Token { kind: TokenKind::User, ..token() };
        assert_eq!(user.to_string().parse::<Token>().unwrap(), user);
        for at in 0..text.len() {
            assert!(text[..at].parse::<Token>().is_err(), "{at}");
        }
        for bad in [text.to_uppercase(), format!("{text}-"), text.replacen("07", "+7", 1)] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }

    #[test]
    fn neither_debugging_nor_an_error_shows_a_secret() {
        assert_eq!(format!("{:?}", token()), "join token 3f0001ff");
        let error = token().to_string()[..100].parse::<Token>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("0707"), "{error}");
    }
}
