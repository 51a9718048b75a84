//! `suiro steer`.

use api::SteerPoint;
use clap::{Args, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

/// What to do with the cores that flows are processed on.
#[derive(Subcommand)]
pub enum SteerCommand {
    /// Steer what an interface receives; starts a node in the background if none runs
    #[command(after_help = "\
From then on each flow's receive processing runs on the core that the policy picks, in front of whatever the
kernel does with it: its own stack, a bridge, Open vSwitch, Docker, libvirt. Steering goes on if suiro is killed.

Examples:
  suiro steer attach eth0
  suiro steer attach eth0 eth1 --unmatched stay      only what rules name; all else stays where it arrived
  suiro steer attach switch:sw0                      what switch sw0 receives, between the node's workers")]
    Attach {
        /// The interfaces, or switches of the node as switch:NAME
        #[arg(required = true)]
        interfaces: Vec<SteerPoint>,
        /// Flows that no rule names: place them too, or leave them on the core they arrived on
        #[arg(long, value_enum, default_value = "place")]
        unmatched: Unmatched,
        /// Groups that flows without a rule are gathered in: 256, 512 or 1024
        #[arg(long, default_value = "256", value_parser = groups)]
        groups: u16,
        /// Rules that there is room for, 64 to 131072: up to 41 MiB of the kernel's memory
        #[arg(long, default_value = "16384", value_parser = clap::value_parser!(u32).range(64..=131_072))]
        rules: u32,
        /// The outermost ToS byte is a flow control field: a machine's id in 7 bits, then priority
        #[arg(long)]
        fcf: bool,
    },
    /// Stop steering interfaces; nothing of suiro is left on them
    #[command(after_help = "\
Examples:
  suiro steer detach eth0
  suiro steer detach --all

The last one ends the node too if `suiro steer attach` started it and it has no switches. Rules, machines and
policy are kept for the next attach.")]
    Detach {
        /// The interfaces
        #[arg(required_unless_present = "all")]
        interfaces: Vec<SteerPoint>,
        /// All of them
        #[arg(long, conflicts_with = "interfaces")]
        all: bool,
    },
    /// List what is steered: where, frames, units, moves
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Add, show and delete rules: which flows go to which core
    #[command(subcommand)]
    Flow(SteerFlowCommand),
    /// Say why a flow is processed where it is
    #[command(after_help = WHY_HELP)]
    Why(WhyArgs),
    /// Watch cores by stage, interfaces and the busiest units
    #[command(after_help = "\
Examples:
  suiro steer top                      live, until Ctrl-C
  suiro steer top --once               one look, over one second
  suiro steer top --json --interval 5  one JSON line every five seconds

DRIVER, PACKET, VHOST and GUEST are the share of the core's time that each stage took.")]
    Top(super::TopArgs),
    /// Show, declare and forget virtual machines
    #[command(subcommand)]
    Vm(VmCommand),
    /// Show the core table: NUMA node, sibling, pinned machines, load by stage, units
    #[command(after_help = "\
Example:
  suiro steer cores
  suiro steer policy mod --cores 2,3     only these take flows")]
    Cores,
    /// Show or change how cores are chosen
    #[command(subcommand)]
    Policy(PolicyCommand),
}

/// Frames that no rule matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Unmatched {
    /// Placed by the policy
    Place,
    /// Left on the core they arrived on
    Stay,
}

fn groups(text: &str) -> Result<u16, String> {
    let power = |groups: &u16| groups.is_power_of_two() && (256..=1024).contains(groups);
    text.parse().ok().filter(power).ok_or_else(|| "write 256, 512 or 1024".into())
}

/// Rules.
#[derive(Subcommand)]
pub enum SteerFlowCommand {
    /// Add rules; one with the same match and priority is replaced
    #[command(after_help = "\
Rules are written as ovs-ofctl writes flows. Fields: dl_type, vlan, nw_src, nw_dst, ipv6_src, ipv6_dst, nw_proto,
nw_tos, tp_src, tp_dst (of the headers inside a tunnel, if there is one); tun_id, tun_src, tun_dst (the tunnel);
ip_frag; and vm_id: what is for that machine, by its addresses or, encrypted, by the flow control field.

The action is place(core=WHICH[,priority][,own]):
  core=auto     the policy chooses with the first frame, and again when the core is overloaded
  core=3        core 3
  core=hash     by hash over the allowed cores, as RSS does
  core=rx       the core that the frame arrived on
  priority      prefers unpinned, lightly loaded cores and is not moved to make room for others
  own           the core of its own machine, also while others are free (without it: when none is)

Examples:
  suiro steer flow add \\
      'ip,nw_src=10.0.0.1,vm_id=1 actions=place(core=auto,priority)'
  suiro steer flow add --on eth0 \\
      'udp,nw_dst=10.0.0.2,tp_dst=4789 actions=place(core=2)'
  suiro steer flow add 'priority=1,tun_id=7,actions=place(core=hash)'
  suiro steer flow add --file rules.txt      one rule a line; - reads standard input")]
    Add(SteerRuleTexts),
    /// Show rules with their counters and the core they are on now
    #[command(
        name = "list",
        visible_aliases = ["ls", "dump"],
        alias = "show",
        after_help = "Examples:\n  suiro steer flow list\n  suiro steer flow list 'ip,nw_dst=10.0.0.0/8' --on eth0"
    )]
    Dump {
        /// Only rules at least as specific as this match
        #[arg(default_value = "")]
        filter: String,
        /// Only on this interface
        #[arg(long, value_name = "INTERFACE")]
        on: Option<SteerPoint>,
    },
    /// Delete rules: those that a match selects, or all with --all
    #[command(
        visible_alias = "rm",
        after_help = "\
Examples:
  suiro steer flow del 'ip,nw_src=10.0.0.0/8'
  suiro steer flow del --strict 'priority=10,ip,nw_src=10.0.0.1'
  suiro steer flow del --all"
    )]
    Del {
        /// What to delete
        #[command(flatten)]
        texts: SteerRuleTexts,
        /// Only the rule with exactly this match and priority
        #[arg(long)]
        strict: bool,
        /// Every rule
        #[arg(long, conflicts_with_all = ["texts", "file", "strict"])]
        all: bool,
    },
    /// Say why a flow is processed where it is
    #[command(after_help = WHY_HELP)]
    Why(WhyArgs),
}

