//! Slices: `suiro slice`.

use clap::Subcommand;

/// `suiro slice`.
#[derive(Subcommand)]
pub enum SliceCommand {
    /// List all slices
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Show when slices are, and what each is promised: those of other tenants without a name
    #[command(after_help = "\
Examples:
  suiro slice calendar
  suiro slice calendar --ical > slices.ics      your own, for a calendar (RFC 5545)

A slice's file says when it is: from: 2027-03-31T09:00:00+09:00, until: 2027-03-31T18:00:00+09:00.
It begins and ends by itself. What does not fit then is refused, with the next time when it would.")]
    Calendar {
        /// As iCalendar
        #[arg(long)]
        ical: bool,
    },
    /// Say why a slice is not ready, link by link; or, with a packet, what would become of it over all nodes
    #[command(after_help = "\
Examples:
  suiro slice why red/demo       all that is waited for
  suiro slice why red/demo a     link a alone
  suiro slice why red/demo s1 in_port=1,icmp,nw_src=10.0.0.1,nw_dst=10.0.0.3
      the way of a packet that comes in at s1, by the rules of now

Nothing is sent. Exit code 4: the packet is dropped.")]
    Why {
        /// Which: TENANT/SLICE
        slice: String,
        /// One link of it; with a packet, the switch that it comes in at
        #[arg(value_name = "LINK|SWITCH")]
        of: Option<String>,
        /// The packet, as a match of ovs-ofctl: what its headers say, and the port that it comes in by
        #[arg(value_name = "PACKET", requires = "of")]
        packet: Option<String>,
    },
    /// Show a switch of a slice as its node has it now: controllers, ports, what it lost
    Switch {
        /// Which: TENANT/SLICE
        slice: String,
        /// The switch
        switch: String,
    },
    /// List the rules of a switch of a slice, with live counters
    #[command(after_help = "\
Examples:
  suiro slice flows red/demo s1
  suiro slice flows red/demo s1 table=0,ip      those at least as specific
  suiro --json slice flows red/demo s1")]
    Flows {
        /// Which: TENANT/SLICE
        slice: String,
        /// The switch
        switch: String,
        /// Only rules at least as specific as this match
        #[arg(default_value = "", hide_default_value = true)]
        filter: String,
    },
    /// Show a slice: its state, what is where, how its links are, what is waited for
    Show {
        /// Which: TENANT/SLICE
        slice: String,
    },
    /// Remove a slice with all that it has
    #[command(visible_alias = "rm")]
    Del {
        /// Which: TENANT/SLICE
        slice: String,
        /// Wait until no node has anything of it any more, for at most --timeout
        #[arg(long)]
        wait: bool,
    },
    /// Show what was applied before, generation by generation
    History {
        /// Which: TENANT/SLICE
        slice: String,
    },
    /// Apply what was applied before
    #[command(after_help = "\
Examples:
  suiro slice rollback red/demo                   the generation before this one
  suiro slice rollback red/demo --generation 3    that one")]
    Rollback {
        /// Which: TENANT/SLICE
        slice: String,
        /// The generation; the one before when left out
        #[arg(long, value_name = "NUMBER")]
        generation: Option<u64>,
    },
    /// Print the end of what the command of a guest has written
    #[command(after_help = "\
Examples:
  suiro slice logs red/demo ctl           what the tenant's controller says
  suiro --json slice logs red/demo ctl")]
    Logs {
        /// Which: TENANT/SLICE
        slice: String,
        /// The guest
        guest: String,
    },
    /// Run a program in a guest of a slice
    #[command(after_help = "Example:\n  suiro slice exec red/demo h1 -- ping -c3 10.0.0.2")]
    Exec {
        /// Which: TENANT/SLICE
        slice: String,
        /// The guest
        guest: String,
        /// Program and arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Open a shell in a guest of a slice, at this terminal; ^] leaves it
    #[command(after_help = "\
Examples:
  suiro slice console red/demo h1
  suiro slice console red/demo h1 -- ip monitor")]
    Console {
        /// Which: TENANT/SLICE
        slice: String,
        /// The guest
        guest: String,
        /// Another program than a shell, with its arguments
        #[arg(last = true)]
        command: Vec<String>,
    },
}
