//! Nodes: what they say and get, how they join, and how they are let in.

use super::{Answer, App, name, whole};
use crate::caller::Peer;
use crate::fault;
use api::{
    Deviation, DomainNodeView, ErrorBody, JoinRequest, JoinTokenSpec, JoinTokenView, Joined,
    NewToken, PartName, PartText, RenewRequest, Report, Wanted,
};
use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serve::extract::{Body, Parameters};
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;

/// How long nodes may take to compare what they have. Chosen: less than a command's own patience.
const ANSWER: Duration = Duration::from_secs(8);

/// All nodes of the domain.
#[utoipa::path(get, path = "/v1/nodes", tag = "nodes",
    responses((status = 200, description = "The nodes", body = Vec<DomainNodeView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_nodes(State(controller): App) -> Json<Vec<DomainNodeView>> {
    Json(controller.state().all_nodes())
}

/// How far to look.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Depth {
    /// Let each node compare what it really has, kernel included; otherwise only what nodes report is compared.
    #[serde(default)]
    deep: bool,
}

/// What of the domain is not as it is declared: each difference, with its node and remedy.
#[utoipa::path(get, path = "/v1/deviations", tag = "nodes", params(Depth),
    responses((status = 200, description = "What differs", body = Vec<Deviation>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn deviations(
    State(controller): App,
    Parameters(Depth { deep }): Parameters<Depth>,
) -> Answer<Vec<Deviation>> {
    let mut heard = controller.heard_moves();
    let number = deep.then(|| controller.ask());
    let answered = async {
        while number.is_some_and(|number| !controller.is_answered(number)) {
            // The controller goes on for as long as it is asked.
            let _ = heard.changed().await;
        }
    };
    // Who has not answered by then is told of.
    let _ = timeout(ANSWER, answered).await;
    Ok(Json(controller.deviations(number)))
}

/// A node says what it has; the answer says what it shall have, and waits a while if that is the same.
#[utoipa::path(post, path = "/v1/nodes/{node}/report", tag = "nodes", params(("node" = String, Path, description = "The node")), request_body = Report,
    responses((status = 200, description = "What it shall have", body = Wanted),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn report(
    State(controller): App,
    Path(node): Path<String>,
    Body(report): Body<Report>,
) -> Answer<Wanted> {
    let node = name(&node)?;
    let mut wanted = controller.wanted_moves();
    let hold = whole(|| controller.heard(&node, report))?;
    // Nothing else wanted within the time is no error: the node calls again.
    let _ = timeout(hold, wanted.changed()).await;
    Ok(Json(controller.wanted(&node)))
}

/// A part as a node shall have it.
#[utoipa::path(get, path = "/v1/nodes/{node}/parts/{part}", tag = "nodes", params(("node" = String, Path, description = "The node"), ("part" = String, Path, description = "The part")),
    responses((status = 200, description = "The part", body = PartText),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn part(
    State(controller): App,
    Path((node, part)): Path<(String, String)>,
) -> Answer<PartText> {
    let bad = |error: api::BadText| {
        fault::refused(
            StatusCode::BAD_REQUEST,
            "part",
            "find it",
            error.to_string(),
            "name it as the answer to the report did",
        )
    };
    let part: PartName = part.parse().map_err(bad)?;
    Ok(Json(controller.part(&name(&node)?, &part)?.text))
}

/// Lets a host in as a node: a token and a signing request become a certificate.
#[utoipa::path(post, path = "/v1/join", tag = "nodes", request_body = JoinRequest,
    responses((status = 200, description = "The certificate", body = Joined),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn join(
    State(controller): App,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<JoinRequest>,
) -> Answer<Joined> {
    Ok(Json(whole(|| controller.join(&request, &peer))?))
}

/// The next certificate of a node.
#[utoipa::path(post, path = "/v1/nodes/{node}/certificate", tag = "nodes", params(("node" = String, Path, description = "The node")), request_body = RenewRequest,
    responses((status = 200, description = "The certificate", body = Joined),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn renew(
    State(controller): App,
    Path(node): Path<String>,
    Body(renewal): Body<RenewRequest>,
) -> Answer<Joined> {
    let node = name(&node)?;
    Ok(Json(whole(|| controller.renew(&node, &renewal.request))?))
}

/// Forgets a node: its certificates are worth nothing, and nothing waits for it any more.
#[utoipa::path(post, path = "/v1/nodes/{node}/forget", tag = "nodes", params(("node" = String, Path, description = "The node")),
    responses((status = 200, description = "It is forgotten", body = ()),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn forget(State(controller): App, Path(node): Path<String>) -> Answer<()> {
    let node = name(&node)?;
    Ok(Json(whole(|| controller.forget(&node))?))
}

/// All tokens to join by, without their secrets.
#[utoipa::path(get, path = "/v1/tokens", tag = "nodes",
    responses((status = 200, description = "The tokens", body = Vec<JoinTokenView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_tokens(State(controller): App) -> Json<Vec<JoinTokenView>> {
    Json(controller.tokens())
}

/// Makes a token to join by. It is told once.
#[utoipa::path(post, path = "/v1/tokens", tag = "nodes", request_body = JoinTokenSpec,
    responses((status = 200, description = "The token", body = NewToken),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn add_token(
    State(controller): App,
    Body(spec): Body<JoinTokenSpec>,
) -> Answer<NewToken> {
    Ok(Json(whole(|| controller.add_token(&spec))?))
}

/// Takes a token back.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "nodes", params(("id" = String, Path, description = "Which one")),
    responses((status = 200, description = "It is gone", body = ()),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn remove_token(State(controller): App, Path(id): Path<String>) -> Answer<()> {
    Ok(Json(whole(|| controller.remove_token(&id))?))
}
