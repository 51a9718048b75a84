//! What is compared: frames, rules, flows, and what was promised.

use std::net::Ipv4Addr;
use std::sync::Arc;
use testbed::driver::flows::{MaskRule, PREFIXES, Pattern, network, prefix_rules, scattered_rules};
use testbed::driver::frame::mac_text;
use testbed::driver::frontend::Shape;
use testbed::driver::ring::Kind as Layout;
use testbed::driver::traffic::Touch;
use testbed::driver::verify::{self, Rewrite};

/// Flows of the cases with a million: 2^20.
pub const MILLION: u32 = 1 << 20;

/// Slots of a ring of large segments: 4 MiB, about what a TCP connection has on its way.
const SEGMENT_SLOTS: u16 = 64;

/// Slots of a long ring: the most that QEMU gives a device (`rx_queue_size`).
const LONG_SLOTS: u16 = 1024;

/// Masks of the attack cases.
const MASKS: usize = 506;

/// What a promise is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// Frames a second.
    Rate,
    /// Busy cycles a frame.
    Cycles,
}

/// Ratios promised, with the two cores in one last-level cache and in two.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// What of.
    pub of: Of,
    /// In one.
    pub near: f64,
    /// In two.
    pub far: f64,
}

/// The rules of a case.
#[derive(Clone, Debug)]
pub enum Rules {
    /// By the port of entry: the case that a switch need not parse for.
    Ports,
    /// By the network of the destination address.
    Network,
    /// As a learning switch.
    Learning,
    /// A route for each prefix: both MAC addresses written, one hop less.
    Routes,
    /// Rules of many masks.
    Masks(Arc<[MaskRule]>),
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Bytes of a frame.
    pub frame: usize,
    pub touch: Touch,
    /// Payload of the segments that a frame may be cut into.
    pub segment: Option<u16>,
    pub layout: Layout,
    /// Slots of each ring.
    pub slots: u16,
    pub rules: Rules,
    pub flows: u32,
    pub promise: Option<Promise>,
}

impl Rules {
    /// Which of a frame's fields depend on its flow.
    pub fn pattern(&self) -> Pattern {
        match self {
            Rules::Ports | Rules::Network => Pattern::Addresses,
            Rules::Learning => Pattern::Macs,
            Rules::Routes => Pattern::Prefixes,
            Rules::Masks(rules) => Pattern::Masks(Arc::clone(rules)),
        }
    }

    /// What they do to a frame's head.
    pub fn rewrite(&self) -> Rewrite {
        if matches!(self, Rules::Routes) { verify::routed } else { verify::unchanged }
    }

    /// In the syntax of `ovs-ofctl`, for both directions.
    pub fn text(&self) -> Vec<String> {
        match self {
            Rules::Learning => vec!["actions=NORMAL".into()],
            _ => [0, 1].into_iter().flat_map(|side| self.of_side(side)).collect(),
        }
    }

    /// Those for frames that `side` sends, from port 1 or 2 to the other.
    fn of_side(&self, side: u8) -> Vec<String> {
        let (from, to) = (side + 1, 2 - side);
        let other = Ipv4Addr::from(network(1 - side));
        match self {
            Rules::Ports => vec![format!("in_port={from},actions=output:{to}")],
            Rules::Network => {
                vec![format!("ip,in_port={from},nw_dst={other}/8,actions=output:{to}")]
            }
            Rules::Learning => Vec::new(),
            Rules::Routes => (0..PREFIXES).map(|prefix| route(side, prefix)).collect(),
            Rules::Masks(rules) => {
                (1..).zip(&**rules).map(|(priority, rule)| masked(side, priority, rule)).collect()
            }
        }
    }
}

fn route(side: u8, prefix: u32) -> String {
    let network = Ipv4Addr::from(network(1 - side) | prefix << 8);
    // The addresses that `verify::routed` expects.
    let (hop, own) = (mac_text(1 - side, 0x9901), mac_text(side, 0x9902));
    format!(
        "ip,in_port={},nw_dst={network}/24,actions=set_field:{hop}->eth_dst,set_field:{own}->eth_src,dec_ttl,output:{}",
        side + 1,
        2 - side
    )
}

fn masked(side: u8, priority: u16, rule: &MaskRule) -> String {
    let address = |side: u8, (value, mask): (u32, u32)| {
        let (value, mask) = (network(side) | value, 0xff00_0000 | mask);
        format!("{}/{}", Ipv4Addr::from(value), Ipv4Addr::from(mask))
    };
    format!(
        "priority={priority},udp,in_port={},nw_src={},nw_dst={},actions=output:{}",
        side + 1,
        address(side, rule.source),
        address(1 - side, rule.destination),
        2 - side
    )
}

