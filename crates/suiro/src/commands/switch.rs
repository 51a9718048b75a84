//! `suiro switch`.

use super::{Context, out};
use crate::args::{SwitchCommand, SwitchSettings};
use crate::failure::Failure;
use crate::table::{Table, time};
use api::{
    Dpid, DropView, EndpointView, FailMode, Fault, Latency, MacView, Method, Rules, SteeringAccess,
    SwitchName, SwitchPatch, SwitchView, TlsSpec, TroubleView,
};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Does what the command says.
pub fn run(context: &Context, command: SwitchCommand) -> Result<(), Failure> {
    match command {
        SwitchCommand::Add { name, may_exist, dpid, miss_send_len, settings } => {
            let path = format!("/v1/switches?may_exist={may_exist}");
            let new = NewSwitch { name, dpid, miss_send_len, settings: patch(settings) };
            let view: SwitchView = context.client.send(Method::POST, &path, &new)?;
            let done = if may_exist { "is there" } else { "made" };
            context.print(&view, |view| {
                format!("switch {} {done}, datapath id {}\n", view.name, view.dpid)
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
        SwitchCommand::Mod { name, settings, no_controllers, no_listen, no_tls } => {
            let mut patch = patch(settings);
            if no_controllers {
                patch.controllers = Some(Vec::new());
            }
            if no_listen {
                patch.listen = Some(Vec::new());
            }
            if no_tls {
                patch.tls = Some(None);
            }
            if patch == SwitchPatch::default() {
                return Err(Failure::Usage(Fault::new(
                    format!("switch {name}"),
                    "change it",
                    "nothing to change",
                    "name what to change: suiro switch mod --help lists it",
                )));
            }
            let view: SwitchView = context.client.send(Method::PATCH, &path(&name), &patch)?;
            context.print(&view, |view| format!("switch {} changed\n", view.name))
        }
        SwitchCommand::Macs { name, forget: true } => {
            context.client.delete(&format!("{}/macs", path(&name)))?;
            if context.json { Ok(()) } else { out(&format!("switch {name} has forgotten them\n")) }
        }
        SwitchCommand::Macs { name, forget: false } => {
            let views: Vec<MacView> = context.client.get(&format!("{}/macs", path(&name)))?;
            context.print(&views, |views| macs(views))
        }
        SwitchCommand::Del { names, if_exists } => names
            .iter()
            .try_for_each(|name| context.remove(&path(name), &format!("switch {name}"), if_exists)),
    }
}

/// What was named of a new switch; the node knows the rest.
#[derive(Serialize)]
struct NewSwitch {
    name: SwitchName,
    #[serde(skip_serializing_if = "Option::is_none")]
    dpid: Option<Dpid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    miss_send_len: Option<u16>,
    #[serde(flatten)]
    settings: SwitchPatch,
}

fn macs(views: &[MacView]) -> String {
    let mut table = Table::new(&["MAC", ">VLAN", ">NR", "PORT", ">AGE"]);
    for view in views {
        let vlan = if view.vlan == 0 { "-".into() } else { view.vlan.to_string() };
        table.row(vec![
            view.mac.clone(),
            vlan,
            view.port.to_string(),
            view.port_name.clone().unwrap_or_else(|| "(gone)".into()),
            format!("{} s", view.age_s),
        ]);
    }
    table.to_string()
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
        max_flood_copies_per_s: settings.max_flood_copies_per_s.map(Some),
        max_copies_per_s: settings.max_copies_per_s,
        fail_after_s: settings.fail_after_s,
        on_reconnect: settings.on_reconnect.as_deref().and_then(Rules::of),
        on_standalone: settings.on_standalone.as_deref().and_then(Rules::of),
        echo_interval_s: settings.echo_interval_s,
        aux: settings.aux,
        steering: settings.steering.as_deref().and_then(SteeringAccess::of),
        tls: certificates(settings.tls_certificate, settings.tls_key, settings.tls_ca)
            .map(|tls| Some(TlsSpec { pins: settings.tls_pins, ..tls })),
        offload_policy: None,
        session_netns: settings.session_netns.map(Some),
    }
}

/// The node may be somewhere else in the file system than the one who types.
fn certificates(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
) -> Option<TlsSpec> {
    let from_root = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let [certificate, key, ca] = [certificate?, key?, ca?].map(from_root);
    Some(TlsSpec { certificate, key, ca, pins: Vec::new() })
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

pub(super) fn show(view: &SwitchView) -> String {
    let or_none = |list: &[String]| if list.is_empty() { "none".into() } else { list.join(", ") };
    let mut text = format!(
        "switch {}\n  datapath id   {}\n  fail mode     {}\n  controllers   {}\n  listens on    {}\n  OpenFlow      {}\n  steering      {}\n  management    {}\n  made by       {}\n",
        view.name,
        view.dpid,
        fail_mode(view),
        or_none(&view.controllers),
        or_none(&view.listen),
        view.protocols.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        steering(view.steering),
        view.management,
        view.origin,
    );
    text += &format!(
        "  ports {}, tables {}, flows {}, packet-ins {} (at most {}/s), packet-outs {}\n",
        view.ports,
        view.tables,
        view.flows,
        view.packet_ins,
        view.max_packet_in_per_s,
        view.packet_outs
    );
    view.max_flood_copies_per_s.iter().for_each(|rate| {
        text += &format!("  storm control at most {rate} copies/s of floods of a port\n");
    });
    text += &format!(
        "  copies        at most {}/s beyond those that each frame may make\n",
        view.max_copies_per_s
    );
    view.session_netns.iter().for_each(|netns| text += &format!("  sessions in   {netns}\n"));
    view.endpoints.iter().for_each(|endpoint| text += &show_endpoint(endpoint));
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
    text += &stays("received", &view.latency.received);
    text += &stays("handed over", &view.latency.handed);
    text += &drops("  drops", &view.drops);
    view.fault.iter().for_each(|fault| text += &format!("  FAULT: {fault}\n"));
    text
}

/// How long frames stayed, in a line; nothing if there were none.
fn stays(which: &str, times: &Latency) -> String {
    let quantile = |share| times.quantile_ns(share).map(time);
    let (Some(half), Some(most)) = (quantile(0.5), quantile(0.99)) else { return String::new() };
    format!("  {} frames {which} stayed: p50 {half}, p99 {most}\n", times.frames())
}

fn steering(access: SteeringAccess) -> &'static str {
    match access {
        SteeringAccess::Off => "the host's is not shown to controllers",
        SteeringAccess::Read => "controllers may read the host's",
        SteeringAccess::Program => "controllers may read and program the host's",
    }
}

fn fail_mode(view: &SwitchView) -> String {
    let now = match (view.alone, view.flows) {
        (false, _) => "",
        (true, 0) => ", forwarding by itself now",
        (true, _) => ", forwarding by itself now what no rule matches",
    };
    match view.fail_mode {
        FailMode::Secure => format!("secure, rules: {} on reconnect", view.on_reconnect.word()),
        FailMode::Standalone => format!(
            "standalone after {} s without a controller{now}, rules: {} then, {} on reconnect",
            view.fail_after_s,
            view.on_standalone.word(),
            view.on_reconnect.word()
        ),
    }
}

/// What an endpoint is doing, and what last went wrong there and when.
fn show_endpoint(endpoint: &EndpointView) -> String {
    let mut text =
        format!("  {} {} for {}", endpoint.target, endpoint.state, ago(endpoint.since_ns));
    if let (Some(version), Some(role)) = (&endpoint.version, &endpoint.role) {
        text += &format!(", OpenFlow {version}, {role}, {} auxiliary", endpoint.auxiliary);
    }
    text += "\n";
    if let Some(error) = &endpoint.last_error {
        let (ago, TroubleView { cause, remedy, .. }) = (ago(error.at_ns), error);
        text += &format!("    last error, {ago} ago: {cause}\n      remedy: {remedy}\n");
    }
    text
}

/// The time since then, in whole seconds.
fn ago(then_ns: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{} s", now.saturating_sub(Duration::from_nanos(then_ns)).as_secs())
}

/// Drops by reason, one line each under a heading; nothing if there are none.
pub fn drops(heading: &str, drops: &[DropView]) -> String {
    let lines = drops.iter().map(|drop| format!("{heading} {}: {}\n", drop.reason, drop.frames));
    lines.collect()
}
