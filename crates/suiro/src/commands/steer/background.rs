//! A node in the background, for `suiro steer attach` on a host where none runs.

use crate::commands::{Context, out};
use crate::failure::Failure;
use api::{Fault, NodeView};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a node may take to serve. Chosen: many times what one with a million rules takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks whether it does.
const PAUSE: Duration = Duration::from_millis(10);
/// The node's socket in its run directory.
const SOCKET: &str = "api.sock";
/// Where a node of another run directory than the usual one keeps its state: beside its sockets.
const STATE: &str = "state";

/// The process of a node that was started.
pub struct Started(u32);

/// Starts a node unless one answers. Returns what was started.
pub fn ensure_node(context: &Context) -> Result<Option<Started>, Failure> {
    if context.client.is_served() {
        return Ok(None);
    }
    let socket = context.client.socket();
    let failed = |step: &'static str, cause: String, remedy: &str| {
        Failure::Refused(Fault::new("node", step, cause, remedy))
    };
    let directory =
        socket.parent().filter(|_| socket.file_name().is_some_and(|name| name == SOCKET));
    let Some(directory) = directory else {
        let cause = format!("a node listens at DIRECTORY/{SOCKET}, not at {}", socket.display());
        return Err(failed(
            "start one in the background",
            cause,
            "start a node yourself, or give such a path to --api",
        ));
    };
    let io = |step: &'static str| {
        move |error: io::Error| {
            failed(step, error.to_string(), "run as root, or start a node yourself: suiro node")
        }
    };
    std::fs::create_dir_all(directory).map_err(io("make its run directory"))?;
    let log = directory.join("node.log");
    let from = OpenOptions::new().create(true).append(true).open(&log);
    let mut file = from.map_err(io("open its log"))?;
    let start = file.seek(SeekFrom::End(0)).map_err(io("open its log"))?;
    let mut node = spawn(directory, file).map_err(io("start one in the background"))?;
    wait(context, &mut node, &log, start)?;
    let pid = node.id();
    if !context.json {
        let log = log.display();
        out(&format!("no node ran: started one, process {pid}, log {log}\n"))?;
    }
    Ok(Some(Started(pid)))
}

/// The node is in a session of its own: it gets no signal that is meant for the terminal.
fn spawn(directory: &Path, log: File) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["node", "--background", "--run-dir"]).arg(directory);
    if directory != Path::new(api::DEFAULT_RUN_DIR) {
        command.arg("--state-dir").arg(directory.join(STATE));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).current_dir("/");
    command.process_group(0).spawn()
}

fn wait(context: &Context, node: &mut Child, log: &Path, from: u64) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if context.client.is_served() {
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
        let remedy = format!("see {}; or start a node yourself: suiro node", log.display());
        return Err(Failure::Refused(Fault::new(
            "node",
            "start one in the background",
            cause,
            remedy,
        )));
    }
}

fn tail(log: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Ends the node that was just started, if what it was started for was refused: nothing must be left of a command that failed.
pub fn end_if_idle(context: &Context, started: Option<&Started>) {
    let Some(started) = started else { return };
    let steered = context.client.get::<api::steer::SteerView>("/v1/steer");
    let is_idle = steered.is_ok_and(|view| view.interfaces.is_empty());
    let switches = context.client.get::<NodeView>("/v1/node").map_or(1, |view| view.switches);
    let pid = rustix::process::Pid::from_raw(started.0 as i32);
    if let (true, 0, Some(pid)) = (is_idle, switches, pid) {
        // Ended by itself is ended too.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
