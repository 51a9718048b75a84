//! The grammar of a slice's file, key by key.

use super::slice::{GuestKind, PortType, Protection};
use crate::grammar::{Key, Shape, short_text, stands_for};
use crate::words::{Address, Cpu, Delay, End, Moment, Name, Size};
use api::{Controller, Dpid, FailMode, Mac, Protocol, Rate, Restart};

/// Most switches, guests, links of one slice. Chosen: above what a node carries.
const MANY: usize = 10_000;
/// Most of what a single thing has: ports of a guest, controllers of a switch.
const FEW: usize = 256;

const NAME: Shape = Shape::Text(stands_for::<Name>);
const RATE: Shape = Shape::Text(stands_for::<Rate>);
const CPU: Shape = Shape::Text(stands_for::<Cpu>);
const SIZE: Shape = Shape::Text(stands_for::<Size>);
const COUNT: Shape = Shape::Number(1..=1_000_000);
const MTU: Shape = Shape::Number(68..=9_000);
const FAIL_MODE: Shape = Shape::Word(FailMode::WORDS, &[]);
const RESTART: Shape = Shape::Word(Restart::WORDS, &[]);
const PROTOCOLS: Shape = Shape::List(&Shape::Text(stands_for::<Protocol>), 8);
const CONTROLLERS: Shape = Shape::List(&Shape::Text(stands_for::<Controller>), 16);

/// A slice's file.
pub const SLICE: &[Key] = &[
    Key::new("suiro", Shape::Word(&["slice/1"], &[]), "What the file is, and its version")
        .needed()
        .example("slice/1"),
    Key::new("name", NAME, "Name, unique in the tenant").needed().example("demo"),
    Key::new("tenant", NAME, "Whose slice it is").needed().example("red"),
    LABELS_KEY,
    Key::new("from", Shape::Text(stands_for::<Moment>), "When it begins, by itself")
        .default("at once")
        .example("2027-03-31T09:00:00+09:00"),
    Key::new("until", Shape::Text(stands_for::<Moment>), "When it ends, by itself")
        .default("until deleted")
        .example("2027-03-31T18:00:00+09:00"),
    Key::new("defaults", Shape::Table(DEFAULTS), "What things have that say nothing else"),
    Key::new("budget", Shape::Table(BUDGET), "What the slice may use in all"),
    Key::new(
        "switches",
        Shape::Named(stands_for::<Name>, &Shape::Table(SWITCH), MANY),
        "Switches, by name",
    ),
    Key::new(
        "guests",
        Shape::Named(stands_for::<Name>, &Shape::Table(GUEST), MANY),
        "Guests, by name",
    ),
    Key::new(
        "links",
        Shape::Named(stands_for::<Name>, &Shape::Table(LINK), MANY),
        "Links, by name",
    ),
    Key::new(
        "externals",
        Shape::Named(stands_for::<Name>, &Shape::Table(OUTSIDE), FEW),
        "Doors to outside networks, by name",
    ),
    Key::later("programs", "Programs on the fast path"),
    Key::later("policy", "What happens when a node is lost or something is short"),
];

const LABELS_KEY: Key = Key::new(
    "labels",
    Shape::Named(short_text, &Shape::Text(short_text), FEW),
    "Words of your own, which change nothing. The portal draws a switch or guest at `x` and `y`",
)
.example("{x: \"120\", y: \"80\"}");

const DEFAULTS: &[Key] = &[
    Key::new("switch", Shape::Table(SWITCH_DEFAULTS), "Of switches"),
    Key::new("guest", Shape::Table(GUEST_DEFAULTS), "Of guests"),
    Key::new("link", Shape::Table(LINK_DEFAULTS), "Of links"),
];

const SWITCH_DEFAULTS: &[Key] = &[FAIL_MODE_KEY, PROTOCOLS_KEY, CONTROLLERS_KEY];
const GUEST_DEFAULTS: &[Key] = &[CPU_KEY, MEMORY_KEY, PIDS_KEY, RESTART_KEY];
const LINK_DEFAULTS: &[Key] = &[RATE_KEY, MTU_KEY];

const FAIL_MODE_KEY: Key = Key::new(
    "fail_mode",
    FAIL_MODE,
    "What happens to unmatched packets while no controller is there",
)
.default("standalone")
.example("secure");
const PROTOCOLS_KEY: Key = Key::new("protocols", PROTOCOLS, "OpenFlow versions")
    .default("every one that suiro speaks")
    .example("[\"1.3\"]");
