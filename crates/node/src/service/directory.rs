//! The switches in service, by name and by number.

use super::numbers::Numbers;
use super::owner::Owner;
use super::plane::Gate;
use crate::agent::{Agent, Link, LinkStatus};
use crate::switch::Switch;
use api::{Fault, PortName, PortNumber, PortSpec, SwitchName, SwitchSpec};
use datapath::{PortAt, Publisher, SwitchId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::task::AbortHandle;

/// A port of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberPort {
    /// What it is, with its number.
    pub spec: PortSpec,
    /// Its number.
    pub number: u32,
    /// Who wants it.
    pub owner: Owner,
}

/// A switch in service.
pub struct Member {
    /// Its number on the datapath.
    pub id: SwitchId,
    /// Who wants it.
    owner: Mutex<Owner>,
    /// Its control state.
    pub switch: Arc<Switch>,
    /// Its tables' way to the workers.
    pub publisher: Arc<Publisher>,
    /// Its journal.
    pub gate: Arc<Gate>,
    /// Publishes what nobody waits for.
    pub publishing: AbortHandle,
    /// Its OpenFlow connections, or why there are none. Held across waits, by one change at a time.
    pub agent: tokio::sync::Mutex<Option<Agent>>,
    /// What its endpoints are doing.
    links: Mutex<Vec<Arc<Link>>>,
    /// What may change of it.
    state: Mutex<MemberState>,
}

/// What may change of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberState {
    /// What it is.
    pub spec: SwitchSpec,
    /// Its ports.
    pub ports: BTreeMap<PortName, MemberPort>,
    /// Which numbers ports have had.
    pub numbers: Numbers,
    /// Why it does not listen, if it does not.
    pub fault: Option<Fault>,
}

impl Member {
    /// A member without ports and connections.
    pub fn new(
        id: SwitchId,
        (spec, owner): (SwitchSpec, Owner),
        switch: Arc<Switch>,
        publisher: Arc<Publisher>,
        gate: Arc<Gate>,
    ) -> Arc<Self> {
        let publishing = tokio::spawn(switch.clone().keep_published()).abort_handle();
        let state =
            MemberState { spec, ports: BTreeMap::new(), numbers: Numbers::default(), fault: None };
        let agent = tokio::sync::Mutex::new(None);
        Arc::new(Self {
            id,
            owner: Mutex::new(owner),
            switch,
            publisher,
            gate,
            publishing,
            agent,
            links: Mutex::default(),
            state: Mutex::new(state),
        })
    }

    /// Its changeable part.
    pub fn state(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who wants it.
    pub fn owner(&self) -> Owner {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Somebody else declares it now, as it is.
    pub fn set_owner(&self, owner: &Owner) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = owner.clone();
    }

    /// What its endpoints are doing, controllers first.
    pub fn links(&self) -> Vec<LinkStatus> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().map(|link| link.status()).collect()
    }

    /// Its endpoints are others now.
    pub fn set_links(&self, links: &[Arc<Link>]) {
        *self.links.lock().unwrap_or_else(PoisonError::into_inner) = links.to_vec();
    }

    /// Its name.
    pub fn name(&self) -> SwitchName {
        self.state().spec.name.clone()
    }

    /// Ends its OpenFlow connections; its addresses are free then.
    pub async fn stop_agent(&self) {
        if let Some(agent) = self.agent.lock().await.take() {
            agent.stop().await;
        }
    }

    /// The datapath's name of a port number.
    pub fn at(&self, number: u32) -> PortAt {
        PortAt { switch: self.id, port: number }
    }

    /// A port by its name or its number, `local` among them.
    pub fn port(&self, key: &str) -> Option<(PortName, MemberPort)> {
        let state = self.state();
        let by_name = state.ports.iter().find(|(name, _)| ***name == *key);
        let number = key.parse().ok().map(PortNumber::get);
        let found =
            by_name.or_else(|| state.ports.iter().find(|(_, port)| Some(port.number) == number));
        found.map(|(name, port)| (name.clone(), port.clone()))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.publishing.abort();
    }
}

/// All members.
#[derive(Default)]
pub struct Directory(RwLock<Index>);

#[derive(Default)]
struct Index {
    by_name: BTreeMap<SwitchName, Arc<Member>>,
    by_id: HashMap<SwitchId, Arc<Member>>,
}

impl Directory {
    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a member.
    pub fn insert(&self, name: SwitchName, member: Arc<Member>) {
        let mut index = self.write();
        index.by_id.insert(member.id, member.clone());
        index.by_name.insert(name, member);
    }

    /// Removes a member.
    pub fn remove(&self, name: &SwitchName) -> Option<Arc<Member>> {
        let mut index = self.write();
        let member = index.by_name.remove(name)?;
        index.by_id.remove(&member.id);
        Some(member)
    }

    /// The member of that name.
    pub fn by_name(&self, name: &str) -> Option<Arc<Member>> {
        self.read().by_name.get(name).cloned()
    }

    /// The member of that number.
    pub fn by_id(&self, id: SwitchId) -> Option<Arc<Member>> {
        self.read().by_id.get(&id).cloned()
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<Arc<Member>> {
        self.read().by_name.values().cloned().collect()
    }

    /// The lowest number that no member has.
    pub fn free_id(&self) -> SwitchId {
        let index = self.read();
        let free = (0..).map(SwitchId).find(|id| !index.by_id.contains_key(id));
        free.expect("there are fewer switches than numbers")
    }
}
