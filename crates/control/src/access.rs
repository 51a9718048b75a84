//! Who may ask for what. A route that is not named here is the operator's.

use crate::caller::Caller;
use crate::fault;
use api::Role;
use axum::http::{Method, StatusCode};
use serve::error::ApiError;

/// What a request needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing.
    Anyone,
    /// To be a user.
    User,
    /// To see what is of a tenant.
    See(String),
    /// To change what is of a tenant.
    Change(String),
    /// To be that node.
    Node(String),
    /// To be an operator.
    Operator,
}

/// What a request of a route needs; `value` gives what the path has in place of a word in braces.
pub fn needed(method: &Method, route: &str, value: impl Fn(&str) -> String) -> Access {
    const SLICE: &str = "/v1/slices/{tenant}/{slice}";
    match (method.as_str(), route) {
        ("POST", "/v1/join" | "/v1/session") | ("GET", "/v1/openapi.json") => Access::Anyone,
        (
            "GET",
            "/v1/self" | "/v1/slices" | "/v1/sites" | "/v1/events" | "/v1/calendar"
            | "/v1/calendar.ics",
        )
        | ("GET" | "DELETE", "/v1/session")
        | ("POST", "/v1/read") => Access::User,
        (method, slice) if slice.starts_with(SLICE) => match method {
            // Who has a console changes what he likes.
            "GET" if slice.ends_with("/console") => Access::Change(value("tenant")),
            "GET" => Access::See(value("tenant")),
            // A question, though it has a body.
            "POST" if slice.ends_with("/why") => Access::See(value("tenant")),
            _ => Access::Change(value("tenant")),
        },
        (
            "POST",
            "/v1/nodes/{node}/report"
            | "/v1/nodes/{node}/certificate"
            | "/v1/nodes/{node}/streams/{id}",
        )
        | ("GET", "/v1/nodes/{node}/parts/{part}") => Access::Node(value("node")),
        _ => Access::Operator,
    }
}

impl Access {
    /// Whether that caller has it.
    ///
    /// # Errors
    /// It has not: 401 for who is unknown, 403 for who may not.
    pub fn check(&self, caller: &Caller) -> Result<(), ApiError> {
        let may = match (self, caller) {
            (Self::Anyone, _) | (_, Caller::Root) => true,
            (Self::Node(wanted), Caller::Node(name)) => name.to_string() == *wanted,
            (Self::Node(_), _) => false,
            (_, Caller::User { role: Role::Operator, .. }) => true,
            (Self::User, Caller::User { .. }) => true,
            (Self::See(tenant), _) => caller.sees(tenant),
            (Self::Change(tenant), Caller::User { role: Role::User, .. }) => caller.sees(tenant),
            _ => false,
        };
        if may { Ok(()) } else { Err(self.refusal(caller)) }
    }

    fn refusal(&self, caller: &Caller) -> ApiError {
        if *caller == Caller::Nobody {
            return fault::refused(
                StatusCode::UNAUTHORIZED,
                "caller",
                "know who asks",
                "neither a certificate of a node nor a user's token came with the request",
                "log in with a token of an operator's: suiro login ADDRESS",
            );
        }
        let (cause, remedy) = match self {
            Self::Node(node) => (
                format!("only node {node} itself may ask for this"),
                "use that node's certificate, or the unix socket of the controller's host",
            ),
            Self::See(tenant) | Self::Change(tenant) if !caller.sees(tenant) => (
                format!("that is tenant {tenant}'s"),
                "ask for your own tenant's slices: suiro slice list",
            ),
            Self::Change(_) => (
                "the role viewer sees and does not change".into(),
                "ask an operator for the role user",
            ),
            _ => ("only an operator may ask for this".into(), "ask an operator"),
        };
        fault::refused(
            StatusCode::FORBIDDEN,
            caller.to_string(),
            "do what was asked",
            cause,
            remedy,
        )
    }
}
