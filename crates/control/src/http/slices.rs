//! The domain and its slices: one function per route.

use super::{Answer, App, whole};
use crate::caller::Caller;
use crate::controller::no_slice;
use api::{Declaration, Declares, ErrorBody, PlanView, SitesView, SliceState, SliceView};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Extension, Json};
use domain::SliceKey;
use serde::Deserialize;
use serve::error::ApiError;
use serve::extract::{Body, Parameters};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

pub(super) fn key((tenant, slice): (String, String)) -> Result<SliceKey, ApiError> {
    let key = format!("{tenant}/{slice}").parse();
    key.map_err(|error: api::BadText| {
        ApiError::of_request(StatusCode::BAD_REQUEST, error.to_string())
    })
}

/// Reads a file and says what it declares. Nothing changes.
#[utoipa::path(post, path = "/v1/read", tag = "domain", request_body = Declaration,
    responses((status = 200, description = "What it declares", body = Declares),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn read(State(controller): App, Body(declared): Body<Declaration>) -> Answer<Declares> {
    Ok(Json(controller.declares(&declared)?))
}

/// The domain's file as it was applied.
#[utoipa::path(get, path = "/v1/domain", tag = "domain",
    responses((status = 200, description = "The file", body = Declaration),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_domain(State(controller): App) -> Answer<Declaration> {
    Ok(Json(controller.domain()?))
}

/// Puts a domain in place of the one before. Slices stay as they were admitted.
#[utoipa::path(put, path = "/v1/domain", tag = "domain", request_body = Declaration,
    responses((status = 200, description = "At which revision of the store it is kept", body = u64),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn put_domain(State(controller): App, Body(declared): Body<Declaration>) -> Answer<u64> {
    Ok(Json(whole(|| controller.put_domain(declared))?))
}

/// Sites, what joins them, and what of it is free for slices.
#[utoipa::path(get, path = "/v1/sites", tag = "slices",
    responses((status = 200, description = "The sites", body = SitesView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn sites(State(controller): App) -> Json<SitesView> {
    Json(controller.state().sites())
}

/// All slices that the caller may see.
#[utoipa::path(get, path = "/v1/slices", tag = "slices",
    responses((status = 200, description = "The slices", body = Vec<SliceView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_slices(
    State(controller): App,
    Extension(caller): Extension<Caller>,
) -> Json<Vec<SliceView>> {
    let mut slices = controller.state().all_slices();
    slices.retain(|slice| slice.slice.split('/').next().is_some_and(|own| caller.sees(own)));
    Json(slices)
}

/// A slice.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice")),
    responses((status = 200, description = "The slice", body = SliceView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
) -> Answer<SliceView> {
    let key = key(path)?;
    controller.state().slice(&key).map(Json).ok_or_else(|| no_slice(&key))
}

/// What a declaration would change.
#[utoipa::path(post, path = "/v1/slices/{tenant}/{slice}/plan", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice")), request_body = Declaration,
    responses((status = 200, description = "The plan", body = PlanView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn plan_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
    Body(declared): Body<Declaration>,
) -> Answer<PlanView> {
    let key = key(path)?;
    Ok(Json(whole(|| controller.plan(&key, &declared))?))
}

/// Which plan is applied.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wished {
    /// The plan that is applied and no other.
    plan: Option<String>,
}

/// Admits a declaration, whole or not at all.
#[utoipa::path(put, path = "/v1/slices/{tenant}/{slice}", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), Wished), request_body = Declaration,
    responses((status = 200, description = "What has changed", body = PlanView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn put_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
    Parameters(wished): Parameters<Wished>,
    headers: HeaderMap,
    Body(declared): Body<Declaration>,
) -> Answer<PlanView> {
    let (key, when) = (key(path)?, when(&headers)?);
    Ok(Json(whole(|| controller.put(&key, declared, wished.plan.as_deref(), when))?))
}

/// At which revision the slice shall have been changed last, if the request says so.
fn when(headers: &HeaderMap) -> Result<Option<Option<u64>>, ApiError> {
    if headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*") {
        return Ok(Some(None));
    }
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let revision = value.to_str().ok().and_then(|text| text.trim_matches('"').parse().ok());
    let wrong = || {
        ApiError::of_request(
            StatusCode::BAD_REQUEST,
            "If-Match is no revision, such as \"7\"".into(),
        )
    };
    revision.map(|revision| Some(Some(revision))).ok_or_else(wrong)
}

/// Removes a slice: it is gone when every node that had a part of it has confirmed.
#[utoipa::path(delete, path = "/v1/slices/{tenant}/{slice}", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice")),
    responses((status = 200, description = "What goes", body = PlanView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn remove_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
) -> Answer<PlanView> {
    let key = key(path)?;
    Ok(Json(whole(|| controller.remove(&key))?))
}

/// What is waited for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Until {
    /// What is waited for.
    #[param(inline)]
    until: Option<Awaited>,
    /// For how many seconds at most.
    #[serde(default)]
    timeout: u16,
}

/// What a slice is awaited to be.
#[derive(Clone, Copy, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Awaited {
    /// All of it works.
    Ready,
    /// No node has anything of it.
    Gone,
}

/// A slice, as it is now or as soon as it is as awaited. Of one that is gone nothing is told.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/status", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), Until),
    responses((status = 200, description = "The slice; null when it is gone", body = Option<SliceView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn status(
    State(controller): App,
    Path(path): Path<(String, String)>,
    Parameters(until): Parameters<Until>,
) -> Answer<Option<SliceView>> {
    let key = key(path)?;
    let deadline = Instant::now() + Duration::from_secs(until.timeout.into());
    let mut heard = controller.heard_moves();
    loop {
        heard.mark_unchanged();
        let view = controller.state().slice(&key);
        let is_there = match (until.until, &view) {
            (Some(Awaited::Gone), None) => return Ok(Json(None)),
            (_, None) => return Err(no_slice(&key)),
            (Some(Awaited::Ready), Some(view)) => view.state == SliceState::Ready,
            (Some(Awaited::Gone), Some(_)) => false,
            (None, Some(_)) => true,
        };
        if is_there || timeout_at(deadline, heard.changed()).await.is_err() {
            return Ok(Json(view));
        }
    }
}

/// What a slice was declared as, generation by generation.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/history", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice")),
    responses((status = 200, description = "Generations and their files", body = Vec<(u64, Declaration)>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn history(
    State(controller): App,
    Path(path): Path<(String, String)>,
) -> Answer<Vec<(u64, Declaration)>> {
    let key = key(path)?;
    let found = whole(|| controller.history(&key))?;
    if found.is_empty() { Err(no_slice(&key)) } else { Ok(Json(found)) }
}
