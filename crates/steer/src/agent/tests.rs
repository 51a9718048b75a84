mod double;
mod large;

use super::*;
use crate::desired::Change;
use crate::error::SteerErrorKind;
use crate::selector::bits;
use api::steer::{InterfaceSpec, VmSpec};
use double::{World, four_cores};
use place::steering::Field;
use place::steering::Target;
use place::steering::{Entry, Event, UnitStatus};
use place::{CoreId, Facts, Reason, Role, UnitId, VmId};
use std::sync::{Arc, Mutex};

const MS: u64 = 1_000_000;

fn steering(interfaces: &[&str]) -> (Agent, World) {
    let world = World::with(interfaces);
    let mut agent = Agent::new(world.opener(), four_cores());
    for interface in interfaces {
        agent.attach(interface, InterfaceSpec::default()).unwrap();
    }
    (agent, world)
}

fn add(agent: &mut Agent, rules: &[&str]) {
    let texts: Vec<String> = rules.iter().map(|&rule| rule.into()).collect();
    agent.add_rules(None, &texts).unwrap();
}

fn vm(id: u16, addresses: &[&str]) -> VmSpec {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    VmSpec { id, addresses, ..VmSpec::default() }
}

#[test]
fn a_rule_is_in_force_on_every_interface_and_on_those_that_come() {
    let (mut agent, world) = steering(&["eth0", "eth1"]);
    add(&mut agent, &["ip,nw_dst=10.0.0.1,actions=place(core=2)"]);
    agent.detach("eth1").unwrap();
    agent.attach("eth1", InterfaceSpec::default()).unwrap();
    for interface in ["eth0", "eth1"] {
        let entries = world.entries(interface);
        assert_eq!(entries.len(), 1, "{interface}");
        assert_eq!(entries[0].target, Target::Core(CoreId(2)));
    }
    let everything = agent.del_rules(None, &["".into()], Strictness::Loose).unwrap_err();
    assert!(everything.to_string().contains("selects every rule"), "{everything}");
    assert_eq!(agent.del_rules(None, &["ip".into()], Strictness::Loose).unwrap(), 1);
    assert_eq!((world.entries("eth0").len(), world.entries("eth1").len()), (0, 0));
}

#[test]
fn a_typing_error_in_one_rule_changes_nothing() {
    let (mut agent, world) = steering(&["eth0"]);
    let texts = ["ip,actions=place(core=1)".into(), "ip,nw_dst=x,actions=place(core=1)".into()];
    let error = agent.add_rules(None, &texts).unwrap_err();
    assert_eq!(error.kind(), SteerErrorKind::Invalid);
    assert!(error.cause().contains("column 11"), "{}", error.cause());
    assert_eq!(world.entries("eth0").len(), 0);
}

#[test]
fn a_rule_that_one_interface_refuses_is_on_no_interface() {
    let (mut agent, world) = steering(&["eth0", "eth1"]);
    world.refuse_entries("eth1");
    let refused = agent.add_rules(None, &["ip,actions=place(core=1)".into()]).unwrap_err();
    assert_eq!(refused.thing(), "interface eth1");
    assert_eq!(world.entries("eth0").len(), 0);
    assert_eq!(agent.rules().count(), 0);
}

#[test]
fn a_machine_is_its_addresses_once_they_are_declared() {
    let (mut agent, world) = steering(&["eth0"]);
    add(&mut agent, &["vm_id=5,actions=place(core=auto,own)"]);
    let fcf = world.entries("eth0")[0].key.selector;
    assert_eq!((fcf.key.get(Field::OuterTos), fcf.mask.get(Field::OuterTos)), (10, 0xfe));
    agent.put_vm("vm5", vm(5, &["10.0.0.5", "fd00::5"])).unwrap();
    let mut found: Vec<_> =
        world.entries("eth0").iter().map(|e| e.key.selector.key.get(Field::NwDst)).collect();
    let mut wanted = ["10.0.0.5", "fd00::5"].map(|text| bits(text.parse().unwrap()));
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert!(world.entries("eth0").iter().all(|entry| entry.vm == VmId::new(5)));
    agent.del_vm("vm5").unwrap();
    assert_eq!(world.entries("eth0")[0].key.selector, fcf);
}

#[test]
fn frames_for_a_declared_address_belong_to_its_machine_without_saying_so() {
    let (mut agent, world) = steering(&["eth0"]);
    add(&mut agent, &["ip,nw_dst=10.0.0.5,actions=place(core=auto)"]);
    assert_eq!(world.entries("eth0")[0].vm, None);
    agent.put_vm("vm5", vm(5, &["10.0.0.5"])).unwrap();
    assert_eq!(world.entries("eth0")[0].vm, VmId::new(5));
}

