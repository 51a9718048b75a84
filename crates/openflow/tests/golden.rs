//! What `ovs-ofctl -O OpenFlow13` (Open vSwitch 3.1.0) sent and printed, recorded, against what this crate makes of it.
//!
//! `golden/flows.txt`: flow as typed, the flow-mod it sent (hexadecimal), the entry as `dump-flows` prints it with an age
//! of 1.5 s, 3 packets and 180 bytes. `golden/requests.txt`: command, and a message it sent. `golden/replies.txt`: what
//! `ovs-ofctl ofp-print` calls a message of ours, and the message, which it printed without complaint.

use openflow::text::{no_names, no_ports, parse_flow, print_flow};
use openflow::{FlowMod, FlowModCommand, FlowStats, Message, Version, Wording};

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("recordings are hexadecimal"))
        .collect()
}

fn records(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.split("\n\n")
        .map(|record| record.lines().collect::<Vec<_>>())
        .filter(|lines| lines.len() > 1)
}

fn flows() -> impl Iterator<Item = (&'static str, Vec<u8>, &'static str)> {
    records(include_str!("golden/flows.txt")).map(|lines| (lines[0], unhex(lines[1]), lines[2]))
}

fn decoded_flow(bytes: &[u8]) -> FlowMod {
    match Message::decode(bytes) {
        Ok((_, Message::FlowMod(flow))) => flow,
        other => panic!("{other:?}"),
    }
}

/// The order of fields says nothing, and ovs-ofctl's is its own.
fn sorted(mut flow: FlowMod) -> FlowMod {
    flow.fields.0.sort_by_key(|oxm| oxm.field());
    flow
}

fn entry(flow: FlowMod) -> FlowStats {
    FlowStats {
        wording: Wording::default(),
        table: flow.table,
        duration_s: 1,
        duration_ns: 500_000_000,
        priority: flow.priority,
        idle_timeout_s: flow.idle_timeout_s,
        hard_timeout_s: flow.hard_timeout_s,
        flags: flow.flags,
        cookie: flow.cookie,
        packet_count: 3,
        byte_count: 180,
        fields: flow.fields,
        instructions: flow.instructions,
    }
}

#[test]
fn flows_are_read_as_ovs_ofctl_reads_them() {
    for (text, bytes, _) in flows() {
        let parsed = parse_flow(text, FlowModCommand::Add, &no_ports)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(sorted(parsed.clone()), sorted(decoded_flow(&bytes)), "{text}");
        assert_eq!(parsed.check(), Ok(()), "{text}");
    }
}

#[test]
fn flows_are_printed_as_ovs_ofctl_prints_them() {
    for (_, bytes, printed) in flows() {
        assert_eq!(print_flow(&entry(decoded_flow(&bytes)), &no_names), printed);
    }
}

#[test]
fn a_printed_flow_reads_back_as_itself() {
    for (text, bytes, printed) in flows() {
        let again = parse_flow(printed, FlowModCommand::Add, &no_ports)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(again, sorted(decoded_flow(&bytes)), "{text}");
    }
}

/// 1.3 has no mask in set-field. `ovs-ofctl ofp-print` shows this entry as `actions=set_field:0x64/0xff->tun_id`.
#[test]
fn a_masked_set_field_goes_as_the_experimenters_action_that_open_vswitch_reads() {
    let text = "actions=set_field:0x64/0xff->tun_id";
    let flow = parse_flow(text, FlowModCommand::Add, &no_ports).unwrap();
    let bytes = Message::FlowMod(flow.clone()).encode(Version::V1_3, 1).unwrap();
    let action = "ffff002000002320002180004d10000000000000006400000000000000ff0000";
    assert_eq!(bytes[bytes.len() - 32..], unhex(action));
    assert_eq!(decoded_flow(&bytes), flow);
}

#[test]
fn what_ovs_ofctl_sends_and_understands_is_read_and_written_byte_by_byte() {
    let flows = flows().map(|(text, bytes, _)| (text, bytes));
    let requests =
        records(include_str!("golden/requests.txt")).map(|lines| (lines[0], unhex(lines[1])));
    let replies =
        records(include_str!("golden/replies.txt")).map(|lines| (lines[0], unhex(lines[1])));
    let mut count = 0;
    for (name, bytes) in flows.chain(requests).chain(replies) {
        let (header, message) =
            Message::decode(&bytes).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(
            message.encode(Version::V1_3, header.xid).unwrap(),
            bytes,
            "{name}: {message:?}"
        );
        count += 1;
    }
    assert!(count > 150, "the recordings are there: {count}");
}
