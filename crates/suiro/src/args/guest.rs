//! `suiro guest`.

use clap::Subcommand;

/// The verbs. A guest is called by its name, or by PART:NAME where several parts have one of that name.
#[derive(Subcommand)]
pub enum GuestCommand {
    /// List all guests
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Show a guest: how it is, what it uses, what it waits for
    Show {
        /// Its name
        name: String,
    },
    /// Run a program in a guest that runs, and end as it does
    #[command(after_help = "\
Example:
  suiro guest exec h1 -- ping -c 3 10.0.0.2")]
    Exec {
        /// The guest's name
        name: String,
        /// The program and its arguments
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// Print the end of what a guest's command has written
    Logs {
        /// Its name
        name: String,
    },
}

/// `suiro circuit`.
#[derive(Subcommand)]
pub enum CircuitCommand {
    /// List the ends of circuits: state, round trip, and which way is not good and why
    #[command(visible_aliases = ["ls", "dump"])]
    List,
}
