//! The controller: the one owner of what is wanted, and of what nodes have said.
//!
//! What is wanted is in the store; what is here of it is read at the start and changed behind each commit. What nodes have said is here alone: they say it
//! again within seconds.

use crate::fault;
use crate::record::{Record, Version, hex, version};
use crate::store::{Revision, Store, StoreError};
use api::{Declaration, Declares, PartName, PlanView, Planned, Report, Wanted};
use axum::http::StatusCode;
use domain::file::domain::DomainSpec;
use domain::file::slice::FileText;
use domain::{
    Admitted, Domain, Name, NodeFacts, Quarantine, Slice, SliceKey, UNDERLAY, Uid, World, admit,
    diff,
};
use serde_json::{Value, json};
use serve::error::ApiError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

const DOMAIN: &str = "op/domain";
const SECRET: &str = "op/secret";
const QUARANTINE: &str = "op/quarantine";
const SLICES: &str = "slice/";
/// A node that has been silent for so long is taken as away (domain's design, D9: shown within 7 s).
pub const AWAY: Duration = Duration::from_secs(6);

/// A domain's controller.
pub struct Controller {
    store: Arc<dyn Store>,
    /// What uids are made from.
    secret: String,
    state: Mutex<State>,
    /// Moves with what is wanted.
    wanted: watch::Sender<u64>,
    /// Moves with what nodes say.
    heard: watch::Sender<u64>,
}

/// What the controller knows.
pub struct State {
    /// What has been admitted.
    pub world: World,
    domain: Option<(Declaration, Revision)>,
    /// All slices, those that go among them.
    pub slices: BTreeMap<SliceKey, Kept>,
    /// The part that each node has beside those of slices.
    pub underlay: BTreeMap<Name, Version>,
    /// What nodes have said, and when.
    pub nodes: BTreeMap<Name, (Report, Instant)>,
}

/// A slice, with what is computed from it.
pub struct Kept {
    /// What is kept.
    pub record: Record,
    /// When it was written.
    pub revision: Revision,
    /// What each node shall have.
    pub parts: BTreeMap<Name, Version>,
    /// This generation was ready once.
    pub was_ready: bool,
}

impl Kept {
    fn new(record: Record, revision: Revision) -> Self {
        let parts = record.parts();
        Self { record, revision, parts, was_ready: false }
    }
}

