//! `suiro node`.

use super::{background, out};
use crate::args::{Cores, LogFormat, NodeArgs};
use crate::failure::Failure;
use crate::log;
use crate::place::ControllerPlace;
use crate::plural::counted;
use crate::secret;
use api::{Client, Fault, NodeView};
use node::config::{Config, ConfigFile, Found, Host, Instead};
use node::member::{Membership, Place};
use node::run::{Checked, Options, RunError, State, check, has_rights, identify, purge};
use node::service::OnConflict;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Runs a node, or checks its configuration, or removes what it left.
pub fn run(args: NodeArgs) -> Result<(), Failure> {
    let mut host = node::host::survey();
    let config = configured(&args, &host)?.config;
    if args.check {
        return check_here(&config);
    }
    if !args.purge && !args.unprivileged {
        has_rights()?;
    }
    if args.background {
        return start(&args, &config);
    }
    log::start(args.log_format, args.log.as_deref(), config.node.log.as_deref())?;
    if args.purge {
        let state = if args.keep_state { State::Kept } else { State::Removed };
        let purged = purge(&config, state)?;
        purged.guests.iter().try_for_each(|guest| out(&format!("removed guest {guest}\n")))?;
        purged.taps.iter().try_for_each(|tap| out(&format!("removed TAP {tap}\n")))?;
        purged.released.iter().try_for_each(|interface| {
            out(&format!("interface {interface} is given back to the host's own stack\n"))
        })?;
        purged.steered.iter().try_for_each(|interface| {
            out(&format!("interface {interface} is not steered any more\n"))
        })?;
        return purged
            .files
            .iter()
            .try_for_each(|file| out(&format!("removed {}\n", file.display())));
    }
    node::host::privilege::keep_files_private();
    identify(&config.node.state_dir, &mut host)?;
    // Datapath ids are derived from who the node is, which its state directory says, which the configuration names.
    let config_file = config_file(&args, &host)?;
    let Found { config, faults } = config_file.read_or_last_good(&host).map_err(RunError::from)?;
    for fault in &faults {
        tracing::error!(remedy = fault.remedy, "the last good configuration runs: {fault}");
    }
    let membership = membership(&args)?;
    if let Some(membership) = &membership {
        membership.enrol(&config.node.state_dir).map_err(Failure::Refused)?;
    }
    let on_conflict = if args.forget_conflicts { OnConflict::Forget } else { OnConflict::Refuse };
    Ok(node::run::run(
        &Options {
            host,
            config_file,
            config_faults: faults,
            on_conflict,
            background: args.until_idle,
            membership,
        },
        &config,
    )?)
}

fn membership(args: &NodeArgs) -> Result<Option<Membership>, Failure> {
    let Some((controller, name)) = args.join.clone().zip(args.node_name.clone()) else {
        return Ok(None);
    };
    let (controller, token) = match controller {
        ControllerPlace::Socket(path) => (Place::Socket(path), None),
        ControllerPlace::Address(address) => {
            (Place::Address(address), secret::token(args.token_file.as_deref(), secret::JOIN)?)
        }
    };
    Ok(Some(Membership { name, controller, token }))
}

/// The configuration, with what the command line says otherwise.
fn configured(args: &NodeArgs, host: &Host) -> Result<Found, Failure> {
    Ok(config_file(args, host)?.read_or_last_good(host).map_err(RunError::from)?)
}

fn config_file(args: &NodeArgs, host: &Host) -> Result<ConfigFile, Failure> {
    let instead = Instead {
        run_dir: args.run_dir.clone(),
        state_dir: args.state_dir.clone(),
        cores: args.cores.as_ref().map(|cores| usable(cores, host)).transpose()?,
    };
    Ok(ConfigFile { path: args.config.clone(), last_good: args.last_good.clone(), instead })
}

