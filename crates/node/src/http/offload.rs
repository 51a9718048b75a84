//! Offload: one function per route.

use super::extract::{Body, Parameters};
use super::handlers::{Answer, App, Gone, whole};
use api::{ErrorBody, OffloadPolicy, OffloadSwitch, OffloadView, OffloadWhy, OffloadedFlow};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which flows.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FlowsQuery {
    /// Only flows that this match fits, in the syntax of `ovs-ofctl`.
    #[serde(default)]
    #[param(example = "tcp,tp_dst=443")]
    filter: String,
}

/// Which flow to explain.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhyQuery {
    /// The flow, as a match; of several that it fits, the heaviest is explained.
    #[param(example = "tcp,nw_dst=10.0.0.2,tp_dst=5201")]
    flow: String,
}

/// Offload: whether it is on, rungs, moves, policies.
#[utoipa::path(get, path = "/v1/offload", tag = "offload",
    responses((status = 200, description = "All of it at one moment", body = OffloadView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_offload(State(node): App) -> Answer<OffloadView> {
    Ok(Json(node.offload_view().await?))
}

/// Switch offload on or off. Ports whose flows can leave the workers are opened anew; off, all flows come back first.
#[utoipa::path(put, path = "/v1/offload", tag = "offload", request_body = OffloadSwitch,
    responses((status = 200, description = "In force and saved", body = OffloadView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn set_offload(
    State(node): App,
    Body(OffloadSwitch { on }): Body<OffloadSwitch>,
) -> Answer<OffloadView> {
    Ok(Json(whole(async move { node.set_offload(on).await }).await?))
}

/// Add a policy, or replace the one of its name.
#[utoipa::path(put, path = "/v1/offload/policies", operation_id = "put_offload_policy", tag = "offload", request_body = OffloadPolicy,
    responses((status = 200, description = "In force and saved", body = OffloadPolicy),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn put_policy(
    State(node): App,
    Body(policy): Body<OffloadPolicy>,
) -> Answer<OffloadPolicy> {
    Ok(Json(whole(async move { node.put_offload_policy(policy).await }).await?))
}

/// Remove a policy.
#[utoipa::path(delete, path = "/v1/offload/policies/{policy}", operation_id = "remove_offload_policy", tag = "offload",
    params(("policy" = String, Path, description = "Name of the policy")),
    responses((status = 204, description = "Gone, and saved"),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn remove_policy(State(node): App, Path(policy): Path<String>) -> Gone {
    whole(async move { node.remove_offload_policy(&policy).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The flows of a switch, and the rung on which each is processed.
#[utoipa::path(get, path = "/v1/switches/{switch}/offload/flows", tag = "offload",
    params(("switch" = String, Path, description = "Name of the switch"), FlowsQuery),
    responses((status = 200, description = "The flows, those on rungs first", body = Vec<OffloadedFlow>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_offload_flows(
    State(node): App,
    Path(switch): Path<String>,
    Parameters(query): Parameters<FlowsQuery>,
) -> Answer<Vec<OffloadedFlow>> {
    Ok(Json(node.offload_flows(&switch, &query.filter).await?))
}

/// Why a flow is processed where it is, what that costs, and when it is tried next.
#[utoipa::path(get, path = "/v1/switches/{switch}/offload/why", tag = "offload",
    params(("switch" = String, Path, description = "Name of the switch"), WhyQuery),
    responses((status = 200, description = "The reason", body = OffloadWhy),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn why_offload(
    State(node): App,
    Path(switch): Path<String>,
    Parameters(query): Parameters<WhyQuery>,
) -> Answer<OffloadWhy> {
    Ok(Json(node.offload_why(&switch, &query.flow).await?))
}
