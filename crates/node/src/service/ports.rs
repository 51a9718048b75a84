//! Ports come, change and go.

use super::Node;
use super::change::PortChange;
use super::directory::{Member, MemberPort};
use super::owner::Owner;
use super::turns::Turn;
use crate::ports::{OnFailure, UnderWay};
use crate::refusal::{Refusal, Why};
use api::{Fault, KeyFaults, Keys, PortName, PortNumber, PortPatch, PortSpec, PortView};
use openflow::{Mac, PortConfig, PortFeatures, PortMod, PortNo};
use port::Keep;
use std::collections::HashMap;
use std::sync::Arc;

/// A port to be.
pub(super) struct NewPort {
    /// What it shall be.
    pub(super) spec: PortSpec,
    /// What controllers and users configured of it before.
    pub(super) config: PortConfig,
    /// Whether it is wanted also where it cannot be had now.
    pub(super) on_failure: OnFailure,
}

/// A port whose interface is being opened.
pub(super) struct Placing {
    member: Arc<Member>,
    port: MemberPort,
    number: PortNumber,
    /// Whether it asked for that number.
    asked: bool,
    on_failure: OnFailure,
    opening: UnderWay,
}

impl Placing {
    /// Whose it is, and its name.
    pub(super) fn of(&self) -> (Arc<Member>, PortName) {
        (self.member.clone(), self.port.spec.name.clone())
    }
}

impl Node {
    /// Makes a port.
    ///
    /// # Errors
    /// It cannot be right, contradicts another one, or cannot be opened now; or it is made but not saved.
    pub async fn add_port(&self, switch: &str, keys: Keys) -> Result<PortView, Refusal> {
        let mut change = self.change.of(switch).await;
        let name = self.make_port(&self.member(switch)?, keys, &mut change).await?;
        drop(change);
        self.saved(&label(switch, &name)).await?;
        self.port(switch, &name)
    }

    /// Makes a port that contradicts no other.
    pub(super) async fn make_port(
        &self,
        member: &Arc<Member>,
        keys: Keys,
        change: &mut Turn<'_>,
    ) -> Result<PortName, Refusal> {
        let shown = keys.get("name").and_then(|name| name.as_str()).unwrap_or("without a name");
        let thing = label(&member.name(), shown);
        let spec = PortSpec::read(keys).map_err(|faults| misread(&thing, &faults))?;
        let name = spec.name.clone();
        self.taken().check_port(&member.name(), &name, &spec)?;
        let _claim = self.claims.claim(&member.name(), &name, &spec);
        change.let_others();
        let new = NewPort { spec, config: PortConfig::empty(), on_failure: OnFailure::Forget };
        self.place_port(member, new, &Owner::Api).await?;
        Ok(name)
    }

    /// Gives a switch a port that contradicts no other.
    ///
    /// # Errors
    /// There is no number for it, or it cannot be opened now and is not to be waited for.
    pub(super) async fn place_port(
        &self,
        member: &Arc<Member>,
        new: NewPort,
        owner: &Owner,
    ) -> Result<(), Refusal> {
        let placing = self.begin_to_place(member, new, owner).await?;
        self.placed(placing).await
    }

    /// Begins to give a switch a port, while others come, too: its number is its own from here on. [`Node::placed`] comes next.
    ///
    /// # Errors
    /// There is no number for it.
    pub(super) async fn begin_to_place(
        &self,
        member: &Arc<Member>,
        NewPort { mut spec, config, on_failure }: NewPort,
        owner: &Owner,
    ) -> Result<Placing, Refusal> {
        let name = spec.name.clone();
        let thing = label(&member.name(), &name);
        let asked = spec.number.is_some();
        let number = self.number_for(member, &spec, &thing).await?;
        spec.number = Some(number);
        self.check_sealing(&thing, &spec)?;
        let wanted = self.wanted(member, &name, &spec, config).await;
        let port = MemberPort { spec, number: number.get(), owner: owner.clone() };
        member.state().ports.insert(name, port.clone());
        let opening = self.ports.begin_to_add(wanted, on_failure);
        Ok(Placing { member: member.clone(), port, number, asked, on_failure, opening })
    }

    /// Waits for a port, and notes it.
    ///
    /// # Errors
    /// It cannot be opened now, and is not to be waited for.
    pub(super) async fn placed(&self, placing: Placing) -> Result<(), Refusal> {
        let Placing { member, port, number, asked, on_failure, opening } = placing;
        let (switch, name) = (member.name(), &port.spec.name);
        if let Err(fault) = opening.done().await
            && on_failure == OnFailure::Forget
        {
            member.state().ports.remove(name);
            return Err(Refusal::new(Why::Impossible, fault));
        }
        if port.owner == Owner::Api {
            self.store.put_port(&switch, name, &port.spec);
        }
        self.store.put_number(&switch, name, port.number);
        self.note_number(&member, number, asked);
        member.switch.publish();
        Ok(())
    }

    /// Takes a port from its switch; a TAP goes with it. Returns when its interface is gone.
    pub(super) async fn drop_port(&self, member: &Member, name: &PortName) -> Result<(), Refusal> {
        let number = member.state().ports.get(name).map(|port| port.number);
        let going = self.detach_port(member, name).await;
        number.iter().for_each(|number| self.store.forget_port(&member.name(), name, *number));
        let Some(going) = going else { return Ok(()) };
        going.done().await.map_err(|fault| Refusal::new(Why::Impossible, fault))
    }

    /// The same, but its number stays remembered, and its interface goes meanwhile.
    pub(super) async fn take_off_port(&self, member: &Member, name: &PortName) {
        let going = self.detach_port(member, name).await;
        going.into_iter().for_each(|going| self.ports.goes(going));
    }