#[test]
fn a_machine_that_contradicts_another_or_the_host_is_refused_with_a_remedy() {
    let (mut agent, _world) = steering(&["eth0"]);
    agent.put_vm("vm1", vm(1, &[])).unwrap();
    let with_core = VmSpec { cores: vec![9], ..vm(3, &[]) };
    for (name, spec, part) in [
        ("vm2", vm(1, &[]), "id 1 is vm1's"),
        ("vm2", vm(0, &[]), "0"),
        ("vm2", vm(200, &[]), "no room for id 200"),
        ("a b", vm(2, &[]), "no name"),
        ("vm2", with_core, "no core 9"),
    ] {
        let error = agent.put_vm(name, spec).unwrap_err();
        assert!(error.cause().contains(part) && !error.remedy().is_empty(), "{}", error.cause());
    }
    let rule = ["vm_id=300,actions=place(core=auto)".into()];
    assert!(agent.add_rules(None, &rule).unwrap_err().remedy().contains("--address"));
}

#[test]
fn pins_of_an_earlier_node_are_taken_up_and_its_entries_touched_only_where_they_differ() {
    let (mut first, world) = steering(&["eth0"]);
    add(&mut first, &["udp,actions=place(core=1)", "tcp,actions=place(core=2)"]);
    let desired = Desired {
        interfaces: [("eth0".into(), InterfaceSpec::default())].into(),
        rules: vec![
            (None, crate::parse_rule("udp,actions=place(core=1)").unwrap()),
            (None, crate::parse_rule("tcp,actions=place(core=3)").unwrap()),
        ],
        ..Desired::default()
    };
    drop(first);
    let changes = world.changes("eth0");
    let mut second = Agent::new(world.opener(), four_cores());
    second.restore(desired, Discard);
    assert!(second.view().unwrap().interfaces[0].adopted);
    assert_eq!(world.changes("eth0"), changes + 1, "only the rule that changed");
    assert_eq!(world.attachments("eth0"), 1);
}

#[test]
fn an_interface_that_is_made_anew_is_steered_again_with_its_rules() {
    let (mut agent, world) = steering(&["eth0"]);
    add(&mut agent, &["udp,actions=place(core=1)"]);
    world.remove("eth0");
    agent.tick(3000 * MS);
    let view = agent.view().unwrap();
    assert!(view.interfaces[0].fault.as_ref().unwrap().cause.contains("no interface"));
    world.add("eth0");
    agent.tick(3500 * MS);
    assert_eq!(world.entries("eth0").len(), 0, "not before two seconds have passed");
    agent.tick(5500 * MS);
    assert_eq!(world.entries("eth0").len(), 1);
    assert_eq!(agent.view().unwrap().interfaces[0].fault, None);
}

#[test]
fn an_interface_that_cannot_be_steered_is_not_wanted_and_one_without_steering_not_found() {
    let (mut agent, _world) = steering(&["eth0"]);
    let kind = |error: SteerError| error.kind();
    let missing = agent.attach("eth9", InterfaceSpec::default()).map_err(kind);
    assert_eq!(missing.unwrap_err(), SteerErrorKind::NotFound);
    assert_eq!(agent.interface_names(), ["eth0"]);
    assert_eq!(agent.detach("eth9").map_err(kind), Err(SteerErrorKind::NotFound));
    let other = InterfaceSpec { groups: 512, ..InterfaceSpec::default() };
    assert_eq!(agent.attach("eth0", other).map_err(kind).unwrap_err(), SteerErrorKind::Conflict);
    let odd = InterfaceSpec { groups: 300, ..InterfaceSpec::default() };
    assert_eq!(agent.attach("eth0", odd).map_err(kind).unwrap_err(), SteerErrorKind::Invalid);
    assert!(agent.attach("eth0", InterfaceSpec::default()).is_ok(), "twice the same is once");
}

#[test]
fn the_core_table_has_what_the_operator_allows_what_is_pinned_and_what_is_measured() {
    let (mut agent, world) = steering(&["eth0"]);
    let patch = PolicyPatch {
        cores: Some(vec![1, 2]),
        reserved: Some(vec![3]),
        threshold_percent: Some(40),
        ..PolicyPatch::default()
    };
    agent.set_policy(&patch).unwrap();
    agent.put_vm("vm1", VmSpec { cores: vec![1], ..vm(1, &[]) }).unwrap();
    for tick in 0..20 {
        world.set_times(2, tick * MS, tick * 2 * MS);
        agent.tick(tick * 2 * MS);
    }
    let table = world.table("eth0").unwrap();
    let roles: Vec<Role> = table.cores().iter().map(|core| core.role).collect();
    assert_eq!(roles, [Role::Excluded, Role::Allowed, Role::Allowed, Role::Reserved]);
    assert!(table.core(CoreId(1)).unwrap().pinned.contains(VmId::new(1).unwrap()));
    let load = table.core(CoreId(2)).unwrap().load.total();
    assert!((450..=500).contains(&load.as_per_mille()), "{load}");
    assert_eq!(table.threshold, place::Load::percent(40));
    let unknown = PolicyPatch { cores: Some(vec![7]), ..PolicyPatch::default() };
    assert!(agent.set_policy(&unknown).unwrap_err().cause().contains("no core 7"));
}

