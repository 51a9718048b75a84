//! `suiro port`.

use super::Context;
use super::switch::drops;
use crate::args::{PortCommand, PortMod};
use crate::failure::Failure;
use crate::table::{Table, dash};
use api::{
    Fault, Form, ForwardingView, Key, Method, PortNumber, PortPatch, PortSpec, PortView, SaView,
    SealingView, quoted,
};
use serde_json::Value;

/// Does what the command says.
pub fn run(context: &Context, command: PortCommand) -> Result<(), Failure> {
    match command {
        PortCommand::Add(args) => {
            let path = format!("/v1/switches/{}/ports?may_exist={}", args.switch, args.may_exist);
            let mut keys = args.keys.0;
            keys.insert("name".into(), args.name.to_string().into());
            let view: PortView = context.client.send(Method::POST, &path, &keys)?;
            let done = if args.may_exist { "is there" } else { "made" };
            context.print(&view, |view| made(view, done))
        }
        PortCommand::List { switch } => {
            let path = switch.map_or_else(
                || "/v1/ports".into(),
                |switch| format!("/v1/switches/{switch}/ports"),
            );
            let views: Vec<PortView> = context.client.get(&path)?;
            context.print(&views, |views| list(views))
        }
        PortCommand::Show { switch, port } => {
            let view: PortView = context.client.get(&path(&switch, &port))?;
            context.print(&view, show)
        }
        PortCommand::Mod(PortMod { switch, port, keys, rekey, up, down }) => {
            let patch = PortPatch { up: (up || down).then_some(up), rekey, keys: keys.0 };
            if patch == PortPatch::default() {
                let remedy = "name what to change: suiro port mod --help lists it";
                return Err(Failure::Usage(Fault::new(
                    format!("port {port}"),
                    "change it",
                    "nothing to change",
                    remedy,
                )));
            }
            let view: PortView =
                context.client.send(Method::PATCH, &path(&switch, &port), &patch)?;
            context.print(&view, |view| {
                format!("port {} of switch {} changed\n", view.name, view.switch)
            })
        }
        PortCommand::Del { switch, ports, if_exists } => ports.iter().try_for_each(|port| {
            let thing = format!("port {port} of switch {switch}");
            context.remove(&path(&switch, port), &thing, if_exists)
        }),
    }
}

pub(super) fn path(switch: &str, port: &str) -> String {
    format!("/v1/switches/{switch}/ports/{}", quoted(port))
}

fn made(view: &PortView, done: &str) -> String {
    // A port that waits has no mode yet.
    let mode = if view.mode.is_empty() { "not open yet" } else { &view.mode };
    let mut text = format!(
        "port {} of switch {} {done}, number {}: {}\n",
        view.name,
        view.switch,
        number(view),
        mode
    );
    view.notes.iter().for_each(|note| text += &format!("  note: {note}\n"));
    view.fault.iter().for_each(|fault| text += &format!("  waiting: {}\n", fault.cause));
    text
}

/// A port's number as the flow syntax has it.
fn number(view: &PortView) -> String {
    PortNumber::new(view.number)
        .map_or_else(|| view.number.to_string(), |number| number.to_string())
}

/// One word for a port's state.
pub fn state(view: &PortView) -> &'static str {
    match (&view.fault, view.admin_up, view.up && view.carrier) {
        (Some(_), ..) => "fault",
        (None, false, _) => "down",
        (None, true, true) => "up",
        (None, true, false) => "no link",
    }
}

/// One SA. Of those that send nothing is refused.
fn sa_line(sa: &SaView) -> String {
    let SaView { direction, spi, packets, sequence, replayed, bad_icv, malformed } = sa;
    match &**direction {
        "out" => format!("SA out {spi:#010x}  {packets} packets, next sequence number {sequence}"),
        _ => format!(
            "SA in  {spi:#010x}  {packets} packets, highest sequence number {sequence}; refused: {replayed} replayed, {bad_icv} not authentic, {malformed} malformed"
        ),
    }
}

/// Who carries its packets.
fn forwarding(ForwardingView { past, through, .. }: &ForwardingView) -> String {
    format!("  forwarding  own: {past} packets sent past the kernel, {through} through it\n")
}