    async fn detach_port(&self, member: &Member, name: &PortName) -> Option<UnderWay> {
        let port = member.state().ports.remove(name)?;
        let going = self.ports.remove(member.at(port.number), Keep::Nothing).await;
        member.switch.publish();
        Some(going)
    }

    /// Waits until the interfaces of ports that were taken off are gone. What does not go as it should is gone all the same.
    pub(super) async fn ports_gone(&self) {
        self.ports.gone().await.unwrap_or_else(|fault| tracing::warn!("{fault}"));
    }

    /// Removes a port; a TAP goes with it.
    ///
    /// # Errors
    /// There is none of that name or number, it is the file's, or it is gone but that is not saved.
    pub async fn remove_port(&self, switch: &str, key: &str) -> Result<(), Refusal> {
        let mut change = self.change.of(switch).await;
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        let thing = label(switch, &name);
        port.owner.must_be_api(&thing, "remove it")?;
        let claim = self.claims.claim(&member.name(), &name, &port.spec);
        change.let_others();
        let removed = self.drop_port(&member, &name).await;
        drop((change, claim));
        self.saved(&thing).await?;
        removed
    }

    /// Changes a port: all that is asked for, or nothing.
    ///
    /// # Errors
    /// There is none of that name or number, it cannot be so, the interface refuses, or it is changed but not saved.
    pub async fn patch_port(
        &self,
        switch: &str,
        key: &str,
        patch: &PortPatch,
    ) -> Result<PortView, Refusal> {
        let change = self.change.of(switch).await;
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        let thing = label(switch, &name);
        let to = patch.applied_to(&port.spec).map_err(|faults| misread(&thing, &faults))?;
        if !patch.keys.is_empty() {
            port.owner.must_be_api(&thing, "change it")?;
        }
        let changes = PortChange::of(&port.spec, to).again(patch.keys.keys());
        self.change_port(&member, (&name, &port), &changes).await?;
        if let Err(refusal) = self.act(&member, (&thing, &port), patch).await {
            let back = PortChange { to: port.spec.clone(), keys: changes.keys };
            // What was in force before can be again.
            let _ = self.change_port(&member, (&name, &port), &back).await;
            return Err(refusal);
        }
        member.switch.publish();
        drop(change);
        self.saved(&thing).await?;
        self.port(switch, &name)
    }

    /// Does what a patch asks for beside values of keys.
    async fn act(
        &self,
        member: &Member,
        (thing, port): (&str, &MemberPort),
        patch: &PortPatch,
    ) -> Result<(), Refusal> {
        if patch.rekey {
            let read = self.ports.reload(member.at(port.number)).await;
            read.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
        }
        let Some(up) = patch.up else { return Ok(()) };
        set_up(member, port.number, up).map_err(|fault| rejected(thing, &fault))
    }

    /// The ports of a switch, by number.
    ///
    /// # Errors
    /// There is no switch of that name.
    pub fn ports(&self, switch: &str) -> Result<Vec<PortView>, Refusal> {
        Ok(self.ports_of(&*self.member(switch)?))
    }

    /// The ports of every switch, by switch and number.
    pub fn all_ports(&self) -> Vec<PortView> {
        self.directory.all().iter().flat_map(|member| self.ports_of(member)).collect()
    }

    fn ports_of(&self, member: &Member) -> Vec<PortView> {
        let ports = member.state().ports.clone();
        let configs = configs(member);
        let mut views: Vec<_> =
            ports.iter().map(|(name, port)| self.view_port(member, name, port, &configs)).collect();
        views.sort_by_key(|view| view.number);
        views
    }

    /// One port, by name or number.
    ///
    /// # Errors
    /// There is no such switch or port.
    pub fn port(&self, switch: &str, key: &str) -> Result<PortView, Refusal> {
        let member = self.member(switch)?;
        let (name, port) = member.port(key).ok_or_else(|| Refusal::no_port(switch, key))?;
        Ok(self.view_port(&member, &name, &port, &configs(&member)))
    }
}

/// `port guest1 of switch sw0`.
pub(super) fn label(switch: &str, name: &str) -> String {
    format!("port {name} of switch {switch}")
}

/// Everything wrong with what was asked of a port.
pub(super) fn misread(thing: &str, faults: &KeyFaults) -> Refusal {
    let remedy = faults.0.first().map_or("", |first| first.remedy.as_str());
    Refusal::new(
        Why::Invalid,
        Fault::new(thing, "check what was asked", faults.to_string(), remedy),
    )
}

/// What controllers and users configured of each port.
pub(super) fn configs(member: &Member) -> HashMap<u32, PortConfig> {
    member.switch.ports().into_iter().map(|port| (port.number.0, port.config)).collect()
}

fn set_up(member: &Member, number: u32, up: bool) -> Result<(), openflow::Fault> {
    let port = member.switch.ports().into_iter().find(|port| port.number.0 == number);
    let hw_addr = port.map_or(Mac::default(), |port| port.hw_addr);
    let config = if up { PortConfig::empty() } else { PortConfig::PORT_DOWN };
    let mask = PortConfig::PORT_DOWN;
    member.switch.port_mod(&PortMod {
        number: PortNo(number),
        hw_addr,
        config,
        mask,
        advertise: PortFeatures::empty(),
    })
}

fn rejected(thing: &str, fault: &openflow::Fault) -> Refusal {
    let remedy = "see its state with: suiro port list";
    Refusal::new(Why::Impossible, Fault::new(thing, "set it up or down", fault.to_string(), remedy))
}