/// Cores for workers, each once.
fn usable(Cores(cores): &Cores, host: &Host) -> Result<Vec<usize>, Failure> {
    let cores: BTreeSet<usize> = cores.iter().map(|&core| core.into()).collect();
    if let Some(core) = cores.iter().find(|core| !host.cores.contains(core)) {
        let ours: Vec<_> = host.cores.iter().map(ToString::to_string).collect();
        return Err(Failure::Usage(Fault::new(
            "--cores",
            "read it",
            format!("core {core} does not exist or is not ours to use"),
            format!("choose from: {}", ours.join(", ")),
        )));
    }
    Ok(cores.into_iter().collect())
}

/// Says what is wrong with the configuration on this host, or that nothing is.
fn check_here(config: &Config) -> Result<(), Failure> {
    let Checked { refused, notes } = check(config);
    if !refused.is_empty() {
        return Err(RunError::Faults(refused).into());
    }
    out(&checked(config))?;
    notes.iter().try_for_each(|note| out(&format!("note: {note}\n")))
}

fn checked(config: &Config) -> String {
    let ports: usize = config.switches.iter().map(|switch| switch.ports.len()).sum();
    let flows: usize = config.switches.iter().map(|switch| switch.flows.len()).sum();
    format!(
        "the configuration is right: {}, {}, {}\n",
        counted(config.switches.len(), "switch", "switches"),
        counted(ports, "port", "ports"),
        counted(flows, "flow", "flows"),
    )
}

/// Starts the node as a process of its own. The configuration was read already, so an error in it is said here.
fn start(args: &NodeArgs, config: &Config) -> Result<(), Failure> {
    let directory = &config.node.run_dir;
    let socket = directory.join(background::SOCKET);
    let client = Client::new(socket.clone(), Duration::from_secs(1));
    if client.is_served() {
        return already(args, &client, &socket);
    }
    let started = background::start("node", &client, directory, &arguments(args)?)?;
    let (pid, log) = (started.pid, started.log.display());
    out(&format!("node serves {}, process {pid}, log {log}\n", socket.display()))
}

/// What was asked for is there where nothing was said of how the node shall be: the package's service is such a node.
fn already(args: &NodeArgs, client: &Client, socket: &Path) -> Result<(), Failure> {
    let pid = client.get::<NodeView>("/v1/node").map_err(Failure::from)?.pid;
    let place = 2 * usize::from(args.run_dir.is_some());
    if arguments(args)?.len() == place {
        return out(&format!("node serves {} already, process {pid}\n", socket.display()));
    }
    let cause = format!("one serves {} already, process {pid}", socket.display());
    let remedy = "use it, or stop it first (systemctl stop suiro, or kill its process)";
    Err(Failure::Refused(Fault::new("node", "start one in the background", cause, remedy)))
}

/// The arguments that say the same from another working directory.
fn arguments(args: &NodeArgs) -> Result<Vec<OsString>, Failure> {
    let mut all = Vec::new();
    let paths = [
        ("--token-file", &args.token_file),
        ("--config", &args.config),
        ("--last-good", &args.last_good),
        ("--run-dir", &args.run_dir),
        ("--state-dir", &args.state_dir),
    ];
    for (option, path) in paths {
        if let Some(path) = path {
            all.extend([option.into(), std::path::absolute(path)?.into()]);
        }
    }
    if let Some(Cores(cores)) = &args.cores {
        let cores: Vec<_> = cores.iter().map(ToString::to_string).collect();
        all.extend(["--cores".into(), cores.join(",").into()]);
    }
    if let Some(controller) = &args.join {
        let controller = match controller {
            ControllerPlace::Socket(path) => std::path::absolute(path)?.into(),
            ControllerPlace::Address(address) => address.into(),
        };
        all.extend(["--join".into(), controller]);
    }
    if let Some(name) = &args.node_name {
        all.extend(["--node-name".into(), name.into()]);
    }
    if args.forget_conflicts {
        all.push("--forget-conflicts".into());
    }
    if args.log_format == LogFormat::Json {
        all.extend(["--log-format".into(), "json".into()]);
    }
    if let Some(filter) = &args.log {
        all.extend(["--log".into(), filter.into()]);
    }
    Ok(all)
}
