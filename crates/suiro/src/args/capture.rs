//! `suiro capture`.

use api::SwitchName;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Which frames, and where to.
#[derive(Args)]
pub struct FramesArgs {
    /// Write a pcapng file; - for standard output
    #[arg(long, short = 'w', value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Which frames: a match, as flows have it, such as tcp,tp_dst=80
    #[arg(
        long = "match",
        short = 'm',
        value_name = "MATCH",
        default_value = "",
        hide_default_value = true
    )]
    pub matching: String,
}

/// Which frames to show, and how.
#[derive(Args)]
pub struct CaptureArgs {
    /// Where: SWITCH:PORT (then :rx or :tx for one side), SWITCH for all its ports, controller:SWITCH, openflow:SWITCH, queue:SWITCH:PORT:N, steer:INTERFACE, drops, drops:SWITCH, passed, passed:SWITCH
    #[arg(required = true, value_name = "POINT")]
    pub points: Vec<String>,
    #[command(flatten)]
    pub frames: FramesArgs,
    /// Which of those: a filter as tcpdump takes it, such as 'tcp port 80'; tcpdump must be there
    #[arg(long, short = 'f', value_name = "FILTER")]
    pub filter: Option<String>,
    /// Show between the frames what happens on the node: ports, controllers, rules, parts
    #[arg(long)]
    pub events: bool,
    /// Bytes of each frame to keep; all when left out
    #[arg(long, short = 's', value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=65_856))]
    pub snap: Option<u32>,
    /// Bytes of each frame to keep behind its TCP, UDP or ICMP header; 0 for headers alone
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=65_856))]
    pub payload: Option<u32>,
    /// End after this many frames
    #[arg(long, short = 'c', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time, such as 5s, 500ms, 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Only one packet in N, the same ones at every point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub every: Option<u32>,
    /// Only the first N frames of each flow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub first: Option<u32>,
    /// What it may cost: percent of each worker's time over a second, such as 20%; 100% for whatever it takes [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub budget: Option<u8>,
    /// Begin with what was lost and a sample of what passed in this time before, as far as it is remembered
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub past: Option<Duration>,
    /// Memory for frames that wait, at each worker, such as 16M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub ring: Option<u32>,
}

/// What was lost lately, and a sample of what passed.
#[derive(Args)]
pub struct FlightArgs {
    /// Of which switch; of all when left out
    pub switch: Option<SwitchName>,
    /// Only what was lost
    #[arg(long)]
    pub drops: bool,
    #[command(flatten)]
    pub frames: FramesArgs,
    /// How far to look back, such as 10s; as far as it is remembered when left out
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub past: Option<Duration>,
}

/// A time with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| "a number and a unit, such as 5s".to_owned())?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" | "" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        unit => Err(format!("no unit {unit}: ms, s, m or h")),
    }
}

/// A share of a worker's time.
fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number.filter(|percent| (1..=100).contains(percent)).ok_or_else(|| "1% to 100%".to_owned())
}

/// Bytes, with K or M.
fn size(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u32 = digits.parse().map_err(|_| "a number, such as 16M".to_owned())?;
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        unit => return Err(format!("no unit {unit}: K or M")),
    };
    number.checked_mul(unit).ok_or_else(|| "too much".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("5 apples").is_err() && duration("").is_err());
        assert_eq!((size("16M"), size("4096")), (Ok(16 << 20), Ok(4096)));
        assert_eq!((percent("20%"), percent("7")), (Ok(20), Ok(7)));
        assert!(percent("0%").is_err() && percent("101").is_err());
        assert!(size("4G").is_err() && size("5000M").is_err());
    }
}