impl Controller {
    /// Of what a store has.
    ///
    /// # Errors
    /// It cannot be read, or holds what this release cannot read.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, ApiError> {
        let secret = secret(&*store)?;
        let state = State::read(&*store)?;
        Ok(Self {
            store,
            secret,
            state: Mutex::new(state),
            wanted: watch::Sender::new(0),
            heard: watch::Sender::new(0),
        })
    }

    /// What it knows. The lock is a leaf.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves when something else is wanted.
    pub fn wanted_moves(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Moves when a node has called.
    pub fn heard_moves(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    /// What a file declares, and which files its text names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn declares(&self, declared: &Declaration) -> Result<Declares, ApiError> {
        if is_domain(&declared.text) {
            parse_domain(declared)?;
            return Ok(Declares::Domain);
        }
        let slice = parse_slice(declared)?;
        let files: BTreeSet<_> =
            slice.spec.files_from().map(|(_, _, path)| path.to_owned()).collect();
        Ok(Declares::Slice {
            slice: slice.spec.key().to_string(),
            files: files.into_iter().collect(),
        })
    }

    /// Puts the operator's domain in place of the one before. Slices stay as they were admitted.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn put_domain(&self, declared: Declaration) -> Result<Revision, ApiError> {
        let spec = parse_domain(&declared)?.spec;
        let mut state = self.state();
        let when = state.domain.as_ref().map(|(_, revision)| *revision);
        let revision =
            self.commit(&[(DOMAIN.into(), when)], &[(DOMAIN.into(), Some(json!(declared)))])?;
        state.set_domain(spec);
        state.domain = Some((declared, revision));
        drop(state);
        self.moved();
        Ok(revision)
    }

    /// The operator's domain as it was written.
    ///
    /// # Errors
    /// There is none.
    pub fn domain(&self) -> Result<Declaration, ApiError> {
        self.state().domain.as_ref().map(|(declared, _)| declared.clone()).ok_or_else(no_domain)
    }

    /// What a declaration would change.
    ///
    /// # Errors
    /// Everything that keeps it from being admitted.
    pub fn plan(&self, key: &SliceKey, declared: &Declaration) -> Result<PlanView, ApiError> {
        let state = self.state();
        self.decide(&state, key, declared).map(|(_, plan)| plan)
    }

    /// Admits a declaration and keeps it. With `plan`, only if it is that one; with `when`, only if the slice was last changed then (none: is not there).
    ///
    /// # Errors
    /// Everything that keeps it from being admitted; the plan or the revision is another.
    pub fn put(
        &self,
        key: &SliceKey,
        declared: Declaration,
        wished: Option<&str>,
        when: Option<Option<Revision>>,
    ) -> Result<PlanView, ApiError> {
        let mut state = self.state();
        let before = state.slices.get(key).map(|kept| kept.revision);
        if when.is_some_and(|when| when != before) {
            return Err(refused(
                StatusCode::PRECONDITION_FAILED,
                key,
                "it was changed meanwhile",
                "look at it again: suiro slice show",
            ));
        }
        let (admitted, plan) = self.decide(&state, key, &declared)?;
        if wished.is_some_and(|wished| wished != plan.plan) {
            return Err(refused(
                StatusCode::CONFLICT,
                key,
                "the world has moved since that plan was made",
                "look at the new plan: suiro diff",
            ));
        }
        let old = state.slices.get(key).map(|kept| &kept.record);
        if old.is_some_and(|old| old.declared == declared && old.admitted() == admitted) {
            return Ok(plan);
        }
        let mut had = old.map(|old| old.had.clone()).unwrap_or_default();
        had.extend(admitted.decision.all_nodes());
        let generation = old.map_or(0, |old| old.generation) + 1;
        let record = Record {
            generation,
            declared,
            spec: admitted.spec.clone(),
            decision: admitted.decision.clone(),
            had,
            going: false,
        };
        let mut quarantine = state.world.quarantine().clone();
        let now = now_s();
        let gone = old.map(|old| old.decision.ids()).unwrap_or_default();
        let kept = admitted.decision.ids();
        gone.into_iter()
            .filter(|(id, _)| !kept.contains_key(id))
            .for_each(|(id, nodes)| quarantine.hold(id, nodes, now));
        let history = (history_key(key, generation), Some(json!(record.declared)));
        let mut put = vec![
            (slice_key(key), Some(json!(record))),
            (QUARANTINE.into(), Some(json!(quarantine))),
            history,
        ];
        if generation == 1 {
            put.push((lives_key(key), Some(json!(self.lives(key)? + 1))));
        }
        let revision = self.commit(&[(slice_key(key), before)], &put)?;
        state.world.insert(admitted);
        *state.world.quarantine_mut() = quarantine;
        state.slices.insert(key.clone(), Kept::new(record, revision));
        drop(state);
        self.moved();
        Ok(PlanView { generation, ..plan })
    }

    /// Removes a slice: it is gone when every node that had a part of it has confirmed.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove(&self, key: &SliceKey) -> Result<PlanView, ApiError> {
        let mut state = self.state();
        let kept = state.slices.get(key).ok_or_else(|| no_slice(key))?;
        let admitted = kept.record.admitted();
        let plan = told(key, kept.record.generation, &diff(Some(&admitted), None), String::new());
        if kept.record.going {
            return Ok(plan);
        }
        let record =
            Record { going: true, generation: kept.record.generation + 1, ..kept.record.clone() };
        let mut quarantine = state.world.quarantine().clone();
        let now = now_s();
        record.decision.ids().into_iter().for_each(|(id, nodes)| quarantine.hold(id, nodes, now));
        let put =
            [(slice_key(key), Some(json!(record))), (QUARANTINE.into(), Some(json!(quarantine)))];
        let revision = self.commit(&[(slice_key(key), Some(kept.revision))], &put)?;
        state.world.remove(key);
        *state.world.quarantine_mut() = quarantine;
        state.slices.insert(key.clone(), Kept::new(record, revision));
        drop(state);
        self.moved();
        Ok(plan)
    }

    /// What the owner of a slice wrote, generation by generation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history(&self, key: &SliceKey) -> Result<Vec<(u64, Declaration)>, ApiError> {
        let prefix = format!("history/{key}/");
        let found = self.store.range(&prefix).map_err(|error| fault::store(&error))?;
        let one = |(name, (value, _)): (String, (Value, Revision))| {
            let generation = name[prefix.len()..].parse().unwrap_or(0);
            Ok((generation, read(&name, value)?))
        };
        found.into_iter().map(one).collect()
    }

    /// A node has said what it has; returns whether all of that is as it is wanted, and works.
    ///
    /// # Errors
    /// The domain has no such node, or what it confirms cannot be kept.
    pub fn heard(&self, node: &Name, report: Report) -> Result<bool, ApiError> {
        let mut state = self.state();
        if !state.world.domain().nodes.contains_key(node) {
            return Err(fault::refused(
                StatusCode::NOT_FOUND,
                format!("node {node}"),
                "hear it",
                "the domain has no node of that name",
                "declare it: suiro apply -f domain.yaml",
            ));
        }
        let facts = NodeFacts {
            cpu: domain::Cpu(report.cpu_milli),
            memory: domain::Size(report.memory),
            kinds: report
                .kinds
                .iter()
                .filter_map(|kind| serde_json::from_value(json!(kind)).ok())
                .collect(),
            alive: true,
        };
        state.world.set_facts(node.clone(), facts);
        let wanted = state.wanted(node);
        let has = |part: &PartName| report.parts.get(part).and_then(|part| part.version.clone());
        let is_as_wanted = wanted.iter().all(|(part, version)| has(part) == *version);
        let works =
            report.parts.values().all(|part| part.faults.is_empty() && part.waits_for.is_empty());
        self.confirm(&mut state, node, &has, is_as_wanted)?;
        state.nodes.insert(node.clone(), (report, Instant::now()));
        state.note_ready();
        drop(state);
        self.heard.send_modify(|count| *count += 1);
        Ok(is_as_wanted && works)
    }

    /// What a node shall have.
    pub fn wanted(&self, node: &Name) -> Wanted {
        Wanted { epoch: self.store.epoch(), parts: self.state().wanted(node) }
    }

    /// A part as a node shall have it.
    ///
    /// # Errors
    /// It shall have none of that name.
    pub fn part(&self, node: &Name, part: &PartName) -> Result<Version, ApiError> {
        let state = self.state();
        let of_slice =
            || state.slices.values().find(|kept| kept.record.part() == *part)?.parts.get(node);
        let found =
            if part.to_string() == UNDERLAY { state.underlay.get(node) } else { of_slice() };
        found.cloned().ok_or_else(|| {
            fault::refused(
                StatusCode::NOT_FOUND,
                format!("part {part}"),
                "find it",
                format!("node {node} shall have none of that name"),
                "report again: another one is wanted by now",
            )
        })
    }

    fn decide(
        &self,
        state: &State,
        key: &SliceKey,
        declared: &Declaration,
    ) -> Result<(Admitted, PlanView), ApiError> {
        let mut slice = parse_slice(declared)?;
        if slice.spec.key() != *key {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                key,
                format!("the file declares {}", slice.spec.key()),
                "send it to that name",
            ));
        }
        with_files(&mut slice, declared)?;
        let old = state.slices.get(key);
        if old.is_some_and(|old| old.record.going) {
            return Err(refused(
                StatusCode::CONFLICT,
                key,
                "it is being removed",
                "wait until it is gone: suiro slice list",
            ));
        }
        let uid = old.map_or_else(|| self.uid(key), |old| Ok(old.record.decision.uid))?;
        let decision = admit(&state.world, &slice, uid)
            .map_err(|faults| fault::found(StatusCode::UNPROCESSABLE_ENTITY, "admit it", faults))?;
        let admitted = Admitted { spec: slice.spec, decision };
        let before = old.map(|old| old.record.admitted());
        let plan = diff(before.as_ref(), Some(&admitted));
        let generation = old.map_or(0, |old| old.record.generation);
        let token = version(&json!([generation, admitted]).to_string())[..16].to_owned();
        let plan = told(key, generation, &plan, token);
        Ok((admitted, plan))
    }

    /// The uid of the next life of a name: the same whoever asks, and never one that was.
    fn uid(&self, key: &SliceKey) -> Result<Uid, ApiError> {
        let text = version(&format!("{} {key} {}", self.secret, self.lives(key)?));
        Ok(text[..32].parse().expect("a digest is hexadecimal digits"))
    }

    fn lives(&self, key: &SliceKey) -> Result<u64, ApiError> {
        let found = self.store.get(&lives_key(key)).map_err(|error| fault::store(&error))?;
        Ok(found.and_then(|(value, _)| value.as_u64()).unwrap_or(0))
    }

    /// Notes what a node has confirmed: parts that it has no more, ids that it sends no more.
    fn confirm(
        &self,
        state: &mut State,
        node: &Name,
        has: &dyn Fn(&PartName) -> Option<String>,
        is_as_wanted: bool,
    ) -> Result<(), ApiError> {
        let left = |kept: &Kept| {
            kept.record.had.contains(node)
                && !kept.parts.contains_key(node)
                && has(&kept.record.part()).is_none()
        };
        let keys: Vec<_> = state
            .slices
            .iter()
            .filter(|(_, kept)| left(kept))
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            let kept = &state.slices[&key];
            let mut record = kept.record.clone();
            record.had.remove(node);
            let is_gone = record.going && record.had.is_empty();
            let value = (!is_gone).then(|| json!(record));
            let revision = self
                .commit(&[(slice_key(&key), Some(kept.revision))], &[(slice_key(&key), value)])?;
            if is_gone {
                state.slices.remove(&key);
            } else if let Some(kept) = state.slices.get_mut(&key) {
                (kept.record, kept.revision) = (record, revision);
            }
        }
        let mut quarantine = state.world.quarantine().clone();
        let now = now_s();
        if is_as_wanted {
            let ids: Vec<_> = quarantine.waits_for(node).collect();
            ids.into_iter().for_each(|id| quarantine.confirm(id, node, now));
        }
        quarantine.release(now);
        if quarantine != *state.world.quarantine() {
            self.commit(&[], &[(QUARANTINE.into(), Some(json!(quarantine)))])?;
            *state.world.quarantine_mut() = quarantine;
        }
        Ok(())
    }

    fn commit(
        &self,
        when: &[(String, Option<Revision>)],
        put: &[(String, Option<Value>)],
    ) -> Result<Revision, ApiError> {
        let done = self.store.commit(when, put).map_err(|error| fault::store(&error))?;
        done.map_err(|conflict| {
            fault::refused(
                StatusCode::CONFLICT,
                conflict.key,
                "keep it",
                "another controller has changed it",
                "ask again",
            )
        })
    }

    fn moved(&self) {
        self.wanted.send_modify(|count| *count += 1);
    }
}

