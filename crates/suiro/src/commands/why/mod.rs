//! `suiro why`: what becomes of a packet, and of those like it that come now.

mod back;
mod file;
mod live;
mod page;

pub(super) use page::page;

use super::Context;
use crate::args::PacketArgs;
use crate::failure::Failure;
use api::{Fault, Method, SwitchName, WhyAnswer, WhyQuestion, WhyVerdict};
use serde::Serialize;
use std::io::Read;

/// Asks and says; a packet that is dropped has an exit code of its own.
pub fn run(context: &Context, args: PacketArgs) -> Result<(), Failure> {
    let (time, is_back) = (args.live, args.back);
    let (switch, question) = question(args)?;
    let path = format!("/v1/switches/{switch}/why");
    let answer: WhyAnswer = context.client.send(Method::POST, &path, &question)?;
    let back = match is_back {
        true => Some(back::ask(context, &answer, question.len)?),
        false => None,
    };
    let live = time.map(|time| live::look(context, &answer, time)).transpose()?;
    let is_dropped = is_dropped(&answer, back.as_deref());
    match (&back, &live) {
        (None, None) => context.print(&answer, page::page)?,
        _ => {
            let page = |all: &All<'_>| {
                let back = all.back.as_deref().map_or_else(String::new, page::back);
                let live = all.live.as_ref().zip(time);
                let live =
                    live.map_or_else(String::new, |(seen, time)| live::page(seen, all.why, time));
                page::page(all.why) + &back + &live
            };
            context.print(&All { why: &answer, back, live }, page)?;
        }
    }
    if is_dropped { Err(Failure::Dropped) } else { Ok(()) }
}

/// Whether the packet, or its reply from any exit, is dropped.
fn is_dropped(answer: &WhyAnswer, back: Option<&[back::Back]>) -> bool {
    let replies = back.into_iter().flatten().filter_map(|back| back.why.as_ref());
    std::iter::once(answer).chain(replies).any(|answer| answer.verdict == WhyVerdict::Dropped)
}

/// What is foretold, of the reply too, and what was seen.
#[derive(Serialize)]
struct All<'a> {
    why: &'a WhyAnswer,
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<Vec<back::Back>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<live::Live>,
}

/// The question, and the switch that is asked.
fn question(args: PacketArgs) -> Result<(SwitchName, WhyQuestion), Failure> {
    let PacketArgs { switch, flow, packet, from_capture, len, back: _, live: _ } = args;
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
