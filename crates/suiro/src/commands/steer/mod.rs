//! `suiro steer`.

mod flows;
mod show;
mod top;
mod why;

#[cfg(feature = "node")]
use super::background;
use super::{Context, out};
use crate::args::{Cores, OnOff, PolicyCommand, PolicyName, SteerCommand, Unmatched, VmCommand};
use crate::failure::Failure;
use api::steer::{
    Detached, InterfaceSpec, InterfaceView, PolicyKind, PolicyPatch, PolicySpec, SteerView, VmSpec,
    VmView, called,
};
use api::{Fault, Method, SteerPoint, quoted};

/// Does what the command says.
pub fn run(context: &Context, command: SteerCommand) -> Result<(), Failure> {
    // Here the way to a node is shorter than elsewhere.
    obey(context, command).map_err(|failure| match failure {
        Failure::NoNode(fault) => {
            let remedy = "begin with: suiro steer attach INTERFACE; or name a node's socket with --api or SUIRO_API";
            Failure::NoNode(Fault { remedy: remedy.into(), ..fault })
        }
        other => other,
    })
}

fn obey(context: &Context, command: SteerCommand) -> Result<(), Failure> {
    match command {
        SteerCommand::Attach { interfaces, unmatched, groups, rules, fcf } => {
            let spec = InterfaceSpec { unmatched: left(unmatched), groups, rules_max: rules, fcf };
            attach(context, &interfaces, &spec)
        }
        SteerCommand::Detach { interfaces, all } => detach(context, interfaces, all),
        SteerCommand::List => {
            let view = look(context)?;
            context.print(&view.interfaces, |views| show::interfaces(views))
        }
        SteerCommand::Flow(command) => flows::run(context, command),
        SteerCommand::Why(args) => why::run(context, &args),
        SteerCommand::Top(args) => top::run(context, &args),
        SteerCommand::Vm(command) => vm(context, command),
        SteerCommand::Cores => {
            let view = look(context)?;
            context.print(&view.cores, |cores| show::cores(cores))
        }
        SteerCommand::Policy(PolicyCommand::Show) => {
            let view = look(context)?;
            context.print(&view.policy, show::policy)
        }
        SteerCommand::Policy(PolicyCommand::Set { policy, threshold, cores, reserved, moves }) => {
            let patch = PolicyPatch {
                policy: policy.map(kind),
                threshold_percent: threshold,
                cores: cores.map(|Cores(cores)| cores),
                reserved: reserved.map(|Cores(cores)| cores),
                moves: moves.map(|moves| moves == OnOff::On),
                ..PolicyPatch::default()
            };
            let policy: PolicySpec =
                context.client.send(Method::PATCH, "/v1/steer/policy", &patch)?;
            context.print(&policy, show::policy)
        }
    }
}

fn look(context: &Context) -> Result<SteerView, Failure> {
    Ok(context.client.get("/v1/steer")?)
}

fn left(unmatched: Unmatched) -> api::steer::Unmatched {
    match unmatched {
        Unmatched::Place => api::steer::Unmatched::Place,
        Unmatched::Stay => api::steer::Unmatched::Stay,
    }
}

fn kind(policy: PolicyName) -> PolicyKind {
    match policy {
        PolicyName::Vse => PolicyKind::Vse,
        PolicyName::Hash => PolicyKind::Hash,
    }
}

fn path(interface: &str) -> String {
    format!("/v1/steer/interfaces/{}", quoted(interface))
}

fn attach(
    context: &Context,
    interfaces: &[SteerPoint],
    spec: &InterfaceSpec,
) -> Result<(), Failure> {
    #[cfg(feature = "node")]
    let started = background::ensure_node(context)?;
    let attach = |interface: &SteerPoint| context.client.send(Method::PUT, &path(interface), spec);
    let views: Result<Vec<InterfaceView>, _> = interfaces.iter().map(attach).collect();
    #[cfg(feature = "node")]
    if views.is_err() {
        background::end_if_idle(context, started.as_ref());
    }
    let views = views?;
    context.print(&views, |views| views.iter().map(show::attached).collect())
}

fn detach(context: &Context, interfaces: Vec<SteerPoint>, all: bool) -> Result<(), Failure> {
    let names: Vec<String> = if all {
        look(context)?.interfaces.into_iter().map(|view| view.name).collect()
    } else {
        interfaces.iter().map(ToString::to_string).collect()
    };
    for name in &names {
        let detached: Detached = context.client.take(&path(name))?;
        if context.json {
            continue;
        }
        out(&format!("{} is not steered any more\n", called(name)))?;
        if detached.node_ends {
            out("the node that was started for steering ends\n")?;
        }
    }
    Ok(())
}

fn vm(context: &Context, command: VmCommand) -> Result<(), Failure> {
    let path = |name: &str| format!("/v1/steer/vms/{}", quoted(name));
    match command {
        VmCommand::List => {
            let view = look(context)?;
            context.print(&view.vms, |vms| show::vms(vms))
        }
        VmCommand::Add { name, id, tenant, cores, addresses } => {
            let spec = VmSpec { id, tenant, cores, addresses };
            let view: VmView = context.client.send(Method::PUT, &path(&name), &spec)?;
            context.print(&view, |view| show::vms(std::slice::from_ref(view)))
        }
        VmCommand::Del { names } => names.iter().try_for_each(|name| {
            context.client.delete(&path(name))?;
            if context.json { Ok(()) } else { out(&format!("machine {name} forgotten\n")) }
        }),
    }
}
