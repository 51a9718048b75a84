//! Whom the controller knows: nodes by certificate, tokens to join by, users. Secrets are kept as digests.

use crate::authority::sha256;
use crate::caller::Caller;
use crate::sessions::Session;
use crate::shelf::Shelf;
use crate::store::Store;
use api::{JoinTokenView, Pin, Role, Token, TokenKind, UserView};
use serde::{Deserialize, Serialize};
use serve::error::ApiError;
use std::collections::BTreeMap;

/// Certificates of a node that are good at a time: the one in use, the next one, and one whose answer was lost.
const CERTIFICATES_MAX: usize = 3;

/// All of them.
pub struct People {
    /// Nodes that have joined, by name.
    pub members: Shelf<Member>,
    /// Tokens to join by, by id.
    pub tokens: Shelf<JoinToken>,
    /// Users, by name.
    pub users: Shelf<User>,
    /// Sessions, by the digest of their secret.
    pub sessions: Shelf<Session>,
}

/// A node that has joined.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its certificates that are good, the newest last.
    pub certificates: Vec<Issued>,
}

/// A certificate that was signed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issued {
    /// Its fingerprint.
    pub fingerprint: Pin,
    /// Until when it is good, in seconds since 1970.
    pub until_s: u64,
}

/// A token to join by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinToken {
    /// The digest of the whole token.
    pub digest: Pin,
    /// Until when it is good, in seconds since 1970.
    pub until_s: u64,
    /// Nodes that may join by it; how those did that have.
    pub nodes: BTreeMap<String, Option<Used>>,
}

/// How a token was used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// From where.
    pub from: String,
    /// The digest of the request: who asks again with the same one did not hear the answer.
    pub request: Pin,
}

/// A user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Whose slices; none for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What the user may do.
    pub role: Role,
    /// The digest of the whole token.
    pub digest: Pin,
    /// Until when token and password are good, in seconds since 1970.
    pub until_s: u64,
    /// What is kept of the password, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// Why a token does not let a node in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Closed {
    /// No such token was given out, or it was taken back.
    Unknown,
    /// Its time is over.
    Over,
    /// It is for other nodes.
    Others(Vec<String>),
    /// Somebody has used it for that node.
    Used(String),
}

impl People {
    /// What a store has.
    ///
    /// # Errors
    /// It cannot be read, or holds what this release cannot read.
    pub fn read(store: &dyn Store) -> Result<Self, ApiError> {
        Ok(Self {
            members: Shelf::read(store, "member/")?,
            tokens: Shelf::read(store, "token/")?,
            users: Shelf::read(store, "user/")?,
            sessions: Shelf::read(store, "session/")?,
        })
    }

    /// Whose certificate has that fingerprint.
    pub fn node_of(&self, fingerprint: [u8; 32]) -> Option<&str> {
        let pin = Pin::new(fingerprint);
        let is_its = |member: &Member| member.certificates.iter().any(|one| one.fingerprint == pin);
        self.members.iter().find(|(_, member)| is_its(member)).map(|(name, _)| name)
    }

    /// Whose token that is, if its time is not over.
    pub fn user_of(&self, token: &Token, now_s: u64) -> Option<(&str, &User)> {
        let digest = digest_of(token);
        let is_its = |user: &User| user.digest == digest && now_s < user.until_s;
        self.users.iter().find(|(_, user)| token.kind == TokenKind::User && is_its(user))
    }
}

