//! # A node as a member of a domain
//!
//! **Question answered**: how does a node get its parts of slices, and what does it do without a controller?
//!
//! A thread tells the controller what the node has, again and again; the answer is what it shall have. What differs is fetched and put through the node's
//! own API, as any other part: all of it or nothing. Without a controller nothing changes.
//!
//! * What the node has is read from itself each time: nothing is kept beside the parts, so nothing can disagree with them.
//! * A part that is refused is tried again after a pause that doubles; others do not wait for it.
//! * Parts that the answer does not name are left alone. Only an answer that says so removes one.
//! * The greatest epoch that was heard is on disk: a controller of an earlier time is not obeyed, whenever it comes.

mod answers;
mod identity;

pub use answers::Answers;

use crate::durable;
use crate::host::memory;
use crate::roll::Roll;
use api::{
    AuditReport, Client, ClientError, Difference, Fault, HostView, Method, PartName, PartReport,
    PartText, PartView, Report, Token, Wanted, quoted,
};
use identity::{Enrolment, Identity};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The part that is there before others: they name its switch.
const FIRST: &str = "underlay";
/// Kinds of guest that this release can have.
const KINDS: [&str; 2] = ["process", "port"];
/// The pause behind a first failure, and the longest (domain's design, D3.7).
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// The longest pause while no controller answers: one that is back is found within it.
const AWAY: Duration = Duration::from_secs(2);
/// How long a controller, or the node itself, may be silent.
const PATIENCE: Duration = Duration::from_secs(15);
const EPOCH: &str = "domain.epoch";
/// What membership leaves in the state directory: by the first a node is known to its domain, and to nobody else.
pub(crate) const FILES: [&str; 2] = [identity::FILE, EPOCH];

/// Of which domain a node is a member, and as which node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// Its name there.
    pub name: String,
    /// Where the controller is.
    pub controller: Place,
    /// By what it joins, if it has not.
    pub token: Option<Token>,
}

/// Where a controller is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the same host: its socket.
    Socket(PathBuf),
    /// Anywhere: `HOST:PORT`.
    Address(String),
}

