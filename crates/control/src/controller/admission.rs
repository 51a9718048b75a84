//! Admission: from what a user declares to what is kept.

use super::{Controller, now_s};
use crate::kept::{self, DOMAIN, QUARANTINE};
use crate::record::{Record, version};
use crate::state::{Kept, State};
use crate::store::Revision;
use crate::{declared as file, fault};
use api::{Declaration, Declares, Happening, PlanView, Planned};
use axum::http::StatusCode;
use domain::{Admitted, SliceKey, Uid, admit, diff};
use serde_json::{Value, json};
use serve::error::ApiError;
use std::collections::{BTreeMap, BTreeSet};

impl Controller {
    /// What a file declares, and which files its text names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn declares(&self, declared: &Declaration) -> Result<Declares, ApiError> {
        if file::is_domain(&declared.text) {
            file::domain(declared)?;
            return Ok(Declares::Domain);
        }
        let slice = file::slice(declared)?;
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
        let spec = file::domain(&declared)?.spec;
        let mut state = self.state();
        let when = state.domain.as_ref().map(|(_, revision)| *revision);
        let revision =
            self.commit(&[(DOMAIN.into(), when)], &[(DOMAIN.into(), Some(json!(declared)))])?;
        state.set_domain(spec);
        state.domain = Some((declared, revision));
        let nodes = state.world.domain().nodes.len();
        drop(state);
        self.tell_domain(nodes);
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
        let mut state = self.state();
        state.world.set_now(now_s() as i64);
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
        state.world.set_now(now_s() as i64);
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
        let record = Record::next(old, declared, &admitted);
        let generation = record.generation;
        self.keep(&mut state, record)?;
        state.world.insert(admitted);
        drop(state);
        let change = if before.is_some() { Happening::Changed } else { Happening::Added };
        self.tell_slice(change, &plan, generation);
        self.moved();
        Ok(PlanView { generation, ..plan })
    }

    /// Puts a record in place of the one before. Tunnel ids that it has no more rest from now on.
    fn keep(&self, state: &mut State, record: Record) -> Result<(), ApiError> {
        let key = record.spec.key();
        let old = state.slices.get(&key);
        let ids = if record.going { BTreeMap::new() } else { record.decision.ids() };
        let mut quarantine = state.world.quarantine().clone();
        let now = now_s();
        old.map(|old| old.record.decision.ids())
            .into_iter()
            .flatten()
            .filter(|(id, _)| !ids.contains_key(id))
            .for_each(|(id, nodes)| quarantine.hold(id, nodes, now));
        let mut put = vec![
            (kept::slice(&key), Some(json!(record))),
            (QUARANTINE.into(), Some(json!(quarantine))),
        ];
        if !record.going {
            let history = kept::history(&key, record.generation);
            put.push((history, Some(json!(record.declared))));
        }
        if record.generation == 1 {
            put.push((kept::lives(&key), Some(json!(self.lives(&key)? + 1))));
        }
        let when = old.map(|old| old.revision);
        let revision = self.commit(&[(kept::slice(&key), when)], &put)?;
        *state.world.quarantine_mut() = quarantine;
        state.slices.insert(key, Kept::new(record, revision, now as i64));
        Ok(())
    }

    /// Removes a slice: it is gone when every node that had a part of it has confirmed.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove(&self, key: &SliceKey) -> Result<PlanView, ApiError> {
        let mut state = self.state();
        let plan = self.removed(&mut state, key)?;
        drop(state);
        self.moved();
        Ok(plan)
    }

    /// The same in a state that the caller has.
    pub(super) fn removed(&self, state: &mut State, key: &SliceKey) -> Result<PlanView, ApiError> {
        let kept = state.slices.get(key).ok_or_else(|| no_slice(key))?;
        let admitted = kept.record.admitted();
        let plan = told(key, kept.record.generation, &diff(Some(&admitted), None), String::new());
        if kept.record.going {
            return Ok(plan);
        }
        let record =
            Record { going: true, generation: kept.record.generation + 1, ..kept.record.clone() };
        self.keep(state, record)?;
        state.world.remove(key);
        Ok(plan)
    }

    /// What the owner of a slice wrote, generation by generation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history(&self, key: &SliceKey) -> Result<Vec<(u64, Declaration)>, ApiError> {
        let prefix = kept::histories(key);
        let found = self.store.range(&prefix).map_err(|error| fault::store(&error))?;
        let one = |(name, (value, _)): (String, (Value, Revision))| {
            let generation = name[prefix.len()..].parse().unwrap_or(0);
            Ok((generation, kept::read(&name, value)?))
        };
        found.into_iter().map(one).collect()
    }

    fn decide(
        &self,
        state: &State,
        key: &SliceKey,
        declared: &Declaration,
    ) -> Result<(Admitted, PlanView), ApiError> {
        let mut slice = file::slice(declared)?;
        if slice.spec.key() != *key {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                key,
                format!("the file declares {}", slice.spec.key()),
                "send it to that name",
            ));
        }
        file::with_files(&mut slice, declared)?;
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
        let found = self.store.get(&kept::lives(key)).map_err(|error| fault::store(&error))?;
        Ok(found.and_then(|(value, _)| value.as_u64()).unwrap_or(0))
    }
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