impl State {
    fn read(store: &dyn Store) -> Result<Self, ApiError> {
        let broken = |error: StoreError| fault::store(&error);
        let none = json!({"suiro": "domain/1", "sites": {}});
        let world = World::new(read("an empty domain", none)?);
        let mut state = Self {
            world,
            domain: None,
            slices: BTreeMap::new(),
            underlay: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        if let Some((value, revision)) = store.get(DOMAIN).map_err(broken)? {
            let declared: Declaration = read(DOMAIN, value)?;
            state.set_domain(parse_domain(&declared)?.spec);
            state.domain = Some((declared, revision));
        }
        if let Some((value, _)) = store.get(QUARANTINE).map_err(broken)? {
            *state.world.quarantine_mut() = read::<Quarantine>(QUARANTINE, value)?;
        }
        for (name, (value, revision)) in store.range(SLICES).map_err(broken)? {
            let record: Record = read(&name, value)?;
            if !record.going {
                state.world.insert(record.admitted());
            }
            state.slices.insert(record.spec.key(), Kept::new(record, revision));
        }
        Ok(state)
    }

    fn set_domain(&mut self, spec: DomainSpec) {
        self.world.set_domain(spec);
        let parts = domain::compile::underlay(&self.world);
        self.underlay =
            parts.into_iter().map(|(node, part)| (node, Version::of(&part, "domain"))).collect();
    }

    /// What a node shall have: the version of each part, or none where it shall go.
    pub fn wanted(&self, node: &Name) -> BTreeMap<PartName, Option<String>> {
        let name: PartName = UNDERLAY.parse().expect("a plain word");
        let underlay = self.underlay.get(node).map(|part| (name, Some(part.version.clone())));
        let slices = self.slices.values().filter_map(|kept| {
            let wanted = kept.parts.get(node).map(|part| part.version.clone());
            (wanted.is_some() || kept.record.had.contains(node))
                .then(|| (kept.record.part(), wanted))
        });
        underlay.into_iter().chain(slices).collect()
    }

    /// What a node has said, if it has lately.
    pub fn said(&self, node: &Name) -> Option<&Report> {
        self.nodes.get(node).filter(|(_, at)| at.elapsed() < AWAY).map(|(report, _)| report)
    }
}

fn secret(store: &dyn Store) -> Result<String, ApiError> {
    if let Some((value, _)) = store.get(SECRET).map_err(|error| fault::store(&error))? {
        return read(SECRET, value);
    }
    let mut bytes = [0; 32];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| {
        fault::refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "controller",
            "start",
            "the kernel gives no random bytes",
            "see that getrandom(2) is allowed",
        )
    })?;
    let secret = hex(&bytes);
    let kept = store.commit(&[(SECRET.into(), None)], &[(SECRET.into(), Some(json!(secret)))]);
    kept.map_err(|error| fault::store(&error))?.map(|_| secret).map_err(|conflict| {
        fault::refused(
            StatusCode::CONFLICT,
            conflict.key,
            "start",
            "another controller is starting",
            "start it again",
        )
    })
}