/// Where it seals.
fn sealing(view: &SealingView) -> String {
    let SealingView { core, why, packets, lost } = view;
    let place = core.map_or_else(|| "with forwarding".into(), |core| format!("on core {core}"));
    let own = (core.is_some() || *packets > 0)
        .then(|| format!("; {packets} packets by a thread of its own"));
    let line = format!("  sealing     {place} ({why}){}\n", own.unwrap_or_default());
    line + &drops("  lost there ", lost)
}

/// Keys that only its kind of port has, as the command line writes them.
fn asked(view: &PortView) -> String {
    let keys = view.spec.as_ref().map(PortSpec::keys).unwrap_or_default();
    let option = |key: &Key| {
        let name = key.name.replace('_', "-");
        match keys.get(key.name)? {
            Value::Bool(true) if matches!(key.form, Form::Flag) => Some(format!("--{name}")),
            Value::Bool(is_on) => Some(format!("--{name} {}", if *is_on { "on" } else { "off" })),
            Value::String(text) => Some(format!("--{name} {text}")),
            value => Some(format!("--{name} {value}")),
        }
    };
    let options: Vec<_> = view.kind.keys().iter().filter_map(option).collect();
    if options.is_empty() { "-".into() } else { options.join(" ") }
}

pub(super) fn list(views: &[PortView]) -> String {
    let mut table = Table::new(&[
        "SWITCH",
        ">NR",
        "PORT",
        "TYPE",
        "INTERFACE",
        "NETNS",
        "STATE",
        ">MTU",
        ">RX",
        ">TX",
        ">DROPS",
        "HOW",
    ]);
    for view in views {
        let counters = &view.counters;
        let dropped: u64 =
            counters.rx_drops.iter().chain(&counters.tx_drops).map(|drop| drop.frames).sum();
        let how = view.fault.as_ref().map_or(&view.mode, |fault| &fault.cause);
        table.row(vec![
            view.switch.to_string(),
            number(view),
            view.name.to_string(),
            view.kind.word().into(),
            dash(view.interface.as_ref()),
            dash(view.netns.as_ref()),
            state(view).into(),
            dash((view.mtu > 0).then_some(view.mtu)),
            counters.rx_frames.to_string(),
            counters.tx_frames.to_string(),
            dropped.to_string(),
            how.clone(),
        ]);
    }
    table.to_string()
}

fn show(view: &PortView) -> String {
    let counters = &view.counters;
    let cores: Vec<_> =
        view.queues.iter().map(|queue| format!("{} on core {}", queue.queue, queue.core)).collect();
    let mut text = format!(
        "port {} of switch {}\n  number      {}\n  type        {}\n  asked for   {}\n  interface   {}\n  namespace   {}\n  state       {}\n  MAC         {}\n  MTU         {}\n  speed       {}\n  how         {}\n  rx queues   {}\n  rate        {}\n  made by     {}\n",
        view.name,
        view.switch,
        number(view),
        view.kind.word(),
        asked(view),
        dash(view.interface.as_ref()),
        view.netns.as_ref().map_or_else(|| "the node's own".into(), ToString::to_string),
        state(view),
        dash(view.mac.as_ref()),
        dash((view.mtu > 0).then_some(view.mtu)),
        dash((view.speed_mbps > 0).then(|| format!("{} Mbit/s", view.speed_mbps))),
        view.mode,
        if cores.is_empty() { "-".into() } else { cores.join(", ") },
        view.rate.map_or_else(|| "unlimited".into(), |rate| format!("{rate} bit/s")),
        view.origin,
    );
    text += &format!("  rx          {} frames, {} bytes\n", counters.rx_frames, counters.rx_bytes);
    text += &format!("  tx          {} frames, {} bytes\n", counters.tx_frames, counters.tx_bytes);
    view.queue.iter().for_each(|queue| text += &format!("  {}\n", super::queue::line(queue)));
    text += &drops("  rx dropped ", &counters.rx_drops);
    text += &drops("  tx dropped ", &counters.tx_drops);
    view.guest.iter().for_each(|guest| text += &super::front_end::show(guest));
    view.sealing.iter().for_each(|view| text += &sealing(view));
    view.forwarding.iter().for_each(|view| text += &forwarding(view));
    view.sas.iter().for_each(|sa| text += &format!("  {}\n", sa_line(sa)));
    view.notes.iter().for_each(|note| text += &format!("  note: {note}\n"));
    view.fault.iter().for_each(|fault| text += &format!("  FAULT: {fault}\n"));
    text
}