const CONTROLLERS_KEY: Key = Key::new(
    "controllers",
    CONTROLLERS,
    "Controllers to call. A host that is the name of a guest with `control` is that guest",
)
.default("none")
.example("[\"tcp:ctl:6653\"]");
const CPU_KEY: Key =
    Key::new("cpu", CPU, "Share of cores, reserved and enforced").default("0.1").example("0.5");
const MEMORY_KEY: Key =
    Key::new("memory", SIZE, "Memory, reserved and enforced").default("64M").example("128M");
const PIDS_KEY: Key =
    Key::new("pids", COUNT, "Processes and threads").default("256").example("100");
const RESTART_KEY: Key =
    Key::new("restart", RESTART, "When it is started again after it has ended")
        .default("always")
        .example("on-failure");
const RATE_KEY: Key =
    Key::new("rate", RATE, "Bit/s each way: reserved on the underlay, and enforced")
        .default("the budget's rate divided by the links, 100M at most")
        .example("100M");
const MTU_KEY: Key = Key::new("mtu", MTU, "Bytes behind the Ethernet header, beside two VLAN tags")
    .default("1500")
    .example("9000");

const BUDGET: &[Key] = &[
    Key::new("guests", Shape::Table(GUEST_BUDGET), "Sums over all guests")
        .default("what the guests ask for"),
    Key::new("rate", RATE, "Sum of all links between nodes, each way")
        .default("no bound")
        .example("500M"),
    Key::new("packet_ins", COUNT, "Packets a second and switch that controllers get")
        .default("10000")
        .example("1000"),
    Key::later("switching", "Share of the nodes' workers"),
    Key::later("rules", "Rules of all switches"),
];

const GUEST_BUDGET: &[Key] = &[
    Key::new("cpu", CPU, "Shares of cores").example("2.5"),
    Key::new("memory", SIZE, "Memory").example("2G"),
    Key::new("pids", COUNT, "Processes and threads").example("2000"),
    Key::later("disk", "Disk"),
];

const PLACE: &[Key] = &[
    Key::new("node", NAME, "On this node").example("t1"),
    Key::new("with", NAME, "On the node of that switch or guest").example("s1"),
    Key::new(
        "apart_from",
        Shape::List(&NAME, FEW),
        "On another node than those switches and guests",
    )
    .example("[s1]"),
];
const PLACE_KEY: Key = Key::new("place", Shape::Table(PLACE), "Which node of the site")
    .default("the one that suits the links and is least used");
const SITE_KEY: Key = Key::new("site", NAME, "Where it is").needed().example("tokyo");

const SWITCH: &[Key] = &[
    SITE_KEY,
    Key::new(
        "dpid",
        Shape::Text(stands_for::<Dpid>),
        "Datapath id, hexadecimal, unique in the slice",
    )
    .default("made from the slice and the name")
    .example("\"0x1\""),
    PLACE_KEY,
    FAIL_MODE_KEY,
    PROTOCOLS_KEY,
    CONTROLLERS_KEY,
    LABELS_KEY,
];

const GUEST: &[Key] = &[
    Key::new(
        "kind",
        Shape::Word(GuestKind::WORDS, GuestKind::LATER),
        "What it is: a program, or a port for what you bring",
    )
    .needed()
    .example("process"),
    SITE_KEY,
    PLACE_KEY,
    Key::new(
        "control",
        Shape::Flag,
        "Whether it has the control network, where switches find it by its name",
    )
    .default("false")
    .example("true"),
    Key::new(
        "command",
        Shape::List(&Shape::Text(any_text), FEW),
        "Program and arguments of a process",
    )
    .default("none: its namespace alone")
    .example("[python3, -m, http.server]"),
    Key::new(
        "files",
        Shape::Named(file_name, &Shape::Choice(FILE), FEW),
        "Files that it finds in `/files`",
    )
    .example("{stp.py: {from: ./stp.py}}"),
    CPU_KEY,
    MEMORY_KEY,
    PIDS_KEY,
    RESTART_KEY,
    LABELS_KEY,
    Key::new("ports", Shape::Named(interface_name, &Shape::Table(PORT), FEW), "Ports, by name")
        .example("{eth0: {to: \"s1:1\"}}"),
    Key::later("image", "Image of a container or virtual machine"),
    Key::later("vcpus", "Processors of a virtual machine"),
    Key::later("console", "Console of a virtual machine"),
    Key::later("cloud_init", "Configuration of a virtual machine"),
];

