//! Switches of slices, as their nodes have them now: ports, rules with live counters, controllers, and what would become of a packet.

use super::asking::{ask, to_node};
use super::slices::key;
use super::{Answer, App, Shared};
use crate::controller::{Placed, no_slice};
use crate::ways::{Ways, verdict};
use api::{
    ErrorBody, FlowsView, GroupView, MacView, MeterView, PortView, SliceLeg, SliceWhy, SwitchName,
    SwitchView, WhyAnswer, WhyQuestion, quoted,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use domain::SliceKey;
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serve::error::ApiError;
use serve::extract::{Body, Parameters};
use utoipa::IntoParams;

/// Most rules in one answer.
const RULES_MAX: usize = 1000;
/// Most legs of a packet's way. Chosen: a flood over a class's network; a loop ends there.
const LEGS_MAX: usize = 64;

/// Which switch of which slice.
type Which = Path<(String, String, String)>;

/// A switch: its controllers' sessions, its counters, its losses by reason.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/switches/{switch}", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch")),
    responses((status = 200, description = "The switch", body = SwitchView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_slice_switch(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
) -> Answer<SwitchView> {
    let its = Its::find(&controller, (tenant, slice), &switch)?;
    let mut view: SwitchView = its.get("").await?;
    its.name(&mut view.name);
    Ok(Json(view))
}

/// Ports of a switch, with live counters.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/switches/{switch}/ports", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch")),
    responses((status = 200, description = "Its ports", body = Vec<PortView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_slice_ports(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
) -> Answer<Vec<PortView>> {
    let its = Its::find(&controller, (tenant, slice), &switch)?;
    let mut ports: Vec<PortView> = its.get("/ports").await?;
    let ways = ways(&controller, &its.placed.key)?;
    for port in &mut ports {
        its.name(&mut port.switch);
        // What it is joined with on the node's own switch is no business of the slice's; its spec has that, too.
        port.peer = port.peer.as_ref().and_then(|peer| ways.own_peer(peer));
        port.spec = None;
    }
    Ok(Json(ports))
}

/// Stations that a switch has learned.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/switches/{switch}/macs", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch")),
    responses((status = 200, description = "Its stations", body = Vec<MacView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_slice_macs(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
) -> Answer<Vec<MacView>> {
    Ok(Json(Its::find(&controller, (tenant, slice), &switch)?.get("/macs").await?))
}

/// Which rules.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Selection {
    /// Only rules at least as specific as this match, in the syntax of `ovs-ofctl dump-flows`.
    #[serde(default)]
    #[param(example = "table=0,ip")]
    filter: String,
    /// At most so many, up to 1000. The switch says how many it has.
    #[serde(default = "most")]
    #[param(example = 500)]
    limit: usize,
}

fn most() -> usize {
    RULES_MAX
}

/// Rules of a switch, with live counters.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/switches/{switch}/flows", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch"), Selection),
    responses((status = 200, description = "Its rules, as many as were asked for", body = FlowsView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_slice_flows(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
    Parameters(Selection { filter, limit }): Parameters<Selection>,
) -> Answer<FlowsView> {
    let its = Its::find(&controller, (tenant, slice), &switch)?;
    let limit = limit.min(RULES_MAX);
    let what = format!("/flows?filter={}&limit={limit}", quoted(&filter));
    Ok(Json(its.get(&what).await?))
}

/// Groups of a switch, with live counters.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/switches/{switch}/groups", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch")),
    responses((status = 200, description = "Its groups", body = Vec<GroupView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_slice_groups(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
) -> Answer<Vec<GroupView>> {
    Ok(Json(Its::find(&controller, (tenant, slice), &switch)?.get("/groups").await?))
}

/// Meters of a switch, with live counters.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/switches/{switch}/meters", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch")),
    responses((status = 200, description = "Its meters", body = Vec<MeterView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_slice_meters(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
) -> Answer<Vec<MeterView>> {
    Ok(Json(Its::find(&controller, (tenant, slice), &switch)?.get("/meters").await?))
}

/// What would become of a packet now that comes in at a switch: its way over all nodes of the slice. Nothing is sent, counted or learned.
#[utoipa::path(post, path = "/v1/slices/{tenant}/{slice}/switches/{switch}/why", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("switch" = String, Path, description = "The switch")), request_body = WhyQuestion,
    responses((status = 200, description = "Its way", body = SliceWhy),
              (status = "4XX", description = "Refused: no such switch, or the packet is not said whole", body = ErrorBody)))]
pub async fn why_slice(
    State(controller): App,
    Path((tenant, slice, switch)): Which,
    Body(question): Body<WhyQuestion>,
) -> Answer<SliceWhy> {
    let key = key((tenant, slice))?;
    let ways = ways(&controller, &key)?;
    let mut legs: Vec<SliceLeg> = Vec::new();
    let mut reach = Vec::new();
    let first = (switch, question, None, String::new());
    let mut ahead = vec![first];
    while let Some((switch, question, by, entry)) = ahead.pop() {
        let is_first = legs.is_empty();
        let asked = Its::of(&controller, &key, &switch).map(|its| (its.placed.node.clone(), its));
        let (node, answer) = match asked {
            Ok((node, its)) => (node.to_string(), its.why(&question).await.map(|why| (node, why))),
            Err(error) => (String::new(), Err(error)),
        };
        let mut leg = SliceLeg { node, entry, by, why: None, fault: None, onward: Vec::new() };
        match answer {
            // What is wrong with the question itself is the whole answer.
            Err(error) if is_first => return Err(error),
            Err(error) => leg.fault = Some(error.into_fault()),
            Ok((node, why)) => {
                let (why, onward) = ways.told(&node, why, &question);
                if is_first {
                    leg.entry = format!("{switch}:{}", port_of(&why.packet));
                }
                let is_end = onward.iter().any(|onward| onward.next.is_none());
                reach.push((Some(why.verdict), is_end));
                leg.why = Some(why);
                for onward in onward.into_iter().rev() {
                    let (by, to) = (Some(onward.told.by.clone()), onward.told.to.clone());
                    if let Some((switch, question)) = onward.next {
                        ahead.push((switch.to_string(), question, by, to));
                    }
                    leg.onward.insert(0, onward.told);
                }
            }
        }
        legs.push(leg);
        if legs.len() == LEGS_MAX {
            break;
        }
    }
    Ok(Json(SliceWhy { verdict: verdict(&reach, ahead.is_empty()), legs }))
}

fn ways(controller: &Shared, key: &SliceKey) -> Result<Ways, ApiError> {
    let state = controller.state();
    Ok(Ways::of(&state.slices.get(key).ok_or_else(|| no_slice(key))?.record))
}

/// The port that a packet's match says it came in by.
fn port_of(packet: &str) -> &str {
    let port = packet.split(',').find_map(|word| word.strip_prefix("in_port="));
    port.map_or("?", |port| port.strip_prefix('p').unwrap_or(port))
}

/// A switch of a slice, which its node is asked about.
struct Its {
    controller: Shared,
    placed: Placed,
    switch: String,
}

impl Its {
    fn find(controller: &Shared, slice: (String, String), switch: &str) -> Result<Self, ApiError> {
        Self::of(controller, &key(slice)?, switch)
    }

    fn of(controller: &Shared, key: &SliceKey, switch: &str) -> Result<Self, ApiError> {
        let placed = controller.switch(key, switch)?;
        Ok(Self { controller: controller.clone(), placed, switch: switch.into() })
    }

    /// Puts its name in the slice in place of its node's. A node's has 32 bytes: where the slice's is longer, it stays.
    fn name(&self, name: &mut SwitchName) {
        if let Ok(own) = self.switch.parse() {
            *name = own;
        }
    }

    /// What its node says of it.
    async fn get<T: DeserializeOwned>(&self, what: &str) -> Result<T, ApiError> {
        let question = to_node(Method::GET, &self.path(what)).body(Full::default());
        self.ask(question).await
    }

    async fn why(&self, question: &WhyQuestion) -> Result<WhyAnswer, ApiError> {
        let body = serde_json::to_vec(question).map_err(|error| ApiError::of_ours(&error))?;
        let question = to_node(Method::POST, &self.path("/why"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body));
        self.ask(question).await
    }

    fn path(&self, what: &str) -> String {
        format!("/v1/switches/{}{what}", quoted(&self.placed.named))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        question: Result<Request<Full<Bytes>>, axum::http::Error>,
    ) -> Result<T, ApiError> {
        let question = question.map_err(|error| ApiError::of_ours(&error))?;
        ask(&self.controller, &self.placed, question).await
    }
}
