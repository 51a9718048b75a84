//! What the feed tells of things that change too often to be told one by one, or where nobody else would: rules, counted, and the store.

use super::Node;
use super::directory::Member;
use crate::feed::Feed;
use api::{Dpid, Happening, News, Noun, Revision, chain};
use std::collections::HashMap;

/// What was told last.
#[derive(Default)]
pub(super) struct Watch {
    /// By datapath number of the switch: changes of rules.
    rules: HashMap<u32, u64>,
    is_unsaved: bool,
}

impl Node {
    /// What happens on this node.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Everything that there is, for readers that begin, and from which event on they must hear the rest. What changes meanwhile is in
    /// both, as it is then.
    pub fn present(&self) -> (Revision, Vec<News>) {
        let since = self.feed.newest();
        let mut found = Vec::new();
        for part in self.parts() {
            let text = format!("generation {}", part.generation);
            found.push(News::of_node(Noun::Part, &part.name, Happening::Present, text));
        }
        for member in self.directory.all() {
            found.extend(self.switch_present(&member));
        }
        found.extend(self.hits().present());
        (since, found)
    }

    fn switch_present(&self, member: &Member) -> Vec<News> {
        let name = member.name();
        let state = member.state().fault.clone();
        let dpid = Dpid::new(member.switch.datapath_id());
        let text = match state {
            None => format!("datapath id {dpid}"),
            Some(fault) => format!("datapath id {dpid}; {}: {}", fault.step, fault.cause),
        };
        let switch = News::of_switch(&name, Happening::Present, text);
        let mut found = vec![switch.by(member.owner())];
        let ports = member.state().ports.clone();
        let conditions = member.switch.conditions();
        found.extend(ports.iter().map(|(port, entry)| {
            let fault = self.ports.status(member.at(entry.number)).and_then(|status| status.fault);
            let text = match fault {
                Some(fault) => format!("{}: {}", fault.step, fault.cause),
                None => conditions.get(&entry.number).copied().unwrap_or_default().into(),
            };
            let port = News::inside((Noun::Port, &name, port), Happening::Present, text);
            port.by(&entry.owner)
        }));
        let controllers = member.switch.connections();
        let main = controllers.iter().filter(|found| found.controller && found.auxiliary == 0);
        found.extend(main.map(|found| {
            let text = format!("connected, OpenFlow {}, role {}", found.version, found.role);
            News::inside((Noun::Controller, &name, &found.peer), Happening::Present, text)
        }));
        found.push(News::of_rules(&name, Happening::Present, count(member)));
        found
    }

    /// Tells what is otherwise than the last time.
    pub(super) fn tell_changes(&self, watch: &mut Watch) {
        let members = self.directory.all();
        let before = std::mem::take(&mut watch.rules);
        for member in members {
            let changes = member.gate.rule_changes();
            let told = before.get(&member.id.0).copied().unwrap_or(0);
            watch.rules.insert(member.id.0, changes);
            if changes != told {
                self.feed.tell(News::of_rules(&member.name(), Happening::Changed, count(&member)));
            }
        }
        self.tell_store(watch);
    }

    fn tell_store(&self, watch: &mut Watch) {
        let problem = self.store.problem();
        if problem.is_some() == watch.is_unsaved {
            return;
        }
        watch.is_unsaved = problem.is_some();
        let (change, text) = match problem {
            Some(problem) => {
                (Happening::Fault, format!("{}; {}", chain(&*problem), problem.remedy()))
            }
            None => (Happening::State, "writing works again, nothing was lost".into()),
        };
        self.feed.tell(News::of_node(Noun::Node, "state file", change, text));
    }
}

fn count(member: &Member) -> String {
    let [flows, groups, meters] = member.switch.rule_counts();
    format!("{flows} flows, {groups} groups, {meters} meters")
}
