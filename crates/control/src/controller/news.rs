//! What happens in the domain, as it is told to readers of events.
//!
//! Slices that come, change and go; how each is, as its nodes say; nodes that come and go. States are compared with what was told last, a few times a second: a
//! node that is silent says nothing, and many reports in a row cost one look.

use super::{Controller, now_s};
use crate::kept::{self, EVENTS};
use crate::state::State;
use crate::store::Store;
use crate::{caller::Caller, fault};
use api::{Happening, News, Noun, PlanView, Revision, SliceState};
use domain::{Name, SliceKey};
use serde_json::json;
use serve::error::ApiError;
use serve::feed::Feed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A feed whose numbers go on from the store's.
pub fn feed(store: &Arc<dyn Store>) -> Result<Feed, ApiError> {
    let found = store.get(EVENTS).map_err(|error| fault::store(&error))?;
    let reserved: u64 = found.map_or(Ok(0), |(value, _)| kept::read(EVENTS, value))?;
    let store = store.clone();
    Ok(Feed::after_block(Revision(reserved), move |reserved| {
        if let Err(error) = kept::commit(&*store, &[], &[(EVENTS.into(), Some(json!(reserved)))]) {
            tracing::error!("events: their numbers cannot be kept: {}", error.into_fault());
        }
    }))
}

impl Controller {
    /// What happened.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Everything that there is, and from which event on to hear the rest.
    pub fn present(&self) -> (Revision, Vec<News>) {
        let since = self.feed.newest();
        let state = self.state();
        let slice = |view: api::SliceView| {
            let text = format!("{}, generation {}", view.state.word(), view.generation);
            News::of_node(Noun::Slice, &view.slice, Happening::Present, text)
        };
        let node = |view: api::DomainNodeView| {
            let text = if view.alive { "here" } else { "away" };
            News::of_node(Noun::Node, &view.name, Happening::Present, text)
        };
        let slices = state.all_slices().into_iter().map(slice);
        (since, slices.chain(state.all_nodes().into_iter().map(node)).collect())
    }

    /// A declaration was taken.
    pub(super) fn tell_slice(&self, change: Happening, plan: &PlanView, generation: u64) {
        let text = match change {
            Happening::Changed if plan.changes.is_empty() => return,
            _ => format!("generation {generation}, {} objects change", plan.changes.len()),
        };
        self.feed.tell(News::of_node(Noun::Slice, &plan.slice, change, text));
    }

    /// The operator has declared the domain.
    pub(super) fn tell_domain(&self, nodes: usize) {
        let text = format!("{nodes} nodes");
        self.feed.tell(News::of_node(Noun::Domain, "domain", Happening::Changed, text));
    }

    /// Tells how slices and nodes are where that has changed.
    pub fn look(&self) {
        self.keep_time(now_s() as i64);
        let news = self.state().news();
        news.into_iter().for_each(|news| self.feed.tell(news));
    }
}

impl State {
    /// What has changed since the last look.
    fn news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        let nodes: Vec<Name> = self.world.domain().nodes.keys().cloned().collect();
        let here: BTreeSet<Name> =
            nodes.into_iter().filter(|node| self.said(node).is_some()).collect();
        for node in here.symmetric_difference(&self.told.here) {
            let text = if here.contains(node) {
                "here"
            } else {
                "away: it has not called for some seconds"
            };
            news.push(News::of_node(Noun::Node, node, Happening::State, text));
        }
        self.told.here = here;
        news.extend(self.links_news());
        let views: Vec<_> =
            self.slices.iter().map(|(key, kept)| (key.clone(), self.state_of(kept))).collect();
        let there: BTreeSet<&SliceKey> = views.iter().map(|(key, _)| key).collect();
        let gone: Vec<SliceKey> =
            self.told.slices.keys().filter(|key| !there.contains(key)).cloned().collect();
        for key in gone {
            self.told.slices.remove(&key);
            news.push(News::of_node(Noun::Slice, &key.to_string(), Happening::Removed, ""));
        }
        for (key, (state, waits_for)) in views {
            if self.told.slices.insert(key.clone(), state) == Some(state) {
                continue;
            }
            let why = waits_for.first().filter(|_| state == SliceState::Degraded);
            let why = why.map(|it| format!(": {}: {}: {}", it.thing, it.step, it.cause));
            let text = format!("{}{}", state.word(), why.unwrap_or_default());
            news.push(News::of_node(Noun::Slice, &key.to_string(), Happening::State, text));
        }
        news
    }

    /// Links that are otherwise than at the last look. Those of a slice that goes are not told one by one.
    fn links_news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        let there: BTreeMap<_, _> = self
            .slices
            .iter()
            .filter(|(_, kept)| kept.has_begun && !kept.record.going)
            .map(|(key, kept)| (key.clone(), self.links(kept).views))
            .collect();
        self.told.links.retain(|key, _| there.contains_key(key));
        for (key, views) in there {
            let told = self.told.links.entry(key.clone()).or_default();
            told.retain(|name, _| views.contains_key(name));
            for (name, state) in views.iter().filter_map(|(name, view)| Some((name, view.state?))) {
                if told.insert(name.clone(), state) != Some(state) {
                    let name = format!("{key}/{name}");
                    news.push(News::of_node(Noun::Link, &name, Happening::State, state.word()));
                }
            }
        }
        news
    }
}

impl Caller {
    /// Whether it may hear of it: of a tenant's slices who sees the tenant, of the rest operators.
    pub fn hears(&self, news: &News) -> bool {
        let tenant = news.name.as_ref().and_then(|name| name.split_once('/'));
        match tenant.filter(|_| matches!(news.kind, Noun::Slice | Noun::Link)) {
            Some((tenant, _)) => self.sees(tenant),
            None => self.is_operator(),
        }
    }
}
