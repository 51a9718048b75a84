//! `suiro node`.

use super::out;
use crate::args::NodeArgs;
use crate::failure::Failure;
use crate::log;
use node::config::{Config, Host};
use node::run::{Checked, Options, RunError, check, identify, load, purge};
use node::service::OnConflict;

/// Runs a node, or checks its configuration, or removes what it left.
pub fn run(args: NodeArgs) -> Result<(), Failure> {
    let mut host = node::host::survey();
    let config = configured(&args, &host)?;
    if args.check {
        return check_here(&config);
    }
    log::start(args.log_format, args.log.as_deref(), config.node.log.as_deref())?;
    if args.purge {
        let purged = purge(&config)?;
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
    identify(&config.node.state_dir, &mut host)?;
    // Datapath ids are derived from who the node is, which its state directory says, which the configuration names.
    let config = configured(&args, &host)?;
    let on_conflict = if args.forget_conflicts { OnConflict::Forget } else { OnConflict::Refuse };
    let background = args.background;
    Ok(node::run::run(
        &Options { host, config_file: args.config, on_conflict, background },
        &config,
    )?)
}

/// The configuration, with what the command line says otherwise.
fn configured(args: &NodeArgs, host: &Host) -> Result<Config, Failure> {
    let mut config = load(args.config.as_deref(), host)?;
    if let Some(directory) = &args.run_dir {
        config.node.run_dir = directory.clone();
    }
    if let Some(directory) = &args.state_dir {
        config.node.state_dir = directory.clone();
    }
    Ok(config)
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
        "the configuration is right: {} switches, {ports} ports, {flows} flows\n",
        config.switches.len()
    )
}
