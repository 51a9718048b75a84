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
    /// Serve the portal here for browsers; may be repeated. Without a certificate: on loopback alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub portal: Vec<SocketAddr>,
    /// The portal's certificate with its chain, in PEM form; read again every day
    #[arg(long, value_name = "FILE", requires = "portal_key")]
    pub portal_certificate: Option<PathBuf>,
    /// The key of the portal's certificate
    #[arg(long, value_name = "FILE", requires = "portal_certificate")]
    pub portal_key: Option<PathBuf>,
    /// The network namespace in which the portal listens, by path; the controller's own otherwise
    #[arg(long, value_name = "PATH")]
    pub portal_netns: Option<PathBuf>,
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
