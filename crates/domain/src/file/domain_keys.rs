//! The grammar of the domain's file, key by key.

use super::domain::{Encrypt, Family, UnderlayKind};
use super::slice::GuestKind;
use crate::grammar::{Key, Shape, short_text, stands_for};
use crate::words::{Cpu, Delay, Name, Size};
use api::{BadText, IfName, Rate};
use std::net::IpAddr;

/// Most sites, nodes, segments, tenants. Chosen: several times what D10 counts with.
const MANY: usize = 10_000;
/// Most of what a single thing has.
const FEW: usize = 256;

const NAME: Shape = Shape::Text(stands_for::<Name>);
const COUNT: Shape = Shape::Number(0..=1_000_000);

/// The domain's file.
pub const DOMAIN: &[Key] = &[
    Key::new("suiro", Shape::Word(&["domain/1"], &[]), "What the file is, and its version")
        .needed()
        .example("domain/1"),
    Key::new("sites", named(&Shape::Table(&[])), "Places where nodes are, by name")
        .needed()
        .example("{tokyo: {}}"),
    Key::new("underlays", named(&Shape::Table(UNDERLAY)), "What joins nodes, by name"),
    Key::new(
        "segments",
        named(&Shape::Table(SEGMENT)),
        "Stretches of underlay between two sites, by name",
    ),
    Key::new("nodes", named(&Shape::Table(NODE)), "Hosts, by name"),
    Key::new("tenants", named(&Shape::Table(TENANT)), "Who may have slices, by name"),
    Key::new("externals", named(&Shape::Table(EXTERNAL)), "Doors to outside networks, by name"),
];

const fn named(of: &'static Shape) -> Shape {
    Shape::Named(stands_for::<Name>, of, MANY)
}

const UNDERLAY: &[Key] = &[
    Key::new(
        "kind",
        Shape::Word(UnderlayKind::WORDS, UnderlayKind::LATER),
        "What carries links over it",
    )
    .needed()
    .example("vxlan"),
    Key::new("family", Shape::Word(Family::WORDS, &[]), "Which IP").needed().example("ipv4"),
    Key::new("mtu", Shape::Number(576..=65_535), "The largest packet that it carries")
        .needed()
        .example("9000"),
    Key::new("encrypt", Shape::Word(Encrypt::WORDS, Encrypt::LATER), "How it is sealed")
        .default("none")
        .example("none"),
];

const SEGMENT: &[Key] = &[
    Key::new("between", Shape::Pair(&NAME), "Its two sites").needed().example("[tokyo, osaka]"),
    Key::new("underlay", NAME, "Of which underlay").needed().example("wan4"),
    Key::new(
        "capacity",
        Shape::Text(stands_for::<Rate>),
        "Bit/s each way; 95 of 100 can be reserved",
    )
    .needed()
    .example("10G"),
    Key::new("delay", Shape::Text(stands_for::<Delay>), "Time that frames take, one way")
        .needed()
        .example("4ms"),
    Key::new("cost", COUNT, "What paths over it cost").default("10").example("5"),
    Key::new("risk", Shape::List(&NAME, FEW), "What fails together with others of the same word")
        .example("[cable-1]"),
];

const NODE: &[Key] = &[
    Key::new("site", NAME, "Where it is").needed().example("tokyo"),
    Key::new("underlay", named(&Shape::Table(ATTACHMENT)), "How it is joined with each underlay")
        .example("{wan4: {addresses: [192.0.2.11]}}"),
    Key::new("reserve", Shape::Table(RESERVE), "What suiro and the host keep"),
    Key::new(
        "kinds",
        Shape::List(&Shape::Word(GuestKind::WORDS, GuestKind::LATER), 8),
        "Kinds of guest that it may have",
    )
    .default("all that it proved at its start")
    .example("[process, port]"),
];

const ATTACHMENT: &[Key] = &[
    Key::new(
        "addresses",
        Shape::List(&Shape::Text(ip_address), 32),
        "Its addresses there; others send to the first",
    )
    .needed()
    .example("[192.0.2.11]"),
    Key::new("interface", Shape::Text(stands_for::<IfName>), "The interface that has them")
        .example("eth1"),
];

const RESERVE: &[Key] = &[
    Key::new("cpu", Shape::Text(stands_for::<Cpu>), "Cores").default("0").example("1"),
    Key::new("memory", Shape::Text(stands_for::<Size>), "Memory").default("0").example("2G"),
];

const TENANT: &[Key] = &[
    Key::new("quota", Shape::Table(QUOTA), "What all its slices may use together"),
    Key::new("users", Shape::List(&NAME, MANY), "Who belongs to it").example("[alice, bob]"),
    Key::new(
        "controllers",
        Shape::List(&Shape::Text(short_text), FEW),
        "Hosts outside that its switches may have as controllers",
    )
    .default("none")
    .example("[ofc.example]"),
];

const EXTERNAL: &[Key] = &[
    Key::new("node", NAME, "The node that has the interface").needed().example("t1"),
    Key::new(
        "interface",
        Shape::Text(stands_for::<IfName>),
        "An interface that nothing else uses: neither the host nor an underlay",
    )
    .needed()
    .example("eth3"),
    Key::new("vlan", Shape::Number(1..=4094), "The VLAN of it; tags are taken off and put on")
        .default("all frames of the interface, as they are")
        .example("120"),
    Key::new(
        "tenants",
        Shape::List(&NAME, MANY),
        "Tenants whose slices may use it, one slice at a time",
    )
    .default("none")
    .example("[red]"),
    Key::new("rate", Shape::Text(stands_for::<Rate>), "Bit/s each way").needed().example("100M"),
    Key::new(
        "mtu",
        Shape::Number(68..=9_000),
        "Bytes behind the Ethernet header that the outside carries",
    )
    .default("1500")
    .example("9000"),
    Key::later("macs", "Most addresses of the slice that are seen outside"),
];

const QUOTA: &[Key] = &[
    Key::new("guests", Shape::Table(GUEST_QUOTA), "Sums over all guests"),
    Key::new("rate", Shape::Text(stands_for::<Rate>), "Sum of all links between nodes")
        .example("2G"),
    Key::new("slices", COUNT, "Slices").example("20"),
    Key::new("switches", COUNT, "Switches").example("200"),
    Key::new("links", COUNT, "Links").example("400"),
    Key::later("rules", "Rules of all switches"),
];

const GUEST_QUOTA: &[Key] = &[
    Key::new("cpu", Shape::Text(stands_for::<Cpu>), "Shares of cores").example("8"),
    Key::new("memory", Shape::Text(stands_for::<Size>), "Memory").example("16G"),
];

fn ip_address(text: &str) -> Result<(), BadText> {
    let form = "an address such as 192.0.2.11 or 2001:db8::11";
    let bad = |_| BadText { given: text.into(), what: "an IP address", form };
    text.parse::<IpAddr>().map(drop).map_err(bad)
}
