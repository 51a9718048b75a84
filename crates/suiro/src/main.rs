//! # suiro: the one binary
//!
//! `suiro node` runs a node; every other command is a client of a running node's local API and of nothing else.
//! Built without its features it is the client alone, which links no part of a node.
//!
//! * [`args`]: what may be typed, with examples.
//! * [`commands`]: one module per noun.
//! * [`place`], [`login`], [`secret`]: where a controller is, and as whom it is asked.
//! * [`extcap`]: the same program by the name `suirocap`, for Wireshark.
//! * [`names`]: what the shell's Tab key offers.
//! * [`top`]: the live view.
//!
//! Exit codes: 0 done; 1 refused or failed; 2 not understood; 3 no node to talk to; 4 asked for: something would change.

mod args;
mod bounds;
mod commands;
mod extcap;
mod failure;
#[cfg(feature = "node")]
mod log;
mod login;
mod names;
mod place;
mod plural;
mod points;
mod secret;
mod table;
mod terminal;
mod top;

use api::Client;
use args::{Cli, Command, TopOf};
use clap_complete::CompleteEnv;
use failure::Failure;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    #[cfg(feature = "node")]
    if let Some(status) = node::hold_a_guest() {
        return status.into();
    }
    let mut words = std::env::args();
    if extcap::is_it(words.next().as_deref()) {
        return extcap::run(words)
            .map_or_else(|failure| failure.report(false), |()| ExitCode::SUCCESS);
    }
    // The shell's Tab key: answered, and nothing else is done.
    CompleteEnv::with_factory(|| names::with_names(args::commands())).complete();
    // Output that goes to a closed pipe (`suiro flow list … | head`) ends the program quietly, as with every Unix tool.
    let cli = args::read().unwrap_or_else(|error| args::with_form(error).exit());
    let json = cli.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let patience = Duration::from_secs(cli.timeout.into());
    // Who logs in is not asked as who was logged in before.
    match &cli.command {
        Command::Login(args) => return commands::domain::login(args, patience, cli.json),
        Command::Logout => return login::forget(),
        _ => {}
    }
    let [socket, others @ ..] = &cli.api[..] else { unreachable!("there is a default") };
    if !others.is_empty() && !matches!(cli.command, Command::Capture(_) | Command::Flight(_)) {
        let (cause, remedy) = ("several nodes are named", "name one; suiro capture takes several");
        return Err(Failure::Usage(api::Fault::new("--api", "ask a node", cause, remedy)));
    }
    let context = commands::Context {
        client: Client::new(socket.clone(), patience),
        nodes: cli.api,
        controller: login::controller(cli.controller, patience),
        json: cli.json,
    };
    match cli.command {
        #[cfg(feature = "node")]
        Command::Node(args) => commands::node::run(args),
        Command::Status => commands::status::run(&context),
        Command::Reload => commands::status::reload(&context),
        Command::Switch(command) => commands::switch::run(&context, *command),
        Command::Port(command) => commands::port::run(&context, command),
        Command::Queue(command) => commands::queue::run(&context, command),
        Command::Flow(command) => commands::flow::run(&context, command),
        Command::Group(command) => {
            commands::rules::run(&context, &commands::rules::GROUPS, command)
        }
        Command::Meter(command) => {
            commands::rules::run(&context, &commands::rules::METERS, command)
        }
        Command::Offload(command) => commands::offload::run(&context, command),
        Command::Steer(command) => commands::steer::run(&context, command),
        #[cfg(feature = "node")]
        Command::Doctor { interfaces } => commands::doctor::run(&context, &interfaces),
        #[cfg(feature = "control")]
        Command::Control(args) => commands::control::run(args),
        Command::Slice(command) => commands::slice::run(&context, command),
        Command::Domain(command) => commands::domain::run(&context, command),
        Command::Audit { deep } => commands::domain::deviations(&context, deep),
        Command::Login(_) | Command::Logout => unreachable!("done before"),
        Command::Diff(args) => commands::part::diff(&context, &args),
        Command::Apply(args) => commands::part::apply(&context, &args),
        Command::Export(args) => commands::part::export(&context, &args),
        Command::Bugreport { output } => commands::bugreport::run(&context, args::VERSION, output),
        Command::Part(command) => commands::part::run(&context, command),
        Command::Circuit(command) => commands::circuit::run(&context, &command),
        Command::Guest(command) => commands::guest::run(&context, command),
        Command::Flight(args) => commands::capture::flight(&context, args),
        Command::Capture(args) => commands::capture::run(&context, &args),
        Command::Why(args) => commands::why::run(&context, args),
        Command::Events(args) => commands::events::run(&context, &args),
        Command::Top { of: Some(TopOf::Flow(args)), .. } => top::flow::run(&context, &args),
        Command::Top { of: None, args } => top::run(&context, &args),
        #[cfg(feature = "lab")]
        Command::Bench { arguments } => lab::bench::run(arguments).map_err(Failure::from),
        #[cfg(feature = "lab")]
        Command::Lab { arguments } => lab::experiments::run(arguments).map_err(Failure::from),
        Command::Version => context.print(&args::VERSION, |version| format!("suiro {version}\n")),
        Command::Man { directory } => Ok(clap_mangen::generate_to(args::commands(), directory)?),
        Command::Completions { shell } => names::register(shell),
    }
}
