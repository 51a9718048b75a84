//! Nodes that join, and the tokens that they join by.

use super::{Controller, now_s, random};
use crate::authority::{NODE_S, sha256};
use crate::caller::Peer;
use crate::fault;
use crate::people::{Closed, Issued, JoinToken, Member, People, Used, digest_of};
use api::{JoinRequest, JoinTokenSpec, JoinTokenView, Joined, NewToken, Pin, Token, TokenKind};
use axum::http::StatusCode;
use domain::Name;
use serve::error::ApiError;

/// The longest that a token to join by is good. Chosen: a week of building hosts.
const TOKEN_MAX_S: u64 = 7 * 86_400;

impl Controller {
    /// Makes a token to join by.
    ///
    /// # Errors
    /// The domain has no such node, the time is too long, or the store refuses.
    pub fn add_token(&self, spec: &JoinTokenSpec) -> Result<NewToken, ApiError> {
        let bad = |cause: String, remedy: &str| {
            fault::refused(StatusCode::UNPROCESSABLE_ENTITY, "join token", "make it", cause, remedy)
        };
        if spec.nodes.is_empty() {
            return Err(bad("it is for no node".into(), "name one: --node NAME"));
        }
        if !(1..=TOKEN_MAX_S).contains(&spec.for_s) {
            let cause = format!("it is to be good for {} s", spec.for_s);
            return Err(bad(cause, "let it be good for a second to seven days: --for 1h"));
        }
        for node in &spec.nodes {
            self.known(node)?;
        }
        let token = self.new_token(TokenKind::Join)?;
        let until_s = now_s() + spec.for_s;
        let nodes = spec.nodes.iter().map(|node| (node.clone(), None)).collect();
        let record = JoinToken { digest: digest_of(&token), until_s, nodes };
        self.people().tokens.put(&*self.store, &token.id(), Some(record))?;
        Ok(NewToken { token, until_s })
    }

    /// All tokens to join by.
    pub fn tokens(&self) -> Vec<JoinTokenView> {
        self.people().tokens.iter().map(|(id, token)| token.view(id)).collect()
    }

    /// Takes a token back. Who has joined by it stays.
    ///
    /// # Errors
    /// There is none.
    pub fn remove_token(&self, id: &str) -> Result<(), ApiError> {
        let mut people = self.people();
        if people.tokens.get(id).is_none() {
            let remedy = "list them: suiro domain token list";
            let thing = format!("join token {id}");
            return Err(fault::refused(
                StatusCode::NOT_FOUND,
                thing,
                "find it",
                "there is none",
                remedy,
            ));
        }
        people.tokens.put(&*self.store, id, None)
    }

    /// Lets a node in: its certificate.
    ///
    /// # Errors
    /// The token does not let it in, the domain has no such node, or its request cannot be read.
    pub fn join(&self, request: &JoinRequest, from: &Peer) -> Result<Joined, ApiError> {
        let (id, node, now) = (request.token.id(), &request.node, now_s());
        let digest = Pin::new(sha256(request.request.as_bytes()));
        let mut people = self.people();
        let known = people.tokens.get(&id).cloned();
        let admitted = known
            .as_ref()
            .ok_or(Closed::Unknown)
            .and_then(|token| token.admits(&request.token, node, &digest, now));
        admitted.map_err(|closed| refused(&id, node, closed))?;
        self.known(node)?;
        // Before the token counts as used: a request that cannot be read uses none.
        let (certificate, issued) = self.sign(node, &request.request, now)?;
        let until_s = issued.until_s;
        if let Some(mut token) = known {
            token
                .nodes
                .insert(node.clone(), Some(Used { from: from.to_string(), request: digest }));
            people.tokens.put(&*self.store, &id, Some(token))?;
        }
        // Who joins anew has another key: what was before is worth nothing from now on.
        let member = Member { certificates: vec![issued] };
        people.members.put(&*self.store, node, Some(member))?;
        Ok(Joined { certificate, from_s: now, until_s })
    }

