//! `suiro port`.

use super::keys::{LiveKeys, NewKeys};
use api::{PortName, SwitchName};
use clap::{Args, Subcommand};

/// What to do with ports.
#[derive(Subcommand)]
pub enum PortCommand {
    /// Make a port
    #[command(after_help = "\
Examples:
  suiro port add sw0 g1 --type tap --netns guest1 --interface eth0   an interface for a guest
  suiro port add sw0 sw0-local --type tap --number local             this host itself as the switch's LOCAL port
  suiro port add sw0 eth1 --type af_packet                           an existing interface, any driver
  suiro port add sw0 eth2 --type af_xdp                              an existing interface, by XDP
  suiro port add sw0 vm1 --type vhost-user --socket /run/suiro/vm1.sock   a virtual machine, QEMU's socket with server=on
  suiro port add sw0 vm2 --type vhost-user --socket /run/suiro/vm2.sock --server   the same, called by the machine
  suiro port add sw0 to-sw1 --type vlink --peer sw1:to-sw0           a link to another switch; both ends name each other
  suiro port add sw1 to-sw0 --type vlink --peer sw0:to-sw1
  suiro port add sw0 g1 --type tap --mtu 9000 --may-exist            for scripts that run again")]
    Add(PortAdd),
    /// List the ports of one switch, or of all
    #[command(visible_aliases = ["ls", "dump"])]
    List {
        /// The switch
        switch: Option<SwitchName>,
    },
    /// Show one port: state, mode, notes, counters, drops by reason
    Show {
        /// Its switch
        switch: SwitchName,
        /// Its name or number
        port: String,
    },
    /// Change a port that carries on; what is not named stays
    #[command(
        alias = "set",
        after_help = "\
Examples:
  suiro port mod sw0 g1 --mtu 9000
  suiro port mod sw0 g1 --down
  suiro port mod sw0 g1 --rate 1G
  suiro port mod sw0 g1 --rate none      takes it back

All that is named changes, or nothing."
    )]
    Mod(PortMod),
    /// Remove ports; a TAP goes with its port
    #[command(visible_alias = "rm")]
    Del {
        /// Their switch
        switch: SwitchName,
        /// Names or numbers
        #[arg(required = true)]
        ports: Vec<String>,
        /// That one is not there is no error
        #[arg(long)]
        if_exists: bool,
    },
}

/// `suiro port add`.
#[derive(Args)]
pub struct PortAdd {
    /// Its switch
    pub switch: SwitchName,
    /// Its name
    pub name: PortName,
    /// One that is there is no error: it becomes what is named here, and the rest of it stays
    #[arg(long)]
    pub may_exist: bool,
    /// What it is
    #[command(flatten)]
    pub keys: NewKeys,
}

/// `suiro port mod`.
#[derive(Args)]
pub struct PortMod {
    /// Its switch
    pub switch: SwitchName,
    /// Its name or number
    pub port: String,
    /// What to change
    #[command(flatten)]
    pub keys: LiveKeys,
    /// Read the file of a tunnel's keys again: what it still has goes on without a gap
    #[arg(long)]
    pub rekey: bool,
    /// Set it up
    #[arg(long, conflicts_with = "down")]
    pub up: bool,
    /// Set it down
    #[arg(long)]
    pub down: bool,
}
