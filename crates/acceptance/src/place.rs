//! A node in namespaces of its own, run by the built binary, removed with everything it made.

use crate::suiro;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest that anything here may take. Chosen: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether tests that need root may run: true as root, false when the user says so, and otherwise a failure with its remedy.
pub fn privileged() -> bool {
    if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
        return false;
    }
    assert!(
        rustix::process::geteuid().is_root(),
        "run the tests as root, or set SUIRO_SKIP_PRIVILEGED=1 to leave this one out"
    );
    true
}

/// Waits until `check` says yes.
#[track_caller]
pub fn until(what: &str, check: impl FnMut() -> bool) {
    until_within(PATIENCE, what, check);
}

/// Waits until `check` says yes, for at most so long.
#[track_caller]
pub fn until_within(limit: Duration, what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < limit, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// What it said, of a finished one.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A place to run a node in: a directory and a network namespace, both gone in the end.
pub struct Place {
    home: tempfile::TempDir,
    /// The node's namespace; guests' are named after it.
    pub netns: String,
    guests: Vec<String>,
    node: Option<Child>,
    has_hosts_mounts: bool,
}

impl Place {
    /// A place with these guests.
    pub fn new(guests: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let netns =
            format!("su-cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let guests: Vec<_> = guests.iter().map(|guest| format!("{netns}-{guest}")).collect();
        let home = tempfile::tempdir().unwrap();
        let place = Self { home, netns, guests, node: None, has_hosts_mounts: false };
        for netns in place.guests.iter().chain([&place.netns]) {
            sh(&["ip", "netns", "add", netns]);
        }
        place.configure("");
        place
    }

    /// Writes the configuration: the directories, and what is given.
    pub fn configure(&self, rest: &str) {
        let home = self.home.path().display();
        let text = format!(
            "[node]\nrun_dir = \"{home}/run\"\nstate_dir = \"{home}/state\"\ncores = [0]\n{rest}"
        );
        std::fs::write(self.file(), text).unwrap();
    }

    /// The configuration file.
    pub fn file(&self) -> PathBuf {
        self.home.path().join("node.toml")
    }

    /// The API's socket.
    pub fn socket(&self) -> PathBuf {
        self.home.path().join("run/api.sock")
    }

    /// A file of the node.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Nodes have the host's mounts from now on: what they pin in its file system for eBPF outlives them.
    pub fn with_hosts_mounts(mut self) -> Self {
        self.has_hosts_mounts = true;
        self
    }

    fn command(&self, options: &[&str]) -> Command {
        let (name, net) = (&self.netns, format!("--net=/run/netns/{}", self.netns));
        let (program, words) = match self.has_hosts_mounts {
            true => ("nsenter", vec![&*net]),
            false => ("ip", vec!["netns", "exec", name]),
        };
        let mut command = Command::new(program);
        command.args(words).args([suiro(), "node", "--config"]).arg(self.file()).args(options);
        command.stdin(Stdio::null());
        command
    }

    /// Starts the node and waits until it serves.
    pub fn start(&mut self) -> u32 {
        self.start_with(&[])
    }

    /// Likewise, with these variables in its environment.
    pub fn start_with(&mut self, variables: &[(&str, &str)]) -> u32 {
        let mut command = self.command(&[]);
        command.envs(variables.iter().copied());
        self.spawn(command)
    }

    /// Likewise, with these options.
    pub fn start_as(&mut self, options: &[&str]) -> u32 {
        let command = self.command(options);
        self.spawn(command)
    }

    fn spawn(&mut self, mut command: Command) -> u32 {
        assert!(self.node.is_none());
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        let mut node = command.stderr(log).spawn().unwrap();
        let pid = node.id();
        until("the node serves", || {
            assert!(node.try_wait().unwrap().is_none(), "the node ended:\n{}", self.log());
            UnixStream::connect(self.socket()).is_ok()
        });
        self.node = Some(node);
        pid
    }

    /// The running node's process.
    pub fn pid(&self) -> u32 {
        self.node.as_ref().expect("the node runs").id()
    }

    /// Runs `suiro node` to its end.
    pub fn node_says(&self, options: &[&str]) -> Said {
        Said::of(self.command(options).output().unwrap())
    }

    /// What the node logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Sends the node a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.node.as_ref().expect("the node runs").id() as i32;
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal)
            .unwrap();
    }

    /// Sends the node a signal and waits for its end.
    pub fn end(&mut self, signal: rustix::process::Signal) {
        self.signal(signal);
        let mut node = self.node.take().expect("the node runs");
        until("the node has ended", || node.try_wait().unwrap().is_some());
    }

    /// Runs a client command.
    pub fn says(&self, words: &[&str]) -> Said {
        Said::of(
            Command::new(suiro()).args(words).env("SUIRO_API", self.socket()).output().unwrap(),
        )
    }

    /// Runs a client command that must succeed; returns its output.
    #[track_caller]
    pub fn suiro(&self, words: &[&str]) -> String {
        let said = self.says(words);
        assert_eq!(said.code, 0, "suiro {}: {}\nlog:\n{}", words.join(" "), said.err, self.log());
        said.out
    }

    /// Runs a client command and reads its JSON.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let words: Vec<_> = ["--json"].iter().chain(words).copied().collect();
        serde_json::from_str(&self.suiro(&words)).unwrap()
    }

    /// The namespace of a guest.
    pub fn guest(&self, name: &str) -> String {
        format!("{}-{name}", self.netns)
    }

    /// Gives a guest's interface an address.
    pub fn address(&self, guest: &str, interface: &str, address: &str) {
        sh(&["ip", "-n", &self.guest(guest), "addr", "add", address, "dev", interface]);
    }

    /// Whether a guest reaches an address within some tries.
    pub fn reaches(&self, guest: &str, address: &str) -> bool {
        let netns = self.guest(guest);
        let words = ["netns", "exec", &netns, "ping", "-q", "-c", "1", "-W", "1", address];
        (0..5).any(|_| {
            Command::new("ip").args(words).stdout(Stdio::null()).status().unwrap().success()
        })
    }

    /// Sends bytes to the API's socket and reads until it closes.
    pub fn raw(&self, bytes: &[u8], then: Then) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The node may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        match then {
            Then::Listen => drop(stream.read_to_end(&mut answer)),
            Then::EndAndListen => {
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read_to_end(&mut answer);
            }
            Then::HangUp => {}
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// One HTTP request; returns status and body.
    pub fn http(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let answer = self.raw(request(method, path, body).as_bytes(), Then::Listen);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
    }
}

/// What a client does after its request.
#[derive(Clone, Copy)]
pub enum Then {
    /// Waits for the answer.
    Listen,
    /// Says that nothing more will come, and waits.
    EndAndListen,
    /// Goes.
    HangUp,
}

/// An HTTP request as bytes.
pub fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mut node) = self.node.take() {
            let _ = node.kill();
            let _ = node.wait();
        }
        for netns in self.guests.iter().chain([&self.netns]) {
            let _ = Command::new("ip").args(["netns", "del", netns]).status();
        }
    }
}

/// Runs a command that must succeed.
#[track_caller]
pub fn sh(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}
