//! A switch comes into service with all that it has: at the start of the node, and where a refused change is taken back.
//!
//! Order: rules, then ports, then connections. No frame meets a switch that does not know yet what to do with it, and no controller speaks
//! before the journal listens.

use super::Node;
use super::directory::{Member, MemberPort};
use super::numbers::Numbers;
use super::owner::Owner;
use crate::ports::{OnFailure, UnderWay};
use api::{Fault, SwitchSpec};
use openflow::PortConfig;
use std::sync::Arc;

/// A switch to be, with all but its rules.
pub(super) struct Arrival {
    /// What it is.
    pub(super) spec: SwitchSpec,
    /// Who wants it.
    pub(super) owner: Owner,
    /// Which numbers ports have had, those of `ports` included.
    pub(super) numbers: Numbers,
    /// Its ports, and what controllers and users configured of them.
    pub(super) ports: Vec<(MemberPort, PortConfig)>,
}

impl Node {
    /// Makes the switch: its ports have their numbers and are not open yet. Rules come next, then [`Node::open_for_service`].
    pub(super) fn arrive(&self, arrival: &Arrival) -> Arc<Member> {
        let member = self.bring_up(arrival.spec.clone(), arrival.owner.clone());
        {
            let mut state = member.state();
            state.numbers = arrival.numbers;
            let ports = arrival.ports.iter();
            state.ports = ports.map(|(port, _)| (port.spec.name.clone(), port.clone())).collect();
        }
        member
    }

    /// Opens its ports and calls its controllers. What cannot be had now is tried again later.
    pub(super) async fn open_for_service(&self, member: &Arc<Member>, arrival: &Arrival) {
        let opening = self.begin_to_open(member, arrival).await;
        self.serve(member, opening).await;
    }

    /// Begins to open its ports, together. [`Node::serve`] comes next.
    pub(super) async fn begin_to_open(
        &self,
        member: &Arc<Member>,
        arrival: &Arrival,
    ) -> Vec<UnderWay> {
        let mut opening = Vec::new();
        for (port, config) in &arrival.ports {
            self.store.put_number(&arrival.spec.name, &port.spec.name, port.number);
            let wanted = self.wanted(member, &port.spec.name, &port.spec, *config).await;
            opening.push(self.ports.begin_to_add(wanted, OnFailure::Keep));
        }
        self.store.put_numbers(&arrival.spec.name, &member.state().numbers.to_bytes());
        opening
    }

    /// Waits for its ports and calls its controllers.
    pub(super) async fn serve(&self, member: &Arc<Member>, opening: Vec<UnderWay>) {
        for port in opening {
            // The fault is the port's state, and logged by the ports' thread.
            let _ = port.done().await;
        }
        member.switch.publish();
        if let Err(Fault { thing, step, cause, remedy, .. }) = self.join(member).await {
            tracing::error!(remedy, "{thing}: {step}: {cause}; trying on");
        }
    }

    /// Opens the journal of a switch, then its connections: what a controller changes first is kept, too.
    ///
    /// # Errors
    /// An address cannot be bound; it is tried again with each tick.
    pub(super) async fn join(&self, member: &Member) -> Result<(), Fault> {
        member.gate.open();
        self.start_agent(member).await
    }
}
