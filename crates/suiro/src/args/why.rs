//! `suiro why`.

use super::capture::duration;
use api::SwitchName;
use clap::Args;
use std::time::Duration;

/// A packet to ask about.
#[derive(Args)]
pub struct PacketArgs {
    /// The switch that it comes in at
    #[arg(required_unless_present = "from_capture")]
    pub switch: Option<SwitchName>,
    /// What its headers say, as flows and ofproto/trace have it: in_port=PORT, then fields; nw_ttl too
    #[arg(required_unless_present = "from_capture")]
    pub flow: Option<String>,
    /// Its bytes from the Ethernet header on, hexadecimal, also as tcpdump -xx prints them; - reads standard input
    #[arg(long, value_name = "HEX")]
    pub packet: Option<String>,
    /// Packet N of a pcapng or pcap file, as Wireshark counts; of a suiro capture where it came in, too
    #[arg(long, value_name = "FILE:N", conflicts_with = "packet")]
    pub from_capture: Option<String>,
    /// Its length in bytes, from the Ethernet header on; as long as its headers when left out
    #[arg(long, value_name = "BYTES")]
    pub len: Option<u32>,
    /// Then say what becomes of the reply, which comes in where the packet left
    #[arg(long)]
    pub back: bool,
    /// Then look for so long, such as 5s, where the real packets of its flow are seen
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub live: Option<Duration>,
}
