//! `suiro offload`, and the list of flows by rung.

use super::{Context, out};
use crate::args::{OffloadCommand, OffloadPolicyArgs, OffloadPolicyCommand};
use crate::failure::Failure;
use crate::table::{Table, dash, short};
use api::{
    Method, OffloadPolicy, OffloadPolicyView, OffloadSwitch, OffloadView, OffloadWhy,
    OffloadedFlow, quoted,
};

/// Does what the command says.
pub fn run(context: &Context, command: OffloadCommand) -> Result<(), Failure> {
    match command {
        OffloadCommand::On => switch(context, true),
        OffloadCommand::Off => switch(context, false),
        OffloadCommand::Show => {
            let view: OffloadView = context.client.get("/v1/offload")?;
            context.print(&view, show)
        }
        OffloadCommand::Policy(OffloadPolicyCommand::Add(args)) => {
            let policy: OffloadPolicy =
                context.client.send(Method::PUT, "/v1/offload/policies", &spec(args))?;
            context.print(&policy, |policy| format!("policy {}: {}\n", policy.name, rule(policy)))
        }
        OffloadCommand::Policy(OffloadPolicyCommand::List) => {
            let view: OffloadView = context.client.get("/v1/offload")?;
            context.print(&view.policies, |policies| list(policies))
        }
        OffloadCommand::Policy(OffloadPolicyCommand::Del { names }) => {
            names.iter().try_for_each(|name| {
                context.client.delete(&format!("/v1/offload/policies/{}", quoted(name)))?;
                if context.json { Ok(()) } else { out(&format!("policy {name} removed\n")) }
            })
        }
        OffloadCommand::Why { switch, flow } => {
            let path = format!("/v1/switches/{switch}/offload/why?flow={}", quoted(&flow));
            let view: OffloadWhy = context.client.get(&path)?;
            context.print(&view, why)
        }
    }
}

/// The flows of a switch by rung.
pub fn flows(context: &Context, switch: &api::SwitchName, filter: &str) -> Result<(), Failure> {
    let path = format!("/v1/switches/{switch}/offload/flows?filter={}", quoted(filter));
    let flows: Vec<OffloadedFlow> = context.client.get(&path)?;
    context.print(&flows, |flows| table(flows))
}

fn switch(context: &Context, on: bool) -> Result<(), Failure> {
    let view: OffloadView =
        context.client.send(Method::PUT, "/v1/offload", &OffloadSwitch { on })?;
    context.print(&view, |view| {
        let policies = match view.policies.len() {
            0 => "by cost".into(),
            1 => "by 1 policy, and by cost".to_owned(),
            count => format!("by {count} policies, and by cost"),
        };
        if view.on { format!("offload is on, {policies}\n") } else { "offload is off\n".into() }
    })
}

fn spec(args: OffloadPolicyArgs) -> OffloadPolicy {
    OffloadPolicy {
        name: args.name,
        priority: args.priority,
        matching: args.matching,
        when: args.when,
        until: args.until,
        residence_ms: args.residence,
        never: args.never,
        rungs: args.rung,
    }
}

fn show(view: &OffloadView) -> String {
    let state = if view.on { "on" } else { "off" };
    let mut text = format!("offload  {state}, {} moves, {} flaps\n", view.moves, view.flaps);
    text += &format!(
        "worker   {:.0} ns a frame, {:.3} ns a byte\n",
        view.worker_ns_per_frame, view.worker_ns_per_byte
    );
    for rung in &view.rungs {
        text += &format!(
            "rung {:<4} {} flows, {} moving, {} of {} slots, {} packets, {} bytes\n",
            rung.name, rung.flows, rung.moving, rung.taken, rung.slots, rung.frames, rung.bytes
        );
    }
    for policy in &view.policies {
        text += &format!("policy   {}: {}\n", policy.policy.name, rule(&policy.policy));
    }
    text + "policy   what none fits: by cost\n"
}

fn list(policies: &[OffloadPolicyView]) -> String {
    let mut table = Table::new(&["NAME", "SWITCH", ">PRIORITY", "MATCH", "RULE", "MADE BY"]);
    for OffloadPolicyView { policy, switch, owner } in policies {
        let matching = Some(&policy.matching).filter(|text| !text.is_empty());
        table.row(vec![
            policy.name.clone(),
            dash(switch.as_ref()),
            policy.priority.to_string(),
            dash(matching),
            rule(policy),
            owner.clone(),
        ]);
    }
    table.to_string()
}

