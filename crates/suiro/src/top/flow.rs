//! `suiro top flow`: for how long frames of a flow stay in each stage.

use crate::args::FlowTimesArgs;
use crate::commands::{Context, out};
use crate::failure::Failure;
use crate::plural::counted;
use crate::table::{Table, dash, time};
use api::{Method, StageTimes, TimingQuestion, TimingView};

/// Times frames until interrupted, or once.
pub fn run(context: &Context, args: &FlowTimesArgs) -> Result<(), Failure> {
    let path = format!("/v1/switches/{}/times", args.switch);
    let for_ms = u32::from(args.interval) * 1000;
    let question = TimingQuestion { matching: args.matching.clone(), for_ms };
    loop {
        let view: TimingView = context.client.send(Method::POST, &path, &question)?;
        let text = match context.json {
            true => serde_json::to_string(&view).expect("times are plain data"),
            false => page(&view, args),
        };
        out(&(text + if context.json || !args.once { "\n" } else { "" }))?;
        if args.once {
            return Ok(());
        }
    }
}

fn page(view: &TimingView, args: &FlowTimesArgs) -> String {
    let frames = counted(view.frames as usize, "frame", "frames");
    let head = format!("{frames} of {} in {} s\n", args.matching, view.for_ms / 1000);
    if view.stages.is_empty() {
        let hint = "none came in by a port of its own: what comes by a vlink is timed where it came in first\n";
        return head + hint;
    }
    let mut table =
        Table::new(&["STAGE", ">FRAMES", ">OWN P50", ">OWN P99", ">STAYED P50", ">STAYED P99"]);
    for StageTimes { stage, stayed, own } in &view.stages {
        let [half, most] = [0.5, 0.99].map(|share| dash(stayed.quantile_ns(share).map(time)));
        let [own_half, own_most] = [0.5, 0.99].map(|share| dash(own.quantile_ns(share).map(time)));
        let frames = stayed.frames().to_string();
        table.row(vec![stage.clone(), frames, own_half, own_most, half, most]);
    }
    head + &table.to_string()
}
