//! What is there already and is asked for again, and what is gone already and shall go: `--may-exist` and `--if-exists` of `ovs-vsctl`.
//!
//! An object that is there becomes what the request names, whole or not at all; what the request does not name stays. What can only be
//! chosen for a new object must be so already.

use super::Node;
use super::change::PortChange;
use super::directory::Member;
use super::ports::{label, misread};
use crate::ports::OnFailure;
use crate::refusal::{Refusal, Why};
use api::{Fault, Keys, PortName, PortPatch, PortView, SwitchSpec, SwitchView};
use serde_json::Value;
use std::sync::Arc;

/// Whether a request made its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// It is new.
    New,
    /// It was there already.
    Before,
}

impl Node {
    /// Sees to it that a switch is there and has these keys, of which `spec` was read.
    ///
    /// # Errors
    /// As for making or changing one.
    pub async fn ensure_switch(
        &self,
        spec: SwitchSpec,
        keys: Keys,
    ) -> Result<(SwitchView, Came), Refusal> {
        let change = self.change.of(&spec.name).await;
        let thing = format!("switch {}", spec.name);
        let (member, came) = match self.directory.by_name(&spec.name) {
            Some(member) => {
                self.adapt_switch(&member, &thing, keys).await?;
                (member, Came::Before)
            }
            None => (self.make_switch(spec).await?, Came::New),
        };
        drop(change);
        self.saved(&thing).await?;
        Ok((self.view_switch(&member), came))
    }

    async fn adapt_switch(
        &self,
        member: &Arc<Member>,
        thing: &str,
        keys: Keys,
    ) -> Result<(), Refusal> {
        let before = member.state().spec.clone();
        let after = merged(&before, keys).map_err(|error| {
            let remedy = "see GET /v1/openapi.json, or use the suiro command";
            Refusal::new(Why::Invalid, Fault::new(thing, "read it", error.to_string(), remedy))
        })?;
        if before == after {
            return Ok(());
        }
        for (key, is_same) in [
            ("dpid", before.dpid == after.dpid),
            ("miss_send_len", before.miss_send_len == after.miss_send_len),
        ] {
            if !is_same {
                let cause = format!("it is there, and `{key}` does not change on it");
                let remedy = format!("leave {key} out, or remove the switch and add it anew");
                return Err(Refusal::new(
                    Why::Conflict,
                    Fault::new(thing, "change it", cause, remedy),
                ));
            }
        }
        member.owner().must_be_api(thing, "change it")?;
        self.check_new_addresses(&before, &after)?;
        self.check_connections(&after)?;
        self.change_switch(member, &after, OnFailure::Forget).await
    }

    /// Sees to it that a switch has a port with these keys.
    ///
    /// # Errors
    /// As for making or changing one.
    pub async fn ensure_port(&self, switch: &str, keys: Keys) -> Result<(PortView, Came), Refusal> {
        let mut change = self.change.of(switch).await;
        let member = self.member(switch)?;
        let named = keys.get("name").and_then(Value::as_str).map(str::parse::<PortName>);
        let there = named.and_then(Result::ok).and_then(|name| member.port(&name));
        let (name, came) = match there {
            Some((name, port)) => {
                let thing = label(switch, &name);
                let asked = PortPatch { keys, ..PortPatch::default() };
                let to = asked.applied_to(&port.spec).map_err(|faults| misread(&thing, &faults))?;
                let changes = PortChange::of(&port.spec, to);
                if !changes.keys.is_empty() {
                    port.owner.must_be_api(&thing, "change it")?;
                    self.change_port(&member, (&name, &port), &changes).await?;
                    member.switch.publish();
                }
                (name, Came::Before)
            }
            None => (self.make_port(&member, keys, &mut change).await?, Came::New),
        };
        drop(change);
        self.saved(&label(switch, &name)).await?;
        Ok((self.port(switch, &name)?, came))
    }
}

/// A switch with these keys instead of its own.
fn merged(spec: &SwitchSpec, keys: Keys) -> Result<SwitchSpec, serde_json::Error> {
    let mut all = serde_json::to_value(spec)?;
    if let Value::Object(all) = &mut all {
        all.extend(keys);
    }
    serde_json::from_value(all)
}

/// The same outcome, where what is not there any more shall be no error.
pub fn unless_gone<T>(outcome: Result<T, Refusal>, gone: impl FnOnce() -> T) -> Result<T, Refusal> {
    match outcome {
        Err(refusal) if refusal.why == Why::NotFound => Ok(gone()),
        outcome => outcome,
    }
}