/// Puts the texts that the client has sent in place of their paths.
fn with_files(slice: &mut Slice, declared: &Declaration) -> Result<(), ApiError> {
    let files = slice.spec.guests.values_mut().flat_map(|guest| guest.files.values_mut());
    for file in files {
        let FileText::From(path) = file else { continue };
        let text = declared.files.get(path).ok_or_else(|| {
            fault::refused(
                StatusCode::BAD_REQUEST,
                path.clone(),
                "read it",
                "its text was not sent with the slice's file",
                "use the suiro command",
            )
        })?;
        *file = FileText::Text(text.clone());
    }
    Ok(())
}

fn told(key: &SliceKey, generation: u64, plan: &domain::Plan, token: String) -> PlanView {
    let one = |change: &domain::Change| Planned {
        action: change.action,
        thing: change.thing.clone(),
        at: change.at.clone(),
        keys: change.keys.clone(),
        interrupts: change.interrupts.clone(),
    };
    PlanView {
        slice: key.to_string(),
        generation,
        plan: token,
        changes: plan.changes.iter().map(one).collect(),
    }
}

/// Whether a file declares a domain: its first key says so.
fn is_domain(text: &str) -> bool {
    let lines = text.lines().map(str::trim).find(|line| line.starts_with("suiro:"));
    lines.is_some_and(|line| line.contains("domain/"))
}

