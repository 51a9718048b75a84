//! Users, and what they did.

use super::{Answer, App, name, whole};
use crate::caller::Caller;
use api::{AuditLine, ErrorBody, NewToken, Role, UserSpec, UserView};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serve::extract::Body;

/// Who the caller is.
#[utoipa::path(get, path = "/v1/self", tag = "users",
    responses((status = 200, description = "The user", body = UserView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_self(Extension(caller): Extension<Caller>) -> Json<UserView> {
    Json(view(caller))
}

/// A caller as a user.
pub fn view(caller: Caller) -> UserView {
    match caller {
        Caller::User { name, tenant, role, until_s } => {
            UserView { name, tenant, role, until_s: Some(until_s) }
        }
        root => {
            let name = root.to_string();
            UserView { name, tenant: None, role: Role::Operator, until_s: None }
        }
    }
}

/// All users.
#[utoipa::path(get, path = "/v1/users", tag = "users",
    responses((status = 200, description = "The users", body = Vec<UserView>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_users(State(controller): App) -> Json<Vec<UserView>> {
    Json(controller.users())
}

/// Makes a user, or gives the one of that name another role and another token. The token is told once.
#[utoipa::path(put, path = "/v1/users/{user}", tag = "users", params(("user" = String, Path, description = "The user")), request_body = UserSpec,
    responses((status = 200, description = "The token", body = NewToken),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn put_user(
    State(controller): App,
    Path(user): Path<String>,
    Body(spec): Body<UserSpec>,
) -> Answer<NewToken> {
    let user = name(&user)?;
    Ok(Json(whole(|| controller.put_user(&user, spec))?))
}

/// Removes a user. The token is worth nothing from now on.
#[utoipa::path(delete, path = "/v1/users/{user}", tag = "users", params(("user" = String, Path, description = "The user")),
    responses((status = 200, description = "It is gone", body = ()),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn remove_user(State(controller): App, Path(user): Path<String>) -> Answer<()> {
    let user = name(&user)?;
    Ok(Json(whole(|| controller.remove_user(&user))?))
}

/// The last changes: who, what, outcome.
#[utoipa::path(get, path = "/v1/audit", tag = "users",
    responses((status = 200, description = "The changes, the oldest first", body = Vec<AuditLine>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_audit(State(controller): App) -> Answer<Vec<AuditLine>> {
    Ok(Json(whole(|| controller.audit())?))
}
