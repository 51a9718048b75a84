//! Steering's messages: decode ∘ encode = identity, and what is refused or skipped.

use openflow::steering::*;
use openflow::{
    Action, ErrorCode, Experimenter, FixedText, FlowMod, FlowModCommand, Instruction, Match,
    MultipartReply, Oxm, OxmField, PortNo, SUIRO, Version, encode_reply,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn text<const N: usize>() -> BoxedStrategy<FixedText<N>> {
    vec(any::<u8>(), 0..N + 4).prop_map(|bytes| FixedText::new(&bytes)).boxed()
}

/// The number of a core or node, or none.
fn number() -> BoxedStrategy<Option<u16>> {
    any::<u16>().prop_map(|id| (id != 0xffff).then_some(id)).boxed()
}

fn fields() -> BoxedStrategy<Match> {
    let all: Vec<OxmField> = OxmField::every().collect();
    let oxm =
        (select(all), any::<u128>(), any::<Option<u128>>()).prop_map(|(field, value, mask)| {
            match mask {
                None => Oxm::exact(field, value),
                Some(mask) => Oxm::masked(field, value, mask),
            }
        });
    vec(oxm, 0..5).prop_map(Match).boxed()
}

fn place() -> BoxedStrategy<Place> {
    any::<(u16, u16)>()
        .prop_map(|(core, flags)| Place {
            core: CoreChoice::from_wire(core),
            flags: PlaceFlags::from_bits_retain(flags),
        })
        .boxed()
}

fn host() -> BoxedStrategy<HostInfo> {
    let core = (any::<u16>(), number(), number(), select(CoreRole::ALL), vec(any::<u16>(), 0..5))
        .prop_map(|(id, numa, sibling, role, vms)| HostCore { id, numa, sibling, role, vms });
    let interface = (any::<(u32, u16, u32)>(), select(XdpMode::ALL), text(), text()).prop_map(
        |((index, rx_queues, abilities), mode, name, driver)| HostInterface {
            index,
            mode,
            rx_queues,
            abilities: InterfaceAbilities::from_bits_retain(abilities),
            name,
            driver,
        },
    );
    (any::<(u8, u16, u32)>(), text(), vec(core, 0..5), vec(interface, 0..3))
        .prop_map(|((version, threshold, abilities), policy, cores, interfaces)| HostInfo {
            version,
            threshold,
            abilities: HostAbilities::from_bits_retain(abilities),
            policy,
            cores,
            interfaces,
        })
        .boxed()
}

fn vm() -> BoxedStrategy<Vm> {
    let address = any::<(u8, u8, [u8; 16])>().prop_map(|(kind, prefix, bytes)| VmAddress {
        kind,
        prefix,
        bytes,
    });
    let lists = (vec(any::<u16>(), 0..5), vec(address, 0..4), vec(any::<u8>(), 0..256));
    (any::<(u16, u32, u32)>(), select(VmSource::ALL), lists)
        .prop_map(|((id, tenant, port), source, (cores, addresses, name))| Vm {
            id,
            tenant,
            port: PortNo(port),
            source,
            cores,
            addresses,
            name,
        })
        .boxed()
}

fn place_mod() -> BoxedStrategy<PlaceMod> {
    (any::<(u16, u64, u64)>(), select(FlowModCommand::ALL), place(), text(), fields())
        .prop_map(|((priority, cookie, cookie_mask), command, place, interface, fields)| PlaceMod {
            command,
            priority,
            place,
            cookie,
            cookie_mask,
            interface,
            fields,
        })
        .boxed()
}

fn message() -> BoxedStrategy<Message> {
    let status = (select(VmReason::ALL), vm())
        .prop_map(|(reason, vm)| Message::VmStatus(VmStatus { reason, vm }));
    prop_oneof![
        Just(Message::HostInfoRequest),
        host().prop_map(Message::HostInfo),
        any::<u32>().prop_map(|bits| Message::Subscribe(Events::from_bits_retain(bits))),
        status,
        place_mod().prop_map(Message::PlaceMod),
    ]
    .boxed()
}

fn request() -> BoxedStrategy<Request> {
    let placements =
        (any::<(u8, u64, u64)>(), text()).prop_map(|((kinds, cookie, cookie_mask), interface)| {
            let kinds = PlacementKinds::from_bits_retain(kinds);
            Request::PlacementStats(PlacementRequest { kinds, cookie, cookie_mask, interface })
        });
    prop_oneof![
        any::<u16>().prop_map(Request::VmInfo),
        number().prop_map(Request::CoreStats),
        placements,
    ]
    .boxed()
}

fn core() -> BoxedStrategy<CoreStats> {
    any::<(u16, [u16; STAGES], u16, u32, u64, [u64; STAGES])>()
        .prop_map(|n| CoreStats {
            core: n.0,
            load: n.1,
            other: n.2,
            units: n.3,
            frames: n.4,
            busy_ns: n.5,
        })
        .boxed()
}

fn placement() -> BoxedStrategy<PlacementStats> {
    let what = (select(PlacementKind::ALL), select(Reason::ALL), number(), number(), place());
    let numbers = any::<(u16, u16, u32, u32, u64, u64, u64, u64)>();
    (what, numbers, text(), fields())
        .prop_map(|((kind, reason, core, wanted, place), n, interface, fields)| PlacementStats {
            kind,
            reason,
            core,
            wanted,
            place,
            priority: n.0,
            vm: n.1,
            unit: n.2,
            moves: n.3,
            cookie: n.4,
            packets: n.5,
            bytes: n.6,
            age_ns: n.7,
            interface,
            fields,
        })
        .boxed()
}

fn reply() -> BoxedStrategy<Reply> {
    prop_oneof![
        vec(vm(), 0..4).prop_map(Reply::VmInfo),
        vec(core(), 0..4).prop_map(Reply::CoreStats),
        vec(placement(), 0..4).prop_map(Reply::PlacementStats),
    ]
    .boxed()
}

proptest! {
    #[test]
    fn every_message_comes_back_in_both_versions(message in message(), xid in any::<u32>()) {
        for &version in Version::ALL {
            let whole = openflow::Message::Experimenter(message.encode());
            let bytes = whole.encode(version, xid).unwrap();
            let (_, read) = openflow::Message::decode(&bytes).unwrap();
            let openflow::Message::Experimenter(read) = read else { panic!("{read:?}") };
            prop_assert_eq!(Message::decode(&read), Ok(message.clone()));
        }
    }

    #[test]
    fn every_request_comes_back(request in request()) {
        prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
    }

    #[test]
    fn every_reply_comes_back(reply in reply()) {
        let [body] = reply.encode().unwrap().try_into().unwrap();
        prop_assert_eq!(Reply::decode(&body), Ok(reply));
    }

    #[test]
    fn what_a_later_version_appends_is_skipped(message in message(), more in vec(any::<u8>(), 0..9)) {
        let mut longer = message.encode();
        longer.body.extend(more);
        prop_assert_eq!(Message::decode(&longer), Ok(message));
    }

    #[test]
    fn no_prefix_of_a_message_is_one(message in message(), cut in any::<prop::sample::Index>()) {
        let mut shorter = message.encode();
        prop_assume!(!shorter.body.is_empty());
        shorter.body.truncate(cut.index(shorter.body.len()));
        prop_assert!(Message::decode(&shorter).is_err());
    }

    #[test]
    fn any_bytes_are_refused_or_come_back(
        exp_type in prop_oneof![0u32..6, 16u32..20],
        body in vec(any::<u8>(), 0..300),
    ) {
        let given = Experimenter { experimenter: SUIRO, exp_type, body };
        if let Ok(message) = Message::decode(&given) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        if let Ok(request) = Request::decode(&given) {
            prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
        if let Ok(reply) = Reply::decode(&given) {
            let [body] = reply.encode().unwrap().try_into().unwrap();
            prop_assert_eq!(Reply::decode(&body), Ok(reply));
        }
    }

    #[test]
    fn actions_come_back_in_both_versions(place in place(), value in any::<u8>(), mask in any::<u8>()) {
        let fcf = Action::SetField(Oxm::masked(OxmField::Fcf, value.into(), mask.into()));
        for &version in Version::ALL {
            let actions = vec![Action::Place(place), fcf.clone(), Action::output(PortNo(1))];
            let instructions = vec![Instruction::ApplyActions(actions)];
            let flow = FlowMod { instructions, version, ..FlowMod::default() };
            let bytes = openflow::Message::FlowMod(flow.clone()).encode(version, 1).unwrap();
            let (_, read) = openflow::Message::decode(&bytes).unwrap();
            prop_assert_eq!(read, openflow::Message::FlowMod(flow));
        }
    }
}

#[test]
fn a_long_reply_is_cut_between_elements() {
    let vms: Vec<Vm> = (0..3000)
        .map(|id| Vm {
            id,
            tenant: 1,
            port: PortNo::ANY,
            source: VmSource::Found,
            cores: vec![1, 2],
            addresses: vec![],
            name: vec![b'x'; 200],
        })
        .collect();
    let bodies = Reply::VmInfo(vms.clone()).encode().unwrap();
    assert!(bodies.len() > 10);
    let mut found = Vec::new();
    for body in bodies {
        for &version in Version::ALL {
            let reply = MultipartReply::Experimenter(body.clone());
            assert_eq!(encode_reply(version, 1, &reply, false).unwrap().len(), 1);
        }
        let Reply::VmInfo(part) = Reply::decode(&body).unwrap() else { panic!() };
        found.extend(part);
    }
    assert_eq!(found, vms);
    let nothing = Reply::CoreStats(vec![]).encode().unwrap();
    assert_eq!(nothing.len(), 1, "no element is still an answer");
}

#[test]
fn what_is_not_understood_is_refused_with_its_code() {
    let decode = |experimenter, exp_type, body: &[u8]| {
        let message = Experimenter { experimenter, exp_type, body: body.to_vec() };
        Message::decode(&message).map_err(|fault| fault.code)
    };
    assert_eq!(decode(1, 0, &[]), Err(ErrorCode::BadRequestBadExperimenter));
    assert_eq!(decode(SUIRO, 99, &[]), Err(ErrorCode::BadRequestBadExpType));
    assert_eq!(decode(SUIRO, 2, &[0; 7]), Err(ErrorCode::BadRequestBadLen));
    let mut bad = Message::PlaceMod(PlaceMod {
        command: FlowModCommand::Add,
        priority: 1,
        place: Place::on(CoreChoice::Hash),
        cookie: 0,
        cookie_mask: 0,
        interface: FixedText::default(),
        fields: Match::default(),
    })
    .encode();
    bad.body[0] = 9;
    let code = Message::decode(&bad).unwrap_err().code;
    assert_eq!(code, ErrorCode::FlowModFailedBadCommand);
    let unknown = Experimenter { experimenter: SUIRO, exp_type: 0, body: vec![] };
    assert_eq!(Request::decode(&unknown).unwrap_err().code, ErrorCode::BadRequestBadExpType);
}

#[test]
fn an_entry_is_judged_by_what_steering_can_look_at() {
    let code = |fields: Match, core, flags| {
        let change = PlaceMod {
            command: FlowModCommand::Add,
            priority: 1,
            place: Place { core, flags },
            cookie: 0,
            cookie_mask: 0,
            interface: FixedText::default(),
            fields,
        };
        change.check().err().map(|fault| fault.code)
    };
    let auto = |fields| code(fields, CoreChoice::Auto, PlaceFlags::PRIORITY | PlaceFlags::OWN);
    let ip = Match::default().with(OxmField::EthType, 0x0800);
    assert_eq!(auto(ip.clone().with(OxmField::VmId, 3).with_masked(OxmField::Fcf, 2, 0xfe)), None);
    assert_eq!(auto(Match::default().with_masked(OxmField::IpFrag, 1, 1)), None);
    assert_eq!(auto(Match::default().with(OxmField::InPort, 1)), Some(ErrorCode::BadMatchBadField));
    assert_eq!(auto(Match::default().with(OxmField::VmId, 0)), Some(ErrorCode::BadMatchBadValue));
    assert_eq!(auto(Match::default().with(OxmField::Fcf, 1)), Some(ErrorCode::BadMatchBadPrereq));
    let bad = Some(ErrorCode::BadActionBadArgument);
    assert_eq!(code(ip.clone(), CoreChoice::Core(1), PlaceFlags::OWN), bad);
    assert_eq!(code(ip.clone(), CoreChoice::Core(0xff00), PlaceFlags::empty()), bad);
    assert_eq!(code(ip, CoreChoice::Auto, PlaceFlags::from_bits_retain(4)), bad);
}

#[test]
fn the_tables_of_a_switch_refuse_what_is_for_steering() {
    let code = |fields: Match, actions| {
        let instructions = vec![Instruction::ApplyActions(actions)];
        let flow = FlowMod { fields, instructions, ..FlowMod::default() };
        flow.check().err().map(|fault| fault.code)
    };
    let ip = Match::default().with(OxmField::EthType, 0x86dd);
    let place = Action::Place(Place::on(CoreChoice::Auto));
    assert_eq!(code(ip.clone(), vec![place]), Some(ErrorCode::BadActionBadExpType));
    let set = Action::SetField(Oxm::exact(OxmField::Fcf, 3));
    assert_eq!(code(ip.clone(), vec![set.clone()]), None);
    assert_eq!(code(Match::default(), vec![set]), Some(ErrorCode::BadActionMatchInconsistent));
    assert_eq!(code(ip.clone().with(OxmField::VmId, 1), vec![]), Some(ErrorCode::BadMatchBadField));
    let masked = ip.with_masked(OxmField::TunIpv4Src, 0, 1);
    assert_eq!(code(masked, vec![]), Some(ErrorCode::BadMatchBadNwAddrMask));
}
