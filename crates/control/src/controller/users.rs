//! Users, and who a caller is.

use super::{Controller, now_s};
use crate::caller::{Caller, Peer, Shown};
use crate::fault;
use crate::people::{User, digest_of};
use api::{NewToken, Role, TokenKind, UserSpec, UserView};
use axum::http::StatusCode;
use domain::Name;
use serve::error::ApiError;

/// The longest that a user's token is good. Chosen: a year of a course.
const TOKEN_MAX_S: u64 = 366 * 86_400;

impl Controller {
    /// Makes a user, or gives the one of that name another role and another token.
    ///
    /// # Errors
    /// Role and tenant do not go together, the domain has no such tenant, the time is too long, or the store refuses.
    pub fn put_user(&self, name: &Name, spec: UserSpec) -> Result<NewToken, ApiError> {
        let bad = |cause: String, remedy: &str| {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            fault::refused(status, format!("user {name}"), "make it", cause, remedy)
        };
        match (&spec.tenant, spec.role) {
            (Some(_), Role::Operator) => {
                return Err(bad("operators are of no tenant".into(), "leave --tenant out"));
            }
            (None, Role::User | Role::Viewer) => {
                return Err(bad("it is of no tenant".into(), "say whose slices: --tenant NAME"));
            }
            (Some(tenant), _) if !self.has_tenant(tenant) => {
                let cause = format!("the domain has no tenant {tenant}");
                return Err(bad(cause, "declare it: suiro apply -f domain.yaml"));
            }
            _ => {}
        }
        if !(1..=TOKEN_MAX_S).contains(&spec.for_s) {
            let cause = format!("its token is to be good for {} s", spec.for_s);
            return Err(bad(cause, "let it be good for a second to a year: --for 90d"));
        }
        let token = self.new_token(TokenKind::User)?;
        let UserSpec { tenant, role, for_s } = spec;
        let until_s = now_s() + for_s;
        let (name, mut people) = (name.to_string(), self.people());
        let password = people.users.get(&name).and_then(|user| user.password.clone());
        let user = User { tenant, role, digest: digest_of(&token), until_s, password };
        people.users.put(&*self.store, &name, Some(user))?;
        people.end_sessions(&*self.store, &name, 0)?;
        Ok(NewToken { token, until_s })
    }

    /// All users.
    pub fn users(&self) -> Vec<UserView> {
        self.people().users.iter().map(|(name, user)| user.view(name)).collect()
    }

    /// Removes a user; the token is worth nothing from now on.
    ///
    /// # Errors
    /// There is none.
    pub fn remove_user(&self, name: &Name) -> Result<(), ApiError> {
        let mut people = self.people();
        if people.users.get(&name.to_string()).is_none() {
            return Err(no_user(&name.to_string()));
        }
        people.end_sessions(&*self.store, &name.to_string(), 0)?;
        people.users.put(&*self.store, &name.to_string(), None)
    }

    /// Who asks.
    ///
    /// # Errors
    /// A certificate or token that is worth nothing any more.
    pub fn caller(&self, peer: &Peer, shown: &Shown) -> Result<Caller, ApiError> {
        let unknown = |thing: &str, cause: &str, remedy: &str| {
            fault::refused(StatusCode::UNAUTHORIZED, thing, "know who asks", cause, remedy)
        };
        let certificate = match peer {
            Peer::Here(_) => return Ok(Caller::Root),
            Peer::There(_, certificate) => *certificate,
            Peer::Near(_) => None,
        };
        let now = now_s();
        let mut people = self.people();
        if let Some(fingerprint) = certificate {
            let node = people.node_of(fingerprint).and_then(|name| name.parse().ok());
            return node.map(Caller::Node).ok_or_else(|| {
                unknown(
                    "node's certificate",
                    "its node was forgotten, or has joined anew",
                    "join again with a token: suiro domain token add",
                )
            });
        }
        let token = match shown {
            Shown::Nothing => return Ok(Caller::Nobody),
            Shown::Token(token) => token,
            Shown::Cookie(secret) => {
                return people.signed_in(&*self.store, secret, now).ok_or_else(|| {
                    let cause = "it has ended, or an operator has ended it";
                    unknown("session", cause, "sign in again")
                });
            }
        };
        let (name, user) = people.user_of(token, now).ok_or_else(|| {
            unknown(
                "user's token",
                "no such token was given out, it was taken back, or its time is over",
                "ask an operator for another (suiro domain user add), and log in with it: suiro login",
            )
        })?;
        Ok(user.caller(name))
    }

    /// Whether that caller is still who it was. It is no request of a session's.
    pub fn still(&self, peer: &Peer, shown: &Shown, caller: &Caller) -> bool {
        match shown {
            Shown::Cookie(secret) if !matches!(peer, Peer::Here(_)) => {
                self.people().of_session(secret, now_s()).as_ref() == Some(caller)
            }
            _ => self.caller(peer, shown).is_ok_and(|now| now == *caller),
        }
    }

    fn has_tenant(&self, wanted: &str) -> bool {
        self.state().world.domain().tenants.keys().any(|tenant| tenant.to_string() == wanted)
    }
}

/// There is no user of that name.
pub fn no_user(name: &str) -> ApiError {
    let (thing, remedy) = (format!("user {name}"), "list them: suiro domain user list");
    fault::refused(StatusCode::NOT_FOUND, thing, "find it", "there is none", remedy)
}
