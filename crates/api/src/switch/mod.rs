//! Switches: what may be asked of one, what may change, and what is shown.

mod view;

pub use view::{ConnectionView, EndpointView, MacView, SwitchView, TroubleView};

use crate::{
    Controller, Dpid, Listen, Netns, OffloadPolicy, Protocol, SwitchName, TlsSpec, Transport,
};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// What a switch does with packets that no rule matches while no controller is connected (OpenFlow 1.3.5 §6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Forward as a learning switch, also what a table-miss entry would send to a controller that is configured and gone.
    #[default]
    Standalone,
    /// Drop: only rules decide.
    Secure,
}

impl FailMode {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["standalone", "secure"];

    /// The mode of that word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "standalone" => Some(Self::Standalone),
            "secure" => Some(Self::Secure),
            _ => None,
        }
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Secure => "secure",
        }
    }
}

/// What becomes of flows, groups and meters when a switch goes from its controllers to itself, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rules {
    /// They stay (OpenFlow 1.3.5 §6.3.2 lets a controller find them).
    #[default]
    Keep,
    /// They go, whoever made them, and the pipeline has all its tables again.
    Flush,
}

impl Rules {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["keep", "flush"];

    /// What that word says.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "keep" => Some(Self::Keep),
            "flush" => Some(Self::Flush),
            _ => None,
        }
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Flush => "flush",
        }
    }
}

/// What a switch's controllers may do with the steering of their host (`docs/reference/openflow-extension.md`). Its cores are nobody's in
/// particular, so each switch must be let.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteeringAccess {
    /// Nothing: the switch does not know the extension.
    #[default]
    Off,
    /// Learn of cores, interfaces and virtual machines, and read statistics.
    Read,
    /// The same, and program entries.
    Program,
}

impl SteeringAccess {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["off", "read", "program"];

    /// What that word says.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Off),
            "read" => Some(Self::Read),
            "program" => Some(Self::Program),
            _ => None,
        }
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::Program => "program",
        }
    }
}

/// A switch as a user wants it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// Its name, unique on the node.
    pub name: SwitchName,
    /// Its datapath id, unique on the node; derived from node and name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpid: Option<Dpid>,
    /// What happens to unmatched packets while no controller is there.
    #[serde(default)]
    pub fail_mode: FailMode,
    /// Controllers to connect to.
    #[serde(default)]
    pub controllers: Vec<Controller>,
    /// Addresses to wait for controllers on.
    #[serde(default)]
    pub listen: Vec<Listen>,
    /// OpenFlow versions that it speaks; every one that suiro knows when left out.
    #[serde(default = "Protocol::all")]
    pub protocols: Vec<Protocol>,
    /// Bytes of a packet that a controller gets until it asks for another length (`miss_send_len`, OpenFlow 1.3.5 §7.3.2; 65535: all).
    #[serde(default = "default_miss_send_len")]
    pub miss_send_len: u16,
    /// Most packets a second sent to controllers; the rest is dropped as `packet_in_full`.
    #[serde(default = "default_packet_ins")]
    pub max_packet_in_per_s: u32,
    /// Storm control: copies a second beyond the first that frames which a bridge floods may cause at each port where they come in, to group
    /// addresses and of unknown unicast apart; the rest is dropped as `storm`. When left out, 20000 if it is standalone, else no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_flood_copies_per_s: Option<u32>,
    /// Copies a second of frames that come in, beyond those that each frame may make: at its own ports 64 and two for each port, over vlinks 64 a
    /// received frame on average. At each worker; what a second earns is saved, 1024 at least and 16384 at most. The rest is dropped as `too_many_copies`.
    #[serde(default = "default_copies")]
    pub max_copies_per_s: u32,
    /// Seconds without any controller before a standalone switch forwards by itself; it drops as a secure one until then.
    #[serde(default)]
    pub fail_after_s: u32,
    /// What becomes of the rules when a controller comes and none was there.
    #[serde(default)]
    pub on_reconnect: Rules,
    /// What becomes of the rules when a standalone switch begins to forward by itself.
    #[serde(default)]
    pub on_standalone: Rules,
    /// Seconds of a connection's silence after which an echo is asked for; after three times that the connection is given up.
    #[serde(default = "default_echo_interval")]
    pub echo_interval_s: u16,
    /// Auxiliary connections to each controller that is called (OpenFlow 1.3.5 §6.3.7).
    #[serde(default)]
    pub aux: u8,
    /// What its controllers may do with the host's steering.
    #[serde(default)]
    pub steering: SteeringAccess,
    /// Certificates for `ssl:` and `pssl:`; the node's when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// Which of its flows shall leave the workers, beside the node's own policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offload_policy: Vec<OffloadPolicy>,
    /// Network namespace that its OpenFlow connections are made in; the node's own when left out. Names of controllers are looked up by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_netns: Option<Netns>,
}

/// OpenFlow's own default (OpenFlow 1.3.5 §7.3.2).
pub const DEFAULT_MISS_SEND_LEN: u16 = 128;
/// Chosen: far above what a learning controller needs, far below what would hurt its neighbours.
pub const DEFAULT_PACKET_INS: u32 = 10_000;
/// Chosen: some 5 % of a core for TAPs, whose copies cost the most. `suiro bench isolation`: at 100,000 a neighbour's TCP had 4 % left.
pub const DEFAULT_FLOOD_COPIES: u32 = 20_000;
/// Copies a second beyond those that each frame may make, of a switch that says nothing else.
pub const DEFAULT_COPIES: u32 = 50_000;