    /// The next certificate of a node.
    ///
    /// # Errors
    /// It has not joined, or its request cannot be read.
    pub fn renew(&self, node: &Name, request: &str) -> Result<Joined, ApiError> {
        let (name, now) = (node.to_string(), now_s());
        let mut people = self.people();
        let member = people.members.get(&name).cloned().ok_or_else(|| not_joined(&name))?;
        let (certificate, issued) = self.sign(&name, request, now)?;
        let until_s = issued.until_s;
        people.members.put(&*self.store, &name, Some(member.with(issued, now)))?;
        Ok(Joined { certificate, from_s: now, until_s })
    }

    /// Forgets a node: its certificates are worth nothing, tokens do not let it in, and nothing is waited for that only it could confirm.
    ///
    /// # Errors
    /// Neither the domain nor the list of members has it, or the store refuses.
    pub fn forget(&self, node: &Name) -> Result<(), ApiError> {
        let name = node.to_string();
        let mut people = self.people();
        if people.members.get(&name).is_none() {
            self.known(&name)?;
        }
        people.close(self, &name)?;
        people.members.put(&*self.store, &name, None)?;
        drop(people);
        let mut state = self.state();
        self.confirm(&mut state, node, &|_| None, true)?;
        state.nodes.remove(node);
        drop(state);
        self.moved();
        Ok(())
    }

    fn sign(&self, node: &str, request: &str, now: u64) -> Result<(String, Issued), ApiError> {
        let (certificate, fingerprint) = self.authority.sign(node, request, now)?;
        Ok((certificate, Issued { fingerprint, until_s: now + NODE_S }))
    }

    /// A token that nobody has yet.
    pub(super) fn new_token(&self, kind: TokenKind) -> Result<Token, ApiError> {
        let bytes: [u8; 36] = random()?;
        let (id, secret) = bytes.split_at(4);
        let authority = self.authority.fingerprint();
        Ok(Token {
            kind,
            id: id.try_into().expect("four bytes"),
            secret: secret.try_into().expect("the other 32"),
            authority,
        })
    }

    /// The domain has a node of that name.
    fn known(&self, node: &str) -> Result<(), ApiError> {
        let state = self.state();
        let nodes = &state.world.domain().nodes;
        if nodes.keys().any(|name| name.to_string() == node) {
            return Ok(());
        }
        Err(super::reports::no_node(node))
    }
}

impl People {
    /// No token lets that node in any more.
    fn close(&mut self, controller: &Controller, node: &str) -> Result<(), ApiError> {
        let open: Vec<_> = self
            .tokens
            .iter()
            .filter(|(_, token)| token.nodes.contains_key(node))
            .map(|(id, token)| (id.to_owned(), token.clone()))
            .collect();
        for (id, mut token) in open {
            token.nodes.remove(node);
            let left = (!token.nodes.is_empty()).then_some(token);
            self.tokens.put(&*controller.store, &id, left)?;
        }
        Ok(())
    }
}

fn refused(id: &str, node: &str, closed: Closed) -> ApiError {
    let another = format!("ask the operator for another: suiro domain token add --node {node}");
    let (cause, remedy) = match closed {
        Closed::Unknown => ("no such token was given out, or it was taken back".into(), another),
        Closed::Over => ("its time is over".into(), another),
        Closed::Others(nodes) => (format!("it is for {}", nodes.join(", ")), another),
        Closed::Used(from) => (
            format!("somebody at {from} has used it to join as {node}"),
            format!(
                "if that was not this host, the token was stolen: suiro domain node forget {node}, then suiro domain token add --node {node}"
            ),
        ),
    };
    let thing = format!("join token {id}");
    fault::refused(StatusCode::FORBIDDEN, thing, &format!("join as node {node}"), cause, &remedy)
}

fn not_joined(node: &str) -> ApiError {
    let remedy = format!("join with a token: suiro domain token add --node {node}");
    fault::refused(
        StatusCode::FORBIDDEN,
        format!("node {node}"),
        "renew its certificate",
        "it has not joined, or was forgotten",
        &remedy,
    )
}
