//! `suiro why`: what becomes of a packet, and of those like it that come now.

mod file;
mod live;
mod page;

use super::Context;
use crate::args::PacketArgs;
use crate::failure::Failure;
use api::{Fault, Method, SwitchName, WhyAnswer, WhyQuestion, WhyVerdict};
use serde::Serialize;
use std::io::Read;

/// Asks and says; a packet that is dropped has an exit code of its own.
pub fn run(context: &Context, args: PacketArgs) -> Result<(), Failure> {
    let time = args.live;
    let (switch, question) = question(args)?;
    let path = format!("/v1/switches/{switch}/why");
    let answer: WhyAnswer = context.client.send(Method::POST, &path, &question)?;
    match time {
        None => context.print(&answer, page::page)?,
        Some(time) => {
            let live = live::look(context, &answer, time)?;
            let both = Both { why: &answer, live: &live };
            let page =
                |both: &Both<'_>| page::page(both.why) + &live::page(both.live, both.why, time);
            context.print(&both, page)?;
        }
    }
    match answer.verdict {
        WhyVerdict::Dropped => Err(Failure::Dropped),
        WhyVerdict::Leaves | WhyVerdict::Controller | WhyVerdict::Storm => Ok(()),
    }
}

/// What is foretold, and what was seen.
#[derive(Serialize)]
struct Both<'a> {
    why: &'a WhyAnswer,
    live: &'a live::Live,
}

/// The question, and the switch that is asked.
fn question(args: PacketArgs) -> Result<(SwitchName, WhyQuestion), Failure> {
    let PacketArgs { switch, flow, packet, from_capture, len, live: _ } = args;
    if let Some(place) = from_capture {
        let (switch, question) = file::question(&place, switch, flow)?;
        return Ok((switch, WhyQuestion { len: len.or(question.len), ..question }));
    }
    let (Some(switch), Some(flow)) = (switch, flow) else {
        let remedy = "say a switch and a packet: suiro why sw0 in_port=vm1,tcp,tp_dst=80";
        return Err(Failure::Usage(Fault::new("packet", "read it", "it is missing", remedy)));
    };
    let packet =
        packet.map(|packet| if packet == "-" { read() } else { Ok(packet) }).transpose()?;
    Ok((switch, WhyQuestion { flow, packet, len, gso: None }))
}

fn read() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| {
        let remedy = "give the packet's bytes as hexadecimal digits";
        Failure::Usage(Fault::new("standard input", "read a packet", error.to_string(), remedy))
    })?;
    Ok(text)
}
