//! What is really there, compared with what parts declare: each difference, and nothing changes.
//!
//! *Declared and not so*: what applying each part again would change. *There and declared by nobody*: ports of others on a part's switches, and rules of
//! those switches that no controller writes. *In the kernel*: interfaces of TAPs, and guests with all that they have.

use super::super::Node;
use super::super::directory::Member;
use super::super::owner::Owner;
use super::super::ports::label;
use super::HowToApply;
use crate::config::SwitchConfig;
use api::{Action, Deviation, FailMode, Fault, Kind, ObjectChange, PartName};
use netlink::Netlink;
use std::sync::Arc;

const AGAIN: &str =
    "restart the node, or change the part and apply it again: what it declares comes back";

impl Node {
    /// Each thing that is not as parts declare it.
    pub async fn audit(&self) -> Vec<Fault> {
        let parts = self.parts.lock().clone();
        let mut found = Vec::new();
        let mut declared = Vec::new();
        for (name, record) in parts {
            let Some(text) = record.text else { continue };
            if let Ok(declaration) = self.read_part(&name, &text) {
                declared.extend(declaration.switches);
            }
            match self.put_part(&name, text, HowToApply::DryRun).await {
                Ok(would) => found.extend(would.changes.iter().map(|it| of_change(&name, it))),
                Err(refusal) => found.push(*refusal.fault),
            }
        }
        for member in self.directory.all() {
            if matches!(member.owner(), Owner::Part(_)) {
                found.extend(self.undeclared(&member, &declared));
            }
            found.extend(self.without_interface(&member));
        }
        found.extend(self.guests.compare().await);
        found
    }

    /// What a part's switch has that nobody declares.
    fn undeclared(&self, member: &Arc<Member>, declared: &[SwitchConfig]) -> Vec<Fault> {
        let (name, state) = (member.name(), member.state().clone());
        let strange = |owner: &Owner| !matches!(owner, Owner::Part(_));
        let ports = state.ports.iter().filter(|(_, port)| strange(&port.owner));
        let mut found: Vec<_> = ports
            .map(|(port, it)| {
                let remedy = format!("suiro port del {name} {port}");
                Deviation::of(
                    label(&name, port),
                    format!("no part declares it ({})", it.owner.place()),
                    remedy,
                )
            })
            .collect();
        // What a controller, or the switch itself, writes is declared by nobody.
        let is_still =
            state.spec.controllers.is_empty() && state.spec.fail_mode == FailMode::Secure;
        if is_still {
            let of_it: Vec<_> = declared.iter().filter(|it| it.spec.name == name).collect();
            let thing = format!("switch {name}");
            match self.undeclared_rules(member, &of_it) {
                Ok(rules) => found.extend(rules.into_iter().map(|(rule, remedy)| {
                    Deviation::of(&thing, format!("no part declares {rule}"), remedy)
                })),
                Err(refusal) => found.push(*refusal.fault),
            }
        }
        found
    }

    /// Ports that are not open, and TAPs of the node's own namespace whose interface has gone.
    fn without_interface(&self, member: &Arc<Member>) -> Vec<Fault> {
        let (name, ports) = (member.name(), member.state().ports.clone());
        let netlink = Netlink::new().ok();
        let ports = ports.into_iter().filter(|(_, port)| matches!(port.owner, Owner::Part(_)));
        let differs = |(port, it): (api::PortName, super::super::directory::MemberPort)| {
            let status = self.ports.status(member.at(it.number)).unwrap_or_default();
            if let Some(fault) = status.fault {
                return Some(Deviation::of(label(&name, &port), fault.cause, fault.remedy));
            }
            let Kind::Tap(tap) = &it.spec.kind else { return None };
            let interface = tap.interface.as_ref().filter(|_| tap.netns.is_none())?;
            let is_there = netlink.as_ref()?.link(interface).ok()?.is_some();
            let cause = || format!("its interface {interface} is not there");
            (!is_there).then(|| Deviation::of(label(&name, &port), cause(), AGAIN))
        };
        ports.filter_map(differs).collect()
    }
}

fn of_change(part: &PartName, change: &ObjectChange) -> Fault {
    let kind = change.kind.word();
    let name = change.name.as_deref().unwrap_or_default();
    let thing = match &change.switch {
        Some(switch) if name.is_empty() => format!("{kind} {switch} of part {part}"),
        Some(switch) => format!("{kind} {name} of switch {switch} of part {part}"),
        None => format!("{kind} {name} of part {part}"),
    };
    let cause = match change.action {
        Action::Add => "it is not there".into(),
        Action::Remove => "the part has it and does not declare it".into(),
        Action::Change | Action::Remake if change.keys.is_empty() => "it is another one".into(),
        Action::Change | Action::Remake => {
            let keys: Vec<_> = change.keys.iter().map(ToString::to_string).collect();
            format!("it is not as declared: {}", keys.join(", "))
        }
    };
    Deviation::of(thing, cause, AGAIN)
}
