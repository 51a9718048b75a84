//! What an owner declares beside switches: guests, and ends of circuits. Their threads hold what is wanted, owner by owner.

use super::Node;
use super::owner::Owner;
use crate::config::{Located, Things};
use crate::refusal::{Refusal, Why};
use api::exec::ExecRequest;
use api::{
    Action, CircuitSpec, CircuitView, Declared, Fault, GuestSpec, GuestView, KeyChange, LogView,
    ObjectChange, StrayView,
};
use guest::Program;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is in force, by owner.
#[derive(Default)]
pub struct Shelf(Mutex<BTreeMap<Owner, Things>>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Owner, Things>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an owner has.
    pub fn of(&self, owner: &Owner) -> Things {
        self.lock().get(owner).cloned().unwrap_or_default()
    }

    /// What everybody has.
    pub fn all(&self) -> BTreeMap<Owner, Things> {
        self.lock().clone()
    }

    /// Everything that a wish names and another owner has.
    pub fn conflicts(&self, owner: &Owner, file: &str, wish: &Things) -> Vec<Fault> {
        let others = self.lock();
        let others: Vec<_> = others.iter().filter(|(other, _)| *other != owner).collect();
        let mut found = Vec::new();
        let fault = |thing: String, what: String, other: &Owner, line: usize| {
            let remedy = "choose another one, or remove it there first";
            let cause = format!("{what} is already taken ({})", other.place());
            Fault::new(thing, "check it against what others have", cause, remedy).at(file, line)
        };
        for (other, things) in others {
            for guest in &wish.guests {
                let netns = &guest.value.netns;
                if things.guests.iter().any(|other| other.value.netns == *netns) {
                    let thing = format!("guest {} ({})", guest.value.name, owner.place());
                    found.push(fault(thing, format!("namespace {netns}"), other, guest.line));
                }
            }
            for circuit in &wish.circuits {
                let CircuitSpec { id, port, link, .. } = &circuit.value;
                let same_port = |other: &CircuitSpec| port.is_some() && other.port == *port;
                let is_it = |other: &&Located<CircuitSpec>| {
                    other.value.id == *id || same_port(&other.value)
                };
                if let Some(it) = things.circuits.iter().find(is_it) {
                    let port = port.as_ref().filter(|_| it.value.id != *id);
                    let what = port.map_or(format!("id {id}"), |port| format!("port {port}"));
                    let thing = format!("circuit {link} ({})", owner.place());
                    found.push(fault(thing, what, other, circuit.line));
                }
            }
        }
        found
    }
}

/// What becomes of each guest and circuit. Pure.
pub fn steps(have: &Things, wish: &Things) -> Vec<ObjectChange> {
    let guests = differences(
        (&have.guests, &wish.guests),
        Declared::Guest,
        |guest: &GuestSpec| guest.name.clone(),
        |before, after| !before.can_become(after),
        ("its processes are stopped and started anew", "its processes are stopped"),
    );
    let circuits = differences(
        (&have.circuits, &wish.circuits),
        Declared::Circuit,
        |circuit: &CircuitSpec| circuit.link.clone(),
        |before, after| before.port != after.port || before.id != after.id,
        ("its port has no link until it is proved anew", "its port's link is watched no more"),
    );
    guests.into_iter().chain(circuits).collect()
}

