//! One file with every kind of error, and the message that each one gives.

use super::*;

fn host() -> Host {
    Host { cores: vec![0, 1], node_id: "test-node".into() }
}

const BAD: &str = include_str!("testdata/bad.toml");
const BAD_EXPECTED: &str = include_str!("testdata/bad.expected");
const SYNTAX: &str = include_str!("testdata/syntax.toml");
const SYNTAX_EXPECTED: &str = include_str!("testdata/syntax.expected");

#[track_caller]
fn assert_message(text: &str, file: &str, expected: &str) {
    let message = Config::parse(text, file, &host()).unwrap_err().to_string();
    assert!(message.trim() == expected.trim(), "the messages for {file} are now:\n{message}\n");
}

#[test]
fn every_error_is_reported_in_one_run_with_line_thing_cause_and_remedy() {
    assert_message(BAD, "bad.toml", BAD_EXPECTED);
}

#[test]
fn a_syntax_error_hides_neither_the_next_one_nor_a_wrong_value() {
    assert_message(SYNTAX, "syntax.toml", SYNTAX_EXPECTED);
}

#[test]
fn the_annotated_example_is_accepted() {
    let text = include_str!("../../../../docs/node.example.toml");
    let config = Config::parse(text, "node.example.toml", &host())
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.switches.len(), 2);
}

#[test]
fn every_key_that_the_example_shows_commented_out_is_accepted_too() {
    let text = include_str!("../../../../docs/node.example.toml");
    let uncommented: String = text
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_ne!(uncommented, text);
    Config::parse(&uncommented, "node.example.toml", &host())
        .unwrap_or_else(|problems| panic!("{problems}"));
}

#[test]
fn nothing_written_is_an_empty_node_with_defaults() {
    assert_eq!(Config::parse("", "empty", &host()).unwrap(), Config::empty(&host()));
    assert_eq!(Config::empty(&host()).node.cores, [1]);
}

#[test]
fn switches_without_a_listen_of_their_own_count_up_from_the_nodes() {
    let text = "[node]\nlisten = 'ptcp:7000'\n[[switch]]\nname = 'a'\n[[switch]]\nname = 'b'\nlisten = ['ptcp:9']\n[[switch]]\nname = 'c'";
    let config = Config::parse(text, "", &host()).unwrap();
    let listens: Vec<_> =
        config.switches.iter().map(|switch| switch.spec.listen[0].to_string()).collect();
    assert_eq!(listens, ["ptcp:7000:127.0.0.1", "ptcp:9:127.0.0.1", "ptcp:7002:127.0.0.1"]);
}
