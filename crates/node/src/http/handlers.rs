//! One function per route.

use super::error::ApiError;
use super::extract::{Body, IfExists, MayExist, Parameters};
use crate::refusal::Refusal;
use crate::service::{Came, Node, RuleVerb, unless_gone};
use api::{
    Applied, ErrorBody, GroupView, Keys, MacView, MeterView, NodeView, PortPatch, PortQueueView,
    PortSpec, PortView, QueueLimits, RuleChange, SwitchPatch, SwitchSpec, SwitchView, WorkersView,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use std::future::Future;
use std::sync::Arc;

pub(super) type App = State<Arc<Node>>;
pub(super) type Answer<T> = Result<Json<T>, ApiError>;
type Made<T> = Result<(StatusCode, Json<T>), ApiError>;
pub(super) type Gone = Result<StatusCode, ApiError>;

/// Does a change in a task of its own: a client that hangs up cancels its answer, never half a change.
pub(super) async fn whole<T: Send + 'static>(
    change: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::spawn(change).await {
        Ok(done) => Ok(done?),
        Err(failed) => Err(ApiError::of_ours(&failed)),
    }
}

/// The node: version, directories, cores, state of the store.
#[utoipa::path(get, path = "/v1/node", tag = "node",
    responses((status = 200, description = "The node", body = NodeView)))]
pub async fn show_node(State(node): App) -> Json<NodeView> {
    Json(node.view())
}

/// Read the configuration file again: whole or not at all.
#[utoipa::path(post, path = "/v1/node/reload", tag = "node",
    responses((status = 200, description = "What it declares is in force", body = NodeView),
              (status = "4XX", description = "Refused: nothing is changed", body = ErrorBody)))]
pub async fn reload_node(State(node): App) -> Answer<NodeView> {
    let reloaded = async move { node.reload_file().await.map(|()| node.view()) };
    Ok(Json(whole(reloaded).await?))
}

/// The workers: packets and cycles per core, queues served.
#[utoipa::path(get, path = "/v1/workers", tag = "node",
    responses((status = 200, description = "The workers", body = WorkersView)))]
pub async fn show_workers(State(node): App) -> Json<WorkersView> {
    Json(node.workers())
}

/// All switches.
#[utoipa::path(get, path = "/v1/switches", tag = "switches",
    responses((status = 200, description = "The switches", body = Vec<SwitchView>)))]
pub async fn list_switches(State(node): App) -> Json<Vec<SwitchView>> {
    Json(node.switches())
}

