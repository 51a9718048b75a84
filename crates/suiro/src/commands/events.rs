//! `suiro events`.

use super::{Context, out};
use crate::args::EventsArgs;
use crate::failure::Failure;
use api::{Client, Event, Fault, Gone, Message, News, quoted};
use serde::de::DeserializeOwned;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Prints what happened, and with `follow` what happens.
pub fn run(context: &Context, args: &EventsArgs) -> Result<(), Failure> {
    watch(context, &context.client, args)
}

/// The same of the domain's controller.
pub fn of_domain(context: &Context, args: &EventsArgs) -> Result<(), Failure> {
    watch(context, &context.controller, args)
}

fn watch(context: &Context, client: &Client, args: &EventsArgs) -> Result<(), Failure> {
    let EventsArgs { follow, since } = args;
    let since = since.as_deref().unwrap_or(if *follow { "now" } else { "oldest" });
    let path = format!("/v1/events?since={}&follow={follow}", quoted(since));
    client.watch(&path, |message| {
        out(&line(context.json, &message)?)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// A message as one line; JSON as it came, with what kind of message it is.
fn line(json: bool, message: &Message) -> Result<String, Failure> {
    let text = match (json, message.event.as_str()) {
        (true, "change") => message.data.clone(),
        (true, kind) => format!("{{\"{kind}\":{}}}", message.data),
        (false, "change") => {
            let event: Event = read(message)?;
            let at = UNIX_EPOCH + Duration::from_nanos(event.at_ns);
            format!("{:>6} {} {}", event.revision, moment(at), event.news)
        }
        (false, "gone") => {
            let gone: Gone = read(message)?;
            format!(
                "events up to {} are not kept any more; what is there now, then what comes after {}:",
                gone.oldest, gone.newest
            )
        }
        // The end of what is present.
        (false, _) if message.id.is_some() => return Ok(String::new()),
        (false, _) => read::<News>(message)?.to_string(),
    };
    Ok(text + "\n")
}

fn read<T: DeserializeOwned>(message: &Message) -> Result<T, Failure> {
    let remedy = "use the suiro command of the node's own version";
    let fault =
        |error: serde_json::Error| Fault::new("node", "read an event", error.to_string(), remedy);
    serde_json::from_str(&message.data).map_err(|error| Failure::Refused(fault(error)))
}

/// Date and time of day, UTC, to the millisecond.
pub fn moment(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (year, month, day) = date(days);
    let ms = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The date of a day since 1970, by the proleptic Gregorian calendar: years begin in March, so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01 to 1970-01-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (era * 400 + year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates_also_around_leap_days() {
        for (days, wanted) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (789, (1972, 2, 29)),
            (790, (1972, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_785, (2026, 11, 28)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), wanted);
        }
    }
}
