//! `suiro control`.

use super::{background, out};
use crate::args::{ControlArgs, LogFormat};
use crate::failure::Failure;
use crate::log;
use api::{Client, Fault};
use control::doors::Files;
use control::run::{Options, PORTAL, Portals, SOCKET, run as serve};
use std::ffi::OsString;
use std::time::Duration;

/// Runs a controller.
pub fn run(args: ControlArgs) -> Result<(), Failure> {
    if args.background {
        return start(&args);
    }
    log::start(args.log_format, args.log.as_deref(), None)?;
    let ControlArgs { run_dir, state_dir, listen, portal, portal_netns, .. } = args;
    let files = args.portal_certificate.zip(args.portal_key);
    let certificate = files.map(|(certificate, key)| Files { certificate, key });
    let portals = Portals { addresses: portal, certificate, netns: portal_netns };
    serve(&Options { run_dir, state_dir, listen, portals }).map_err(Failure::Refused)
}

fn start(args: &ControlArgs) -> Result<(), Failure> {
    let socket = args.run_dir.join(SOCKET);
    let client = Client::new(socket.clone(), Duration::from_secs(1));
    if client.is_served() {
        let cause = format!("one serves {} already", socket.display());
        let fault = Fault::new(
            "controller",
            "start one in the background",
            cause,
            "use it, or end it first",
        );
        return Err(Failure::Refused(fault));
    }
    let mut arguments: Vec<OsString> = Vec::new();
    for (option, path) in [("--run-dir", &args.run_dir), ("--state-dir", &args.state_dir)] {
        arguments.extend([option.into(), std::path::absolute(path)?.into()]);
    }
    for address in &args.listen {
        arguments.extend(["--listen".into(), address.to_string().into()]);
    }
    for address in &args.portal {
        arguments.extend(["--portal".into(), address.to_string().into()]);
    }
    for (option, path) in [
        ("--portal-certificate", &args.portal_certificate),
        ("--portal-key", &args.portal_key),
        ("--portal-netns", &args.portal_netns),
    ] {
        if let Some(path) = path {
            arguments.extend([option.into(), std::path::absolute(path)?.into()]);
        }
    }
    if args.log_format == LogFormat::Json {
        arguments.extend(["--log-format".into(), "json".into()]);
    }
    if let Some(filter) = &args.log {
        arguments.extend(["--log".into(), filter.into()]);
    }
    let started = background::start("control", &client, &args.run_dir, &arguments)?;
    let (pid, log) = (started.pid, started.log.display());
    let portals = std::fs::read_to_string(args.run_dir.join(PORTAL)).unwrap_or_default();
    let portals: String = portals.lines().map(|at| format!("portal {at}\n")).collect();
    out(&format!("controller serves {}, process {pid}, log {log}\n{portals}", socket.display()))
}