/// Make a switch.
#[utoipa::path(post, path = "/v1/switches", tag = "switches", request_body = SwitchSpec, params(MayExist),
    responses((status = 201, description = "Made and saved", body = SwitchView),
              (status = 200, description = "It was there, and is as asked", body = SwitchView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Made, but not saved yet", body = ErrorBody)))]
pub async fn add_switch(
    State(node): App,
    Parameters(MayExist { may_exist }): Parameters<MayExist>,
    Body(keys): Body<Keys>,
) -> Made<SwitchView> {
    let spec: SwitchSpec = serde_json::from_value(keys.clone().into())
        .map_err(|error| ApiError::of_request(StatusCode::BAD_REQUEST, format!("body: {error}")))?;
    let made = whole(async move {
        match may_exist {
            true => node.ensure_switch(spec, keys).await,
            false => Ok((node.add_switch(spec).await?, Came::New)),
        }
    });
    Ok(came(made.await?))
}

fn came<T>((view, came): (T, Came)) -> (StatusCode, Json<T>) {
    let status = if came == Came::New { StatusCode::CREATED } else { StatusCode::OK };
    (status, Json(view))
}

/// One switch.
#[utoipa::path(get, path = "/v1/switches/{switch}", tag = "switches",
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "The switch", body = SwitchView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_switch(State(node): App, Path(switch): Path<String>) -> Answer<SwitchView> {
    Ok(Json(node.switch(&switch)?))
}

/// Change a switch.
#[utoipa::path(patch, path = "/v1/switches/{switch}", tag = "switches", request_body = SwitchPatch,
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "Changed and saved", body = SwitchView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Changed, but not saved yet", body = ErrorBody)))]
pub async fn change_switch(
    State(node): App,
    Path(switch): Path<String>,
    Body(patch): Body<SwitchPatch>,
) -> Answer<SwitchView> {
    Ok(Json(whole(async move { node.patch_switch(&switch, &patch).await }).await?))
}

/// Remove a switch with its ports and rules.
#[utoipa::path(delete, path = "/v1/switches/{switch}", tag = "switches",
    params(("switch" = String, Path, description = "Name of the switch"), IfExists),
    responses((status = 204, description = "Gone"),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn remove_switch(
    State(node): App,
    Path(switch): Path<String>,
    Parameters(may): Parameters<IfExists>,
) -> Gone {
    gone(may, async move { node.remove_switch(&switch).await }).await
}

/// Removes something; where that is said, it may be gone already.
async fn gone(
    IfExists { if_exists }: IfExists,
    removal: impl Future<Output = Result<(), Refusal>> + Send + 'static,
) -> Gone {
    whole(async move {
        let removed = removal.await;
        if if_exists { unless_gone(removed, || ()) } else { removed }
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The ports of every switch.
#[utoipa::path(get, path = "/v1/ports", tag = "ports",
    responses((status = 200, description = "The ports, by switch and number", body = Vec<PortView>)))]
pub async fn list_all_ports(State(node): App) -> Json<Vec<PortView>> {
    Json(node.all_ports())
}

/// The ports of a switch.
#[utoipa::path(get, path = "/v1/switches/{switch}/ports", tag = "ports",
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "The ports, by number", body = Vec<PortView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_ports(State(node): App, Path(switch): Path<String>) -> Answer<Vec<PortView>> {
    Ok(Json(node.ports(&switch)?))
}

/// Make a port.
#[utoipa::path(post, path = "/v1/switches/{switch}/ports", tag = "ports", request_body = PortSpec,
    params(("switch" = String, Path, description = "Name of the switch"), MayExist),
    responses((status = 201, description = "Made and saved", body = PortView),
              (status = 200, description = "It was there, and is as asked", body = PortView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Made, but not saved yet", body = ErrorBody)))]
pub async fn add_port(
    State(node): App,
    Path(switch): Path<String>,
    Parameters(MayExist { may_exist }): Parameters<MayExist>,
    Body(keys): Body<Keys>,
) -> Made<PortView> {
    let made = whole(async move {
        match may_exist {
            true => node.ensure_port(&switch, keys).await,
            false => Ok((node.add_port(&switch, keys).await?, Came::New)),
        }
    });
    Ok(came(made.await?))
}

/// One port.
#[utoipa::path(get, path = "/v1/switches/{switch}/ports/{port}", tag = "ports",
    params(("switch" = String, Path, description = "Name of the switch"),
           ("port" = String, Path, description = "Name or number of the port")),
    responses((status = 200, description = "The port", body = PortView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_port(
    State(node): App,
    Path((switch, port)): Path<(String, String)>,
) -> Answer<PortView> {
    Ok(Json(node.port(&switch, &port)?))
}

/// Change a port.
#[utoipa::path(patch, path = "/v1/switches/{switch}/ports/{port}", tag = "ports", request_body = PortPatch,
    params(("switch" = String, Path, description = "Name of the switch"),
           ("port" = String, Path, description = "Name or number of the port")),
    responses((status = 200, description = "Changed and saved", body = PortView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Changed, but not saved yet", body = ErrorBody)))]
pub async fn change_port(
    State(node): App,
    Path((switch, port)): Path<(String, String)>,
    Body(patch): Body<PortPatch>,
) -> Answer<PortView> {
    Ok(Json(whole(async move { node.patch_port(&switch, &port, &patch).await }).await?))
}

/// Remove a port; a TAP goes with it.
#[utoipa::path(delete, path = "/v1/switches/{switch}/ports/{port}", tag = "ports",
    params(("switch" = String, Path, description = "Name of the switch"),
           ("port" = String, Path, description = "Name or number of the port"), IfExists),
    responses((status = 204, description = "Gone"),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn remove_port(
    State(node): App,
    Path((switch, port)): Path<(String, String)>,
    Parameters(may): Parameters<IfExists>,
) -> Gone {
    gone(may, async move { node.remove_port(&switch, &port).await }).await
}

/// The stations that a switch has learned: which address is behind which port.
#[utoipa::path(get, path = "/v1/switches/{switch}/macs", tag = "switches",
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "The stations, by VLAN and address", body = Vec<MacView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_macs(State(node): App, Path(switch): Path<String>) -> Answer<Vec<MacView>> {
    Ok(Json(node.macs(&switch)?))
}

/// Have a switch forget the stations that it has learned; frames to them are flooded until they speak.
#[utoipa::path(delete, path = "/v1/switches/{switch}/macs", tag = "switches",
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 204, description = "Forgotten"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn forget_macs(State(node): App, Path(switch): Path<String>) -> Gone {
    node.forget_macs(&switch)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The queues of a port, with live counters.
#[utoipa::path(get, path = "/v1/switches/{switch}/ports/{port}/queues", tag = "ports",
    params(("switch" = String, Path, description = "Name of the switch"),
           ("port" = String, Path, description = "Name or number of the port")),
    responses((status = 200, description = "The queues, by number", body = Vec<PortQueueView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_queues(
    State(node): App,
    Path((switch, port)): Path<(String, String)>,
) -> Answer<Vec<PortQueueView>> {
    Ok(Json(node.queues(&switch, &port)?))
}

/// Give a port a queue, or a queue other rates; its counters and what waits in it stay.
#[utoipa::path(put, path = "/v1/switches/{switch}/ports/{port}/queues/{queue}", tag = "ports", request_body = QueueLimits,
    params(("switch" = String, Path, description = "Name of the switch"),
           ("port" = String, Path, description = "Name or number of the port"),
           ("queue" = u32, Path, description = "Number of the queue")),
    responses((status = 200, description = "In force and saved", body = PortQueueView),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn put_queue(
    State(node): App,
    Path((switch, port, queue)): Path<(String, String, String)>,
    Body(limits): Body<QueueLimits>,
) -> Answer<PortQueueView> {
    let queue = queue_number(&queue)?;
    let put = async move { node.put_queue(&switch, &port, queue, limits).await };
    Ok(Json(whole(put).await?))
}

/// Take a queue from a port.
#[utoipa::path(delete, path = "/v1/switches/{switch}/ports/{port}/queues/{queue}", tag = "ports",
    params(("switch" = String, Path, description = "Name of the switch"),
           ("port" = String, Path, description = "Name or number of the port"),
           ("queue" = u32, Path, description = "Number of the queue"), IfExists),
    responses((status = 204, description = "Gone"),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn remove_queue(
    State(node): App,
    Path((switch, port, queue)): Path<(String, String, String)>,
    Parameters(may): Parameters<IfExists>,
) -> Gone {
    let queue = queue_number(&queue)?;
    gone(may, async move { node.remove_queue(&switch, &port, queue).await }).await
}

fn queue_number(text: &str) -> Result<u32, ApiError> {
    let bad = |_| {
        let cause = format!("{text:?} is not a queue's number, 0 to 4294967294");
        ApiError::of_request(StatusCode::BAD_REQUEST, cause)
    };
    text.parse().map_err(bad)
}

/// The groups of a switch, with live counters.
#[utoipa::path(get, path = "/v1/switches/{switch}/groups", tag = "rules",
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "The groups", body = Vec<GroupView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_groups(State(node): App, Path(switch): Path<String>) -> Answer<Vec<GroupView>> {
    Ok(Json(node.groups(&switch)?))
}

/// The meters of a switch, with live counters.
#[utoipa::path(get, path = "/v1/switches/{switch}/meters", tag = "rules",
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "The meters", body = Vec<MeterView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_meters(State(node): App, Path(switch): Path<String>) -> Answer<Vec<MeterView>> {
    Ok(Json(node.meters(&switch)?))
}

/// Add flows, groups and meters; a flow with the same match and priority is replaced.
#[utoipa::path(post, path = "/v1/switches/{switch}/flows", tag = "rules", request_body = RuleChange,
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "In force and saved", body = Applied),
              (status = "4XX", description = "Refused; parts before the one named stand", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn add_rules(
    State(node): App,
    Path(switch): Path<String>,
    Body(rules): Body<RuleChange>,
) -> Answer<Applied> {
    let applied =
        whole(async move { node.change_rules(&switch, RuleVerb::Add, &rules).await }).await?;
    Ok(Json(applied))
}

/// Change flows, groups and meters that are there.
#[utoipa::path(patch, path = "/v1/switches/{switch}/flows", tag = "rules", request_body = RuleChange,
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "In force and saved", body = Applied),
              (status = "4XX", description = "Refused; parts before the one named stand", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn change_rules(
    State(node): App,
    Path(switch): Path<String>,
    Body(rules): Body<RuleChange>,
) -> Answer<Applied> {
    let applied =
        whole(async move { node.change_rules(&switch, RuleVerb::Modify, &rules).await }).await?;
    Ok(Json(applied))
}

/// Delete flows, groups and meters.
#[utoipa::path(delete, path = "/v1/switches/{switch}/flows", tag = "rules", request_body = RuleChange,
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "In force and saved", body = Applied),
              (status = "4XX", description = "Refused; parts before the one named stand", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn remove_rules(
    State(node): App,
    Path(switch): Path<String>,
    Body(rules): Body<RuleChange>,
) -> Answer<Applied> {
    let applied =
        whole(async move { node.change_rules(&switch, RuleVerb::Delete, &rules).await }).await?;
    Ok(Json(applied))
}