impl Membership {
    /// Joins the domain by the token, if the node has no certificate yet. A controller that does not answer is asked again later, by the thread.
    ///
    /// # Errors
    /// The controller refuses, or there is nothing to join by.
    pub fn enrol(&self, state: &Path) -> Result<(), Fault> {
        let Some(enrolment) = self.enrolment(state) else { return Ok(()) };
        match enrolment.identity() {
            Err(error @ ClientError::Refused(_)) => Err(first(error)),
            Err(error) => {
                tracing::warn!("not a member yet: {error}");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    fn enrolment(&self, state: &Path) -> Option<Enrolment> {
        let Place::Address(address) = &self.controller else { return None };
        let who = (self.name.as_str(), address.as_str());
        Some(Enrolment::new(who, self.token.clone(), state, PATIENCE))
    }
}

/// Starts the thread. `socket` is the node's own API; `state` the directory of what must survive; `answers` what the controller asks by streams.
///
/// # Errors
/// No thread can be had.
pub fn start(
    membership: &Membership,
    socket: PathBuf,
    state: &Path,
    (answers, roll): (Answers, &Roll),
) -> io::Result<()> {
    let controller = match &membership.controller {
        Place::Socket(socket) => Some(Arc::new(Client::new(socket.clone(), PATIENCE))),
        Place::Address(_) => None,
    };
    let member = Member {
        path: format!("/v1/nodes/{}", quoted(&membership.name)),
        enrolment: membership.enrolment(state),
        identity: None,
        controller,
        own: Client::new(socket, PATIENCE),
        answers,
        epoch: state.join(EPOCH),
        refused: BTreeMap::new(),
        asked: None,
    };
    roll.spawn("suiro-member", move |_duty| member.run()).map(drop)
}

struct Member {
    /// The node's place in the controller's API.
    path: String,
    /// How it gets a certificate, if it needs one.
    enrolment: Option<Enrolment>,
    identity: Option<Identity>,
    /// With the identity, if one is needed.
    controller: Option<Arc<Client>>,
    own: Client,
    answers: Answers,
    /// The file of the greatest epoch.
    epoch: PathBuf,
    refused: BTreeMap<PartName, Refused>,
    /// The controller's question what differs, until it is answered.
    asked: Option<u64>,
}

/// A version of a part that was refused.
struct Refused {
    version: Option<String>,
    faults: Vec<Fault>,
    pause: Duration,
    next: Instant,
}

impl Member {
    fn run(mut self) {
        let (mut pause, mut said) = (PAUSES.0, None);
        loop {
            match self.round() {
                Ok(()) => {
                    if said.take().is_some() {
                        tracing::info!("the domain's controller answers again");
                    }
                    pause = PAUSES.0;
                }
                Err(fault) => {
                    let text = fault.to_string();
                    if said.as_ref() != Some(&text) {
                        tracing::warn!("the node goes on without the domain's controller: {text}");
                        said = Some(text);
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(AWAY);
                }
            }
        }
    }

    fn round(&mut self) -> Result<(), Fault> {
        let has = self.parts()?;
        let report = self.report(&has)?;
        let path = format!("{}/report", self.path);
        let wanted: Wanted =
            self.controller()?.send(Method::POST, &path, &report).map_err(first)?;
        self.obey(wanted.epoch)?;
        self.asked = wanted.audit;
        let controller = self.controller()?.clone();
        self.answers.open(&controller, &self.path, wanted.streams);
        let mut parts: Vec<_> = wanted.parts.into_iter().collect();
        parts.sort_by_key(|(part, _)| part.to_string() != FIRST);
        self.refused.retain(|part, _| parts.iter().any(|(wanted, _)| wanted == part));
        for (part, version) in parts {
            if has.get(&part).map(|(version, _)| version) == version.as_ref() {
                self.refused.remove(&part);
            } else if self.is_due(&part, version.as_ref()) {
                self.put(part, version);
            }
        }
        Ok(())
    }

    /// The controller, asked as who the node is; with another certificate at half of the time of the one before.
    fn controller(&mut self) -> Result<&Arc<Client>, Fault> {
        if let Some(enrolment) = &self.enrolment {
            let renewed = match self.identity.take() {
                None => Some(enrolment.identity().map_err(first)?),
                Some(identity) if identity.wants_renewal() => match enrolment.renew(&identity) {
                    Ok(next) => Some(next),
                    Err(error) => {
                        tracing::warn!("the node's certificate is not renewed: {error}");
                        self.identity = Some(identity);
                        None
                    }
                },
                identity => {
                    self.identity = identity;
                    None
                }
            };
            if let Some(identity) = renewed {
                self.controller = Some(Arc::new(enrolment.client(&identity)?));
                self.identity = Some(identity);
            }
        }
        Ok(self.controller.as_ref().expect("a socket, or an identity by now"))
    }

    /// The node's parts that a domain may have made: version, and what of each does not work yet.
    fn parts(&self) -> Result<BTreeMap<PartName, (String, Vec<Fault>)>, Fault> {
        let parts: Vec<PartView> = self.own.get("/v1/parts").map_err(first)?;
        let one = |part: PartView| {
            let is_ours = &*part.name == FIRST || part.name.is_a_slices();
            let text = part.declared.filter(|_| is_ours)?.text;
            Some((part.name, (version(&text), part.waits_for)))
        };
        Ok(parts.into_iter().filter_map(one).collect())
    }

    fn report(&self, has: &BTreeMap<PartName, (String, Vec<Fault>)>) -> Result<Report, Fault> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let mut parts: BTreeMap<_, _> = has
            .iter()
            .map(|(part, (version, waits_for))| {
                let (version, waits_for) = (Some(version.clone()), waits_for.clone());
                (part.clone(), PartReport { version, waits_for, faults: Vec::new() })
            })
            .collect();
        for (part, refused) in &self.refused {
            parts.entry(part.clone()).or_default().faults = refused.faults.clone();
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let host = HostView {
            boot: boot.trim().into(),
            socket: self.own.socket().unwrap_or(Path::new("")).into(),
        };
        let kinds = KINDS.map(String::from).to_vec();
        let circuits = self.own.get("/v1/circuits").map_err(first)?;
        let strays = self.own.get("/v1/circuits/strays").map_err(first)?;
        let cpu_milli = cores as u32 * 1000;
        let memory = memory::limit();
        let audit = self.asked.map(|number| self.audit(number)).transpose()?;
        Ok(Report { cpu_milli, memory, kinds, host, parts, circuits, strays, audit })
    }

    /// What the node has that is not as its parts declare it, looked at anew.
    fn audit(&self, number: u64) -> Result<AuditReport, Fault> {
        Ok(AuditReport { number, found: self.own.get("/v1/audit").map_err(first)? })
    }

    /// Refuses a controller of an earlier time, and remembers one of a later.
    fn obey(&self, epoch: u64) -> Result<(), Fault> {
        let kept = std::fs::read_to_string(&self.epoch).ok();
        let kept = kept.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if epoch < kept {
            let cause = format!("it is of epoch {epoch}, and one of epoch {kept} was heard");
            let remedy = format!(
                "end it: a later one has taken its place. If it is a new domain's, remove {}",
                self.epoch.display()
            );
            return Err(Fault::new("controller", "obey it", cause, remedy));
        }
        if epoch > kept {
            let written = durable::write(&self.epoch, format!("{epoch}\n").as_bytes());
            written.map_err(|error| {
                Fault::new(
                    "node",
                    "note the controller's epoch",
                    error.to_string(),
                    "see that its state directory can be written",
                )
            })?;
        }
        Ok(())
    }

    fn is_due(&self, part: &PartName, version: Option<&String>) -> bool {
        self.refused.get(part).is_none_or(|refused| {
            refused.version.as_ref() != version || Instant::now() >= refused.next
        })
    }

    fn put(&mut self, part: PartName, version: Option<String>) {
        let own = format!("/v1/parts/{part}");
        let done: Result<Difference, ClientError> = match &version {
            None => self.own.take(&format!("{own}?if_exists=true")),
            Some(_) => {
                let path = format!("{}/parts/{part}", self.path);
                let controller = self.controller.as_ref().expect("it has just answered");
                let text = controller.get::<PartText>(&path);
                text.and_then(|text| self.own.send(Method::PUT, &own, &text))
            }
        };
        match done {
            Ok(done) => {
                tracing::info!("part {part}: {} objects changed", done.changes.len());
                self.refused.remove(&part);
            }
            Err(error) => {
                tracing::warn!("part {part} is refused: {error}");
                let pause = self
                    .refused
                    .get(&part)
                    .map_or(PAUSES.0, |refused| (refused.pause * 2).min(PAUSES.1));
                self.refused.insert(
                    part,
                    Refused { version, faults: all(error), pause, next: Instant::now() + pause },
                );
            }
        }
    }
}

/// The name of a part's text, as the controller makes it.
fn version(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn all(error: ClientError) -> Vec<Fault> {
    match error {
        ClientError::Refused(body) => std::iter::once(body.error).chain(body.others).collect(),
        ClientError::NoNode(fault) | ClientError::Silent(fault) => vec![fault],
    }
}

fn first(error: ClientError) -> Fault {
    all(error).swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_of_an_earlier_time_is_not_obeyed_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let epoch = directory.path().join(EPOCH);
        let member = || Member {
            path: String::new(),
            enrolment: None,
            identity: None,
            controller: None,
            own: Client::new("".into(), PATIENCE),
            answers: Answers::none(),
            epoch: epoch.clone(),
            refused: BTreeMap::new(),
            asked: None,
        };
        assert!(member().obey(7).is_ok());
        assert!(member().obey(7).is_ok());
        let refused = member().obey(6).unwrap_err();
        assert!(refused.to_string().contains("epoch 6"), "{refused}");
        assert!(member().obey(8).is_ok());
        assert_eq!(std::fs::read_to_string(&epoch).unwrap(), "8\n");
    }
}
