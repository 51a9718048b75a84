//! `suiro queue`.

use api::{Rate, SwitchName};
use clap::Subcommand;

/// What to do with the queues of ports.
#[derive(Subcommand)]
pub enum QueueCommand {
    /// Give a port a queue, or a queue that it has other rates; a rate that is not named is taken away
    #[command(
        visible_alias = "mod",
        alias = "set",
        after_help = "\
Rates are bit/s: 64000, 64k, 100M, 2.5G. A --min-rate is a part of the port's own rate.

Examples:
  suiro queue add sw0 g1 1 --max-rate 10M                  never more than 10 Mbit/s
  suiro port mod sw0 g1 --rate 1G                          the port's own rate, for all its queues:
  suiro queue add sw0 g1 2 --min-rate 200M                 200 Mbit/s of it whatever else leaves
  suiro flow add sw0 'ip,nw_dst=10.0.0.2,actions=set_queue:2,output:g1'"
    )]
    Add {
        /// The port's switch
        switch: SwitchName,
        /// The port's name or number
        port: String,
        /// The queue's number; 0 is where packets go for which no queue was chosen
        queue: u32,
        /// What it gets whatever the other queues want
        #[arg(long, value_name = "RATE")]
        min_rate: Option<Rate>,
        /// What it never exceeds
        #[arg(long, value_name = "RATE")]
        max_rate: Option<Rate>,
    },
    /// List the queues of a port, a switch, or all
    #[command(visible_aliases = ["ls", "dump"])]
    List {
        /// The switch
        switch: Option<SwitchName>,
        /// The port's name or number
        port: Option<String>,
    },
    /// Show one queue: rates and counters
    Show {
        /// The port's switch
        switch: SwitchName,
        /// The port's name or number
        port: String,
        /// The queue's number
        queue: u32,
    },
    /// Take queues from a port
    #[command(visible_alias = "rm")]
    Del {
        /// The port's switch
        switch: SwitchName,
        /// The port's name or number
        port: String,
        /// The queues' numbers
        #[arg(required = true)]
        queues: Vec<u32>,
        /// That one is not there is no error
        #[arg(long)]
        if_exists: bool,
    },
}