/// Chosen: as Open vSwitch's inactivity probe.
pub const DEFAULT_ECHO_INTERVAL_S: u16 = 5;
/// Chosen: more is not watching any more.
pub const ECHO_INTERVAL_MAX_S: u16 = 3600;
/// Chosen: a day; who wants more wants a secure switch.
pub const FAIL_AFTER_MAX_S: u32 = 86_400;
/// Chosen: a controller gains from a few connections; each costs a task and two buffers.
pub const AUXILIARY_MAX: u8 = 8;

fn default_echo_interval() -> u16 {
    DEFAULT_ECHO_INTERVAL_S
}

fn default_miss_send_len() -> u16 {
    DEFAULT_MISS_SEND_LEN
}

fn default_packet_ins() -> u32 {
    DEFAULT_PACKET_INS
}

fn default_copies() -> u32 {
    DEFAULT_COPIES
}

impl SwitchSpec {
    /// A switch with every default.
    pub fn named(name: SwitchName) -> Self {
        Self {
            name,
            dpid: None,
            fail_mode: FailMode::default(),
            controllers: Vec::new(),
            listen: Vec::new(),
            protocols: Protocol::all(),
            miss_send_len: DEFAULT_MISS_SEND_LEN,
            max_packet_in_per_s: DEFAULT_PACKET_INS,
            max_flood_copies_per_s: None,
            max_copies_per_s: DEFAULT_COPIES,
            fail_after_s: 0,
            on_reconnect: Rules::default(),
            on_standalone: Rules::default(),
            echo_interval_s: DEFAULT_ECHO_INTERVAL_S,
            aux: 0,
            steering: SteeringAccess::default(),
            tls: None,
            offload_policy: Vec::new(),
            session_netns: None,
        }
    }

    /// Copies a second that floods of one of its ports may cause; none: no bound.
    pub fn flood_copies_per_s(&self) -> Option<u32> {
        let by_default = (self.fail_mode == FailMode::Standalone).then_some(DEFAULT_FLOOD_COPIES);
        self.max_flood_copies_per_s.or(by_default)
    }

    /// Whether any of its connections is by TLS.
    pub fn uses_tls(&self) -> bool {
        self.controllers.iter().any(|at| at.target().transport == Transport::Tls)
            || self.listen.iter().any(|at| at.transport() == Transport::Tls)
    }
}

/// Changes to a switch; what is left out stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchPatch {
    /// See [`SwitchSpec::fail_mode`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_mode: Option<FailMode>,
    /// See [`SwitchSpec::controllers`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
    /// See [`SwitchSpec::listen`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<Listen>>,
    /// See [`SwitchSpec::protocols`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<Protocol>>,
    /// See [`SwitchSpec::max_packet_in_per_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_packet_in_per_s: Option<u32>,
    /// See [`SwitchSpec::max_flood_copies_per_s`]; `null` goes back to what goes with the fail mode.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    pub max_flood_copies_per_s: Option<Option<u32>>,
    /// See [`SwitchSpec::max_copies_per_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_copies_per_s: Option<u32>,
    /// See [`SwitchSpec::fail_after_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_after_s: Option<u32>,
    /// See [`SwitchSpec::on_reconnect`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_reconnect: Option<Rules>,
    /// See [`SwitchSpec::on_standalone`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_standalone: Option<Rules>,
    /// See [`SwitchSpec::echo_interval_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_interval_s: Option<u16>,
    /// See [`SwitchSpec::aux`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aux: Option<u8>,
    /// See [`SwitchSpec::steering`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<SteeringAccess>,
    /// See [`SwitchSpec::tls`]; `null` goes back to the node's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schema(value_type = Option<TlsSpec>)]
    pub tls: Option<Option<TlsSpec>>,
    /// See [`SwitchSpec::offload_policy`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload_policy: Option<Vec<OffloadPolicy>>,
    /// See [`SwitchSpec::session_netns`]; `null` goes back to the node's own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub session_netns: Option<Option<Netns>>,
}

/// Tells a key that is `null` from one that is not there.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl SwitchPatch {
    /// The switch after the changes.
    #[must_use]
    pub fn applied_to(&self, spec: &SwitchSpec) -> SwitchSpec {
        SwitchSpec {
            name: spec.name.clone(),
            dpid: spec.dpid.clone(),
            miss_send_len: spec.miss_send_len,
            fail_mode: self.fail_mode.unwrap_or(spec.fail_mode),
            controllers: self.controllers.clone().unwrap_or_else(|| spec.controllers.clone()),
            listen: self.listen.clone().unwrap_or_else(|| spec.listen.clone()),
            protocols: self.protocols.clone().unwrap_or_else(|| spec.protocols.clone()),
            max_packet_in_per_s: self.max_packet_in_per_s.unwrap_or(spec.max_packet_in_per_s),
            max_flood_copies_per_s: self
                .max_flood_copies_per_s
                .unwrap_or(spec.max_flood_copies_per_s),
            max_copies_per_s: self.max_copies_per_s.unwrap_or(spec.max_copies_per_s),
            fail_after_s: self.fail_after_s.unwrap_or(spec.fail_after_s),
            on_reconnect: self.on_reconnect.unwrap_or(spec.on_reconnect),
            on_standalone: self.on_standalone.unwrap_or(spec.on_standalone),
            echo_interval_s: self.echo_interval_s.unwrap_or(spec.echo_interval_s),
            aux: self.aux.unwrap_or(spec.aux),
            steering: self.steering.unwrap_or(spec.steering),
            tls: self.tls.clone().unwrap_or_else(|| spec.tls.clone()),
            offload_policy: self
                .offload_policy
                .clone()
                .unwrap_or_else(|| spec.offload_policy.clone()),
            session_netns: self.session_netns.clone().unwrap_or_else(|| spec.session_netns.clone()),
        }
    }
}
