//! Browsers at a domain's controller: how users sign in, and what the portal shows them of the domain.

use crate::UserView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use utoipa::ToSchema;

/// The header by which a session's own pages say that a change is theirs.
pub const CSRF_HEADER: &str = "x-csrf-token";

/// A user signs in. It is not printed in debugging output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sign-in of {}", self.user)
    }
}

/// A password that a user gets. It is not printed in debugging output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordSpec {
    /// The password, 12 to 256 bytes.
    pub password: String,
}

impl fmt::Debug for PasswordSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a password")
    }
}

/// A session that a browser has. The cookie beside it is its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    /// Whose it is.
    pub user: UserView,
    /// What each change must bring in the header `X-CSRF-Token`.
    pub csrf: String,
    /// When it ends at the latest, in seconds since 1970.
    pub ends_s: u64,
    /// After how many seconds without a request it ends.
    pub idle_s: u64,
}

/// How much of something there is, and how much of that is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Room {
    /// What there is.
    pub all: u64,
    /// What of it is promised to nobody.
    pub free: u64,
}

/// A site of the domain, as a tenant may see it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SiteView {
    /// Nodes that it has.
    pub nodes: usize,
    /// Nodes of those that are here.
    pub here: usize,
    /// Thousandths of cores for guests, of nodes that are here.
    pub cpu_milli: Room,
    /// Bytes of memory for guests, of nodes that are here.
    pub memory: Room,
    /// Kinds of guest that some node of it has.
    pub kinds: Vec<String>,
}

/// A stretch of underlay between two sites.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SegmentView {
    /// Its sites.
    pub between: [String; 2],
    /// Bit/s each way that can be reserved.
    pub rate: Room,
    /// Time that frames take one way, in microseconds.
    pub delay_us: u64,
}

/// What there is in the domain for slices, and what of it is free.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SitesView {
    /// Its sites.
    pub sites: BTreeMap<String, SiteView>,
    /// What joins them.
    pub segments: BTreeMap<String, SegmentView>,
}

/// A span of time in which a slice is promised what it has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CalendarEntry {
    /// The slice: `tenant/slice`; none where it is another tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// When it begins, as its file says; left out: it has begun when it was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// When it ends; left out: when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// `from` in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_s: Option<i64>,
    /// `until` in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<i64>,
    /// Thousandths of cores of its guests.
    pub cpu_milli: u64,
    /// Bytes of memory of its guests.
    pub memory: u64,
    /// Bit/s of its links between nodes.
    pub rate: u64,
}