#[test]
fn a_unit_that_came_counts_in_the_table_until_loads_show_it() {
    let (mut agent, world) = steering(&["eth0", "eth1"]);
    agent.tick(100 * MS);
    world.come("eth0", 2);
    let mut placed = |ms| {
        agent.tick(ms * MS);
        world.table("eth1").unwrap().core(CoreId(2)).unwrap().placed
    };
    assert_eq!([102, 104, 125, 126].map(&mut placed), [1, 1, 1, 0]);
}

/// A unit that carried frames of 100 bytes, and stays where it is.
fn carried(unit: u32, core: u16, frames: u64) -> UnitStatus {
    UnitStatus {
        unit: UnitId(unit),
        core: Some(CoreId(core)),
        wanted: None,
        reason: Some(Reason::LeastLoaded),
        decided_at_ns: 0,
        frames,
        bytes: frames * 100,
        moves: 0,
        vm: None,
        is_priority: false,
        is_fixed: false,
    }
}

#[test]
fn an_overloaded_core_sheds_a_unit_within_ten_milliseconds_and_says_why() {
    let (mut agent, world) = steering(&["eth0"]);
    let start = 1000;
    let mut overload_at = None;
    for tick in 0..40 {
        let now = (start + tick * 2) * MS;
        let busy = if tick < 20 { tick * MS / 10 } else { 2 * MS + (tick - 20) * 2 * MS };
        world.set_times(1, busy, tick * 2 * MS);
        world.set_units(
            "eth0",
            vec![carried(0, 1, tick * 1000), carried(1, 1, tick * 500), carried(2, 1, tick * 400)],
        );
        world.set_frames("eth0", tick * 2000);
        agent.tick(now);
        if tick >= 20 && overload_at.is_none() && !world.moves("eth0").is_empty() {
            overload_at = Some((tick - 20) * 2);
        }
    }
    assert!(overload_at.is_some_and(|ms| ms <= 10), "{overload_at:?}");
    let moves = world.moves("eth0");
    assert!(moves.iter().all(|(_, to)| *to != CoreId(1)), "{moves:?}");
    let moved = moves[0].0;
    let about: Vec<_> = agent.interfaces["eth0"].decisions.about(moved).collect();
    assert_eq!(about[0].event.from, Some(CoreId(1)));
}

#[test]
fn a_unit_on_its_way_out_is_urged_once_when_its_core_becomes_full() {
    let (mut agent, world) = steering(&["eth0"]);
    let mut urged_at = None;
    for tick in 0..40 {
        let busy = if tick < 20 { tick * MS / 2 } else { 10 * MS + (tick - 20) * 2 * MS };
        world.set_times(1, busy, tick * 2 * MS);
        let leaving = UnitStatus { wanted: Some(CoreId(2)), ..carried(0, 1, tick * 10) };
        world.set_units("eth0", vec![leaving]);
        world.set_frames("eth0", tick * 10);
        agent.tick((1000 + tick * 2) * MS);
        if urged_at.is_none() && !world.urged("eth0").is_empty() {
            urged_at = Some(tick - 20);
        }
    }
    assert!(urged_at.is_some_and(|tick| tick <= 3), "{urged_at:?}");
    assert_eq!(world.urged("eth0"), [(UnitId(0), CoreId(2))]);
}

#[test]
fn half_of_what_frames_cost_is_by_their_number_and_half_by_their_length() {
    let (mut agent, world) = steering(&["eth0"]);
    for tick in 0..40 {
        world.set_times(1, tick * 2 * MS, tick * 2 * MS);
        // As many of 60 bytes as of 1500, 1500 being too much for any other core to be the better for.
        let short = UnitStatus { bytes: tick * 6000, ..carried(0, 1, tick * 100) };
        let long = UnitStatus { bytes: tick * 150_000, ..carried(1, 1, tick * 100) };
        world.set_units("eth0", vec![short, long]);
        world.set_frames("eth0", tick * 200);
        agent.tick((1000 + tick * 2) * MS);
    }
    let loads: Vec<_> = [0, 1]
        .map(|unit| agent.mover.load_of("eth0", UnitId(unit)).unwrap().as_per_mille())
        .to_vec();
    assert!((255..=285).contains(&loads[0]) && (715..=745).contains(&loads[1]), "{loads:?}");
}