impl Case {
    /// Plain frames on split rings of which the guests touch the first line.
    pub fn new(name: &'static str, frame: usize, rules: Rules, flows: u32) -> Self {
        let Shape { ring: layout, slots, .. } = Shape::default();
        let (touch, segment, promise) = (Touch::Head, None, None);
        Self { name, frame, touch, segment, layout, slots, rules, flows, promise }
    }

    fn goal(self, near: f64, far: f64) -> Self {
        Self { promise: Some(Promise { of: Of::Rate, near, far }), ..self }
    }

    /// With large TCP segments of this payload each.
    pub fn segments(self, payload: u16) -> Self {
        Self { segment: Some(payload), slots: SEGMENT_SLOTS, ..self }
    }

    /// Bytes of the longest frame that is no large segment.
    pub fn longest_plain(&self) -> usize {
        if self.segment.is_some() { 1518 } else { self.frame }
    }

    /// On packed rings, where the promise is about cycles.
    fn packed(self, near: f64, far: f64) -> Self {
        let promise = Some(Promise { of: Of::Cycles, near, far });
        Self { layout: Layout::Packed, promise, ..self }
    }

    /// On long rings, of which a core's own caches do not hold all buffers.
    fn long(self) -> Self {
        Self { slots: LONG_SLOTS, ..self }
    }

    /// With the whole payload touched.
    pub fn touched(self) -> Self {
        Self { touch: Touch::Full, ..self }
    }
}

/// The table; goals are the "must" column of the project's performance plan.
pub fn cases() -> Vec<Case> {
    let prefixes = Rules::Masks(prefix_rules(MASKS));
    let scattered = Rules::Masks(scattered_rules(MASKS));
    vec![
        Case::new("64 B port forward", 64, Rules::Ports, 1000).goal(2.5, 1.5),
        Case::new("64 B port forward, packed ring", 64, Rules::Ports, 1000).packed(2.5, 1.5),
        Case::new("256 B port forward", 256, Rules::Ports, 1000).touched().goal(2.0, 2.0),
        Case::new("1518 B port forward", 1518, Rules::Ports, 1000).touched().goal(1.7, 1.7),
        Case::new("1518 B port forward, rings of 1024", 1518, Rules::Ports, 1000)
            .touched()
            .long()
            .goal(1.7, 1.7),
        Case::new("9000 B port forward", 9000, Rules::Ports, 1000).touched().goal(1.5, 1.5),
        Case::new("1518 B one IP rule, 1k flows", 1518, Rules::Network, 1000).touched(),
        Case::new("1518 B 1000 MACs a side, 1M flows", 1518, Rules::Learning, MILLION).touched(),
        Case::new("64 B one IP rule, 1 flow", 64, Rules::Network, 1),
        Case::new("64 B one IP rule, 10 flows", 64, Rules::Network, 10),
        Case::new("64 B one IP rule, 1k flows", 64, Rules::Network, 1000).goal(2.5, 1.7),
        Case::new("64 B one IP rule, 1M flows", 64, Rules::Network, MILLION).goal(2.5, 1.7),
        Case::new("64 B 1000 MACs a side, 1M flows", 64, Rules::Learning, MILLION).goal(3.0, 2.0),
        Case::new("64 B 10k prefixes a side, rewrite, TTL, 1M flows", 64, Rules::Routes, MILLION)
            .goal(4.0, 2.5),
        Case::new("64 B 506 prefix masks, 1k flows", 64, prefixes.clone(), 1012),
        Case::new("64 B 506 prefix masks, 1M attack flows", 64, prefixes, MILLION).goal(50.0, 50.0),
        Case::new("64 B 506 other masks, 1k flows", 64, scattered.clone(), 1012),
        Case::new("64 B 506 other masks, 1M attack flows", 64, scattered, MILLION).goal(50.0, 50.0),
    ]
}

/// A case's own rate at many flows over its rate at few, and what is promised of it.
pub const SCALING: [(&str, &str, &str, f64); 3] = [
    (
        "one IP rule: rate at 1M flows over 10",
        "64 B one IP rule, 1M flows",
        "64 B one IP rule, 10 flows",
        0.6,
    ),
    (
        "506 prefix masks: rate at 1M flows over 1k",
        "64 B 506 prefix masks, 1M attack flows",
        "64 B 506 prefix masks, 1k flows",
        0.5,
    ),
    (
        "506 other masks: rate at 1M flows over 1k",
        "64 B 506 other masks, 1M attack flows",
        "64 B 506 other masks, 1k flows",
        0.5,
    ),
];
