//! The action `place`, read and printed.

use super::error::TextError;
use super::scan::{Span, items};
use super::value;
use crate::steering::{CoreChoice, Place, PlaceFlags};

const FORM: &str = "write place(core=auto|N|hash[,priority][,own])";

/// Flags by name.
const FLAGS: &[(&str, PlaceFlags)] =
    &[("priority", PlaceFlags::PRIORITY), ("own", PlaceFlags::OWN)];

/// Reads what stands in the parentheses of `place(...)`, such as `core=auto,priority`.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_place(text: &str) -> Result<Place, TextError> {
    place(Span::whole(text))
}

pub(super) fn place(text: Span<'_>) -> Result<Place, TextError> {
    let mut core = None;
    let mut flags = PlaceFlags::empty();
    for item in items(text)? {
        let flag = FLAGS.iter().find(|(name, _)| item.is(name));
        if let Some((_, flag)) = flag {
            item.bare()?;
            flags |= *flag;
        } else if item.is("core") && core.is_none() {
            core = Some(choice(item.required()?)?);
        } else {
            return Err(item.whole.error("nothing that place has, or a second time", FORM));
        }
    }
    let core = core.ok_or_else(|| text.error("no core is named", FORM))?;
    let place = Place { core, flags };
    place.check().map_err(|fault| text.error(fault.what, FORM))?;
    Ok(place)
}

fn choice(word: Span<'_>) -> Result<CoreChoice, TextError> {
    Ok(match word.text.to_ascii_lowercase().as_str() {
        "auto" => CoreChoice::Auto,
        "hash" => CoreChoice::Hash,
        _ => CoreChoice::Core(value::small(word, u16::MAX)?),
    })
}

/// The action as it reads back.
pub fn print_place(place: Place) -> String {
    let core = match place.core {
        CoreChoice::Auto => "auto".to_owned(),
        CoreChoice::Hash => "hash".to_owned(),
        CoreChoice::Core(core) => core.to_string(),
    };
    let set = FLAGS.iter().filter(|(_, flag)| place.flags.contains(*flag));
    let flags: String = set.map(|(name, _)| format!(",{name}")).collect();
    format!("place(core={core}{flags})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_printed() {
        for text in ["core=auto", "core=7", "core=hash", "core=auto,priority,own"] {
            let place = parse_place(text).unwrap();
            assert_eq!(print_place(place), format!("place({text})"));
        }
        assert_eq!(parse_place("own,core=auto,priority"), parse_place("core=auto,priority,own"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_where_it_stands() {
        let at = |text| parse_place(text).map_err(|error| error.at);
        assert_eq!(at("core=auto,fast"), Err(10));
        assert_eq!(at("core=x"), Err(5));
        assert_eq!(at("priority"), Err(0));
        assert_eq!(at("core=1,own"), Err(0));
        assert_eq!(at("core=65535"), Err(0));
        assert_eq!(at("core=1,core=2"), Err(7));
    }
}
