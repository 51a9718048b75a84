//! `suiro why`.

use api::SwitchName;
use clap::Args;

/// A packet to ask about.
#[derive(Args)]
pub struct PacketArgs {
    /// The switch that it comes in at
    pub switch: SwitchName,
    /// What its headers say, as flows and ofproto/trace have it: in_port=PORT, then fields; nw_ttl too
    pub flow: String,
    /// Its bytes from the Ethernet header on, hexadecimal, also as tcpdump -xx prints them; - reads standard input
    #[arg(long, value_name = "HEX")]
    pub packet: Option<String>,
    /// Its length in bytes, from the Ethernet header on; as long as its headers when left out
    #[arg(long, value_name = "BYTES")]
    pub len: Option<u32>,
}
