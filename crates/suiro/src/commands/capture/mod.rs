//! `suiro capture`: the node's stream into a file, into a pipe, or as a list on a terminal.

mod compile;
mod gone;
mod line;
mod merge;

use super::Context;
use super::events::moment;
use crate::args::{CaptureArgs, FlightArgs};
use crate::failure::Failure;
use api::{CaptureSpec, Fault, Stop};
use capture::pcapng::ETHERNET;
use capture::{BadBlock, Blocks, Content};
pub use line::line;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Shows frames until there are enough.
pub fn run(context: &Context, args: &CaptureArgs) -> Result<(), Failure> {
    let spec = CaptureSpec {
        points: args.points.clone(),
        matching: args.frames.matching.clone(),
        filter: args.filter.as_deref().map(compile::compile).transpose()?,
        past_ms: args.past.map(|past| past.as_millis() as u64),
        events: args.events,
        snap: args.snap,
        payload: args.payload,
        every: args.every.and_then(NonZeroU32::new),
        first: args.first.and_then(NonZeroU32::new),
        budget: args.budget,
        ring: args.ring,
        id_key: None,
    };
    let mut reader = Reader::new(args)?;
    let stop = Stop { after: args.duration };
    let ended = match &context.nodes[..] {
        [] | [_] => context.client.capture(&spec, stop, |bytes| reader.hear(bytes)),
        nodes => merge::capture(nodes, &spec, stop, |bytes| reader.hear(bytes)),
    };
    match ended {
        Ok(()) | Err(Failure::Closed) => reader.finish(),
        Err(failure) => Err(failure),
    }
}

/// Shows what was lost before now, and a sample of what passed.
pub fn flight(context: &Context, args: FlightArgs) -> Result<(), Failure> {
    let FlightArgs { switch, drops, frames, past } = args;
    let of = |point: &str| match &switch {
        None => point.to_owned(),
        Some(switch) => format!("{point}:{switch}"),
    };
    let points = if drops { &["drops"][..] } else { &["drops", "passed"] };
    let args = CaptureArgs {
        points: points.iter().map(|point| of(point)).collect(),
        frames,
        filter: None,
        events: false,
        snap: None,
        payload: None,
        every: None,
        first: None,
        budget: None,
        count: None,
        duration: Some(Duration::ZERO),
        past: Some(past.unwrap_or(Duration::from_secs(u32::MAX.into()))),
        ring: None,
    };
    run(context, &args)
}

/// Where it goes.
enum Output {
    /// Blocks as they come.
    Blocks(Box<dyn Write>),
    /// A line for each frame.
    Lines(Box<dyn Write>),
}

impl Output {
    fn of(file: Option<&Path>) -> Result<Self, Failure> {
        let stdout = std::io::stdout();
        match file {
            Some(file) if file.as_os_str() != "-" => {
                let made = File::create(file).map_err(|error| {
                    let thing = format!("file {}", file.display());
                    let remedy = "name a file in a directory that you may write to";
                    Failure::Refused(Fault::new(thing, "make it", error.to_string(), remedy))
                })?;
                gone::watch(made.try_clone()?.into())?;
                Ok(Self::Blocks(Box::new(BufWriter::new(made))))
            }
            None if stdout.is_terminal() => Ok(Self::Lines(Box::new(stdout))),
            Some(_) if stdout.is_terminal() => {
                let (cause, remedy) = (
                    "a terminal does not read pcapng",
                    "pipe it: suiro capture … | tshark -r -, or leave -w out for a list",
                );
                Err(Failure::Usage(Fault::new("capture", "write it", cause, remedy)))
            }
            _ => {
                gone::watch(stdout.as_fd().try_clone_to_owned()?)?;
                Ok(Self::Blocks(Box::new(BufWriter::new(stdout))))
            }
        }
    }
}

/// Reads blocks, counts frames, and hands on.
struct Reader {
    output: Output,
    blocks: Blocks,
    /// Link types and names of the interfaces.
    interfaces: Vec<(u16, String)>,
    written: u64,
    most: u64,
    matched: u64,
    lost: u64,
    over_budget: u64,
    not_looked: u64,
    /// The node has said what was counted.
    is_whole: bool,
}

impl Reader {
    fn new(args: &CaptureArgs) -> Result<Self, Failure> {
        Ok(Self {
            output: Output::of(args.frames.write.as_deref())?,
            blocks: Blocks::default(),
            interfaces: Vec::new(),
            written: 0,
            most: args.count.unwrap_or(u64::MAX),
            matched: 0,
            lost: 0,
            over_budget: 0,
            not_looked: 0,
            is_whole: false,
        })
    }

    /// Takes what came.
    fn hear(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, Failure> {
        self.blocks.push(bytes);
        while let Some(block) = self.blocks.next_block().map_err(bad_block)? {
            let content = block.content().map_err(bad_block)?;
            match &content {
                Content::Packet(_) if self.written >= self.most => continue,
                Content::Packet(_) => self.written += 1,
                Content::Interface { link, name, .. } => {
                    self.interfaces.push((*link, (*name).to_owned()));
                }
                Content::Statistics(counts) => {
                    self.matched += counts.matched;
                    self.lost += counts.lost;
                    self.over_budget += counts.over_budget;
                    self.not_looked += counts.not_looked;
                    self.is_whole = true;
                }
                _ => {}
            }
            match &mut self.output {
                Output::Blocks(to) => to.write_all(block.bytes())?,
                Output::Lines(to) => match content {
                    Content::Packet(packet) => {
                        let found = self.interfaces.get(packet.interface as usize);
                        let (link, name) =
                            found.map_or((ETHERNET, "?"), |(link, name)| (*link, name));
                        writeln!(to, "{} {name} {}", time(packet.at_ns), line(link, &packet))?;
                    }
                    Content::Journal(seen) => {
                        writeln!(to, "{} event {}", time(seen.at_ns), seen.message)?;
                    }
                    _ => {}
                },
            }
        }
        self.flush()?;
        Ok(if self.written >= self.most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.output {
            Output::Blocks(to) | Output::Lines(to) => Ok(to.flush()?),
        }
    }

    /// Says what was counted; whoever reads our output may have gone before.
    fn finish(self) -> Result<(), Failure> {
        let Self { matched, lost, over_budget, not_looked, written, is_whole, .. } = self;
        if !is_whole {
            eprintln!(
                "{written} frames written; the capture ended before the node said what it counted"
            );
            return Ok(());
        }
        let left = matched.saturating_sub(lost + over_budget).saturating_sub(written);
        let said = [
            (over_budget, "over the budget (--budget)"),
            (not_looked, "not looked at for want of it"),
            (left, "more after --count"),
        ];
        let said = said.iter().filter(|(frames, _)| *frames > 0);
        let said: String = said.map(|(frames, what)| format!(", {frames} {what}")).collect();
        eprintln!(
            "{matched} frames matched, {written} written, {lost} lost for want of room{said}"
        );
        Ok(())
    }
}

/// The time of day, UTC.
fn time(at_ns: u64) -> String {
    moment(UNIX_EPOCH + Duration::from_nanos(at_ns))[11..23].to_owned()
}

/// The node's answer is no such file.
pub fn bad_block(bad: BadBlock) -> Failure {
    let remedy = "use the suiro command of the node's own version";
    Failure::Refused(Fault::new("node", "read its capture", bad.to_string(), remedy))
}
