//! Controllers' entries at the agent of crate `steer`, whose interfaces are doubles.

use super::change::{Problem, Wanted};
use super::{change, report};
use api::steer::{InterfaceSpec, PolicyPatch, VmSpec};
use openflow::steering::{
    CoreChoice, HostAbilities, Place, PlaceFlags, PlaceMod, PlacementKind, PlacementKinds,
    PlacementRequest, Reason, SteerError as Told, VmSource, XdpMode,
};
use openflow::{FixedText, FlowModCommand, Match, OxmField};
use place::steering::{
    CoreTimes, EnforceError, Enforcer, Entry, EntryStatus, Event, FlowKey, OpenError, Opener,
    Options, PolicyKind, Step, UnitStatus, Urgency,
};
use place::{Core, CoreId, CoreTable, UnitId, VmId};
use std::collections::BTreeMap;
use steer::{Agent, SeenVm, Surroundings};

/// An interface that takes everything; of each entry a frame came, and of group 7.
#[derive(Default)]
struct Taker(Vec<Entry>);

impl Taker {
    fn unit(unit: u32, vm: Option<VmId>) -> UnitStatus {
        UnitStatus {
            unit: UnitId(unit),
            core: Some(CoreId(1)),
            wanted: None,
            reason: Some(place::Reason::LeastLoaded),
            decided_at_ns: 1_000_000_000,
            frames: 10,
            bytes: 1000,
            moves: 2,
            vm,
            is_priority: false,
            is_fixed: false,
        }
    }
}

impl Enforcer for Taker {
    fn hook(&self) -> &'static str {
        "native"
    }

    fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, EnforceError> {
        Ok(BTreeMap::new())
    }

    fn set_core_table(&mut self, _: &CoreTable, _: PolicyKind) -> Result<(), EnforceError> {
        Ok(())
    }

    fn change(&mut self, steps: &[Step]) -> Result<(), EnforceError> {
        for step in steps {
            let key = match step {
                Step::Put(entry) => entry.key,
                Step::Remove(key) => *key,
            };
            self.0.retain(|entry| entry.key != key);
            self.0.extend(match step {
                Step::Put(entry) => Some(*entry),
                Step::Remove(_) => None,
            });
        }
        Ok(())
    }

    fn entries(&mut self) -> Result<Vec<EntryStatus>, EnforceError> {
        let status = |(at, entry): (usize, &Entry)| EntryStatus {
            entry: *entry,
            unit: UnitId(1000 + at as u32),
            frames: 10,
            bytes: 640,
        };
        Ok(self.0.iter().enumerate().map(status).collect())
    }

    fn units(&mut self) -> Result<Vec<UnitStatus>, EnforceError> {
        let of_entries = self.0.iter().enumerate();
        let units = of_entries.map(|(at, entry)| Self::unit(1000 + at as u32, entry.vm));
        Ok(std::iter::once(Self::unit(7, None)).chain(units).collect())
    }

    fn want(
        &mut self,
        _: UnitId,
        _: CoreId,
        _: place::Reason,
        _: Urgency,
    ) -> Result<(), EnforceError> {
        Ok(())
    }

    fn times(&mut self) -> Result<Vec<(CoreId, CoreTimes)>, EnforceError> {
        Ok(Vec::new())
    }

    fn events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, EnforceError> {
        Ok(Vec::new())
    }

    fn core_counts(&mut self) -> Result<Vec<(CoreId, u64)>, EnforceError> {
        Ok(vec![(CoreId(1), 500)])
    }

    fn missed_unit(&self, _: &FlowKey) -> Option<UnitId> {
        None
    }

    fn is_alive(&self) -> bool {
        true
    }

    fn set_threads(&mut self, _: &[(u32, place::Stage)]) -> Result<(), EnforceError> {
        Ok(())
    }

    fn detach(self: Box<Self>) -> Result<(), EnforceError> {
        Ok(())
    }
}

/// Every interface is one.
struct Takers;

impl Opener for Takers {
    fn adopt(&self, _: &str) -> Result<Option<Box<dyn Enforcer>>, OpenError> {
        Ok(None)
    }

    fn attach(&self, _: &str, _: &Options, _: &CoreTable) -> Result<Box<dyn Enforcer>, OpenError> {
        Ok(Box::<Taker>::default())
    }
}

/// An agent of two cores, with `eth0` attached, a declared machine and one that was found.
fn agent() -> Agent {
    let cores = vec![Core::new(CoreId(0)), Core::new(CoreId(1))];
    let seen = SeenVm {
        name: "found".into(),
        cores: vec![CoreId(1)],
        source: "qemu",
        ..SeenVm::default()
    };
    let mut agent = Agent::new(Takers, Surroundings { cores, vms: vec![seen] });
    agent.attach("eth0", InterfaceSpec::default()).unwrap();
    let addresses = vec!["10.0.0.3".parse().unwrap()];
    agent.put_vm("vm3", VmSpec { id: 3, tenant: 7, cores: vec![0], addresses }).unwrap();
    agent
}