fn differences<T: Serialize + PartialEq>(
    (have, wish): (&[Located<T>], &[Located<T>]),
    kind: Declared,
    name: fn(&T) -> String,
    is_remade: fn(&T, &T) -> bool,
    (remade, removed): (&str, &str),
) -> Vec<ObjectChange> {
    let find = |list: &'_ [Located<T>], one: &T| {
        list.iter().position(|other| name(&other.value) == name(one))
    };
    let change = |action, one: &T, keys, interrupts: Option<&str>| {
        let (name, interrupts) = (Some(name(one)), interrupts.map(Into::into));
        ObjectChange { action, kind, switch: None, name, keys, interrupts }
    };
    let mut found = Vec::new();
    for Located { value, .. } in wish {
        let Some(at) = find(have, value) else {
            found.push(change(Action::Add, value, Vec::new(), None));
            continue;
        };
        let before = &have[at].value;
        let keys = || changed_keys(before, value);
        if is_remade(before, value) {
            found.push(change(Action::Remake, value, keys(), Some(remade)));
        } else if before != value {
            found.push(change(Action::Change, value, keys(), None));
        }
    }
    let left = have.iter().filter(|had| find(wish, &had.value).is_none());
    found.extend(left.map(|had| change(Action::Remove, &had.value, Vec::new(), Some(removed))));
    found
}

fn changed_keys<T: Serialize>(before: &T, after: &T) -> Vec<KeyChange> {
    let keys = |one: &T| match serde_json::to_value(one) {
        Ok(Value::Object(keys)) => keys,
        other => unreachable!("it is a struct of plain data, and became {other:?}"),
    };
    KeyChange::between(&keys(before), &keys(after))
}

impl Node {
    /// Before ports come: what is new of a wish is wanted beside what there was, and its namespaces are there when this returns.
    ///
    /// # Errors
    /// The host refuses a namespace; then all is as it was.
    pub(super) async fn begin_things(&self, owner: &Owner, wish: &Things) -> Result<(), Refusal> {
        self.circuits.hold(&owner.to_string(), wish.circuits.iter().map(|circuit| &circuit.value));
        let had = self.things.of(owner);
        let is_new = |guest: &&Located<GuestSpec>| {
            had.guests.iter().all(|other| other.value.name != guest.value.name)
        };
        let new: Vec<_> = wish.guests.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let all = had.guests.iter().chain(new).map(|guest| guest.value.clone()).collect();
        let wanted = self.guests.want(owner.to_string(), all).await;
        if let Err(fault) = wanted {
            let before = had.guests.into_iter().map(|guest| guest.value).collect();
            let _ = self.guests.want(owner.to_string(), before).await;
            return Err(Refusal::new(Why::Impossible, fault));
        }
        Ok(())
    }

    /// When ports are as they are wanted: so are guests and circuits.
    pub(super) async fn set_things(&self, owner: &Owner, wish: &Things) {
        let guests = wish.guests.iter().map(|guest| guest.value.clone()).collect();
        if let Err(fault) = self.guests.want(owner.to_string(), guests).await {
            tracing::warn!("{fault}");
        }
        let circuits = wish.circuits.iter().map(|circuit| circuit.value.clone()).collect();
        self.circuits.want(&owner.to_string(), circuits);
        let mut shelf = self.things.lock();
        match *wish == Things::default() {
            true => drop(shelf.remove(owner)),
            false => drop(shelf.insert(owner.clone(), wish.clone())),
        }
    }

    /// All guests.
    pub fn guests(&self) -> Vec<GuestView> {
        self.guests.views()
    }

    /// All ends of circuits.
    pub fn circuits(&self) -> Vec<CircuitView> {
        self.circuits.views()
    }

    /// Probes that come here and have no end here.
    pub fn strays(&self) -> Vec<StrayView> {
        self.circuits.strays()
    }

