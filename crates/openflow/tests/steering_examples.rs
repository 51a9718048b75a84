//! The examples of `docs/reference/openflow-extension.md`: each is a message that is built here, and both are the same bytes.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use openflow::steering::*;
use openflow::{
    Action, ErrorMsg, Experimenter, FixedText, FlowMod, FlowModCommand, Instruction, Match,
    MultipartReply, MultipartRequest, Oxm, OxmField, Part, PortNo, Version,
};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/reference/openflow-extension.md");

/// Name and version of each example, and its bytes.
fn examples() -> BTreeMap<(&'static str, Version), Vec<u8>> {
    let mut found = BTreeMap::new();
    for block in PAGE.split("```hex ").skip(1) {
        let (head, rest) = block.split_once('\n').unwrap();
        let (name, version) = head.split_once(' ').unwrap();
        let lines = rest.split("```").next().unwrap().lines();
        let digits: String = lines
            .flat_map(|line| line.split('#').next().unwrap().chars())
            .filter(|c| !c.is_whitespace())
            .collect();
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        let version = Version::from_name(version).unwrap();
        assert_eq!(found.insert((name, version), bytes), None, "{name} {version} twice");
    }
    found
}

fn vm() -> Vm {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&[10, 0, 0, 1]);
    Vm {
        id: 1,
        tenant: 7,
        port: PortNo(3),
        source: VmSource::Found,
        cores: vec![0],
        addresses: vec![VmAddress { kind: 4, prefix: 32, bytes }],
        name: b"vm1".to_vec(),
    }
}

fn host() -> HostInfo {
    let core =
        |id, vms| HostCore { id, numa: Some(0), sibling: None, role: CoreRole::Allowed, vms };
    HostInfo {
        version: VERSION,
        threshold: 500,
        abilities: HostAbilities::MEASURES | HostAbilities::PROGRAM,
        policy: FixedText::from("vse"),
        cores: vec![core(0, vec![1]), core(1, vec![])],
        interfaces: vec![HostInterface {
            index: 2,
            mode: XdpMode::Native,
            rx_queues: 1,
            abilities: InterfaceAbilities::XDP_NATIVE,
            name: FixedText::from("eth0"),
            driver: FixedText::from("veth"),
        }],
    }
}

/// The paper's `nw_src=10.0.0.1,VM_ID=1`.
fn fields() -> Match {
    Match::default()
        .with(OxmField::EthType, 0x0800)
        .with(OxmField::Ipv4Src, 0x0a00_0001)
        .with(OxmField::VmId, 1)
}

fn add() -> PlaceMod {
    PlaceMod {
        command: FlowModCommand::Add,
        priority: 100,
        place: Place { core: CoreChoice::Auto, flags: PlaceFlags::PRIORITY },
        cookie: 0x11,
        cookie_mask: 0,
        interface: FixedText::default(),
        fields: fields(),
    }
}

fn delete() -> PlaceMod {
    PlaceMod {
        command: FlowModCommand::Delete,
        priority: 0,
        place: Place::on(CoreChoice::Auto),
        cookie_mask: u64::MAX,
        interface: FixedText::from("eth0"),
        fields: Match::default(),
        ..add()
    }
}

fn core() -> CoreStats {
    CoreStats {
        core: 1,
        load: [10, 500, 0, 0],
        other: 20,
        units: 3,
        frames: 1_000_000,
        busy_ns: [10_000_000, 1_000_000_000, 0, 0],
    }
}

fn placement() -> PlacementStats {
    PlacementStats {
        kind: PlacementKind::Entry,
        reason: Reason::Priority,
        core: Some(1),
        wanted: Some(1),
        place: add().place,
        priority: 100,
        vm: 1,
        unit: 9,
        moves: 2,
        cookie: 0x11,
        packets: 1_000_000,
        bytes: 1_000_000_000,
        age_ns: 1_000_000_000,
        interface: FixedText::from("eth0"),
        fields: fields(),
    }
}

fn flow(version: Version, fields: Match, actions: Vec<Action>) -> openflow::Message {
    let instructions = vec![Instruction::ApplyActions(actions)];
    openflow::Message::FlowMod(FlowMod { fields, instructions, version, ..FlowMod::default() })
}

fn ip() -> Match {
    Match::default().with(OxmField::EthType, 0x0800)
}

