//! How long frames of a flow stay in each stage, by names.

use super::Node;
use super::rules::resolver;
use crate::refusal::{Refusal, Why};
use api::{Fault, StageTimes, TIMING_MAX_MS, TimingQuestion, TimingView};
use datapath::{Datapath, Stage, Timing};
use std::sync::Arc;
use std::time::Duration;

impl Node {
    /// Times frames of a switch for a while.
    ///
    /// # Errors
    /// There is no such switch, the question cannot be read, or too many ask.
    pub async fn time_flow(
        &self,
        switch: &str,
        question: &TimingQuestion,
    ) -> Result<TimingView, Refusal> {
        let member = self.member(switch)?;
        let thing = format!("switch {switch}");
        if !(1..=TIMING_MAX_MS).contains(&question.for_ms) {
            let cause = format!("for_ms is {}", question.for_ms);
            let remedy = format!("say 1 to {TIMING_MAX_MS}, and ask again for more");
            return Err(Refusal::new(
                Why::Invalid,
                Fault::new(thing, "time frames", cause, remedy),
            ));
        }
        let filter = self.filter_of(&thing, &question.matching, &resolver(&member))?;
        let begun = self.datapath.time(member.id, &filter);
        let timing = begun.map_err(|error| {
            let fault =
                Fault::new(thing, "time frames", error.to_string(), "wait until others have ended");
            Refusal::new(Why::Impossible, fault)
        })?;
        let running = Running { datapath: self.datapath.clone(), timing: Some(timing) };
        tokio::time::sleep(Duration::from_millis(question.for_ms.into())).await;
        Ok(running.view(question.for_ms))
    }
}

/// Ends with whoever asked, also where they hang up.
struct Running {
    datapath: Arc<Datapath>,
    timing: Option<Timing>,
}

impl Running {
    fn view(&self, for_ms: u32) -> TimingView {
        let times = |stage: Stage| self.timing.as_ref().map(|timing| timing.times(stage));
        let stages = Stage::ALL.into_iter().filter_map(|stage| {
            let (stayed, own) = times(stage)?;
            let stage = name(stage).to_owned();
            (stayed.frames() > 0).then_some(StageTimes { stage, stayed, own })
        });
        let frames = times(Stage::All).map_or(0, |(stayed, _)| stayed.frames());
        TimingView { for_ms, frames, stages: stages.collect() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let (datapath, timing) = (self.datapath.clone(), self.timing.take());
        // Every worker is asked.
        tokio::task::spawn_blocking(move || timing.map(|timing| datapath.end_timing(&timing)));
    }
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Receive => "receive",
        Stage::Handover => "handover",
        Stage::Tables => "tables",
        Stage::Send => "send",
        Stage::All => "all",
        Stage::Queue => "queue",
    }
}
