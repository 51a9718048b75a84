//! Options made from the tables of a port's keys: one for each key, under the kind that has it.

use api::{COMMON, Form, Key, Keys, NONE, PortKind, live_keys, port_help};
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use std::error::Error;

/// Keys of a port that is made.
pub struct NewKeys(pub Keys);

/// Keys of a port that carries on.
pub struct LiveKeys(pub Keys);

impl Args for NewKeys {
    fn augment_args(command: Command) -> Command {
        new_keys().into_iter().fold(command, |command, key| command.arg(option(key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for NewKeys {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(matches, &new_keys())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(given(matches, &new_keys()));
        Ok(())
    }
}

impl Args for LiveKeys {
    fn augment_args(command: Command) -> Command {
        let or_none = |key: &'static Key| {
            let read = move |text: &str| match text {
                NONE => Ok(Value::from(NONE)),
                text => read(key, text),
            };
            let option = option(key).action(ArgAction::Set).required(false);
            option.value_parser(ValueParser::from(read)).value_name(key.value)
        };
        live_keys().into_iter().fold(command, |command, key| command.arg(or_none(key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LiveKeys {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(matches, &live_keys())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(given(matches, &live_keys()));
        Ok(())
    }
}

/// Every key that an option may give; the name is an argument, and queues have commands of their own.
fn new_keys() -> Vec<&'static Key> {
    let mut keys: Vec<&'static Key> = Vec::new();
    let own = PortKind::ALL.into_iter().flat_map(PortKind::keys);
    let is_option = |key: &&Key| key.name != "name" && !matches!(key.form, Form::Tables);
    for key in COMMON.iter().chain(own).filter(is_option) {
        if keys.iter().all(|known| known.name != key.name) {
            keys.push(key);
        }
    }
    keys
}

fn option(key: &'static Key) -> Arg {
    let option = Arg::new(key.name)
        .long(key.name.replace('_', "-"))
        .help(help(key))
        .required(key.name == "type");
    let option = match key.name {
        "interface" | "netns" => option.short(key.name.chars().next()),
        _ => option,
    };
    let option = match heading(key) {
        Some(heading) => option.help_heading(heading),
        None => option,
    };
    match &key.form {
        Form::Flag => option.action(ArgAction::SetTrue),
        Form::OnOff => option.value_name(key.value).value_parser(
            PossibleValuesParser::new(["on", "off"]).map(|word| Value::from(word == "on")),
        ),
        Form::Word(words) => option
            .value_name(key.value)
            .value_parser(PossibleValuesParser::new(*words).map(Value::from)),
        _ => option
            .value_name(key.value)
            .value_parser(ValueParser::from(move |text: &str| read(key, text))),
    }
}

/// A value of a key, from what was typed.
fn read(key: &Key, text: &str) -> Result<Value, Box<dyn Error + Send + Sync>> {
    match &key.form {
        // Whether it is in range is the node's to say, which may be of another version.
        Form::Number(_) => Ok(text.parse::<u64>()?.into()),
        Form::Text(check) | Form::TextOrNumber(check) => {
            check(text)?;
            Ok(text.into())
        }
        Form::Flag | Form::OnOff | Form::Word(_) | Form::Tables => Ok(key.check(&text.into())?),
    }
}

fn given(matches: &ArgMatches, keys: &[&'static Key]) -> Keys {
    let value = |key: &&Key| match key.form {
        Form::Flag => matches.get_flag(key.name).then(|| Value::from(true)),
        _ => matches.get_one::<Value>(key.name).cloned(),
    };
    keys.iter().filter_map(|key| Some((key.name.to_owned(), value(key)?))).collect()
}

/// The kinds that have a key; none for a key of every kind.
fn owners(key: &Key) -> Vec<PortKind> {
    port_help(key.name).into_iter().flat_map(|(_, kinds)| kinds).collect()
}

fn heading(key: &Key) -> Option<String> {
    match owners(key)[..] {
        [kind] => Some(format!("Options of {} ports", kind.word())),
        ref kinds if kinds.len() == PortKind::ALL.len() => None,
        _ => Some("Options of several kinds".into()),
    }
}

/// What a key says, by kind where that differs.
fn help(key: &Key) -> String {
    let texts = port_help(key.name);
    let shared = owners(key).len() > 1 && owners(key).len() < PortKind::ALL.len();
    let line = |(text, kinds): &(&str, Vec<PortKind>)| {
        let words: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
        if shared { format!("{text} ({})", words.join(", ")) } else { (*text).to_owned() }
    };
    texts.iter().map(line).collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        NewKeys::augment_args(Command::new("add"))
    }

    fn typed(words: &[&str]) -> Result<Keys, clap::Error> {
        let words = ["add"].iter().chain(words);
        let matches = command().try_get_matches_from(words)?;
        NewKeys::from_arg_matches(&matches).map(|keys| keys.0)
    }

    #[test]
    fn what_is_typed_becomes_keys_of_the_forms_of_their_table() {
        let words = ["--type", "vxlan", "--key", "7", "--mss-clamp", "--outer-checksum", "off"];
        let keys = typed(&[&words[..], &["--ttl", "9", "-n", "a"]].concat()).unwrap();
        let expected = serde_json::json!({
            "type": "vxlan", "key": "7", "mss_clamp": true, "outer_checksum": false, "ttl": 9, "netns": "a",
        });
        assert_eq!(Value::from(keys), expected);
    }

    #[test]
    fn a_wrong_value_is_refused_before_anything_is_asked() {
        for words in [["--ttl", "x"], ["--mac", "01:00:00:00:00:01"], ["--xdp-mode", "natve"]] {
            assert!(typed(&[&["--type", "tap"], &words[..]].concat()).is_err(), "{words:?}");
        }
        assert!(typed(&[]).is_err(), "a port has a type");
    }

    #[test]
    fn help_groups_options_by_kind() {
        let help = command().render_help().to_string();
        for heading in ["Options of vxlan ports", "Options of vhost-user ports", "several kinds"] {
            assert!(help.contains(heading), "{heading}: {help}");
        }
    }
}
