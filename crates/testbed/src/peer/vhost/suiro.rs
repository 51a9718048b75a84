//! Ourselves, as a user would start us.

use super::super::{Process, SWITCH_CORE};
use super::{Kind, Running, Work, last_lines, port_name};
use crate::netns::Namespace;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CONFIGURATION: &str = "node.toml";
pub const LOG: &str = "node.log";

/// What a node without rules does with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alone {
    /// Nothing.
    Drops,
    /// As a learning switch.
    Learns,
}

pub fn start(sockets: &[PathBuf], alone: Alone) -> Result<Running> {
    let namespace = Namespace::create("vsw")?;
    let directory = tempfile::tempdir()?;
    std::fs::write(
        directory.path().join(CONFIGURATION),
        configuration(directory.path(), sockets, alone)?,
    )?;
    let process = launch(&namespace, directory.path())?;
    let management = directory.path().join("sw0.mgmt");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !management.exists() {
        let late = Instant::now() >= deadline;
        let log = directory.path().join(LOG);
        ensure!(!late, "the node did not come up within 10 s:\n{}", last_lines(&log));
        std::thread::sleep(Duration::from_millis(10));
    }
    let control = directory.path().join("api.sock");
    Ok(Running {
        kind: Kind::Suiro,
        processes: vec![process],
        management,
        control,
        _pages: None,
        namespace,
        directory,
    })
}

/// Starts the node that was configured here, for the first time or again.
pub fn launch(namespace: &Namespace, directory: &Path) -> Result<Process> {
    let binary = std::env::current_exe().context("own binary")?;
    let binary = binary.to_str().context("own binary: path is not UTF-8")?;
    let mut command = namespace.command(binary);
    command.args(["node", "--config"]).arg(directory.join(CONFIGURATION));
    Process::start(&mut command, &directory.join(LOG))
}

fn configuration(directory: &Path, sockets: &[PathBuf], alone: Alone) -> Result<String> {
    let mode = if alone == Alone::Drops { "secure" } else { "standalone" };
    let directory = directory.display();
    let mut text = format!(
        "[node]\nrun_dir = \"{directory}\"\nstate_dir = \"{directory}\"\ncores = [{SWITCH_CORE}]\n\n[[switch]]\nname = \"sw0\"\nfail_mode = \"{mode}\"\n"
    );
    for (number, socket) in (1..).zip(sockets) {
        let (name, socket) = (port_name(number), socket.display());
        writeln!(
            text,
            "\n[[switch.port]]\nname = \"{name}\"\nnumber = {number}\ntype = \"vhost-user\"\nsocket = \"{socket}\""
        )?;
    }
    Ok(text)
}

/// Reads what the node's worker has done.
pub fn work(api: &Path) -> Result<Work> {
    let worker = worker(api)?;
    let figure = |name: &str| worker[name].as_u64().with_context(|| format!("no {name}"));
    Ok(Work {
        frames: figure("frames")?,
        busy: figure("cycles_rx")? + figure("cycles_pipeline")? + figure("cycles_tx")?,
        idle: figure("cycles_polling")?,
        upcalls: 0,
    })
}

/// Reads how many frames each rung of the ladder took.
pub fn rungs(api: &Path) -> Result<Vec<(String, u64)>> {
    let worker = worker(api)?;
    let rungs = worker["rungs"].as_array().context("no rungs in the answer")?;
    let taken = |rung: &serde_json::Value| {
        let name = rung["rung"].as_str().context("a rung without a name")?;
        Ok((name.to_owned(), rung["frames"].as_u64().context("a rung without frames")?))
    };
    rungs.iter().map(taken).collect()
}

/// Asks the node's API; the connection is closed after the answer, so that no length needs to be read.
fn worker(api: &Path) -> Result<serde_json::Value> {
    let mut stream = UnixStream::connect(api)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(
        b"GET /v1/workers HTTP/1.1\r\nHost: node\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    let workers: serde_json::Value = serde_json::from_str(body.trim()).context("the answer")?;
    let workers = workers["workers"].as_array().context("no workers in the answer")?;
    let on_core = |worker: &&serde_json::Value| worker["core"].as_u64() == Some(SWITCH_CORE as u64);
    workers.iter().find(on_core).cloned().context("no worker on the switch's core")
}
