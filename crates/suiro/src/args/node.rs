//! `suiro node`.

use super::steer::{Cores, cores_alone};
use crate::place::ControllerPlace;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

/// `suiro node`.
#[derive(Args)]
pub struct NodeArgs {
    /// Configuration file; an empty node without one
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep the last configuration that worked in this file, and run it while the configuration file is broken
    #[arg(long, value_name = "FILE", requires = "config", conflicts_with_all = ["check", "purge"])]
    pub last_good: Option<PathBuf>,
    /// Check the configuration, report every error in it, and end
    #[arg(long, conflicts_with = "purge")]
    pub check: bool,
    /// Remove the node's stored state, its guests, its TAP interfaces and all steering, and end; the node must not run
    #[arg(long)]
    pub purge: bool,
    /// With --purge: the stored state stays, for the node's next start
    #[arg(long, requires = "purge")]
    pub keep_state: bool,
    /// Forget what was made through the API and contradicts the configuration file
    #[arg(long)]
    pub forget_conflicts: bool,
    /// Directory of sockets and lock; the configuration's when left out
    #[arg(long, value_name = "DIRECTORY")]
    pub run_dir: Option<PathBuf>,
    /// Directory of what must survive; the configuration's when left out
    #[arg(long, value_name = "DIRECTORY")]
    pub state_dir: Option<PathBuf>,
    /// Cores to run workers on, such as 1,2 or 0-3; the configuration's when left out, or else the highest
    #[arg(long, value_name = "CORES", value_parser = cores_alone)]
    pub cores: Option<Cores>,
    /// Be a member of a domain: its controller's HOST:PORT, or its socket on the same host
    #[arg(long, value_name = "CONTROLLER", requires = "node_name", conflicts_with_all = ["check", "purge"])]
    pub join: Option<ControllerPlace>,
    /// With --join: which node of the domain it is
    #[arg(long, value_name = "NAME", requires = "join")]
    pub node_name: Option<String>,
    /// With --join HOST:PORT: the file of the token by which it joins, once. Also SUIRO_JOIN_TOKEN, the token itself
    #[arg(long, value_name = "FILE", requires = "join")]
    pub token_file: Option<PathBuf>,
    /// Start it in the background, and return when it serves
    #[arg(long, conflicts_with_all = ["check", "purge"])]
    pub background: bool,
    /// Run without the rights that interfaces need: switches, links between them and guests' sockets work
    #[arg(long)]
    pub unprivileged: bool,
    /// Ends when nothing is steered any more and there are no switches; `suiro steer attach` starts such a node
    #[arg(long, hide = true)]
    pub until_idle: bool,
    /// How log lines look
    #[arg(long, value_enum, default_value = "human")]
    pub log_format: LogFormat,
    /// What is logged; SUIRO_LOG and RUST_LOG win
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}