impl JoinToken {
    /// Whether a node may join by it with that request.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(
        &self,
        token: &Token,
        node: &str,
        request: &Pin,
        now_s: u64,
    ) -> Result<(), Closed> {
        if token.kind != TokenKind::Join || self.digest != digest_of(token) {
            return Err(Closed::Unknown);
        }
        if now_s >= self.until_s {
            return Err(Closed::Over);
        }
        match self.nodes.get(node) {
            None => Err(Closed::Others(self.nodes.keys().cloned().collect())),
            Some(Some(used)) if used.request != *request => Err(Closed::Used(used.from.clone())),
            Some(_) => Ok(()),
        }
    }

    /// As lists show it.
    pub fn view(&self, id: &str) -> JoinTokenView {
        let from = |used: &Option<Used>| used.as_ref().map(|used| used.from.clone());
        JoinTokenView {
            id: id.into(),
            until_s: self.until_s,
            nodes: self.nodes.iter().map(|(node, used)| (node.clone(), from(used))).collect(),
        }
    }
}

impl Member {
    /// The same with another certificate; what is over, and what is too old, goes.
    #[must_use]
    pub fn with(mut self, issued: Issued, now_s: u64) -> Self {
        self.certificates.retain(|one| one.until_s > now_s);
        self.certificates.push(issued);
        let surplus = self.certificates.len().saturating_sub(CERTIFICATES_MAX);
        self.certificates.drain(..surplus);
        self
    }
}

impl User {
    /// The user as who asks.
    pub fn caller(&self, name: &str) -> Caller {
        let Self { tenant, role, until_s, .. } = self.clone();
        Caller::User { name: name.into(), tenant, role, until_s }
    }

    /// As it is shown.
    pub fn view(&self, name: &str) -> UserView {
        let (tenant, until_s) = (self.tenant.clone(), Some(self.until_s));
        UserView { name: name.into(), tenant, role: self.role, until_s }
    }
}

/// What is kept of a token.
pub fn digest_of(token: &Token) -> Pin {
    Pin::new(sha256(token.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(secret: u8) -> Token {
        Token { kind: TokenKind::Join, id: [1; 4], secret: [secret; 32], authority: [2; 32] }
    }

    #[test]
    fn a_token_lets_each_of_its_nodes_in_once_and_says_why_nobody_else() {
        let nodes = BTreeMap::from([("t1".to_owned(), None), ("o1".to_owned(), None)]);
        let mut kept = JoinToken { digest: digest_of(&token(7)), until_s: 100, nodes };
        let [mine, other] = [Pin::new([1; 32]), Pin::new([2; 32])];
        assert_eq!(kept.admits(&token(7), "t1", &mine, 99), Ok(()));
        assert_eq!(kept.admits(&token(8), "t1", &mine, 99), Err(Closed::Unknown));
        assert_eq!(kept.admits(&token(7), "t1", &mine, 100), Err(Closed::Over));
        let others = Closed::Others(vec!["o1".into(), "t1".into()]);
        assert_eq!(kept.admits(&token(7), "s1", &mine, 99), Err(others));
        let user = Token { kind: TokenKind::User, ..token(7) };
        assert_eq!(kept.admits(&user, "t1", &mine, 99), Err(Closed::Unknown));
        let used = Used { from: "192.0.2.1".into(), request: mine.clone() };
        kept.nodes.insert("t1".into(), Some(used));
        // The answer was lost: the same request once more.
        assert_eq!(kept.admits(&token(7), "t1", &mine, 99), Ok(()));
        let thief = Closed::Used("192.0.2.1".into());
        assert_eq!(kept.admits(&token(7), "t1", &other, 99), Err(thief));
        assert_eq!(kept.admits(&token(7), "o1", &other, 99), Ok(()));
    }

    #[test]
    fn a_node_has_few_certificates_and_none_whose_time_is_over() {
        let issued = |n: u8| Issued { fingerprint: Pin::new([n; 32]), until_s: 10 * u64::from(n) };
        let all = (1..=9).fold(Member::default(), |member, n| member.with(issued(n), 75));
        let left: Vec<_> = all.certificates.iter().map(|one| one.until_s).collect();
        assert_eq!(left, [80, 90]);
        let all = (1..=9).fold(Member::default(), |member, n| member.with(issued(n), 0));
        assert_eq!(all.certificates.len(), CERTIFICATES_MAX);
    }
}
