//! Sign-in and sign-out, and passwords.

use super::{Controller, now_s, random};
use crate::attempts::Wait;
use crate::caller::Caller;
use crate::fault;
use crate::password;
use crate::people::{People, User};
use crate::sessions::{OF_A_USER, Secret, Session};
use crate::store::Store;
use axum::http::StatusCode;
use domain::Name;
use serve::error::ApiError;
use std::net::IpAddr;
use std::sync::PoisonError;

/// A sign-in that did not come about.
pub enum Failed {
    /// There were too many tries: so many seconds are to be waited.
    Often(u64),
    /// Name and password are not those of a user; whether the audit keeps that.
    Wrong(bool),
    /// Something of ours.
    Ours(ApiError),
}

impl Controller {
    /// Gives a user a password, in place of the one before. The user's sessions end.
    ///
    /// # Errors
    /// There is no such user, the password is too short or too long, or the store refuses.
    pub fn put_password(&self, name: &Name, password: &str) -> Result<(), ApiError> {
        let name = name.to_string();
        if !password::LENGTH.contains(&password.len()) {
            return Err(fault::refused(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("password of {name}"),
                "keep it",
                format!("it has {} bytes", password.len()),
                "choose one of 12 to 256 bytes: four words are better than eight signs",
            ));
        }
        let kept = password::kept(password, &random()?);
        let mut people = self.people();
        let user = people.users.get(&name).cloned().ok_or_else(|| super::users::no_user(&name))?;
        people.end_sessions(&*self.store, &name, 0)?;
        people.users.put(&*self.store, &name, Some(User { password: Some(kept), ..user }))
    }

    /// Signs a user in. It takes as long for who is none.
    ///
    /// # Errors
    /// Why not.
    pub fn sign_in(
        &self,
        name: &str,
        given: &str,
        from: IpAddr,
    ) -> Result<(Secret, Session), Failed> {
        let now = now_s();
        self.attempts().sign_in(name, from, now).map_err(|Wait(wait)| Failed::Often(wait))?;
        let user = self.people().users.get(name).filter(|user| now < user.until_s).cloned();
        let kept = user.as_ref().and_then(|user| user.password.clone());
        let is_read = given.len() <= *password::LENGTH.end();
        if !(password::is(if is_read { given } else { "" }, kept.as_deref()) && is_read) {
            let keep = kept.is_some() && self.attempts().is_line(name, now);
            return Err(Failed::Wrong(keep));
        }
        self.attempts().good(name, from);
        let secret = Secret::new(random().map_err(Failed::Ours)?);
        let mut people = self.people();
        // The password, or the user, may have gone while this one was compared.
        if people.users.get(name).is_none_or(|now| Some(now) != user.as_ref()) {
            return Err(Failed::Wrong(false));
        }
        let session = Session::new(name, now);
        let put = people.end_sessions(&*self.store, name, OF_A_USER - 1).and_then(|()| {
            people.sessions.put(&*self.store, &secret.digest(), Some(session.clone()))
        });
        put.map(|()| (secret, session)).map_err(Failed::Ours)
    }

    /// A session that goes on.
    pub fn session(&self, secret: &Secret) -> Option<Session> {
        self.people().sessions.get(&secret.digest()).filter(|it| it.lives(now_s())).cloned()
    }

    /// Ends a session.
    ///
    /// # Errors
    /// The store refuses.
    pub fn sign_out(&self, secret: &Secret) -> Result<(), ApiError> {
        self.people().sessions.put(&*self.store, &secret.digest(), None)
    }

    fn attempts(&self) -> std::sync::MutexGuard<'_, crate::attempts::Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl People {
    /// Whose session that is, if it goes on.
    pub fn of_session(&self, secret: &Secret, now_s: u64) -> Option<Caller> {
        let session = self.sessions.get(&secret.digest()).filter(|it| it.lives(now_s))?;
        let user = self.users.get(&session.user).filter(|user| now_s < user.until_s)?;
        Some(user.caller(&session.user))
    }

    /// The same, of a request that shows it: it goes on for longer then.
    pub fn signed_in(&mut self, store: &dyn Store, secret: &Secret, now_s: u64) -> Option<Caller> {
        let (caller, digest) = (self.of_session(secret, now_s)?, secret.digest());
        let seen = self.sessions.get(&digest).and_then(|session| session.seen(now_s));
        if let Some(seen) = seen
            && let Err(error) = self.sessions.put(store, &digest, Some(seen))
        {
            tracing::warn!("a session ends early: {}", error.into_fault());
        }
        Some(caller)
    }

    /// Ends a user's sessions but for the newest `left`, and everybody's that are over.
    ///
    /// # Errors
    /// The store refuses.
    pub fn end_sessions(
        &mut self,
        store: &dyn Store,
        user: &str,
        left: usize,
    ) -> Result<(), ApiError> {
        let now = super::now_s();
        let (own, others): (Vec<_>, Vec<_>) =
            self.sessions.iter().partition(|(_, session)| session.user == user);
        let over = others.into_iter().filter(|(_, session)| !session.lives(now));
        let mut own = own;
        own.sort_by_key(|(_, session)| std::cmp::Reverse(session.seen_s));
        let going = own.into_iter().skip(left).chain(over);
        let going: Vec<String> = going.map(|(digest, _)| digest.to_owned()).collect();
        going.iter().try_for_each(|digest| self.sessions.put(store, digest, None))
    }
}
