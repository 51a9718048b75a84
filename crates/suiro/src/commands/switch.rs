//! `suiro switch`.

use super::{Context, out};
use crate::args::{SwitchCommand, SwitchSettings};
use crate::failure::Failure;
use crate::table::Table;
use hyper::Method;
use node::service::{DropView, SwitchView};
use node::spec::{FailMode, SwitchPatch, SwitchSpec};

/// Does what the command says.
pub fn run(context: &Context, command: SwitchCommand) -> Result<(), Failure> {
    match command {
        SwitchCommand::Add { name, dpid, miss_send_len, settings } => {
            let mut spec =
                patch(settings).applied_to(&SwitchSpec { dpid, ..SwitchSpec::named(name) });
            spec.miss_send_len = miss_send_len.unwrap_or(spec.miss_send_len);
            let view: SwitchView = context.client.send(Method::POST, "/v1/switches", &spec)?;
            context.print(&view, |view| {
                format!("switch {} made, datapath id {}\n", view.name, view.dpid)
            })
        }
        SwitchCommand::List => {
            let views: Vec<SwitchView> = context.client.get("/v1/switches")?;
            context.print(&views, |views| list(views))
        }
        SwitchCommand::Show { name } => {
            let view: SwitchView = context.client.get(&path(&name))?;
            context.print(&view, show)
        }
        SwitchCommand::Mod { name, settings, no_controllers, no_listen } => {
            let mut patch = patch(settings);
            if no_controllers {
                patch.controllers = Some(Vec::new());
            }
            if no_listen {
                patch.listen = Some(Vec::new());
            }
            let view: SwitchView = context.client.send(Method::PATCH, &path(&name), &patch)?;
            context.print(&view, |view| format!("switch {} changed\n", view.name))
        }
        SwitchCommand::Del { names } => names.iter().try_for_each(|name| {
            context.client.delete(&path(name))?;
            if context.json { Ok(()) } else { out(&format!("switch {name} removed\n")) }
        }),
    }
}

fn path(name: &str) -> String {
    format!("/v1/switches/{name}")
}

fn patch(settings: SwitchSettings) -> SwitchPatch {
    SwitchPatch {
        fail_mode: settings.fail_mode.as_deref().and_then(FailMode::of),
        controllers: (!settings.controllers.is_empty()).then_some(settings.controllers),
        listen: (!settings.listen.is_empty()).then_some(settings.listen),
        protocols: (!settings.protocols.is_empty()).then_some(settings.protocols),
        max_packet_in_per_s: settings.max_packet_in_per_s,
    }
}

fn list(views: &[SwitchView]) -> String {
    let mut table =
        Table::new(&["SWITCH", "DPID", "MODE", ">PORTS", ">FLOWS", "CONTROLLERS", "FROM"]);
    for view in views {
        table.row(vec![
            view.name.to_string(),
            view.dpid.to_string(),
            view.fail_mode.word().into(),
            view.ports.to_string(),
            view.flows.to_string(),
            controllers(view),
            view.origin.clone(),
        ]);
    }
    table.to_string()
}

fn controllers(view: &SwitchView) -> String {
    let connected = view.connections.iter().filter(|connection| connection.controller).count();
    match view.controllers.len() {
        0 if connected == 0 => "-".into(),
        wanted => format!("{connected} of {wanted} connected"),
    }
}

fn show(view: &SwitchView) -> String {
    let or_none = |list: &[String]| if list.is_empty() { "none".into() } else { list.join(", ") };
    let mut text = format!(
        "switch {}\n  datapath id   {}\n  fail mode     {}\n  controllers   {}\n  listens on    {}\n  OpenFlow      {}\n  management    {}\n  made by       {}\n",
        view.name,
        view.dpid,
        view.fail_mode.word(),
        or_none(&view.controllers),
        or_none(&view.listen),
        view.protocols.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        view.management,
        view.origin,
    );
    text += &format!(
        "  ports {}, flows {}, packet-ins {} (at most {}/s), packet-outs {}\n",
        view.ports, view.flows, view.packet_ins, view.max_packet_in_per_s, view.packet_outs
    );
    for connection in &view.connections {
        let kind = if connection.controller { "controller" } else { "visitor" };
        text += &format!(
            "  {kind} {}: OpenFlow {}, {}, {} packet-ins sent, {} lost\n",
            connection.peer,
            connection.version,
            connection.role,
            connection.packet_ins,
            connection.lost_packet_ins
        );
    }
    text += &drops("  drops", &view.drops);
    view.fault.iter().for_each(|fault| text += &format!("  FAULT: {fault}\n"));
    text
}

/// Drops by reason, one line each under a heading; nothing if there are none.
pub fn drops(heading: &str, drops: &[DropView]) -> String {
    let lines = drops.iter().map(|drop| format!("{heading} {}: {}\n", drop.reason, drop.frames));
    lines.collect()
}
