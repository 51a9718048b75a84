//! The agent's reports as the extension's values.

use api::steer::VmView;
use openflow::steering::{
    CoreRole, CoreStats, HostAbilities, HostCore, HostInfo, HostInterface, InterfaceAbilities,
    PlacementKind, PlacementKinds, PlacementRequest, PlacementStats, Reason, VERSION, Vm,
    VmAddress, VmSource, XdpMode,
};
use openflow::{FixedText, Match, PortNo};
use place::{Core, Load, Role, Stage};
use port::NicFacts;
use std::collections::BTreeMap;
use std::net::IpAddr;
use steer::{CoreReport, HostReport, PlacementReport};

use super::change;

/// The host. Whether a controller may program is not known here.
pub fn host(report: &HostReport, cards: &BTreeMap<String, NicFacts>) -> HostInfo {
    let id_of = |name: &String| report.vms.iter().find(|vm| vm.name == *name).map(|vm| vm.spec.id);
    let cores = report.cores.iter().zip(&report.pinned).map(|(core, pinned)| HostCore {
        id: core.id().0,
        numa: Some(core.numa.0),
        sibling: core.sibling.map(|sibling| sibling.0),
        role: match core.role {
            Role::Allowed => CoreRole::Allowed,
            Role::Reserved => CoreRole::Reserved,
            Role::Excluded => CoreRole::Excluded,
        },
        vms: pinned.iter().filter_map(id_of).filter(|id| *id != 0).collect(),
    });
    let is_steered = report.interfaces.iter().any(|(_, hook)| hook.is_some());
    let mut abilities = HostAbilities::empty();
    abilities.set(HostAbilities::MEASURES, is_steered);
    abilities.set(HostAbilities::MOVES, report.policy.moves);
    let facts = |name: &String| cards.get(name).cloned().unwrap_or_default();
    HostInfo {
        version: VERSION,
        threshold: u16::from(report.policy.threshold_percent) * 10,
        abilities,
        policy: FixedText::from(report.policy.policy.name()),
        cores: cores.collect(),
        interfaces: report
            .interfaces
            .iter()
            .map(|(name, hook)| interface(name, *hook, &facts(name)))
            .collect(),
    }
}

fn interface(name: &str, hook: Option<&str>, facts: &NicFacts) -> HostInterface {
    let mode = match hook {
        None => XdpMode::Detached,
        Some("native") => XdpMode::Native,
        Some(_) => XdpMode::Generic,
    };
    let can = &facts.abilities;
    let mut abilities = InterfaceAbilities::empty();
    for (ability, has) in [
        (InterfaceAbilities::RSS, can.is_rss),
        (InterfaceAbilities::RSS_TABLE, can.has_rss_table),
        (InterfaceAbilities::NTUPLE, can.has_ntuple),
        // A kernel that does not tell has shown it if the program is there.
        (InterfaceAbilities::XDP_NATIVE, can.has_xdp.unwrap_or(mode == XdpMode::Native)),
        (InterfaceAbilities::RPS, can.is_rps),
    ] {
        abilities.set(ability, has);
    }
    HostInterface {
        index: facts.index,
        mode,
        rx_queues: u16::try_from(can.rx_queues).unwrap_or(u16::MAX),
        abilities,
        name: FixedText::from(name),
        driver: FixedText::from(facts.driver.as_str()),
    }
}

/// A machine. Which of a switch's ports it is on, the host does not know.
pub fn vm(view: &VmView) -> Vm {
    let is_declared = view.source.split(", ").any(|source| source == "declared");
    Vm {
        id: view.spec.id,
        tenant: view.spec.tenant,
        port: PortNo::ANY,
        source: if is_declared { VmSource::Declared } else { VmSource::Found },
        cores: view.spec.cores.clone(),
        addresses: view.spec.addresses.iter().map(address).collect(),
        name: view.name.clone().into_bytes(),
    }
}

fn address(address: &IpAddr) -> VmAddress {
    let mut bytes = [0; 16];
    let (kind, prefix) = match address {
        IpAddr::V4(address) => {
            bytes[..4].copy_from_slice(&address.octets());
            (4, 32)
        }
        IpAddr::V6(address) => {
            bytes = address.octets();
            (6, 128)
        }
    };
    VmAddress { kind, prefix, bytes }
}

/// A core at work.
pub fn core_stats(report: &CoreReport) -> CoreStats {
    let Core { load, .. } = &report.core;
    let per_mille = |load: Load| u16::try_from(load.as_per_mille()).unwrap_or(u16::MAX);
    CoreStats {
        core: report.core.id().0,
        load: Stage::ALL.map(|stage| per_mille(load[stage])),
        other: per_mille(load.other),
        units: u32::try_from(report.units).unwrap_or(u32::MAX),
        frames: report.frames,
        busy_ns: report.spent.stages,
    }
}

/// What a controller asked for of all that was placed.
pub fn placements(found: &[PlacementReport], request: &PlacementRequest) -> Vec<PlacementStats> {
    let stats = found.iter().map(placement);
    let is_wanted = |stats: &PlacementStats| {
        let kind = match stats.kind {
            PlacementKind::Entry => PlacementKinds::ENTRIES,
            PlacementKind::Group => PlacementKinds::GROUPS,
        };
        request.kinds.contains(kind)
            && (request.cookie ^ stats.cookie) & request.cookie_mask == 0
            && (request.interface.as_bytes().is_empty() || request.interface == stats.interface)
    };
    stats.filter(is_wanted).collect()
}

fn placement(report: &PlacementReport) -> PlacementStats {
    let PlacementReport { interface, unit, rule, bytes, age_ns } = report;
    let reason = unit.reason.and_then(|reason| Reason::from_wire(reason.code()));
    PlacementStats {
        kind: if rule.is_some() { PlacementKind::Entry } else { PlacementKind::Group },
        reason: reason.unwrap_or(Reason::Undecided),
        core: unit.core.map(|core| core.0),
        wanted: unit.wanted.or(unit.core).map(|core| core.0),
        place: rule.as_ref().map_or(change::BY_POLICY, |rule| change::place_of(&rule.placing)),
        priority: rule.as_ref().map_or(0, |rule| rule.priority),
        vm: unit.vm.map_or(0, |vm| vm.get()),
        unit: unit.unit.0,
        moves: u32::try_from(unit.moves).unwrap_or(u32::MAX),
        cookie: rule.as_ref().map_or(0, |rule| rule.cookie),
        packets: unit.frames,
        bytes: *bytes,
        age_ns: age_ns.unwrap_or(u64::MAX),
        interface: FixedText::from(interface.as_str()),
        fields: rule.as_ref().map_or_else(Match::default, change::fields_of),
    }
}