/// When flows of a policy move.
fn rule(policy: &OffloadPolicy) -> String {
    if policy.never {
        return "never".into();
    }
    let mut text =
        policy.when.as_ref().map_or_else(|| "by cost".into(), |when| format!("when {when}"));
    if let Some(until) = &policy.until {
        text += &format!(" until {until}");
    }
    if let Some(ms) = policy.residence_ms {
        text += &format!(", for {} s at least", ms as f64 / 1000.0);
    }
    if !policy.rungs.is_empty() {
        text += &format!(", by {}", policy.rungs.join(" or "));
    }
    text
}

fn table(flows: &[OffloadedFlow]) -> String {
    let mut table = Table::new(&[
        "FLOW", "IN", "OUT", "RUNG", ">SINCE", ">PACKETS", ">BYTES", ">BIT/S", ">LIMITED", "WHY",
    ]);
    for flow in flows {
        // What comes from samples says so.
        let about = if flow.offloaded_packets == flow.packets { "" } else { "~" };
        table.row(vec![
            flow.flow.clone(),
            flow.in_port.clone(),
            dash(flow.out_port.as_ref()),
            flow.rung.clone(),
            age(flow.since_s),
            format!("{about}{}", flow.packets),
            format!("{about}{}", flow.bytes),
            short(flow.bits_per_s as f64),
            if flow.limits == 0 { "-".into() } else { flow.limited_packets.to_string() },
            flow.why.clone(),
        ]);
    }
    table.to_string()
}

fn why(view: &OffloadWhy) -> String {
    let flow = &view.flow;
    let mut text = format!("{} from {} of {}\n", flow.flow, flow.in_port, flow.switch);
    text += &format!("  rung      {}, for {}\n", flow.rung, age(flow.since_s));
    text += &format!("  because   {}\n", flow.why);
    text += &format!("  policy    {}\n", view.policy);
    text += &format!(
        "  traffic   {} packets/s, {} bit/s\n",
        short(flow.packets_per_s as f64),
        short(flow.bits_per_s as f64)
    );
    text += &format!("  counted   {} packets, {} bytes\n", flow.packets, flow.bytes);
    text += &format!(
        "  past      {} packets, {} bytes\n",
        flow.offloaded_packets, flow.offloaded_bytes
    );
    text += &format!("  costs     {} of a core on the worker", percent(view.worker_ns_per_s));
    if let Some(ns) = view.rung_ns_per_s {
        text += &format!(", {} past it", percent(ns));
    }
    text += "\n";
    text += &prices(view);
    text += &match (&view.rung, &view.declined) {
        (Some(rung), _) => format!("  possible  on rung {rung}\n"),
        (None, Some(declined)) => format!("  possible  on no rung: {declined}\n"),
        (None, None) => String::new(),
    };
    if let Some(remedy) = &view.remedy {
        text += &format!("  remedy    {remedy}\n");
    }
    if let Some(next) = flow.next_try_s {
        text += &format!("  next try  in {next:.1} s\n");
    }
    text
}

/// What a frame costs on either side.
fn prices(view: &OffloadWhy) -> String {
    let price = |frame: f64, byte: f64| format!("{frame:.0} ns a frame and {byte:.3} a byte");
    let mut text = format!(
        "  price     {} on the worker",
        price(view.worker_ns_per_frame, view.worker_ns_per_byte)
    );
    if let (Some(frame), Some(byte)) = (view.rung_ns_per_frame, view.rung_ns_per_byte) {
        let how = if view.rung_is_measured == Some(true) { "measured" } else { "assumed" };
        text += &format!(", {} past it ({how})", price(frame, byte));
    }
    text + "\n"
}

/// Nanoseconds a second as a share of a core.
fn percent(ns_per_s: u64) -> String {
    format!("{:.2} %", ns_per_s as f64 / 1e7)
}

fn age(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.1}s"),
        ..3600.0 => format!("{:.0}m", seconds / 60.0),
        _ => format!("{:.0}h", seconds / 3600.0),
    }
}
