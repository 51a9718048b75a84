//! Reports of nodes: what each has, and what it shall have.

use super::{Controller, now_s};
use crate::fault;
use crate::kept::{self, QUARANTINE};
use crate::record::Version;
use crate::state::{Kept, State};
use api::{CircuitState, PROVE, PartName, Report, Wanted};
use axum::http::StatusCode;
use domain::{Name, NodeFacts, UNDERLAY};
use serde_json::json;
use serve::error::ApiError;
use std::time::{Duration, Instant};

/// How long a node's report waits for something else to be wanted, when all is as it shall be: nodes call this often.
const HOLD: Duration = Duration::from_secs(2);
/// The same while a link is not up: it may stay so, and who mends it looks on.
const HOLD_DOWN: Duration = Duration::from_millis(250);
/// The same while something changes soon: a part is not as it shall be, or a link is being proved.
const HOLD_UNSETTLED: Duration = Duration::from_millis(50);

impl Controller {
    /// A node has said what it has; returns how long the answer may wait for something else to be wanted.
    ///
    /// # Errors
    /// The domain has no such node, or what it confirms cannot be kept.
    pub fn heard(&self, node: &Name, mut report: Report) -> Result<Duration, ApiError> {
        let mut state = self.state();
        if !state.world.domain().nodes.contains_key(node) {
            return Err(no_node(&node.to_string()));
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
        let works = report.parts.values().all(|part| {
            part.faults.is_empty() && part.waits_for.iter().all(|fault| fault.step == PROVE)
        });
        let hold = match () {
            () if !is_as_wanted || !works => HOLD_UNSETTLED,
            () if report.circuits.iter().any(|it| it.state == CircuitState::Proving) => {
                HOLD_UNSETTLED
            }
            () if report.circuits.iter().any(|it| it.state != CircuitState::Up) => HOLD_DOWN,
            () => HOLD,
        };
        self.confirm(&mut state, node, &has, is_as_wanted)?;
        if let Some(audit) = report.audit.take() {
            state.audits.insert(node.clone(), audit);
        }
        state.nodes.insert(node.clone(), (report, Instant::now()));
        state.note_ready();
        drop(state);
        self.heard.send_modify(|count| *count += 1);
        Ok(hold)
    }

    /// What a node shall have.
    pub fn wanted(&self, node: &Name) -> Wanted {
        let state = self.state();
        let has_told = state.audits.get(node).is_some_and(|audit| audit.number == state.asked);
        let audit = (state.asked > 0 && !has_told).then_some(state.asked);
        let streams = self.streams.wanted(node);
        Wanted { epoch: self.store.epoch(), parts: state.wanted(node), audit, streams }
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
    /// Notes what a node has confirmed: parts that it has no more, ids that it sends no more.
    pub(super) fn confirm(
        &self,
        state: &mut State,
        node: &Name,
        has: &dyn Fn(&PartName) -> Option<String>,
        is_as_wanted: bool,
    ) -> Result<(), ApiError> {
        let left = |kept: &Kept| {
            // What has not begun is on no node yet.
            (kept.has_begun || kept.record.going)
                && kept.record.had.contains(node)
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
            let revision = self.commit(
                &[(kept::slice(&key), Some(kept.revision))],
                &[(kept::slice(&key), value)],
            )?;
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
}

/// The domain has no node of that name.
pub fn no_node(node: &str) -> ApiError {
    fault::refused(
        StatusCode::NOT_FOUND,
        format!("node {node}"),
        "hear it",
        "the domain has no node of that name",
        "declare it: suiro apply -f domain.yaml",
    )
}
