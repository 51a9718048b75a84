//! Any text as a flow, a filter, a group and a meter: nothing panics, and what is read is printed and read again as the same
//! value, which is one that a switch may take and that survives the wire.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::text::{
    no_names, no_ports, parse_actions, parse_filter, parse_flow, parse_group, parse_meter, print_flow_mod, print_group,
    print_meter,
};
use openflow::{
    FlowModCommand, GroupDesc, GroupMod, GroupModCommand, Message, MeterConfig, MeterMod, MeterModCommand, Version,
};

fuzz_target!(|text: &str| {
    for &command in FlowModCommand::ALL {
        flow(text, command);
    }
    group(text);
    meter(text);
    let _ = (parse_filter(text, &no_ports), parse_actions(text, &no_ports));
});

fn flow(text: &str, command: FlowModCommand) {
    let Ok(flow) = parse_flow(text, command, &no_ports) else { return };
    assert_eq!(flow.check(), Ok(()));
    let printed = print_flow_mod(&flow, &no_names);
    assert_eq!(parse_flow(&printed, command, &no_ports).as_ref(), Ok(&flow), "{printed}");
    if let Ok(bytes) = Message::FlowMod(flow.clone()).encode(Version::V1_3, 1) {
        let (_, message) = Message::decode(&bytes).expect("our own encoding");
        assert_eq!(message, Message::FlowMod(flow));
    }
}

fn group(text: &str) {
    let Ok(group) = parse_group(text, GroupModCommand::Add, &no_ports) else { return };
    let GroupMod { kind, id, buckets, .. } = group.clone();
    let printed = print_group(&GroupDesc { kind, id, buckets }, &no_names);
    assert_eq!(parse_group(&printed, GroupModCommand::Add, &no_ports), Ok(group), "{printed}");
}

fn meter(text: &str) {
    let Ok(meter) = parse_meter(text, MeterModCommand::Add) else { return };
    let MeterMod { flags, id, bands, .. } = meter.clone();
    let printed = print_meter(&MeterConfig { flags, id, bands });
    assert_eq!(parse_meter(&printed, MeterModCommand::Add), Ok(meter), "{printed}");
}