fn parse_slice(declared: &Declaration) -> Result<Slice, ApiError> {
    Slice::parse(&declared.file, &declared.text)
        .map_err(|faults| fault::found(StatusCode::BAD_REQUEST, "read it", faults))
}

fn parse_domain(declared: &Declaration) -> Result<Domain, ApiError> {
    Domain::parse(&declared.file, &declared.text)
        .map_err(|faults| fault::found(StatusCode::BAD_REQUEST, "read it", faults))
}

fn read<T: serde::de::DeserializeOwned>(key: &str, value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| {
        fault::refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            key,
            "read it from the store",
            error.to_string(),
            "use the suiro that wrote it, or a later one",
        )
    })
}

fn refused(status: StatusCode, key: &SliceKey, cause: impl Into<String>, remedy: &str) -> ApiError {
    fault::refused(status, format!("slice {key}"), "change it", cause, remedy)
}

/// There is no slice of that name.
pub fn no_slice(key: &SliceKey) -> ApiError {
    fault::refused(
        StatusCode::NOT_FOUND,
        format!("slice {key}"),
        "find it",
        "there is none of that name",
        "list them: suiro slice list",
    )
}

fn no_domain() -> ApiError {
    fault::refused(
        StatusCode::NOT_FOUND,
        "domain",
        "find it",
        "none has been declared",
        "declare one: suiro apply -f domain.yaml",
    )
}

fn slice_key(key: &SliceKey) -> String {
    format!("{SLICES}{key}")
}

fn lives_key(key: &SliceKey) -> String {
    format!("lives/{key}")
}

fn history_key(key: &SliceKey, generation: u64) -> String {
    format!("history/{key}/{generation:08}")
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
