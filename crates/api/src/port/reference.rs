//! `docs/reference/ports.md`: made from the tables of keys, and held to them by a test.

use super::{COMMON, PortKind, PortSpec};
use crate::key::{Change, Form, Key};
use serde_json::{Value, json};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/ports.md");

const HEAD: &str = "# Ports, key by key

Every kind of port and every key that it takes, as the node reads them. A test makes this page from the node's own tables.

A key is one word in the configuration file and in JSON. The command line writes it as an option, with `-` for `_`: `take_over`, `--take-over`.
`live` keys change while the port goes on: `suiro port mod`, `PATCH`, or the file and a reload. Any other key makes a new port: remove it and add it anew.
In a file that is reloaded, the node does that itself. `suiro port show` prints the keys that a port was asked for.

What each kind is for: [ports](../how-to/ports.md), [virtual machines](../how-to/virtual-machines.md), [tunnels](../how-to/tunnels.md).
";

/// What a kind is, in a sentence.
fn about(kind: PortKind) -> &'static str {
    match kind {
        PortKind::Tap => "An interface that suiro makes, here or in a guest's network namespace.",
        PortKind::AfPacket => "An existing interface, by packet socket. Works with every driver.",
        PortKind::AfXdp => "An existing interface, by XDP.",
        PortKind::Vlink => "One end of a link to another switch of the node.",
        PortKind::VhostUser => "A virtual machine's memory, by the vhost-user protocol.",
        PortKind::Vxlan => "Another host, by VXLAN over this host's own network.",
    }
}

fn page() -> String {
    let mut page = format!("{HEAD}\n## Every kind\n\n{}", table(COMMON));
    for kind in PortKind::ALL {
        let (word, about) = (kind.word(), about(kind));
        page += &format!("\n## `{word}`\n\n{about}\n\n{}", table(kind.keys()));
    }
    page + "\n## Errors\n\nAll that is wrong with a port is said at once, with a remedy each.\n\n"
        + &errors()
}

fn table(keys: &[Key]) -> String {
    let rows: String = keys.iter().map(row).collect();
    format!("| key | says | values | when left out | live |\n|---|---|---|---|---|\n{rows}")
}

fn row(key: &Key) -> String {
    let (says, default) = parts(key);
    let with = key.with.map(|with| format!(". Only with `{with}`")).unwrap_or_default();
    let live = if key.change == Change::Live { "yes" } else { "" };
    let cells = [format!("`{}`", key.name), format!("{says}{with}"), values(key), default];
    format!("| {} | {live} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

/// What a key says, and what holds without it.
fn parts(key: &Key) -> (&'static str, String) {
    let left_out = key.help.strip_suffix(" when left out").and_then(|text| text.rsplit_once("; "));
    match (left_out, &key.form, key.needed) {
        (Some((says, default)), ..) => (says, default.into()),
        (None, _, Some(_)) => (key.help, "it is needed".into()),
        _ if key.name == "type" => (key.help, "it is needed".into()),
        (None, Form::Flag, _) => (key.help, "false".into()),
        (None, Form::OnOff, _) => (key.help, "true".into()),
        (None, ..) => (key.help, String::new()),
    }
}

/// Values that a key takes: what its own error tells to write.
fn values(key: &Key) -> String {
    match &key.form {
        Form::Flag | Form::OnOff => "true, false".into(),
        Form::Number(range) => format!("{} to {}", range.start(), range.end()),
        Form::Word(words) => words.join(", "),
        Form::Text(_) | Form::TextOrNumber(_) => {
            let fault = key.check(&"\n".into()).expect_err("no name has a line's end");
            fault.remedy.strip_prefix("write ").unwrap_or(&fault.remedy).to_owned()
        }
        Form::Tables => "a list of tables ([queues](../how-to/queues.md))".into(),
    }
}

/// An example of each kind of fault, as the reader says it.
fn errors() -> String {
    let cases = [
        ("a value outside", json!({"name": "p", "type": "tap", "queues": 999})),
        ("a value of another form", json!({"name": "p", "type": "tap", "netns": 7})),
        ("an unknown word", json!({"name": "p", "type": "af_xdp", "xdp_mode": "natve"})),
        ("a typing error in a key", json!({"name": "p", "type": "tap", "netsn": "a"})),
        ("a key of another kind", json!({"name": "p", "type": "tap", "peer": "sw1:p"})),
        ("a key that is missing", json!({"name": "p", "type": "vhost-user"})),
        (
            "a key without its companion",
            json!({"name": "p", "type": "vhost-user", "socket": "/run/s", "mode": "0600"}),
        ),
    ];
    let row = |(what, keys): (&str, Value)| {
        let keys = keys.as_object().cloned().expect("an object");
        let faults = PortSpec::read(keys).expect_err("wrong").0;
        format!("| {what} | {} | {} |\n", faults[0].cause, faults[0].remedy)
    };
    let rows: String = cases.into_iter().map(row).collect();
    format!("| fault | error | remedy |\n|---|---|---|\n{rows}")
}

#[test]
fn the_page_of_ports_says_what_the_tables_of_keys_say() {
    let (kept, made) = (std::fs::read_to_string(PAGE).unwrap_or_default(), page());
    if kept != made && std::env::var_os("SUIRO_UPDATE").is_some() {
        return std::fs::write(PAGE, made).unwrap();
    }
    assert!(
        kept == made,
        "docs/reference/ports.md is out of date: run this test with SUIRO_UPDATE=1 and review the change"
    );
}

#[test]
fn every_key_says_what_holds_without_it() {
    for key in COMMON.iter().chain(PortKind::ALL.into_iter().flat_map(PortKind::keys)) {
        assert!(!parts(key).1.is_empty(), "{}: end its help with \"; … when left out\"", key.name);
    }
}