fn add(priority: u16, fields: Match, place: Place) -> PlaceMod {
    PlaceMod {
        command: FlowModCommand::Add,
        priority,
        place,
        cookie: u64::from(priority),
        cookie_mask: 0,
        interface: FixedText::default(),
        fields,
    }
}

fn carry_out(agent: &mut Agent, change: &PlaceMod) -> Result<(), Problem> {
    change.check().unwrap();
    Wanted::of(change).unwrap().carry_out(agent)
}

fn rules(agent: &Agent) -> Vec<String> {
    agent
        .rules()
        .map(|(on, rule)| format!("{}{rule}", on.map_or(String::new(), |on| format!("{on}: "))))
        .collect()
}

fn to(address: u128) -> Match {
    Match::default().with(OxmField::EthType, 0x0800).with(OxmField::Ipv4Dst, address)
}

const AUTO: Place = Place::on(CoreChoice::Auto);

#[test]
fn every_field_of_the_extension_becomes_a_rule_and_comes_back() {
    let mut agent = agent();
    let fields = Match::default()
        .with(OxmField::EthType, 0x0800)
        .with(OxmField::IpProto, 17)
        .with_masked(OxmField::Ipv4Src, 0x0a00_0000, 0xff00_0000)
        .with(OxmField::UdpDst, 53)
        .with(OxmField::TunnelId, 42)
        .with_masked(OxmField::Fcf, 1, 1)
        .with(OxmField::VmId, 3)
        .with_masked(OxmField::IpFrag, 0, 2)
        .with_masked(OxmField::TunIpv4Src, 0xc000_0200, 0xffff_ff00)
        .with(OxmField::TunIpv4Dst, 0xc000_0201);
    let place = Place { core: CoreChoice::Auto, flags: PlaceFlags::PRIORITY | PlaceFlags::OWN };
    carry_out(&mut agent, &add(9, fields.clone(), place)).ok().unwrap();
    let (_, rule) = agent.rules().next().unwrap();
    assert_eq!(change::fields_of(rule), fields);
    assert_eq!(change::place_of(&rule.placing), place);
    assert_eq!((rule.priority, rule.cookie), (9, 9));
    assert_eq!(steer::parse_rule(&rule.to_string()).unwrap(), *rule, "{rule}");
    let v6 = Match::default().with(OxmField::TunIpv6Src, 1).with_masked(OxmField::TunIpv6Dst, 0, 1);
    carry_out(&mut agent, &add(8, v6.clone(), Place::on(CoreChoice::Hash))).ok().unwrap();
    let found = agent.rules().find(|(_, rule)| rule.priority == 8).unwrap().1;
    assert_eq!(change::fields_of(found), v6);
}

#[test]
fn commands_mean_what_they_mean_in_a_flow_mod() {
    let mut agent = agent();
    for (priority, address) in [(1, 0x0a00_0001), (2, 0x0a00_0001), (3, 0x0a00_0002)] {
        carry_out(&mut agent, &add(priority, to(address), AUTO)).ok().unwrap();
    }
    let all = |agent: &Agent| rules(agent).join("\n");
    let modify = PlaceMod {
        command: FlowModCommand::Modify,
        ..add(9, to(0x0a00_0001), Place::on(CoreChoice::Core(1)))
    };
    carry_out(&mut agent, &modify).ok().unwrap();
    assert_eq!(all(&agent).matches("place(core=1)").count(), 2, "{}", all(&agent));
    assert!(
        all(&agent).contains("cookie=0x1,"),
        "a modification leaves the cookie: {}",
        all(&agent)
    );
    let strict = PlaceMod {
        command: FlowModCommand::ModifyStrict,
        ..add(2, to(0x0a00_0001), Place::on(CoreChoice::Hash))
    };
    carry_out(&mut agent, &strict).ok().unwrap();
    assert_eq!(all(&agent).matches("place(core=hash)").count(), 1, "{}", all(&agent));
    let by_cookie = PlaceMod {
        command: FlowModCommand::Delete,
        cookie: 3,
        cookie_mask: u64::MAX,
        ..add(0, Match::default(), AUTO)
    };
    carry_out(&mut agent, &by_cookie).ok().unwrap();
    assert_eq!(rules(&agent).len(), 2, "{}", all(&agent));
    let one = PlaceMod { command: FlowModCommand::DeleteStrict, ..add(1, to(0x0a00_0001), AUTO) };
    carry_out(&mut agent, &one).ok().unwrap();
    assert!(rules(&agent).len() == 1 && all(&agent).contains("priority=2"), "{}", all(&agent));
    carry_out(
        &mut agent,
        &PlaceMod { command: FlowModCommand::Delete, ..add(0, Match::default(), AUTO) },
    )
    .ok()
    .unwrap();
    assert!(rules(&agent).is_empty());
}

