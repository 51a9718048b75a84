//! Parts: `suiro diff`, `suiro apply` and `suiro part`.

use api::PartName;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// A part's file, and its name.
#[derive(Args)]
pub struct PartFile {
    /// What the part declares; - for standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: PathBuf,
    /// The part's name; the file's without its ending when left out
    #[arg(long, value_name = "NAME")]
    pub part: Option<PartName>,
}

/// `suiro diff`.
#[derive(Args)]
pub struct DiffArgs {
    /// The part
    #[command(flatten)]
    pub part: PartFile,
    /// End with exit code 4 if anything would change
    #[arg(long)]
    pub exit_code: bool,
}

/// `suiro apply`.
#[derive(Args)]
pub struct ApplyArgs {
    /// The part
    #[command(flatten)]
    pub part: PartFile,
    /// Wait until every port has its link and every controller answers, or until the slice is ready, for at most --timeout
    #[arg(long)]
    pub wait: bool,
    /// Of a slice: only if it is the plan that `suiro diff` showed
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<String>,
}

/// `suiro export`.
#[derive(Args)]
pub struct ExportArgs {
    /// What parts declare, and the rules of switches with controllers, too
    #[arg(long)]
    pub all: bool,
}

/// `suiro part`.
#[derive(Subcommand)]
pub enum PartCommand {
    /// List all parts; `file` is the node's configuration file
    #[command(visible_aliases = ["ls", "dump"])]
    List,
    /// Show a part: what it declares, and what of it does not work yet
    Show {
        /// Its name
        name: PartName,
    },
    /// Remove a part with all that it declares
    #[command(visible_alias = "rm")]
    Del {
        /// Its name
        name: PartName,
        /// That it is not there is no error
        #[arg(long)]
        if_exists: bool,
    },
}
