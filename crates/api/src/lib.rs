//! # api: what may be asked of a node, and what it shows
//!
//! **Question answered**: in which values do configuration file, local API, store and command line talk about switches, ports and steering?
//!
//! Each noun has a module with what is wished of it (`…Spec`), what may change (`…Patch`) and what is shown (`…View`).
//! All are plain values. Each word is checked once, when it is read; so every door gives the same cause and the same remedy.
//!
//! * Words: [`name`](BadText), [`PortNumber`], [`Rate`], [`Controller`], [`Protocol`].
//! * Nouns: [`SwitchSpec`], [`PortSpec`], [`QueueSpec`], [`RuleChange`], [`PartText`], [`GuestSpec`], [`CircuitSpec`], [`NodeView`], [`WorkersView`], [`Event`]; steering in [`steer`].
//! * Between a domain's controller, nodes and users: [`Declaration`], [`PlanView`], [`SliceView`], [`Report`], [`Wanted`]; who they are: [`Token`], [`JoinRequest`], [`UserView`], [`AuditLine`].
//! * Errors: [`Fault`] is what people and programs meet, [`KeyFault`] is one wrong key.
//! * With feature `client`: [`Client`] asks a running node.
//!
//! ## Invariants
//!
//! * No I/O, clock or thread but in `client`.
//! * What is printed is read back as the same value. What an older release wrote is read.

#[macro_use]
mod name;

mod audit;
mod bound;
mod capture;
mod circuit;
#[cfg(feature = "client")]
mod client;
mod difference;
mod drops;
mod endpoint;
mod event;
pub mod exec;
mod fault;
mod guest;
mod key;
mod latency;
mod membership;
#[cfg(feature = "client")]
mod message;
mod node;
mod number;
mod offload;
mod part;
mod port;
mod protocol;
mod queue;
mod rate;
mod rules;
mod session;
mod slice;
pub mod steer;
mod switch;
mod timing;
mod tls;
mod why;
mod worker;

pub use audit::{AuditReport, Deviation};
pub use bound::{Bound, BoundHit};
pub use capture::{
    CAPTURE_BUDGET, CAPTURE_HEADER, CAPTURE_RING, CAPTURE_TYPE, CaptureFilter, CapturePointView,
    CaptureSpec, CaptureView, SNAP_MAX,
};
pub use circuit::{CircuitSpec, CircuitState, CircuitView, PROVE, StrayView, WayView};
#[cfg(feature = "client")]
pub use client::{As, Client, ClientError, ControllerAt, Outputs, Stop, quoted};
pub use difference::{KeyChange, in_words};
pub use drops::DropView;
pub use endpoint::{Controller, Host, Listen, OPENFLOW_PORT, Place, Target, Transport};
pub use event::{Event, Gone, Happening, News, Noun, Revision};
pub use fault::{ErrorBody, Fault, Location, chain};
pub use guest::{
    FILES_MAX, GuestCondition, GuestInterface, GuestSpec, GuestUse, GuestView, LogView, Restart,
    prefix,
};
#[cfg(feature = "client")]
pub use hyper::Method;
pub use key::{Change, Form, Key, KeyFault, KeyFaults, Keys, nearest};
pub use latency::{Latencies, Latency, LatencyBucket};
pub use membership::{
    AuditLine, CONTROL_PORT, CONTROLLER_NAME, JoinRequest, JoinTokenSpec, JoinTokenView, Joined,
    NewToken, RenewRequest, Role, Token, TokenKind, UserSpec, UserView,
};
#[cfg(feature = "client")]
pub use message::Message;
pub use name::{
    BadText, Cookie, Dpid, Dscp, FileMode, GroupName, IfName, KeyPath, Mac, Netns, PartName, Peer,
    PortName, SocketPath, SteerPoint, SwitchName, UserName,
};
pub use node::{
    CAPTURE_SOCKET, DEFAULT_RUN_DIR, LOCK, MemoryUse, NodeView, READ_SOCKET, StoreView,
};
pub use number::PortNumber;
pub use offload::{
    OffloadPolicy, OffloadPolicyView, OffloadRung, OffloadSwitch, OffloadView, OffloadWhy,
    OffloadedFlow,
};
pub use part::{Action, Declared, Difference, Export, ObjectChange, PartText, PartView};
pub use port::{
    Addresses, AfPacket, AfXdp, COMMON, FlowId, Forwarding, ForwardingView, FrontEndErrorView,
    FrontEndView, Kind, MemoryView, NONE, PortCountersView, PortKind, PortPatch, PortSpec,
    PortView, QueueView, Reading, Remote, RingView, SaView, SealCore, SealingView, Tap, TunnelKey,
    VhostUser, Vlink, Vxlan, XdpMode, live_keys, port_help,
};
pub use protocol::Protocol;
pub use queue::{
    BadQueues, PortQueueView, PortQueues, QUEUES_MAX, QueueLimits, QueueRates, QueueSpec,
};
pub use rate::{BitRate, NewRate, Rate};
pub use rules::{Applied, FlowLine, FlowsView, GroupView, MeterView, RuleChange, RuleKind};
pub use session::{
    CSRF_HEADER, CalendarEntry, PasswordSpec, Room, SegmentView, SessionView, SignIn, SiteView,
    SitesView,
};
pub use slice::{
    DEFAULT_CONTROL_DIR, Declaration, Declares, DomainNodeView, GuestPlace, HostView, LinkView,
    LinkWay, PartReport, PlanView, Planned, Report, SliceState, SliceView, Wanted,
};
pub use switch::{
    AUXILIARY_MAX, ConnectionView, DEFAULT_MISS_SEND_LEN, ECHO_INTERVAL_MAX_S, EndpointView,
    FAIL_AFTER_MAX_S, FailMode, MacView, Rules, SteeringAccess, SwitchPatch, SwitchSpec,
    SwitchView, TroubleView,
};
pub use timing::{StageTimes, TIMING_MAX_MS, TimingQuestion, TimingView};
pub use tls::{Pin, TlsSpec};
pub use why::{
    SliceLeg, SliceOnward, SliceWhy, WhyAnswer, WhyCost, WhyDifference, WhyDrop, WhyExit, WhyNear,
    WhyPlace, WhyQuestion, WhyRule, WhyStep, WhyVerdict, WhyWait, WhyWatch,
};
pub use worker::{CacheView, PortLoadView, RungView, WorkerView, WorkersView};
