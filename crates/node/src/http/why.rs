//! Why a packet goes where it goes.

use super::extract::Body;
use super::handlers::{Answer, App};
use api::{ErrorBody, TimingQuestion, TimingView, WhyAnswer, WhyQuestion};
use axum::Json;
use axum::extract::{Path, State};

/// What would become of a packet now: its way through tables, groups, meters and switches, the rules that it finds and nearly finds, where it leaves, and
/// why it is lost. Nothing is sent, counted or learned.
#[utoipa::path(post, path = "/v1/switches/{switch}/why", tag = "rules", request_body = WhyQuestion,
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "Its way", body = WhyAnswer),
              (status = "4XX", description = "Refused: no such switch, or the packet is not said whole", body = ErrorBody)))]
pub async fn why(
    State(node): App,
    Path(switch): Path<String>,
    Body(question): Body<WhyQuestion>,
) -> Answer<WhyAnswer> {
    Ok(Json(node.why(&switch, &question).await?))
}

/// For how long frames stay in each stage that come in at a switch and match. The answer comes when the time is over. Meanwhile frames of the switch are
/// read one by one, as for a capture.
#[utoipa::path(post, path = "/v1/switches/{switch}/times", tag = "captures", request_body = TimingQuestion,
    params(("switch" = String, Path, description = "Name of the switch")),
    responses((status = 200, description = "The stages that they went through", body = TimingView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn time_flow(
    State(node): App,
    Path(switch): Path<String>,
    Body(question): Body<TimingQuestion>,
) -> Answer<TimingView> {
    Ok(Json(node.time_flow(&switch, &question).await?))
}
