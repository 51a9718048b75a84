//! Parts: one function per route.

use super::error::ApiError;
use super::extract::{Body, Parameters};
use super::handlers::{Answer, App, whole};
use crate::service::{Extent, HowToApply, unless_gone};
use api::{Difference, ErrorBody, Export, Fault, PartName, PartText, PartView};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::IntoParams;

/// Whether to change anything.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Trial {
    /// Only tell what would change.
    #[serde(default)]
    dry_run: bool,
}

impl Trial {
    fn how(&self) -> HowToApply {
        if self.dry_run { HowToApply::DryRun } else { HowToApply::Apply }
    }
}

/// Whether to remove anything, and whether it must be there.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Removal {
    /// Only tell what would change.
    #[serde(default)]
    dry_run: bool,
    /// That it is not there is no error.
    #[serde(default)]
    if_exists: bool,
}

/// All parts; `file` is the configuration file.
#[utoipa::path(get, path = "/v1/parts", tag = "parts",
    responses((status = 200, description = "The parts", body = Vec<PartView>)))]
pub async fn list_parts(State(node): App) -> Json<Vec<PartView>> {
    Json(node.parts())
}

/// One part.
#[utoipa::path(get, path = "/v1/parts/{part}", tag = "parts",
    params(("part" = String, Path, description = "Name of the part")),
    responses((status = 200, description = "The part", body = PartView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_part(State(node): App, Path(part): Path<PartName>) -> Answer<PartView> {
    Ok(Json(node.part(&part)?))
}

/// Make what a part has what it declares: all of it, or nothing.
#[utoipa::path(put, path = "/v1/parts/{part}", tag = "parts", request_body = PartText,
    params(("part" = String, Path, description = "Name of the part"), Trial),
    responses((status = 200, description = "In force and saved; or what would change", body = Difference),
              (status = "4XX", description = "Refused: nothing is changed", body = ErrorBody),
              (status = 507, description = "In force, but not saved yet", body = ErrorBody)))]
pub async fn put_part(
    State(node): App,
    Path(part): Path<PartName>,
    Parameters(trial): Parameters<Trial>,
    Body(text): Body<PartText>,
) -> Answer<Difference> {
    let put = async move { node.put_part(&part, text, trial.how()).await };
    Ok(Json(whole(put).await?))
}

/// Remove a part with all that it declares.
#[utoipa::path(delete, path = "/v1/parts/{part}", tag = "parts",
    params(("part" = String, Path, description = "Name of the part"), Removal),
    responses((status = 200, description = "Gone, and what went; or what would go", body = Difference),
              (status = "4XX", description = "Refused", body = ErrorBody),
              (status = 507, description = "Gone, but not saved yet", body = ErrorBody)))]
pub async fn remove_part(
    State(node): App,
    Path(part): Path<PartName>,
    Parameters(Removal { dry_run, if_exists }): Parameters<Removal>,
) -> Answer<Difference> {
    let how = Trial { dry_run }.how();
    let removed = async move {
        let removed = node.remove_part(&part, how).await;
        let nothing = || Difference { part, generation: 0, changes: Vec::new() };
        if if_exists { unless_gone(removed, nothing) } else { removed }
    };
    Ok(Json(whole(removed).await?))
}

/// Compare what the node really has with what parts declare: each difference, with its remedy.
#[utoipa::path(get, path = "/v1/audit", tag = "parts",
    responses((status = 200, description = "What differs", body = Vec<Fault>)))]
pub async fn audit(State(node): App) -> Answer<Vec<Fault>> {
    Ok(Json(whole(async move { Ok(node.audit().await) }).await?))
}

/// What of a node to write.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HowMuch {
    /// What parts declare and rules of switches with controllers, too.
    #[serde(default)]
    all: bool,
}

/// What the node has, as a configuration file.
#[utoipa::path(get, path = "/v1/export", tag = "parts", params(HowMuch),
    responses((status = 200, description = "The file's text", body = Export)))]
pub async fn export(
    State(node): App,
    Parameters(HowMuch { all }): Parameters<HowMuch>,
) -> Answer<Export> {
    let extent = if all { Extent::All } else { Extent::Own };
    let text = tokio::task::spawn_blocking(move || node.export(extent)).await;
    Ok(Json(Export { text: text.map_err(|failed| ApiError::of_ours(&failed))? }))
}
