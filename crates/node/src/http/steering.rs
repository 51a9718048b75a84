//! Steering: one function per route.

use super::extract::{Body, Parameters};
use super::handlers::{Answer, App, Gone, whole};
use api::steer::{
    Detached, FlowView, InterfaceSpec, InterfaceView, PolicyPatch, PolicySpec, SteerRules,
    SteerView, UnitView, VmSpec, VmView, WhyView,
};
use api::{Applied, ErrorBody};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which rules to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FlowsQuery {
    /// Only rules at least as specific as this match.
    #[serde(default)]
    filter: String,
    /// Only on this interface.
    on: Option<String>,
}

/// Which flow to explain.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhyQuery {
    /// The flow, as a rule's match with every field that its frames have.
    flow: String,
    /// The interface that receives it; the only one when absent.
    on: Option<String>,
}

/// Steering: interfaces, cores, machines, policy.
#[utoipa::path(get, path = "/v1/steer", tag = "steering",
    responses((status = 200, description = "All of it at one moment", body = SteerView),
              (status = "4XX", description = "The kernel refuses to say", body = ErrorBody)))]
pub async fn show_steering(State(node): App) -> Answer<SteerView> {
    Ok(Json(node.steering().await?))
}

/// Units: flow groups and rules that any frame came for, the busiest first.
#[utoipa::path(get, path = "/v1/steer/units", operation_id = "list_steer_units", tag = "steering",
    responses((status = 200, description = "The units", body = Vec<UnitView>),
              (status = "4XX", description = "The kernel refuses to say", body = ErrorBody)))]
pub async fn list_units(State(node): App) -> Answer<Vec<UnitView>> {
    Ok(Json(node.steer_units().await?))
}

/// Steer what an interface receives.
#[utoipa::path(put, path = "/v1/steer/interfaces/{interface}", operation_id = "attach_steering", tag = "steering", request_body = InterfaceSpec,
    params(("interface" = String, Path, description = "Name of the interface")),
    responses((status = 200, description = "Steered and saved", body = InterfaceView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Steered, but not saved yet", body = ErrorBody)))]
pub async fn attach(
    State(node): App,
    Path(interface): Path<String>,
    Body(spec): Body<InterfaceSpec>,
) -> Answer<InterfaceView> {
    Ok(Json(whole(async move { node.steer_attach(interface, spec).await }).await?))
}

/// Stop steering an interface; nothing of suiro is left on it.
#[utoipa::path(delete, path = "/v1/steer/interfaces/{interface}", operation_id = "detach_steering", tag = "steering",
    params(("interface" = String, Path, description = "Name of the interface")),
    responses((status = 200, description = "Gone", body = Detached),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn detach(State(node): App, Path(interface): Path<String>) -> Answer<Detached> {
    Ok(Json(whole(async move { node.steer_detach(interface).await }).await?))
}

/// Rules with live counters, and the core that each is on.
#[utoipa::path(get, path = "/v1/steer/flows", operation_id = "list_steer_flows", tag = "steering", params(FlowsQuery),
    responses((status = 200, description = "The rules", body = Vec<FlowView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_flows(
    State(node): App,
    Parameters(query): Parameters<FlowsQuery>,
) -> Answer<Vec<FlowView>> {
    Ok(Json(node.steer_flows(query.on, query.filter).await?))
}

/// Add rules; one with the same match and priority is replaced.
#[utoipa::path(post, path = "/v1/steer/flows", operation_id = "add_steer_flows", tag = "steering", request_body = SteerRules,
    responses((status = 200, description = "In force and saved", body = Applied),
              (status = "4XX", description = "Refused; rules before the one named stand", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn add_flows(State(node): App, Body(rules): Body<SteerRules>) -> Answer<Applied> {
    let applied = whole(async move { node.add_steer_rules(rules).await }).await?;
    Ok(Json(Applied { applied, ..Applied::default() }))
}

/// Delete rules.
#[utoipa::path(delete, path = "/v1/steer/flows", operation_id = "remove_steer_flows", tag = "steering", request_body = SteerRules,
    responses((status = 200, description = "Gone, and saved", body = Applied),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn remove_flows(State(node): App, Body(rules): Body<SteerRules>) -> Answer<Applied> {
    let applied = whole(async move { node.del_steer_rules(rules).await }).await?;
    Ok(Json(Applied { applied, ..Applied::default() }))
}

/// Why a flow is processed where it is: rule, core, reason, and what was thought of every core.
#[utoipa::path(get, path = "/v1/steer/why", operation_id = "why_steer", tag = "steering", params(WhyQuery),
    responses((status = 200, description = "The reason", body = WhyView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn why(State(node): App, Parameters(query): Parameters<WhyQuery>) -> Answer<WhyView> {
    Ok(Json(node.steer_why(query.on, query.flow).await?))
}

/// Change how cores are chosen.
#[utoipa::path(patch, path = "/v1/steer/policy", operation_id = "set_steer_policy", tag = "steering", request_body = PolicyPatch,
    responses((status = 200, description = "In force and saved", body = PolicySpec),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn set_policy(State(node): App, Body(patch): Body<PolicyPatch>) -> Answer<PolicySpec> {
    Ok(Json(whole(async move { node.set_steer_policy(patch).await }).await?))
}

/// Declare a virtual machine, or declare it anew.
#[utoipa::path(put, path = "/v1/steer/vms/{vm}", tag = "steering", request_body = VmSpec,
    params(("vm" = String, Path, description = "Name of the machine")),
    responses((status = 200, description = "Declared and saved", body = VmView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Declared, but not saved yet", body = ErrorBody)))]
pub async fn put_vm(
    State(node): App,
    Path(vm): Path<String>,
    Body(spec): Body<VmSpec>,
) -> Answer<VmView> {
    Ok(Json(whole(async move { node.put_steer_vm(vm, spec).await }).await?))
}

/// Forget a declared virtual machine.
#[utoipa::path(delete, path = "/v1/steer/vms/{vm}", tag = "steering",
    params(("vm" = String, Path, description = "Name of the machine")),
    responses((status = 204, description = "Forgotten"),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Forgotten, but not saved yet", body = ErrorBody)))]
pub async fn remove_vm(State(node): App, Path(vm): Path<String>) -> Gone {
    whole(async move { node.del_steer_vm(vm).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
