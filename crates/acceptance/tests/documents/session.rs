//! A root shell on a host of its own: fresh network, process and mount namespaces, with nothing in the places where nodes keep things.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::NamedTempFile;

/// File systems that are new there: the namespace's view of the kernel, pins, the names of `ip netns`, and what nodes keep.
const NEW: [(&str, &str); 9] = [
    ("tmpfs", "/tmp"),
    ("sysfs", "/sys"),
    ("bpf", "/sys/fs/bpf"),
    ("tmpfs", "/run/netns"),
    ("tmpfs", "/run/suiro"),
    ("tmpfs", "/var/lib/suiro"),
    ("tmpfs", "/etc/suiro"),
    ("tmpfs", "/run/suiro-control"),
    ("tmpfs", "/var/lib/suiro-control"),
];

/// Waits until a node that was started in the background answers; else says what it wrote.
const READY: &str = "timeout 20 sh -c 'until suiro status >/dev/null 2>&1; do sleep 0.05; done' || \
    { echo 'no node answers after 20 s:'; cat $LOG; false; }";

/// What the name of a session's control group begins with.
const GROUP: &str = "suiro-document-";

/// Trees of control groups, of v2 and of v1.
const TREES: [&str; 5] = ["", "cpu", "cpuacct", "memory", "pids"];

/// The shell; it ends, with all that it started, when this is dropped.
pub struct Session {
    shell: Child,
    input: Option<ChildStdin>,
    group: String,
    output: BufReader<ChildStdout>,
    /// What commands in the background write.
    _log: NamedTempFile,
}

impl Session {
    /// Starts it. `suiro` is a command there.
    pub fn start() -> Self {
        let suiro = Path::new(acceptance::suiro());
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["sh", "-s"]).current_dir("/").env_remove("SUIRO_API");
        command.env("PATH", format!("{}:{path}", suiro.parent().unwrap().display()));
        let log = NamedTempFile::new().unwrap();
        command.env("LOG", log.path());
        let group = log.path().file_name().unwrap().to_string_lossy().replace('.', GROUP);
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let output = BufReader::new(output);
        let mut session = Self { shell, input: Some(input), group, output, _log: log };
        session.run("exec 9</sys/fs/cgroup");
        for (kind, directory) in NEW {
            let mount = format!("mkdir -p {directory} && mount -t {kind} {kind} {directory}");
            let (code, said) = session.run(&mount);
            assert_eq!(code, 0, "{mount}: {said:?}");
        }
        // Control groups are the host's: guests with limits run in them.
        let (code, said) =
            session.run("mount --no-canonicalize --rbind /proc/self/fd/9 /sys/fs/cgroup");
        assert_eq!(code, 0, "{said:?}");
        for tree in Self::trees() {
            // Nodes have theirs below `suiro`: here that is one of this session's own.
            let mount =
                format!("cd {tree} && mkdir -p suiro {0} && mount --bind {0} suiro", session.group);
            let (code, said) = session.run(&format!("( {mount} )"));
            assert_eq!(code, 0, "{mount}: {said:?}");
        }
        // Where the package puts it.
        let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients");
        let (code, said) = session
            .run(&format!("mkdir -p /usr/share/suiro && mount --bind {clients} /usr/share/suiro"));
        assert_eq!(code, 0, "{said:?}");
        session.run("ip link set lo up");
        session
    }

    /// Runs a command; its exit code, and the lines of its output and errors. One that ends in `&` is a node, and answers when this returns.
    pub fn run(&mut self, command: &str) -> (i32, Vec<String>) {
        let words = match command.trim_end().strip_suffix('&') {
            Some(background) => format!("{background} >$LOG 2>&1 & {READY}"),
            None => command.to_owned(),
        };
        let input = self.input.as_mut().expect("it is open until the drop");
        writeln!(input, "{{ {words}\n}} 2>&1 </dev/null; code=$?; echo; echo '--end--' $code")
            .unwrap();
        let mut lines = Vec::new();
        for line in self.output.by_ref().lines() {
            let line = line.unwrap();
            if let Some(code) = line.strip_prefix("--end-- ") {
                // The empty line before the mark; a last line without an end gets one.
                if lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                return (code.parse().unwrap(), lines);
            }
            lines.push(line);
        }
        panic!("the shell ended in {command:?}");
    }

    /// Removes what the sessions put their groups' places into, unless a node or another session has something there.
    pub fn clear_up() {
        for tree in Self::trees() {
            let entries = std::fs::read_dir(&tree).into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            if !names.any(|name| name.starts_with(GROUP)) {
                let _ = std::fs::remove_dir(format!("{tree}/suiro"));
            }
        }
    }

    /// The trees that this host has.
    fn trees() -> Vec<String> {
        let trees = TREES.iter().map(|tree| format!("/sys/fs/cgroup/{tree}"));
        trees.filter(|tree| Path::new(tree).join("cgroup.procs").exists()).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // At the end of its input the shell ends, and with it, as the first process of its namespace, all others there.
        self.input = None;
        let _ = self.shell.wait();
        for tree in Self::trees() {
            let group = format!("{tree}/{}", self.group);
            let _ = Command::new("find").args([&group, "-depth", "-type", "d", "-delete"]).status();
        }
    }
}