    /// One guest: of this name, or as `PART:NAME` where several parts have one of it.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn guest(&self, name: &str) -> Result<GuestView, Refusal> {
        let (part, wanted) = match name.split_once(':') {
            Some((part, name)) => (Some(part), name),
            None => (None, name),
        };
        let is_it = |guest: &GuestView| {
            guest.spec.name == wanted && part.is_none_or(|part| guest.part == part)
        };
        let mut found: Vec<_> = self.guests.views().into_iter().filter(is_it).collect();
        match (found.pop(), found.len()) {
            (Some(guest), 0) => Ok(guest),
            (None, _) => Err(no_guest(
                name,
                "there is no guest of that name",
                "list them with: suiro guest list",
            )),
            (Some(_), _) => Err(no_guest(
                name,
                "several parts have a guest of that name",
                "say which as PART:NAME; suiro guest list shows the parts",
            )),
        }
    }

    /// The end of what a guest's command has written.
    ///
    /// # Errors
    /// There is no such guest.
    pub fn guest_log(&self, name: &str) -> Result<LogView, Refusal> {
        let guest = self.guest(name)?;
        Ok(LogView { text: self.guests.log(&guest) })
    }

    /// Starts a program in a guest.
    ///
    /// # Errors
    /// There is no such guest, it does not run, or the host refuses.
    pub async fn exec_in_guest(
        &self,
        name: &str,
        request: ExecRequest,
    ) -> Result<Program, Refusal> {
        let guest = self.guest(name)?;
        if request.command.first().is_none_or(String::is_empty) {
            let remedy = "name the program behind --";
            let fault =
                Fault::new(format!("guest {name}"), "run a program in it", "there is none", remedy);
            return Err(Refusal::new(Why::Invalid, fault));
        }
        let started = self.guests.exec(&guest.part, &guest.spec.name, request).await;
        started.map_err(|fault| Refusal::new(Why::Impossible, fault))
    }
}

fn no_guest(name: &str, cause: &str, remedy: &str) -> Refusal {
    Refusal::new(Why::NotFound, Fault::new(format!("guest {name}"), "find it", cause, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Host};

    fn things(text: &str) -> Things {
        let host = Host { cores: vec![0], node_id: "n".into(), copied_from: None };
        Config::parse_part(text, "t", &host, None).unwrap().things
    }

    fn shown(before: &str, after: &str) -> Vec<String> {
        steps(&things(before), &things(after)).iter().map(ToString::to_string).collect()
    }

    const H1: &str = "[[guest]]\nname='h1'\nnetns='h1'\ncommand=['sleep','1']\n";
    const A: &str =
        "[[circuit]]\nlink='a'\nport='s1:p2'\nid=90210\nnear='t1'\nfar='o1'\nmtu=1500\n";

    #[test]
    fn only_what_differs_moves_and_what_it_interrupts_is_said() {
        let both = format!("{H1}{A}");
        assert_eq!(shown(&both, &both), [""; 0]);
        assert_eq!(shown("", &both), ["+ guest h1", "+ circuit a"]);
        let slower = H1.replace("command", "cpu_milli=100\ncommand");
        assert_eq!(shown(H1, &slower), ["~ guest h1: cpu_milli none → 100"]);
        let anew = "-/+ guest h1: command [\"sleep\",\"1\"] → [\"sleep\",\"2\"]; its processes are stopped and started anew";
        assert_eq!(shown(H1, &H1.replace("'1'", "'2'")), [anew]);
        let other = shown(A, &A.replace("90210", "90212"));
        assert!(other[0].starts_with("-/+ circuit a: id 90210 → 90212;"), "{other:?}");
        assert_eq!(shown(&both, "").len(), 2);
    }

    #[test]
    fn a_namespace_is_one_guests_on_the_whole_node() {
        let shelf = Shelf::default();
        shelf.lock().insert(Owner::Part("one".parse().unwrap()), things(&format!("{H1}{A}")));
        let two = Owner::Part("two".parse().unwrap());
        let wish = things(&format!("{}{A}", H1.replace("name='h1'", "name='other'")));
        let found = shelf.conflicts(&two, "two.toml", &wish);
        let causes: Vec<_> = found.iter().map(|fault| fault.cause.as_str()).collect();
        assert_eq!(
            causes,
            ["namespace h1 is already taken (part one)", "id 90210 is already taken (part one)"]
        );
        assert_eq!(shelf.conflicts(&Owner::Part("one".parse().unwrap()), "one.toml", &wish), []);
    }
}
