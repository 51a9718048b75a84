//! Slices: `suiro slice`.

use clap::Subcommand;

/// `suiro slice`.
#[derive(Subcommand)]
pub enum SliceCommand {
    /// List all slices
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Say why a slice is not ready: each way of a link that carries not what it shall, with cause and remedy
    #[command(after_help = "\
Examples:
  suiro slice why red/demo       all that is waited for
  suiro slice why red/demo a     link a alone")]
    Why {
        /// Which: TENANT/SLICE
        slice: String,
        /// One link of it
        link: Option<String>,
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
