//! Names for the shell's Tab key: switches, ports, points of capture, policies, parts and guests of the node, slices of the controller, this
//! host's interfaces and network namespaces, and the lab's experiments.
//!
//! The shell asks this program itself at each Tab, so the words are those of the moment. Where no node answers at once there are none.

use crate::failure::Failure;
use crate::login;
use crate::points;
use api::{Client, GuestView, OffloadView, PartView, PortView, SliceView, SwitchView};
use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// Tab must not hang: how long a node may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// The node's usual socket, as `--api` has it.
const SOCKET: &str = "/run/suiro/api.sock";

/// Prints what makes a shell ask at each Tab.
pub fn register(shell: Shell) -> Result<(), Failure> {
    let shell = shell.to_string();
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell) {
        shell.write_registration("COMPLETE", "suiro", "suiro", "suiro", &mut script)?;
    }
    crate::commands::out(&String::from_utf8_lossy(&script))
}

/// The commands, with names to choose where an argument is one.
pub fn with_names(command: Command) -> Command {
    let noun = command.get_name().to_owned();
    #[cfg(feature = "lab")]
    let command = command
        .mut_subcommand("lab", |_| lab::experiments::commands())
        .mut_subcommand("bench", |_| lab::bench::commands());
    named(command, &noun)
}

/// What is called just `name` is one of the noun's, but where it is to be made.
fn named(command: Command, noun: &str) -> Command {
    let is_new = command.get_name() == "add";
    let command = command.mut_args(|arg| {
        let names: fn() -> Vec<CompletionCandidate> = match (arg.get_id().as_str(), noun) {
            ("switch" | "switches", _) | ("name" | "names", "switch") => switches,
            ("port" | "ports", _) => ports,
            ("interface" | "interfaces", _) => interfaces,
            ("netns" | "session_netns", _) => namespaces,
            ("points", "capture") => capture_points,
            ("name" | "names", "offload") => policies,
            ("part", _) | ("name", "part") => parts,
            ("slice", _) => slices,
            // Its guests are the controller's, and one has to know the slice first.
            ("guest", "slice") => return arg,
            #[cfg(feature = "lab")]
            ("experiments", "lab") => experiments,
            ("guest", _) | ("name", "guest") => guests,
            _ => return arg,
        };
        let makes = is_new && arg.get_id().as_str() == "name";
        if makes { arg } else { arg.add(ArgValueCandidates::new(names)) }
    });
    command.mut_subcommands(|below| {
        let inner = if noun == "suiro" { below.get_name().to_owned() } else { noun.to_owned() };
        named(below, &inner)
    })
}

fn node() -> Client {
    let socket = std::env::var_os("SUIRO_API").unwrap_or_else(|| OsString::from(SOCKET));
    Client::new(socket.into(), PATIENCE)
}

fn answer<T: DeserializeOwned>(path: &str) -> Vec<T> {
    let client = node();
    if client.is_served() { client.get(path).unwrap_or_default() } else { Vec::new() }
}

/// A word, and what it is.
fn candidates(words: impl IntoIterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let words: BTreeMap<String, String> = words.into_iter().collect();
    let candidate =
        |(word, help): (String, String)| CompletionCandidate::new(word).help(Some(help.into()));
    words.into_iter().map(candidate).collect()
}

fn switches() -> Vec<CompletionCandidate> {
    let view = |view: SwitchView| (view.name.to_string(), format!("switch, {} ports", view.ports));
    candidates(answer("/v1/switches").into_iter().map(view))
}

fn ports() -> Vec<CompletionCandidate> {
    let view = |view: PortView| {
        (view.name.to_string(), format!("{} port of {}", view.kind.word(), view.switch))
    };
    candidates(answer("/v1/ports").into_iter().map(view))
}

/// Where frames can be seen: ports, all of a switch, its controllers, losses.
fn capture_points() -> Vec<CompletionCandidate> {
    let of_port = |view: PortView| {
        let PortView { switch, name, kind, .. } = &view;
        let port = (format!("{switch}:{name}"), format!("{} port", kind.word()));
        let queue = |id| (format!("queue:{switch}:{name}:{id}"), "queue of a port".to_owned());
        let queues: Vec<_> = points::queues(&view).into_iter().map(queue).collect();
        std::iter::once(port).chain(queues)
    };
    let ports = answer("/v1/ports").into_iter().flat_map(of_port);
    let of_switch = |view: SwitchView| {
        let name = view.name;
        [
            (name.to_string(), "all ports of a switch".to_owned()),
            (format!("controller:{name}"), "packet-ins and packet-outs".to_owned()),
            (format!("openflow:{name}"), "OpenFlow messages of a switch".to_owned()),
            (format!("drops:{name}"), "frames lost at a switch".to_owned()),
            (format!("passed:{name}"), "one frame in 32 of a switch".to_owned()),
        ]
    };
    let switches = answer("/v1/switches").into_iter().flat_map(of_switch);
    let steered = points::steered(&node()).into_iter().map(|name| {
        (format!("steer:{name}"), "frames before and after steering, and dropped".to_owned())
    });
    let drops = ("drops".to_owned(), "frames lost anywhere".to_owned());
    let passed = ("passed".to_owned(), "one frame in 32 of all".to_owned());
    candidates(ports.chain(switches).chain(steered).chain([drops, passed]))
}

fn policies() -> Vec<CompletionCandidate> {
    let views: Option<OffloadView> = node().get("/v1/offload").ok();
    let policies = views.into_iter().flat_map(|view| view.policies);
    candidates(policies.map(|view| (view.policy.name, "offload policy".to_owned())))
}

/// Of the controller that commands would ask.
fn slices() -> Vec<CompletionCandidate> {
    let named = std::env::var("SUIRO_CONTROL").ok().and_then(|place| place.parse().ok());
    let views: Vec<SliceView> =
        login::controller(named, PATIENCE).get("/v1/slices").unwrap_or_default();
    candidates(views.into_iter().map(|view| (view.slice, "slice".to_owned())))
}

fn parts() -> Vec<CompletionCandidate> {
    let view = |view: PartView| (view.name.to_string(), format!("part, {} ports", view.ports));
    candidates(answer("/v1/parts").into_iter().map(view))
}

fn guests() -> Vec<CompletionCandidate> {
    let view = |view: GuestView| (view.spec.name, "guest".to_owned());
    candidates(answer("/v1/guests").into_iter().map(view))
}

#[cfg(feature = "lab")]
fn experiments() -> Vec<CompletionCandidate> {
    let all = lab::experiments::NAMES.into_iter().chain(["all"]);
    candidates(all.map(|name| (name.to_owned(), "experiment".to_owned())))
}

fn interfaces() -> Vec<CompletionCandidate> {
    entries("/sys/class/net", "interface")
}

/// Those that `ip netns` names.
fn namespaces() -> Vec<CompletionCandidate> {
    entries("/run/netns", "network namespace")
}

fn entries(directory: &str, what: &str) -> Vec<CompletionCandidate> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let words = found.filter_map(|entry| entry.file_name().into_string().ok());
    candidates(words.map(|word| (word, what.to_owned())))
}