fn set_fcf(version: Version, oxm: Oxm) -> openflow::Message {
    flow(version, ip(), vec![Action::SetField(oxm), Action::output(PortNo(2))])
}

/// What the example of that name says.
fn value(name: &str, version: Version) -> openflow::Message {
    let message = |message: Message| openflow::Message::Experimenter(message.encode());
    let ask = |request: Request| {
        let body = MultipartRequest::Experimenter(request.encode());
        openflow::Message::MultipartRequest(Part::last(body))
    };
    let answer = |reply: Reply| {
        let [body] = reply.encode().unwrap().try_into().expect("it fits one message");
        openflow::Message::MultipartReply(Part::last(MultipartReply::Experimenter(body)))
    };
    match name {
        "host_info_request" => message(Message::HostInfoRequest),
        "host_info" => message(Message::HostInfo(host())),
        "subscribe" => message(Message::Subscribe(Events::HOST | Events::VMS)),
        "vm_status" => message(Message::VmStatus(VmStatus { reason: VmReason::Added, vm: vm() })),
        "place_mod_add" => message(Message::PlaceMod(add())),
        "place_mod_delete" => message(Message::PlaceMod(delete())),
        "vm_info_request" => ask(Request::VmInfo(0)),
        "vm_info_reply" => answer(Reply::VmInfo(vec![vm()])),
        "core_stats_request" => ask(Request::CoreStats(None)),
        "core_stats_reply" => answer(Reply::CoreStats(vec![core()])),
        "placement_stats_request" => ask(Request::PlacementStats(PlacementRequest {
            kinds: PlacementKinds::ENTRIES,
            cookie: 0x11,
            cookie_mask: u64::MAX,
            interface: FixedText::default(),
        })),
        "placement_stats_reply" => answer(Reply::PlacementStats(vec![placement()])),
        "set_fcf" => set_fcf(version, Oxm::exact(OxmField::Fcf, 3)),
        "set_priority_bit" => set_fcf(version, Oxm::masked(OxmField::Fcf, 1, 1)),
        "match_priority_bit" => {
            let fields = ip().with_masked(OxmField::Fcf, 1, 1);
            flow(version, fields, vec![Action::output(PortNo(2))])
        }
        "place_action" => {
            let place = Place { core: CoreChoice::Auto, flags: PlaceFlags::OWN };
            flow(version, ip(), vec![Action::Place(place)])
        }
        "error_unknown_interface" => openflow::Message::Error(ErrorMsg {
            kind: SteerError::UnknownInterface.kind(),
            data: examples()[&("place_mod_add", Version::V1_3)][..16].to_vec(),
        }),
        _ => panic!("the page has an example {name} that this test does not know"),
    }
}

#[test]
fn every_example_of_the_page_is_written_and_read_byte_by_byte() {
    let examples = examples();
    assert!(examples.len() >= 18, "{} examples", examples.len());
    for ((name, version), bytes) in &examples {
        let value = value(name, *version);
        let (header, read) =
            openflow::Message::decode(bytes).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(read, value, "{name} {version}");
        assert_eq!(&value.encode(*version, header.xid).unwrap(), bytes, "{name} {version}");
    }
}

#[test]
fn the_page_names_every_type_field_and_error_by_its_number() {
    let example = |name: &str| -> Experimenter {
        match value(name, Version::V1_3) {
            openflow::Message::Experimenter(message) => message,
            other => panic!("{other:?}"),
        }
    };
    for name in ["host_info_request", "host_info", "subscribe", "vm_status", "place_mod_add"] {
        let word = name.trim_end_matches("_add").to_uppercase();
        let row = format!("| {} | `{word}` message", example(name).exp_type);
        assert!(PAGE.contains(&row), "no row {row}");
    }
    assert!(PAGE.contains(&format!("`{:#010x}`", openflow::SUIRO)));
    let errors = PAGE.split("| exp_type | when | remedy |").nth(1).unwrap();
    for error in SteerError::ALL {
        assert!(errors.contains(&format!("\n| {} | ", error.wire())), "no row of {error:?}");
    }
    for reason in Reason::ALL {
        assert!(PAGE.contains(&format!("\n| {} | ", reason.wire())), "no row of {reason:?}");
    }
    for field in OxmField::STEERING.iter().chain(OxmField::ENDS) {
        assert!(PAGE.contains(&format!("`{}`", field.spec().name)), "no row of {field:?}");
    }
}