#[test]
fn what_the_host_does_not_have_is_refused() {
    let mut agent = agent();
    let excluded = PolicyPatch { cores: Some(vec![0]), ..PolicyPatch::default() };
    agent.set_policy(&excluded).unwrap();
    for core in [1, 7] {
        let change = add(1, Match::default(), Place::on(CoreChoice::Core(core)));
        assert!(matches!(carry_out(&mut agent, &change), Err(Problem::NoCore)), "core {core}");
    }
    let elsewhere =
        PlaceMod { interface: FixedText::from("eth9"), ..add(1, Match::default(), AUTO) };
    assert!(matches!(carry_out(&mut agent, &elsewhere), Err(Problem::Steer(_))));
    let unknown = add(1, Match::default().with(OxmField::VmId, 500), AUTO);
    assert!(
        matches!(carry_out(&mut agent, &unknown), Err(Problem::Steer(_))),
        "nothing tells its frames"
    );
    let both = Match::default().with(OxmField::TunIpv4Src, 1).with(OxmField::TunIpv6Src, 1);
    let refused = Wanted::of(&add(1, both, AUTO)).err().unwrap();
    assert_eq!(refused.kind, Told::Unsupported.kind());
    assert!(rules(&agent).is_empty());
}

#[test]
fn reports_tell_the_host_its_machines_and_what_is_placed_where() {
    let mut agent = agent();
    agent.tick(5_000_000_000);
    let host = report::host(&agent.host_report(), &BTreeMap::new());
    assert_eq!((host.threshold, host.policy.to_string().as_str()), (500, "vse"));
    assert!(host.abilities.contains(HostAbilities::MEASURES | HostAbilities::MOVES));
    assert_eq!(
        host.cores.iter().map(|core| core.vms.clone()).collect::<Vec<_>>(),
        [vec![3], vec![]]
    );
    assert_eq!(
        (host.interfaces[0].mode, host.interfaces[0].name.to_string().as_str()),
        (XdpMode::Native, "eth0")
    );

    let vms: Vec<_> = agent.host_report().vms.iter().map(report::vm).collect();
    let told: Vec<_> =
        vms.iter().map(|vm| (vm.id, vm.tenant, vm.source, vm.cores.clone())).collect();
    assert_eq!(told, [(3, 7, VmSource::Declared, vec![0]), (0, 0, VmSource::Found, vec![1])]);
    assert_eq!(vms[0].addresses[0].bytes[..4], [10, 0, 0, 3]);

    carry_out(&mut agent, &add(5, Match::default().with(OxmField::VmId, 3), AUTO)).ok().unwrap();
    let found = agent.placement_reports().unwrap();
    let both = PlacementKinds::ENTRIES | PlacementKinds::GROUPS;
    let ask = |kinds, cookie_mask, interface: &str| {
        let request = PlacementRequest {
            kinds,
            cookie: 5,
            cookie_mask,
            interface: FixedText::from(interface),
        };
        report::placements(&found, &request)
    };
    assert_eq!(ask(both, 0, "").len(), 2);
    assert_eq!(ask(both, 0, "eth1").len(), 0);
    let entries = ask(both, u64::MAX, "eth0");
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(
        (entry.kind, entry.reason, entry.core, entry.wanted),
        (PlacementKind::Entry, Reason::LeastLoaded, Some(1), Some(1))
    );
    assert_eq!(
        (entry.vm, entry.packets, entry.bytes, entry.moves, entry.age_ns),
        (3, 10, 640, 2, 4_000_000_000)
    );
    let group = &ask(PlacementKinds::GROUPS, 0, "")[0];
    assert_eq!((group.unit, group.cookie, group.bytes, group.place), (7, 0, 0, AUTO));

    let cores = agent.core_reports().unwrap();
    let busy = report::core_stats(&cores[1]);
    assert_eq!((busy.core, busy.frames, busy.units), (1, 500, 2));
}

#[test]
fn reasons_have_the_numbers_of_the_policies() {
    for reason in place::Reason::ALL {
        let told = Reason::from_wire(reason.code()).unwrap();
        assert_eq!(format!("{told:?}"), format!("{reason:?}"));
    }
    assert_eq!(Reason::ALL.len(), place::Reason::ALL.len() + 1, "and undecided");
}
