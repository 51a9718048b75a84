//! A node in the background: `suiro node --background`, and `suiro steer attach` on a host where none runs.
//!
//! It is started again as a process of its own, in no terminal, with its log beside its sockets; who starts it waits until it serves.

use crate::commands::{Context, out};
use crate::failure::Failure;
use api::{Client, Fault, NodeView};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a node may take to serve. Chosen: many times what one with a million rules takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks whether it does.
const PAUSE: Duration = Duration::from_millis(10);
/// The node's socket in its run directory.
pub const SOCKET: &str = "api.sock";
/// Where a node of another run directory than the usual one keeps its state: beside its sockets.
const STATE: &str = "state";

/// The process of a node that was started.
pub struct Started {
    /// Its number.
    pub pid: u32,
    /// Where it says what happens.
    pub log: PathBuf,
}

/// Starts a node, or a controller, with these arguments, whose run directory is that, and waits until it serves.
pub fn start(
    what: &'static str,
    client: &Client,
    directory: &Path,
    arguments: &[OsString],
) -> Result<Started, Failure> {
    let io = |step: &'static str| {
        move |error: io::Error| {
            let remedy = format!("run as root, or start one yourself: suiro {what}");
            failed(what, step, error.to_string(), &remedy)
        }
    };
    std::fs::create_dir_all(directory).map_err(io("make its run directory"))?;
    let log = directory.join(format!("{what}.log"));
    let from = OpenOptions::new().create(true).append(true).open(&log);
    let mut file = from.map_err(io("open its log"))?;
    let start = file.seek(SeekFrom::End(0)).map_err(io("open its log"))?;
    let mut node = spawn(what, arguments, file).map_err(io("start one in the background"))?;
    wait(what, client, &mut node, &log, start)?;
    Ok(Started { pid: node.id(), log })
}

/// Starts a node to steer unless one answers. Returns what was started.
pub fn ensure_node(context: &Context) -> Result<Option<Started>, Failure> {
    if context.client.is_served() {
        return Ok(None);
    }
    let socket = context.client.socket().unwrap_or(Path::new(""));
    let directory =
        socket.parent().filter(|_| socket.file_name().is_some_and(|name| name == SOCKET));
    let Some(directory) = directory else {
        let cause = format!("a node listens at DIRECTORY/{SOCKET}, not at {}", socket.display());
        return Err(failed(
            "node",
            "start one in the background",
            cause,
            "start a node yourself, or give such a path to --api",
        ));
    };
    let mut arguments: Vec<OsString> =
        vec!["--until-idle".into(), "--run-dir".into(), directory.into()];
    if directory != Path::new(api::DEFAULT_RUN_DIR) {
        arguments.extend(["--state-dir".into(), directory.join(STATE).into()]);
    }
    let started = start("node", &context.client, directory, &arguments)?;
    if !context.json {
        let Started { pid, log } = &started;
        out(&format!("no node ran: started one, process {pid}, log {}\n", log.display()))?;
    }
    Ok(Some(started))
}

/// The node is in a session of its own: it gets no signal that is meant for the terminal.
fn spawn(what: &str, arguments: &[OsString], log: File) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(what).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).current_dir("/");
    command.process_group(0).spawn()
}

fn wait(
    what: &'static str,
    client: &Client,
    node: &mut Child,
    log: &Path,
    from: u64,
) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if client.is_served() {
            return Ok(());
        }
        let ended = node.try_wait().ok().flatten();
        if ended.is_none() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
            continue;
        }
        let said = tail(log, from).unwrap_or_default();
        let cause = match ended {
            Some(status) => format!("it ended ({status}) and said: {}", said.trim()),
            None => format!("it does not answer after {} s", PATIENCE.as_secs()),
        };
        let remedy = format!("see {}; or start one yourself: suiro {what}", log.display());
        return Err(failed(what, "start one in the background", cause, &remedy));
    }
}

fn tail(log: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn failed(what: &str, step: &'static str, cause: String, remedy: &str) -> Failure {
    Failure::Refused(Fault::new(what, step, cause, remedy))
}

/// Ends the node that was just started, if what it was started for was refused: nothing must be left of a command that failed.
pub fn end_if_idle(context: &Context, started: Option<&Started>) {
    let Some(started) = started else { return };
    let steered = context.client.get::<api::steer::SteerView>("/v1/steer");
    let is_idle = steered.is_ok_and(|view| view.interfaces.is_empty());
    let switches = context.client.get::<NodeView>("/v1/node").map_or(1, |view| view.switches);
    let pid = rustix::process::Pid::from_raw(started.pid as i32);
    if let (true, 0, Some(pid)) = (is_idle, switches, pid) {
        // Ended by itself is ended too.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