#[test]
fn why_names_rule_core_reason_and_what_was_thought_of_every_core() {
    let (mut agent, world) = steering(&["eth0"]);
    add(
        &mut agent,
        &["priority=5,ip,actions=place(core=hash)", "udp,nw_dst=10.0.0.2,actions=place(core=auto)"],
    );
    let unit = world.unit_of("eth0", |entry: &Entry| entry.target == Target::Auto);
    let facts =
        Facts { hash: 7, vm: None, is_priority: false, wants_own_core: false, rx_core: CoreId(0) };
    let event = Event {
        at_ns: 5 * MS,
        unit,
        from: None,
        core: CoreId(1),
        reason: Reason::LeastLoaded,
        facts: Some(facts),
    };
    world.happen("eth0", event);
    agent.tick(105 * MS);
    let why = agent.why("udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=9,tp_dst=53", None).unwrap();
    assert_eq!(why.rule.as_deref(), Some("udp,nw_dst=10.0.0.2,actions=place(core=auto)"));
    let decision = why.decision.unwrap();
    assert_eq!((decision.core, decision.age_ms, decision.candidates.len()), (1, Some(100), 4));
    assert!(decision.candidates[1].verdict.starts_with("chosen"), "{decision:?}");
    let other = agent.why("tcp,nw_dst=10.0.0.2", None).unwrap();
    assert_eq!(other.rule.as_deref(), Some("priority=5,ip,actions=place(core=hash)"));
    let depends = |agent: &mut Agent, flow| agent.why(flow, None).unwrap_err().to_string();
    assert_eq!(depends(&mut agent, "udp"), "its core depends on nw_dst, which is not said");
    assert_eq!(depends(&mut agent, ""), "its core depends on dl_type, which is not said");
    let elsewhere = agent.why("udp,nw_dst=10.0.0.3", None).unwrap();
    assert_eq!(elsewhere.rule, other.rule);
    assert_eq!(depends(&mut agent, "ipv6"), "its core depends on nw_proto, which is not said");
    let whole = "udp6,ipv6_src=fd00::1,ipv6_dst=fd00::2,tp_src=9,tp_dst=53";
    let none = agent.why(whole, None).unwrap();
    assert_eq!(none.rule, None);
    assert!(agent.why("ipv6", Some("eth7")).is_err());
}

#[test]
fn while_nothing_flows_the_agent_wants_to_be_called_rarely() {
    let (mut agent, world) = steering(&["eth0"]);
    assert_eq!(agent.tick(MS), IDLE);
    world.set_frames("eth0", 1);
    assert_eq!(agent.tick(2 * MS), BUSY);
    assert_eq!(agent.tick(51 * MS), BUSY, "a short pause is none");
    assert_eq!(agent.tick(52 * MS), IDLE);
    agent.detach("eth0").unwrap();
    assert_eq!(agent.tick(53 * MS), UNUSED);
}

#[test]
fn what_took_effect_is_noted_and_what_was_refused_is_not() {
    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);
    impl Journal for Notes {
        fn note(&mut self, change: Change<'_>) {
            let text = match change {
                Change::Policy(policy) => format!("policy {}", policy.policy.name()),
                Change::Interface(name, spec) => format!("{name} {}", spec.is_some()),
                Change::Vm(name, spec) => format!("{name} {}", spec.is_some()),
                Change::Rule { rule, wanted, .. } => format!("{rule} {wanted}"),
            };
            self.0.lock().unwrap().push(text);
        }
    }
    let world = World::with(&["eth0"]);
    let notes = Notes::default();
    let mut agent = Agent::new(world.opener(), four_cores());
    agent.restore(Desired::default(), notes.clone());
    agent.attach("eth0", InterfaceSpec::default()).unwrap();
    let _ = agent.attach("eth5", InterfaceSpec::default());
    add(&mut agent, &["ip,actions=place(core=1)"]);
    agent.put_vm("a", vm(1, &[])).unwrap();
    let _ = agent.put_vm("b", vm(1, &[]));
    agent.del_all_rules(None).unwrap();
    agent
        .set_policy(&PolicyPatch { policy: Some(PolicyKind::Hash), ..PolicyPatch::default() })
        .unwrap();
    agent.detach("eth0").unwrap();
    let expected = [
        "eth0 true",
        "ip,actions=place(core=1) true",
        "a true",
        "ip,actions=place(core=1) false",
        "policy hash",
        "eth0 false",
    ];
    assert_eq!(*notes.0.lock().unwrap(), expected);
}
