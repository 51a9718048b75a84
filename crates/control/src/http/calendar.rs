//! When slices are: for programs, and for people's own calendars (iCalendar, RFC 5545).

use super::App;
use crate::caller::Caller;
use crate::controller::now_s;
use api::{CalendarEntry, ErrorBody};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use domain::Moment;

/// Longest line in bytes, without its end (RFC 5545 §3.1).
const LINE_MAX: usize = 75;

/// When slices are that are promised something, and how much. Other tenants' have no name.
#[utoipa::path(get, path = "/v1/calendar", tag = "slices",
    responses((status = 200, description = "What is promised when, by its beginning", body = Vec<CalendarEntry>),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn calendar(
    State(controller): App,
    Extension(caller): Extension<Caller>,
) -> Json<Vec<CalendarEntry>> {
    Json(controller.calendar(|key| caller.sees(&key.tenant)))
}

/// The caller's own slices that begin or end at a time of theirs, as iCalendar.
#[utoipa::path(get, path = "/v1/calendar.ics", tag = "slices",
    responses((status = 200, description = "A calendar (RFC 5545)", body = String, content_type = "text/calendar"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn icalendar(State(controller): App, Extension(caller): Extension<Caller>) -> Response {
    let entries = controller.calendar(|key| caller.sees(&key.tenant));
    ([(CONTENT_TYPE, "text/calendar; charset=utf-8")], ical(&entries, now_s() as i64))
        .into_response()
}

/// Events of those that have a name and a time.
fn ical(entries: &[CalendarEntry], now_s: i64) -> String {
    let mut text = String::new();
    let mut line = |content: &str| {
        // Names are ASCII, so any byte is a place to fold at.
        let mut rest = content;
        while rest.len() > LINE_MAX {
            let (head, tail) = rest.split_at(LINE_MAX);
            text.push_str(head);
            text.push_str("\r\n ");
            rest = tail;
        }
        text.push_str(rest);
        text.push_str("\r\n");
    };
    let head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//suiro//calendar//EN"];
    head.into_iter().for_each(&mut line);
    for entry in entries {
        let Some(slice) = &entry.slice else { continue };
        let (what, begin, end) = match (entry.from_s, entry.until_s) {
            (Some(from), until) => ("", from, until),
            (None, Some(until)) => (" ends", until, None),
            (None, None) => continue,
        };
        line("BEGIN:VEVENT");
        line(&format!("UID:{slice}@suiro"));
        line(&format!("DTSTAMP:{}", basic(now_s)));
        line(&format!("DTSTART:{}", basic(begin)));
        if let Some(end) = end {
            line(&format!("DTEND:{}", basic(end)));
        }
        line(&format!("SUMMARY:slice {slice}{what}"));
        line("END:VEVENT");
    }
    line("END:VCALENDAR");
    text
}

/// Date and time in UTC, without signs (RFC 5545 §3.3.5).
fn basic(unix_s: i64) -> String {
    Moment::at(unix_s).to_string().replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slice: Option<&str>, from_s: Option<i64>, until_s: Option<i64>) -> CalendarEntry {
        let (slice, from, until) = (slice.map(str::to_owned), None, None);
        CalendarEntry { slice, from, until, from_s, until_s, cpu_milli: 0, memory: 0, rate: 0 }
    }

    #[test]
    fn a_slice_is_an_event_from_its_beginning_to_its_end() {
        let long = "r".repeat(40) + "/" + &"s".repeat(40);
        let entries = [
            entry(Some("red/demo"), Some(951_825_600), Some(951_829_200)),
            entry(Some(&long), None, Some(951_829_200)),
            entry(Some("red/always"), None, None),
            entry(None, Some(0), Some(1)),
        ];
        let text = ical(&entries, 0);
        assert!(
            text.contains(
                "DTSTART:20000229T120000Z\r\nDTEND:20000229T130000Z\r\nSUMMARY:slice red/demo\r\n"
            ),
            "{text}"
        );
        assert!(text.contains("DTSTART:20000229T130000Z\r\nSUMMARY:"), "{text}");
        assert_eq!(text.matches("BEGIN:VEVENT").count(), 2);
        assert!(text.split("\r\n").all(|line| line.len() <= LINE_MAX + 1), "{text}");
        assert!(text.replace("\r\n ", "").contains(&format!("SUMMARY:slice {long} ends")));
    }
}
