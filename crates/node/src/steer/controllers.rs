//! The host's steering in the words of the OpenFlow extension: what [`crate::agent::steering`] asks, answered by the agent of crate
//! `steer`.

mod change;
mod report;

#[cfg(test)]
mod tests;

use super::Steer;
use crate::agent::steering::{Answered, Host, Refused};
use crate::refusal::{Refusal, Why};
use openflow::steering::{
    CoreStats, HostInfo, PlaceMod, PlacementRequest, PlacementStats, SteerError as Told, Vm,
};
use openflow::{ErrorCode, ErrorKind};
use port::NicFacts;
use std::collections::BTreeMap;
use std::sync::Arc;
use steer::{Agent, SteerError, SteerErrorKind};

/// The steering thread, as controllers ask it.
pub struct Controllers(pub Arc<Steer>);

impl Controllers {
    /// Has the agent do something; `read` makes the answer of what it says.
    fn ask<T: Send + 'static, A: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Agent) -> Result<T, SteerError> + Send + 'static,
        read: impl FnOnce(T) -> A + Send + 'static,
    ) -> Answered<A> {
        let steer = self.0.clone();
        Box::pin(async move { steer.ask(ask).await.map(read).map_err(refused) })
    }
}

/// Who asks in the extension's words gets its errors; the log has the rest.
fn refused(refusal: Refusal) -> Refused {
    let error = match refusal.why {
        Why::NotFound => Told::UnknownInterface,
        Why::Invalid => Told::Unsupported,
        _ => Told::Host,
    };
    Refused::new(error, format!("{}: {}", refusal.fault.step, refusal.fault.cause))
}

impl Host for Controllers {
    fn info(&self) -> Answered<HostInfo> {
        let report = self.ask(|agent| Ok(agent.host_report()), |report| report);
        Box::pin(async move {
            let report = report.await?;
            let names: Vec<String> =
                report.interfaces.iter().map(|(name, _)| name.clone()).collect();
            // Some of it is read from files.
            let cards = tokio::task::spawn_blocking(move || cards(names)).await.unwrap_or_default();
            Ok(report::host(&report, &cards))
        })
    }

    fn vms(&self) -> Answered<Vec<Vm>> {
        self.ask(|agent| Ok(agent.host_report()), |host| host.vms.iter().map(report::vm).collect())
    }

    fn change(&self, change: PlaceMod) -> Answered<()> {
        let steer = self.0.clone();
        Box::pin(async move {
            let wanted = change::Wanted::of(&change)?;
            let done =
                steer.ask(move |agent| Ok(wanted.carry_out(agent))).await.map_err(refused)?;
            done.map_err(|error| match error {
                change::Problem::NoCore => {
                    Refused::new(Told::BadCore, "no such core, or an excluded one")
                }
                change::Problem::Steer(error) if error.kind() == SteerErrorKind::Full => {
                    let kind = ErrorKind::Known(ErrorCode::FlowModFailedTableFull);
                    Refused { kind, what: error.cause() }
                }
                change::Problem::Steer(error) => refused(super::refusal(&error)),
            })
        })
    }

    fn core_stats(&self) -> Answered<Vec<CoreStats>> {
        self.ask(Agent::core_reports, |cores| cores.iter().map(report::core_stats).collect())
    }

    fn placements(&self, request: PlacementRequest) -> Answered<Vec<PlacementStats>> {
        self.ask(Agent::placement_reports, move |found| report::placements(&found, &request))
    }
}

/// What is known of these interfaces; one that is gone has no facts.
fn cards(names: Vec<String>) -> BTreeMap<String, NicFacts> {
    let facts = |name: String| NicFacts::of(&name).ok().map(|facts| (name, facts));
    names.into_iter().filter_map(facts).collect()
}
