//! Who a node is in its domain: its key, its certificate, and of which authority they are.
//!
//! One file, its owner's alone, written whole. The key never leaves the host: the controller gets a signing request. A request is on the disk before it
//! is sent, so a node that did not hear the answer sends the same one again, which uses no token twice.

use crate::durable;
use api::{
    As, Client, ClientError, ControllerAt, Fault, JoinRequest, Joined, Pin, RenewRequest, Token,
};
use api::{Method, quoted};
use rcgen::{CertificateParams, KeyPair};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The file in the state directory.
pub(super) const FILE: &str = "domain.identity";

/// What the file has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// As which node.
    node: String,
    /// Whom it believes to be a controller of its domain.
    authority: Pin,
    /// The token that it joined by, or tries to.
    token: String,
    /// The key, in PEM form.
    key: String,
    /// The signing request, in PEM form.
    request: String,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    joined: Option<Joined>,
}

/// Where a node's identity is, and how it gets one.
pub struct Enrolment {
    /// Which node.
    pub node: String,
    /// The controller.
    pub address: String,
    /// By which token, if it is to join.
    pub token: Option<Token>,
    /// How long the controller may be silent.
    pub patience: Duration,
    file: PathBuf,
}

impl Enrolment {
    /// Of a node whose state is in that directory.
    pub fn new(
        (node, address): (&str, &str),
        token: Option<Token>,
        state: &Path,
        patience: Duration,
    ) -> Self {
        let (node, address) = (node.into(), address.into());
        Self { node, address, token, patience, file: state.join(FILE) }
    }

    /// The identity, joining by the token if there is none that fits it.
    ///
    /// # Errors
    /// The controller refuses or does not answer, or there is nothing to join by.
    pub fn identity(&self) -> Result<Identity, ClientError> {
        let kept = self.kept().map_err(ours)?;
        let fits = |kept: &Identity| {
            kept.node == self.node
                && self.token.as_ref().is_none_or(|token| kept.token == token.id())
        };
        match (kept.filter(fits), &self.token) {
            (Some(kept), _) if kept.joined.is_some() => kept.still_good(now_s()).map_err(ours),
            (kept, Some(token)) => {
                let begun = kept.map_or_else(|| self.begin(token), Ok).map_err(ours)?;
                self.join(begun, token)
            }
            (_, None) => Err(ours(Fault::new(
                format!("node {}", self.node),
                "join the domain",
                format!(
                    "{} has no certificate for it, and no token was given",
                    self.file.display()
                ),
                format!(
                    "give it one in a file: suiro domain token add --node {}, then suiro node … --token-file FILE",
                    self.node
                ),
            ))),
        }
    }

    /// A client of the controller with that identity.
    ///
    /// # Errors
    /// Certificate and key are of no use.
    pub fn client(&self, identity: &Identity) -> Result<Client, Fault> {
        let certificate =
            identity.joined.as_ref().map(|it| it.certificate.clone()).unwrap_or_default();
        let who = As::Certificate { certificate, key: identity.key.clone() };
        let controller = ControllerAt::new(&self.address, &identity.authority, who)?;
        Ok(Client::remote(controller, self.patience))
    }

    /// The next identity, got with the one before.
    ///
    /// # Errors
    /// The controller refuses or does not answer: the one before stays.
    pub fn renew(&self, identity: &Identity) -> Result<Identity, ClientError> {
        let (key, request) = key_and_request(&self.node).map_err(ours)?;
        let path = format!("/v1/nodes/{}/certificate", quoted(&self.node));
        let body = RenewRequest { request: request.clone() };
        let joined: Joined =
            self.client(identity).map_err(ours)?.send(Method::POST, &path, &body)?;
        let next = Identity { key, request, joined: Some(joined), ..identity.clone() };
        self.keep(&next).map_err(ours)?;
        Ok(next)
    }

