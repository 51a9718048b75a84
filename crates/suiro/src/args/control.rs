//! `suiro control`.

use super::LogFormat;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// `suiro control`.
#[derive(Args)]
pub struct ControlArgs {
    /// Directory of its socket
    #[arg(long, value_name = "DIRECTORY", default_value = api::DEFAULT_CONTROL_DIR)]
    pub run_dir: PathBuf,
    /// Directory of what must survive
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/lib/suiro-control")]
    pub state_dir: PathBuf,
    /// Listen here, too, for nodes and users, by TLS; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Start it in the background, and return when it serves
    #[arg(long)]
    pub background: bool,
    /// How log lines look
    #[arg(long, value_enum, default_value = "human")]
    pub log_format: LogFormat,
    /// What is logged; SUIRO_LOG and RUST_LOG win
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}
