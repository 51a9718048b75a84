//! The packet of a file: where it came in, and what it is.

use crate::failure::Failure;
use api::{Fault, SwitchName, WhyQuestion};
use capture::{Direction, Picked, pick};
use std::fmt::Write;

/// The switch, and the question about packet `N` of `FILE:N`. What is typed goes before what the file says.
pub fn question(
    place: &str,
    switch: Option<SwitchName>,
    flow: Option<String>,
) -> Result<(SwitchName, WhyQuestion), Failure> {
    let (file, number) = place
        .rsplit_once(':')
        .and_then(|(file, number)| Some((file, number.parse().ok()?)))
        .ok_or_else(|| {
            let remedy =
                "name the file and the number that Wireshark shows: --from-capture way.pcapng:3";
            Failure::Usage(Fault::new(place, "find the packet", "it is not FILE:N", remedy))
        })?;
    let refused = |step: &str, cause: String, remedy: &str| {
        Failure::Refused(Fault::new(format!("file {file}"), step, cause, remedy))
    };
    let bytes = std::fs::read(file)
        .map_err(|error| refused("read it", error.to_string(), "name a file that you may read"))?;
    let picked = pick(&bytes, number).map_err(|not| {
        let remedy = "name a packet of Ethernet by the number that Wireshark shows";
        refused(&format!("find packet {number}"), not.to_string(), remedy)
    })?;
    let seen = came_in(&picked);
    let missing = || {
        let remedy = "say where it comes in: suiro why SWITCH in_port=PORT --from-capture FILE:N";
        let cause = "it was not seen coming in by a port of a switch".to_owned();
        refused(&format!("place packet {number}"), cause, remedy)
    };
    let (in_switch, in_port) = seen.unzip();
    let switch = switch.or(in_switch).ok_or_else(missing)?;
    let flow = flow.or(in_port.map(|port| format!("in_port={port}"))).ok_or_else(missing)?;
    let packet = picked.bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let gso = picked.said("gso").and_then(|size| size.parse().ok());
    let len = Some(picked.original);
    Ok((switch, WhyQuestion { flow, packet: Some(packet), len, gso }))
}

/// Reasons of switches: the port at which a frame was lost is the one that it came in by. At others it was to leave.
const OF_SWITCHES: [&str; 11] = [
    "no_match",
    "by_rule",
    "ttl_expired",
    "no_port",
    "port_no_receive",
    "meter",
    "no_bucket",
    "packet_in_full",
    "fragment",
    "reserved_address",
    "no_destination",
];

/// Switch and port by which a packet came in: of one that was seen there, or that was lost behind it.
fn came_in(picked: &Picked) -> Option<(SwitchName, String)> {
    let is_of_switch = picked.said("drop").is_some_and(|reason| OF_SWITCHES.contains(&reason));
    let is_in = picked.direction == Some(Direction::In) || is_of_switch;
    let (switch, port) = picked.said("switch").zip(picked.said("port")).filter(|_| is_in)?;
    Some((switch.parse().ok()?, port.to_owned()))
}