    /// A key and a request, on the disk.
    fn begin(&self, token: &Token) -> Result<Identity, Fault> {
        let (key, request) = key_and_request(&self.node)?;
        let (node, authority) = (self.node.clone(), token.authority());
        let begun = Identity { node, authority, token: token.id(), key, request, joined: None };
        self.keep(&begun)?;
        Ok(begun)
    }

    fn join(&self, begun: Identity, token: &Token) -> Result<Identity, ClientError> {
        let controller = ControllerAt::new(&self.address, &token.authority(), As::Nobody);
        let client = Client::remote(controller.map_err(ours)?, self.patience);
        let (node, request) = (self.node.clone(), begun.request.clone());
        let request = JoinRequest { node, token: token.clone(), request };
        let joined: Joined = client.send(Method::POST, "/v1/join", &request)?;
        let identity = Identity { joined: Some(joined), ..begun };
        self.keep(&identity).map_err(ours)?;
        tracing::info!("joined the domain of {} as node {}", self.address, self.node);
        Ok(identity)
    }

    fn kept(&self) -> Result<Option<Identity>, Fault> {
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.disk("read it", &error)),
        };
        serde_json::from_str(&text).map(Some).map_err(|error| self.disk("read it", &error))
    }

    fn keep(&self, identity: &Identity) -> Result<(), Fault> {
        let text = serde_json::to_string_pretty(identity).expect("an identity is plain data");
        durable::write(&self.file, text.as_bytes()).map_err(|error| self.disk("keep it", &error))
    }

    fn disk(&self, step: &str, error: &dyn std::error::Error) -> Fault {
        let thing = format!("node's identity {}", self.file.display());
        let remedy = "see that the state directory can be read and written; or remove the file and join again with a token";
        Fault::new(thing, step, error.to_string(), remedy)
    }
}

impl Identity {
    /// Whether half of its certificate's time is over.
    pub fn wants_renewal(&self) -> bool {
        self.joined.as_ref().is_some_and(|it| now_s() >= it.from_s.midpoint(it.until_s))
    }

    fn still_good(self, now_s: u64) -> Result<Self, Fault> {
        let until_s = self.joined.as_ref().map_or(0, |joined| joined.until_s);
        if now_s < until_s {
            return Ok(self);
        }
        let hours = (now_s - until_s) / 3600;
        Err(Fault::new(
            format!("certificate of node {}", self.node),
            "show it to the controller",
            format!("by this host's clock its time was over {hours} h ago"),
            format!(
                "look at the clock (date -u); if it is right, join again: suiro domain token add --node {}, then suiro node … --token-file FILE",
                self.node
            ),
        ))
    }
}

fn key_and_request(node: &str) -> Result<(String, String), Fault> {
    let make = || -> Result<_, rcgen::Error> {
        let key = KeyPair::generate()?;
        let request = CertificateParams::default().serialize_request(&key)?.pem()?;
        Ok((key.serialize_pem(), request))
    };
    make().map_err(|error| {
        let remedy = "see that getrandom(2) is allowed";
        Fault::new(format!("node {node}"), "make itself a key", error.to_string(), remedy)
    })
}

fn ours(fault: Fault) -> ClientError {
    ClientError::Refused(Box::new(fault.into()))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_whose_time_is_over_is_not_shown_and_the_clock_is_named() {
        let joined = Joined { certificate: String::new(), from_s: 100, until_s: 10_000 };
        let identity = Identity {
            node: "t1".into(),
            authority: Pin::new([0; 32]),
            token: String::new(),
            key: String::new(),
            request: String::new(),
            joined: Some(joined),
        };
        assert!(identity.clone().still_good(9_999).is_ok());
        let fault = identity.still_good(13_600).unwrap_err().to_string();
        assert!(fault.contains("over 1 h ago") && fault.contains("date -u"), "{fault}");
    }

    #[test]
    fn without_certificate_and_token_the_way_to_one_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let patience = Duration::from_secs(1);
        let enrolment = Enrolment::new(("t1", "127.0.0.1:1"), None, directory.path(), patience);
        let error = enrolment.identity().unwrap_err().to_string();
        assert!(error.contains("suiro domain token add --node t1"), "{error}");
    }
}