const OUTSIDE: &[Key] = &[
    Key::new("use", NAME, "Which of the domain's externals; the operator says which are yours")
        .needed()
        .example("campus-120"),
    Key::new("to", Shape::Text(stands_for::<End>), "Switch and OpenFlow number of its port")
        .needed()
        .example("\"s1:10\""),
    Key::new("rate", RATE, "Bit/s each way, reserved up to the external's node and enforced")
        .default("what the operator allows")
        .example("20M"),
    Key::later("tags", "What becomes of the slice's own VLAN tags; they pass"),
];

const FILE: &[Key] = &[
    Key::new(
        "from",
        Shape::Text(short_text),
        "Path beside the slice's file; the client sends the text",
    )
    .example("./stp.py"),
    Key::new("text", Shape::Text(any_text), "The text itself").example("hello"),
];

const PORT: &[Key] = &[
    Key::new("to", Shape::Text(stands_for::<End>), "Switch and OpenFlow number of its port")
        .default("a link names the port as its end")
        .example("\"s1:1\""),
    Key::new(
        "addresses",
        Shape::List(&Shape::Text(stands_for::<Address>), FEW),
        "Addresses of a process's interface",
    )
    .example("[10.0.0.1/24]"),
    Key::new("mac", Shape::Text(stands_for::<Mac>), "MAC address")
        .default("made from the slice and the port")
        .example("\"02:00:00:00:00:02\""),
    Key::new(
        "type",
        Shape::Word(PortType::WORDS, &[]),
        "What it is; only a guest of kind `port` may be `vhost-user`",
    )
    .default("tap")
    .example("vhost-user"),
    Key::new(
        "socket",
        Shape::Text(file_name),
        "Name of the socket that a `vhost-user` port is shared by",
    )
    .example("dut.sock"),
    Key::new("queues", Shape::Number(1..=128), "Most queue pairs of a `vhost-user` port")
        .default("1")
        .example("2"),
];

const LINK: &[Key] = &[
    Key::new("between", Shape::Pair(&Shape::Text(stands_for::<End>)), "Its two ends")
        .needed()
        .example("[\"s1:2\", \"s2:2\"]"),
    RATE_KEY,
    MTU_KEY,
    Key::new(
        "max_delay",
        Shape::Text(stands_for::<Delay>),
        "Longest time that the underlay may take, one way",
    )
    .default("no bound")
    .example("10ms"),
    Key::later("delay", "Time that frames take, one way"),
    Key::later("jitter", "How that time differs"),
    Key::later("loss", "Frames that get lost on purpose"),
    Key::later("queue", "Frames before the bottleneck"),
    Key::later("seed", "Which frames get lost"),
    Key::later("there", "What one direction has"),
    Key::later("back", "What the other direction has"),
    Key::later("duplicate", "Frames that come twice"),
    Key::later("corrupt", "Frames that come damaged"),
    Key::later("reorder", "Frames that overtake"),
    Key::later("faults", "Cuts and flaps"),
    Key::later("trace", "A rate over time"),
    Key::new(
        "protection",
        Shape::Word(Protection::WORDS, Protection::LATER),
        "What happens when its way fails",
    )
    .default("none")
    .example("none"),
];

/// Any text: the length of the file bounds it.
fn any_text(_: &str) -> Result<(), api::BadText> {
    Ok(())
}

/// An interface's name that stands in a path and in an OpenFlow message.
fn interface_name(text: &str) -> Result<(), api::BadText> {
    let fine = text.parse::<Name>().is_ok() && text.len() <= 15;
    let form = "1 to 15 small letters, digits and `-`, a letter first";
    fine.then_some(()).ok_or_else(|| api::BadText {
        given: text.into(),
        what: "a port's name",
        form,
    })
}

/// A file's name without a directory.
fn file_name(text: &str) -> Result<(), api::BadText> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let fine = (1..=64).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('.');
    let form = "1 to 64 letters, digits, `.`, `_` and `-`, no `.` first";
    fine.then_some(()).ok_or_else(|| api::BadText {
        given: text.into(),
        what: "a file's name",
        form,
    })
}
