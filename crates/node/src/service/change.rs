//! Ports change and carry on, by whichever door the change comes: API, queues, or the configuration file.
//!
//! Everything is checked before anything changes. What the kernel refuses after that is taken back, so that a change refused changed nothing.

use super::Node;
use super::directory::{Member, MemberPort};
use super::owner::Owner;
use super::ports::label;
use crate::refusal::{Refusal, Why};
use api::{Change, Fault, Happening, Key, News, Noun, PortName, PortSpec, in_words};
use openflow::PortConfig;

/// What a port becomes, and by which keys.
pub(super) struct PortChange {
    pub(super) to: PortSpec,
    pub(super) keys: Vec<&'static Key>,
}

impl PortChange {
    /// From one specification to another.
    pub(super) fn of(from: &PortSpec, to: PortSpec) -> Self {
        Self { keys: from.changes(&to), to }
    }

    /// Carries these keys out even where their values stay: a core that was chosen is chosen anew.
    pub(super) fn again<'n>(mut self, names: impl Iterator<Item = &'n String>) -> Self {
        let kind = self.to.kind.kind();
        for key in names.filter_map(|name| kind.key(name)) {
            if self.keys.iter().all(|known| known.name != key.name) {
                self.keys.push(key);
            }
        }
        self
    }
}

impl Node {
    /// Brings a port in service to what a change says, and keeps that.
    ///
    /// # Errors
    /// It cannot be so, or the host refuses; then the port is as it was.
    pub(super) async fn change_port(
        &self,
        member: &Member,
        (name, port): (&PortName, &MemberPort),
        PortChange { to, keys }: &PortChange,
    ) -> Result<(), Refusal> {
        let thing = label(&member.name(), name);
        if let Some(fixed) = keys.iter().find(|key| key.change == Change::Remake) {
            let cause = format!("`{}` does not change on a port in service", fixed.name);
            let fault = Fault::new(thing, "change it", cause, "remove the port and add it anew");
            return Err(Refusal::new(Why::Invalid, fault));
        }
        if keys.is_empty() {
            return Ok(());
        }
        self.check_sealing(&thing, to)?;
        let wanted = self.wanted(member, name, to, PortConfig::empty()).await;
        let names = keys.iter().map(|key| key.name).collect();
        let changed = self.ports.change(wanted, names).await;
        changed.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
        if let Some(port) = member.state().ports.get_mut(name) {
            port.spec = to.clone();
        }
        let changes = to.changes_from(&port.spec);
        if !changes.is_empty() {
            let object = (Noun::Port, &*member.name(), &**name);
            let news = News::inside(object, Happening::Changed, in_words(&changes));
            self.feed.tell(news.by(&port.owner));
        }
        if port.owner == Owner::Api {
            self.store.put_port(&member.name(), name, to);
        }
        Ok(())
    }
}
