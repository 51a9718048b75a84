//! Which words each use of a flow's text obeys; any other is refused, never passed over.
//!
//! A filter's word that is passed over widens the filter: `priority=3` alone would select every flow.

use super::error::TextError;
use super::scan::{Item, Span, items};
use crate::flow_mod::{FlowModCommand, FlowModFlags};

/// What a flow's text is read for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// A flow-mod.
    Change(FlowModCommand),
    /// A list of flows.
    List,
}

/// A word that is not a match field, by what obeys it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// `priority`.
    Priority,
    /// `idle_timeout`, `hard_timeout`.
    Timeout,
    /// A flag's name.
    Flag(FlowModFlags),
    /// `out_port`, `out_group`.
    Output,
    /// What `dump-flows` prints of a flow's past: ages and counters.
    Past,
}

const SELECT: &str = "select by match, table, cookie=VALUE/MASK, out_port or out_group";
const STRICT: &str = "leave it out, or add --strict: then match and priority name one flow";
const REPLACE: &str = "leave it out; flow add replaces a flow with its timeouts and flags";

impl Use {
    /// Refuses a word that this use would pass over.
    pub(super) fn obeys(self, item: &Item<'_>, word: Word) -> Result<(), TextError> {
        match self.fault(word) {
            None => Ok(()),
            Some((problem, remedy)) => Err(item.whole.error(problem, remedy)),
        }
    }

    fn fault(self, word: Word) -> Option<(&'static str, &'static str)> {
        use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
        match (self, word) {
            (Use::Change(Add), Word::Output) => {
                Some(("a filter in an addition", "leave it out; actions=output:PORT sends there"))
            }
            (Use::Change(Add), _) => None,
            (Use::Change(ModifyStrict | DeleteStrict), Word::Priority)
            | (Use::Change(Delete | DeleteStrict) | Use::List, Word::Output) => None,
            (Use::Change(Modify | ModifyStrict), Word::Flag(FlowModFlags::RESET_COUNTS)) => None,
            (Use::Change(Modify), Word::Priority) => {
                Some(("changes look at a priority only when they are strict", STRICT))
            }
            (Use::Change(Delete), Word::Priority) => {
                Some(("deletions look at a priority only when they are strict", STRICT))
            }
            (Use::Change(Modify | ModifyStrict), Word::Timeout | Word::Flag(_)) => {
                Some(("timeouts and flags stay as the addition set them", REPLACE))
            }
            (Use::Change(Modify | ModifyStrict), _) => Some((
                "a change is not made by this word",
                "select by match, table and cookie=VALUE/MASK",
            )),
            (Use::Change(Delete | DeleteStrict) | Use::List, _) => {
                Some(("flows are not selected by this word", SELECT))
            }
        }
    }
}

/// Refuses a deletion that selects everything without a word that says so.
pub(super) fn not_everything(text: Span<'_>, selects_all: bool) -> Result<(), TextError> {
    match selects_all {
        true => Err(text.error("this would delete everything", "write --all if that is meant")),
        false => Ok(()),
    }
}

/// The one word `key=NUMBER` that a deletion of groups or meters takes.
pub(super) fn only_number<'a>(
    text: Span<'a>,
    key: &str,
    form: &'static str,
) -> Result<Span<'a>, TextError> {
    let words = items(text)?;
    not_everything(text, words.is_empty())?;
    if let Some(other) = words.iter().find(|item| !item.is(key)) {
        return Err(other.whole.error("deletions go by the number alone", form));
    }
    match words.as_slice() {
        [one] => one.required(),
        _ => Err(text.error("more than one number", "give each a text of its own")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{no_ports, parse_filter, parse_flow, parse_group, parse_meter};
    use super::*;
    use crate::group::GroupModCommand;
    use crate::meter::MeterModCommand;
    use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};

    /// Words beside match, `table` and `cookie`, each with the commands that obey it.
    const WORDS: &[(&str, &[FlowModCommand])] = &[
        ("priority=3", &[Add, ModifyStrict, DeleteStrict]),
        ("idle_timeout=10", &[Add]),
        ("hard_timeout=10", &[Add]),
        ("send_flow_rem", &[Add]),
        ("check_overlap", &[Add]),
        ("no_packet_counts", &[Add]),
        ("no_byte_counts", &[Add]),
        ("reset_counts", &[Add, Modify, ModifyStrict]),
        ("out_port=1", &[Delete, DeleteStrict]),
        ("out_group=1", &[Delete, DeleteStrict]),
        ("duration=5s", &[Add]),
        ("n_packets=0", &[Add]),
        ("n_bytes=0", &[Add]),
        ("idle_age=3", &[Add]),
        ("hard_age=3", &[Add]),
    ];

    #[test]
    fn a_word_is_obeyed_or_refused_by_name() {
        for (word, obeyed) in WORDS {
            for command in [Add, Modify, ModifyStrict, Delete, DeleteStrict] {
                let deletes = matches!(command, Delete | DeleteStrict);
                let text = format!("arp,{word}{}", if deletes { "" } else { ",actions=drop" });
                match parse_flow(&text, command, &no_ports) {
                    Ok(_) => assert!(obeyed.contains(&command), "{command:?} takes {text}"),
                    Err(error) => {
                        assert!(!obeyed.contains(&command), "{command:?}: {error}");
                        assert_eq!((error.at, error.word.as_str()), (4, *word));
                    }
                }
            }
            let listed = parse_filter(&format!("arp,{word}"), &no_ports);
            assert_eq!(listed.is_ok(), word.starts_with("out_"), "{word}");
        }
    }

    #[test]
    fn a_deletion_of_every_flow_is_refused_however_it_is_written() {
        for text in
            ["", " ,", "table=255", "cookie=0/0", "cookie=5/0", "out_port=any", "out_group=any"]
        {
            let error = parse_flow(text, Delete, &no_ports).expect_err(text);
            assert_eq!(error.remedy, "write --all if that is meant", "{text}");
        }
        for text in ["table=0", "cookie=0/1", "out_port=1", "out_group=all", "arp"] {
            assert!(parse_flow(text, Delete, &no_ports).is_ok(), "{text}");
        }
        assert!(parse_flow("", DeleteStrict, &no_ports).is_err());
        assert!(parse_flow("priority=0", DeleteStrict, &no_ports).is_ok());
    }

    #[test]
    fn groups_and_meters_are_deleted_by_one_number_alone() {
        let group = |text: &str| parse_group(text, GroupModCommand::Delete, &no_ports);
        let meter = |text: &str| parse_meter(text, MeterModCommand::Delete);
        assert_eq!(group("group_id=7").unwrap().id.0, 7);
        assert_eq!(meter("meter=7").unwrap().id.0, 7);
        for text in [
            "",
            "type=all",
            "group_id=1,type=all",
            "bucket=output:1",
            "group_id=all",
            "group_id=1 group_id=2",
        ] {
            assert!(group(text).is_err(), "{text}");
        }
        for text in
            ["", "kbps", "burst", "type=drop,rate=1000", "meter=all", "meter=0", "meter=1,kbps"]
        {
            assert!(meter(text).is_err(), "{text}");
        }
        assert_eq!(meter("meter=1,bands=type=drop").unwrap_err().word, "bands=type=drop");
    }

    #[test]
    fn a_change_sets_no_cookie() {
        let change = |text| parse_flow(text, Modify, &no_ports);
        assert_eq!(change("cookie=5,arp,actions=drop").unwrap_err().word, "5");
        assert_eq!(change("cookie=5/-1,arp,actions=drop").unwrap().cookie_mask, u64::MAX);
    }
}
