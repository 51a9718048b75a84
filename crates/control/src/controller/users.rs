//! Users, and who a caller is.

use super::{Controller, now_s};
use crate::caller::{Caller, Peer};
use crate::fault;
use crate::people::{User, digest_of};
use api::{NewToken, Role, Token, TokenKind, UserSpec, UserView};
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
        let user = User { tenant, role, digest: digest_of(&token), until_s };
        self.people().users.put(&*self.store, &name.to_string(), Some(user))?;
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
            let remedy = "list them: suiro domain user list";
            let thing = format!("user {name}");
            return Err(fault::refused(
                StatusCode::NOT_FOUND,
                thing,
                "find it",
                "there is none",
                remedy,
            ));
        }
        people.users.put(&*self.store, &name.to_string(), None)
    }

    /// Who asks.
    ///
    /// # Errors
    /// A certificate or token that is worth nothing any more.
    pub fn caller(&self, peer: &Peer, token: Option<&Token>) -> Result<Caller, ApiError> {
        let unknown = |thing: &str, cause: &str, remedy: &str| {
            fault::refused(StatusCode::UNAUTHORIZED, thing, "know who asks", cause, remedy)
        };
        let shown = match peer {
            Peer::Here(_) => return Ok(Caller::Root),
            Peer::There(_, shown) => *shown,
        };
        let people = self.people();
        if let Some(fingerprint) = shown {
            let node = people.node_of(fingerprint).and_then(|name| name.parse().ok());
            return node.map(Caller::Node).ok_or_else(|| {
                unknown(
                    "node's certificate",
                    "its node was forgotten, or has joined anew",
                    "join again with a token: suiro domain token add",
                )
            });
        }
        let Some(token) = token else { return Ok(Caller::Nobody) };
        let found = people.user_of(token, now_s());
        let (name, user) = found.ok_or_else(|| {
            unknown(
                "user's token",
                "no such token was given out, it was taken back, or its time is over",
                "ask an operator for another (suiro domain user add), and log in with it: suiro login",
            )
        })?;
        let User { tenant, role, until_s, .. } = user.clone();
        Ok(Caller::User { name: name.into(), tenant, role, until_s })
    }

    fn has_tenant(&self, wanted: &str) -> bool {
        self.state().world.domain().tenants.keys().any(|tenant| tenant.to_string() == wanted)
    }
}
