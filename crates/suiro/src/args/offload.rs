//! `suiro offload`.

use api::SwitchName;
use clap::{Args, Subcommand};

/// What to do about flows past the workers.
#[derive(Subcommand)]
pub enum OffloadCommand {
    /// Let flows leave the workers; without policies each leaves when that has become cheaper
    #[command(after_help = "\
Ports of kind af_packet are opened anew, which takes some milliseconds. Flows between such ports on veths leave by the rung tc: the kernel
forwards, counts and edits their frames, large segments whole. All other flows stay, and `suiro offload why` says why.

Examples:
  suiro offload on
  suiro flow list sw0 --rungs        who left, since when, why, and what came of it")]
    On,
    /// Bring all flows back, and let none leave
    Off,
    /// Show whether offload is on, its rungs, moves and policies
    #[command(visible_aliases = ["ls", "status"])]
    Show,
    /// Say which flows shall leave, and when
    #[command(subcommand)]
    Policy(OffloadPolicyCommand),
    /// Say why a flow is processed where it is, what that costs, and when it is tried next
    #[command(after_help = "\
FLOW is a match, as in `suiro flow add`. It need not name every field: of several flows that it fits the heaviest is explained.

Examples:
  suiro offload why sw0 'tcp,nw_dst=10.0.0.2,tp_dst=5201'
  suiro offload why sw0 icmp

docs/reference/offload-reasons.md lists the reasons, and what to do about each.")]
    Why {
        /// The switch
        switch: SwitchName,
        /// The flow, as a match
        flow: String,
    },
}

/// `suiro offload policy`.
#[derive(Subcommand)]
pub enum OffloadPolicyCommand {
    /// Add a policy, or replace the one of its name
    #[command(
        visible_alias = "mod",
        after_help = "\
The first policy whose match fits a flow decides; those of higher priority are asked first. What none fits leaves by cost.

A condition joins comparisons by \"and\": rate (bit/s), pps, packets, bytes, age; with k, M, G, or ms, s, m, h for age. Rates are
measured over 100 ms and smoothed. --until must lie at least a fifth below --when, or flows between the two would flap.

Examples:
  suiro offload policy add web  --match 'tcp,tp_dst=443' --when first
  suiro offload policy add bulk --when 'rate>=50M and packets>=100' \\
      --until 'rate<5M' --residence 1s
  suiro offload policy add dns  --match 'udp,tp_dst=53' --never --priority 200"
    )]
    Add(OffloadPolicyArgs),
    /// List policies, those asked first before the others
    #[command(visible_aliases = ["ls", "dump"], alias = "show")]
    List,
    /// Remove policies
    #[command(visible_alias = "rm")]
    Del {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// A policy.
#[derive(Args)]
pub struct OffloadPolicyArgs {
    /// Its name
    pub name: String,
    /// Which flows it is for, in the syntax of `suiro flow add`; all if left out
    #[arg(long = "match", value_name = "MATCH", default_value = "")]
    pub matching: String,
    /// When they leave: first (with their first packet), or a condition; by cost if left out
    #[arg(long, value_name = "CONDITION")]
    pub when: Option<String>,
    /// When they come back; below half of the rates of --when if left out
    #[arg(long, value_name = "CONDITION", requires = "when")]
    pub until: Option<String>,
    /// How long they stay at least: 500ms, 2s; one second if left out
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub residence: Option<u64>,
    /// They never leave
    #[arg(long, conflicts_with_all = ["when", "until", "residence", "rung"])]
    pub never: bool,
    /// Only these rungs, in order of preference
    #[arg(long, value_name = "RUNG", value_delimiter = ',')]
    pub rung: Vec<String>,
    /// Higher is asked first
    #[arg(long, default_value_t = 100)]
    pub priority: u16,
}

/// A time in ms or s.
fn milliseconds(text: &str) -> Result<u64, String> {
    let (digits, times) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => (digits, 1),
        (None, Some(digits)) => (digits, 1000),
        (None, None) => return Err("write a number with ms or s, such as 500ms or 2s".into()),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{digits:?} is no whole number"))?;
    number.checked_mul(times).ok_or_else(|| format!("{text} is too long"))
}