const WHY_HELP: &str = "\
The flow is written as a rule's match, with every field that a frame of it has.

Examples:
  suiro steer why 'udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=40000,tp_dst=5001'
  suiro steer why 'ip,nw_src=10.0.0.1,vm_id=1' --on eth0";

/// `suiro steer why`.
#[derive(Args)]
pub struct WhyArgs {
    /// The flow, such as 'udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=40000,tp_dst=5001'
    pub flow: String,
    /// The interface that receives it; the only one when left out
    #[arg(long, value_name = "INTERFACE")]
    pub on: Option<SteerPoint>,
}

/// Texts of rules: as arguments, from a file, or from standard input.
#[derive(Args)]
pub struct SteerRuleTexts {
    /// The rules
    pub texts: Vec<String>,
    /// A file with one a line; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The interface; all that are steered, and will be, when left out
    #[arg(long, value_name = "INTERFACE")]
    pub on: Option<SteerPoint>,
}

/// Virtual machines.
#[derive(Subcommand)]
pub enum VmCommand {
    /// List machines: those that were found (QEMU, libvirt) and those that were declared
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Declare a machine, or another id, tenant or addresses for one that was found
    #[command(after_help = "\
Examples:
  suiro steer vm add vm1 --id 1 --tenant 7 --cores 2,3
  suiro steer vm add vm2 --id 2 --address 10.0.0.2 --address fd00::2

Rules name a machine by its id: vm_id=1. Its addresses say which frames are meant; without any, the flow control
field of the outer header does, which the sending switch sets.")]
    Add {
        /// Its name; that of QEMU's -name for a machine that was found
        name: String,
        /// What rules call it: 1 to 127, larger only with addresses
        #[arg(long)]
        id: u16,
        /// Whose it is
        #[arg(long, default_value = "0")]
        tenant: u32,
        /// Cores that its vCPUs are pinned to
        #[arg(long, value_delimiter = ',', value_name = "CORES")]
        cores: Vec<u16>,
        /// An address of it; may be repeated
        #[arg(long = "address", value_name = "ADDRESS")]
        addresses: Vec<IpAddr>,
    },
    /// Forget machines that were declared
    #[command(visible_alias = "rm")]
    Del {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// The policy.
#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Show it
    Show,
    /// Change it; what is not named stays
    #[command(
        name = "mod",
        alias = "set",
        after_help = "\
Policies:
  vse     the least loaded core that has no machine pinned to it and is not above the threshold; none: the core
          that the frame arrived on
  hash    what RSS and RPS do: by hash over the allowed cores

Examples:
  suiro steer policy mod vse --threshold 40
  suiro steer policy mod hash --cores 0-3
  suiro steer policy mod --moves off            flows stay where they were first placed
  suiro steer policy mod --cores all
  suiro steer policy mod --reserved 3           core 3 takes priority flows only"
    )]
    Set {
        /// Who chooses
        #[arg(value_enum)]
        policy: Option<PolicyName>,
        /// Load in percent up to which a core takes new flows
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
        threshold: Option<u8>,
        /// Cores that flows may be placed on, such as 2,3 or 0-5; all
        #[arg(long, value_name = "CORES", value_parser = cores)]
        cores: Option<Cores>,
        /// Cores kept for priority flows, such as 3; none
        #[arg(long, value_name = "CORES", value_parser = reserved)]
        reserved: Option<Cores>,
        /// Whether flows leave an overloaded core
        #[arg(long, value_enum, value_name = "WHETHER")]
        moves: Option<OnOff>,
    },
}

/// The policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PolicyName {
    /// The paper's
    Vse,
    /// RSS's
    Hash,
}

/// A choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OnOff {
    /// Yes
    On,
    /// No
    Off,
}

/// Numbers of cores; an empty list is what the word alone (`all`, `none`) stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cores(pub Vec<u16>);

/// `all`, or numbers and ranges with commas between them.
fn cores(text: &str) -> Result<Cores, String> {
    list(text, "all")
}

/// `none`, or numbers and ranges with commas between them.
fn reserved(text: &str) -> Result<Cores, String> {
    list(text, "none")
}

/// Numbers and ranges with commas between them, one core at least.
#[cfg(feature = "node")]
pub(super) fn cores_alone(text: &str) -> Result<Cores, String> {
    list(text, "").and_then(|Cores(cores)| match cores.is_empty() {
        true => Err("name one core at least".into()),
        false => Ok(Cores(cores)),
    })
}

fn list(text: &str, empty: &str) -> Result<Cores, String> {
    if text == empty {
        return Ok(Cores(Vec::new()));
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        (first <= last && last < 1024).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let form = || {
        let word = if empty.is_empty() { String::new() } else { format!(", or {empty}") };
        format!("write numbers and ranges, such as 2,3 or 0-5{word}")
    };
    let ranges = ranges.ok_or_else(form)?;
    Ok(Cores(ranges.into_iter().flatten().collect()))
}
