//! What may be typed about flows, groups and meters.

use api::SwitchName;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `suiro flow`.
#[derive(Subcommand)]
pub enum FlowCommand {
    /// Add flows; one with the same match and priority is replaced
    #[command(after_help = "\
Examples:
  suiro flow add sw0 'priority=10,ip,nw_dst=10.0.0.1,actions=output:2'
  suiro flow add sw0 \\
      'in_port=g1,actions=push_vlan:0x8100,set_field:4101->vlan_vid,output:up'
  suiro flow add sw0 --file flows.txt      one flow a line; - reads standard input")]
    Add(RuleTexts),
    /// List flows as `ovs-ofctl dump-flows` prints them, with live counters
    #[command(
        visible_aliases = ["ls", "dump"],
        alias = "show",
        after_help = "\
A filter is match, table, cookie=VALUE/MASK, out_port or out_group; other words are refused.

Examples:
  suiro flow list sw0
  suiro flow list sw0 'table=0,ip,nw_dst=10.0.0.0/8'
  suiro flow list sw0 --names --json
  suiro flow list sw0 --sort packets       those that matched most come first
  suiro flow list sw0 --rungs              flows of packets, by where they are processed
  suiro flow list sw0 tcp --rungs"
    )]
    List {
        /// The switch
        switch: SwitchName,
        /// Only flows at least as specific as this match
        #[arg(default_value = "")]
        filter: String,
        /// Print ports by name
        #[arg(long)]
        names: bool,
        /// List what comes instead of rules: each flow of packets, the rung that processes it, since when and why
        #[arg(long, conflicts_with_all = ["names", "sort"])]
        rungs: bool,
        /// What comes first: the lowest table and in it the highest priority, most packets, most bytes, or the newest
        #[arg(long, value_enum, default_value_t = FlowOrder::Table, value_name = "BY")]
        sort: FlowOrder,
    },
    /// Change the actions of flows that are there
    #[command(after_help = "\
Timeouts, flags (but reset_counts) and cookies stay as the addition set them; `suiro flow add` replaces a flow.

Examples:
  suiro flow mod sw0 'ip,nw_dst=10.0.0.0/8,actions=drop'
  suiro flow mod sw0 --strict 'priority=10,ip,nw_dst=10.0.0.1,actions=output:3'")]
    Mod {
        /// The flows
        #[command(flatten)]
        texts: RuleTexts,
        /// Only the flow with exactly this match and priority
        #[arg(long)]
        strict: bool,
    },
    /// Delete flows: those that a match selects, or all with --all
    #[command(
        visible_alias = "rm",
        after_help = "\
Examples:
  suiro flow del sw0 'ip,nw_dst=10.0.0.0/8'           every flow at least as specific
  suiro flow del sw0 'table=1' 'cookie=0x5/-1'        and out_port=PORT, out_group=N
  suiro flow del sw0 --strict 'priority=10,ip,nw_dst=10.0.0.1'
  suiro flow del sw0 --all

A word that does not select flows is refused: priority needs --strict; timeouts, flags and counters never do.
An empty text is refused, too: all flows go only by --all."
    )]
    Del {
        /// What to delete
        #[command(flatten)]
        texts: RuleTexts,
        /// Only the flow with exactly this match and priority
        #[arg(long)]
        strict: bool,
        /// Every flow of the switch
        #[arg(long, conflicts_with_all = ["texts", "file", "strict"])]
        all: bool,
    },
}

/// Which flows come first in a list.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowOrder {
    /// The lowest table, and in it the highest priority
    Table,
    /// The most packets
    Packets,
    /// The most bytes
    Bytes,
    /// The youngest
    Newest,
}

/// `suiro group` and `suiro meter`.
#[derive(Subcommand)]
pub enum RulesCommand {
    /// Add them
    #[command(after_help = "\
Examples:
  suiro group add sw0 'group_id=1,type=select,bucket=output:1,bucket=output:2'
  suiro meter add sw0 'meter=1,kbps,band=type=drop,rate=10000'")]
    Add(RuleTexts),
    /// List them, one a line, as they can be added again
    #[command(
        visible_aliases = ["ls", "dump"],
        alias = "show",
        after_help = "Examples:\n  suiro group list sw0\n  suiro group list sw0 --stats      with a line of counters for each"
    )]
    List {
        /// The switch
        switch: SwitchName,
        /// Print counters, too
        #[arg(long)]
        stats: bool,
    },
    /// Change those that are there
    Mod(RuleTexts),
    /// Delete them, and the flows that use them
    #[command(
        visible_alias = "rm",
        after_help = "Examples:\n  suiro group del sw0 group_id=1\n  suiro meter del sw0 meter=1\n  suiro group del sw0 --all\n\nA deletion takes the number alone; all of them go only by --all."
    )]
    Del {
        /// What to delete
        #[command(flatten)]
        texts: RuleTexts,
        /// All of them
        #[arg(long, conflicts_with_all = ["texts", "file"])]
        all: bool,
    },
}

/// Texts of rules: as arguments, from a file, or from standard input.
#[derive(Args)]
pub struct RuleTexts {
    /// The switch
    pub switch: SwitchName,
    /// In the syntax of ovs-ofctl
    pub texts: Vec<String>,
    /// A file with one a line; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
