//! DPDK's `testpmd` (Debian's) as a driver or a back-end that no one here wrote.
//!
//! **Question answered**: does a polling driver in user space get on with our ports, whatever virtqueue layout it asks for?
//!
//! Its interfaces are virtio-user devices, which are drivers of vhost-user like a guest's. Memory is one anonymous file
//! (DPDK makes it shareable), on ordinary pages unless huge ones are asked for, which it then has reserved for itself; no files in any
//! directory are needed. Commands go in at its prompt, and what it prints until the next prompt is the answer.

use crate::conversation::Conversation;
use crate::driver::sys::Pages;
use crate::hugepages::Reserved;
use crate::netns::run;
use crate::programs::require;
use crate::sys;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "dpdk-testpmd";

const DUMPCAP: &str = "dpdk-dumpcap";

/// Where a shared testpmd has its huge pages: another file system in its own mounts, at a directory that every host has.
const HUGE: &str = "/mnt";

const PROMPT: &str = "testpmd> ";

/// Longest that the start or a command may take. Chosen: far above what a loaded machine needs; the start waits for the switch.
const PATIENCE: Duration = Duration::from_secs(30);

/// Frame buffers for all ports. Chosen: four full queues of the largest size and what is on its way; DPDK's own default takes 380 MB.
const BUFFERS: u32 = 16_384;

/// A virtio-user device (DPDK: doc/guides/nics/virtio.rst has the options).
#[derive(Clone, Debug)]
pub struct VirtioUser {
    /// Its vhost-user socket.
    pub socket: PathBuf,
    /// Whether testpmd makes the socket and waits for the switch.
    pub listens: bool,
    /// Queue pairs.
    pub queues: u16,
    /// Entries of each queue.
    pub entries: u16,
    /// Packed virtqueues instead of split ones.
    pub packed: bool,
    /// Receive buffers are merged for a frame that is larger than one.
    pub mergeable: bool,
    /// Buffers are used in the order in which they were made available.
    pub in_order: bool,
}

impl VirtioUser {
    /// One split queue pair of 256 entries, with mergeable buffers, in order, on a socket of testpmd's.
    pub fn new(socket: &Path) -> Self {
        let socket = socket.to_owned();
        let (packed, mergeable, in_order) = (false, true, true);
        Self { socket, listens: true, queues: 1, entries: 256, packed, mergeable, in_order }
    }

    fn argument(&self, number: usize) -> String {
        let switch = |on: bool| u8::from(on);
        format!(
            "net_virtio_user{number},path={},server={},queues={},queue_size={},packed_vq={},mrg_rxbuf={},in_order={}",
            self.socket.display(),
            switch(self.listens),
            self.queues,
            self.entries,
            switch(self.packed),
            switch(self.mergeable),
            switch(self.in_order),
        )
    }
}

/// What a testpmd is started with.
#[derive(Clone, Debug)]
pub struct TestpmdSpec {
    /// What errors call it.
    pub name: String,
    /// Devices, as DPDK's `--vdev` takes them; port 0 is the first.
    devices: Vec<String>,
    /// Sockets that testpmd will make.
    sockets: Vec<PathBuf>,
    /// The core that forwards, and polls all the time; it reads commands there too.
    pub core: usize,
    /// Memory for all its buffers.
    pub memory_mib: u32,
    /// What that memory is made of; huge pages are reserved for as long as it runs.
    pub pages: Pages,
    /// Whether other programs of DPDK may join it, as `dpdk-dumpcap` does.
    shared: bool,
    /// More of testpmd's own options, as `--forward-mode=rxonly`.
    pub options: Vec<String>,
}

impl TestpmdSpec {
    /// Without devices yet.
    pub fn new(name: &str, core: usize) -> Self {
        let (devices, sockets, options) = (Vec::new(), Vec::new(), Vec::new());
        let (memory_mib, pages, shared) = (256, Pages::Plain, false);
        Self { name: name.into(), devices, sockets, core, memory_mib, pages, shared, options }
    }

    /// With one more port, a driver of vhost-user.
    pub fn driver(mut self, device: &VirtioUser) -> Self {
        self.devices.push(device.argument(self.devices.len()));
        self.sockets.extend(device.listens.then(|| device.socket.clone()));
        self
    }

    /// With one more port, DPDK's own back-end of vhost-user, connecting to a driver's socket.
    pub fn back_end(mut self, socket: &Path) -> Self {
        let number = self.devices.len();
        self.devices.push(format!("net_vhost{number},iface={},client=1", socket.display()));
        self
    }

    /// With memory on such pages.
    pub fn on(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// So that [`Testpmd::dumpcap`] may look into it. Its memory is huge pages then, in files that only its own mounts show.
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self.on(Pages::Huge)
    }

    /// With one more of testpmd's own options.
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.into());
        self
    }

    fn arguments(&self) -> Vec<String> {
        let core = self.core;
        let memory = self.memory_mib.to_string();
        // Two threads on one core: the first reads commands, the second forwards.
        let lcores = format!("0@{core},1@{core}");
        let kind: &[_] = match self.pages {
            _ if self.shared => &["--huge-dir", HUGE],
            Pages::Plain => &["--no-huge", "--no-shconf"],
            Pages::Huge => &["--in-memory", "--single-file-segments", "--no-shconf"],
        };
        let eal = [kind, &["-m", &memory, "--no-pci", "--no-telemetry"]].concat();
        let mut words: Vec<String> = eal.into_iter().map(str::to_owned).collect();
        words.extend(["--lcores".into(), lcores, "--file-prefix".into(), self.name.clone()]);
        words.extend(self.devices.iter().map(|device| format!("--vdev={device}")));
        words.extend(["--".into(), "-i".into(), format!("--total-num-mbufs={BUFFERS}")]);
        words.extend(self.options.iter().cloned());
        words
    }
}

/// Counters of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that testpmd did not receive fast enough.
    pub rx_missed: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames that it could not send.
    pub tx_errors: u64,
}

/// A running testpmd; killed when dropped, or when the thread that started it ends.
pub struct Testpmd {
    name: String,
    child: Child,
    conversation: Conversation,
    directory: tempfile::TempDir,
    _pages: Option<Reserved>,
}

/// What follows is run by `stdbuf`, where [`HUGE`] is a file system of huge pages.
fn in_own_mounts() -> Command {
    let script = format!("mount -t hugetlbfs none {HUGE} && exec stdbuf \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    command
}

/// That it can be started here.
///
/// # Errors
/// It is not installed.
pub fn installed() -> Result<()> {
    require(PROGRAM, "dpdk-dev").map(drop)
}

impl Testpmd {
    /// Starts it and waits for its prompt, that is until every device that listens has its switch.
    ///
    /// # Errors
    /// What is missing, or what testpmd said last.
    pub fn start(spec: &TestpmdSpec) -> Result<Self> {
        installed()?;
        let directory = tempfile::tempdir().context("a directory for testpmd cannot be made")?;
        let pages = match spec.pages {
            Pages::Plain => None,
            Pages::Huge => Some(Reserved::of(u64::from(spec.memory_mib) << 20)?),
        };
        // A testpmd that was killed leaves its sockets, and the next one cannot make them.
        spec.sockets.iter().for_each(|socket| drop(std::fs::remove_file(socket)));
        let log =
            File::create(directory.path().join("log")).context("testpmd's log cannot be made")?;
        let (here, there) = UnixStream::pair()?;
        // Line by line: its prompt and its answers come by different ways and would overtake each other.
        let mut command = if spec.shared { in_own_mounts() } else { Command::new("stdbuf") };
        command.args(["-oL", PROGRAM]).args(spec.arguments());
        // DPDK makes a directory here even when it has nothing to share.
        command.env("RUNTIME_DIRECTORY", directory.path());
        command.stdin(Stdio::from(OwnedFd::from(there.try_clone()?)));
        command.stdout(Stdio::from(OwnedFd::from(there))).stderr(log);
        sys::end_with_us(&mut command);
        let child = command.spawn().context("stdbuf, which starts testpmd, cannot be started")?;
        drop(command);
        let (name, conversation) = (spec.name.clone(), Conversation::new(here));
        let mut testpmd = Self { name, child, conversation, directory, _pages: pages };
        testpmd.answer("start")?;
        // It comes up without the devices that it cannot have.
        let (ports, wanted) = (testpmd.stats()?.len(), spec.devices.len());
        ensure!(ports == wanted, "{}: {ports} of {wanted} ports", testpmd.failure("start"));
        Ok(testpmd)
    }

    /// Gives a command at the prompt and returns what it printed.
    ///
    /// # Errors
    /// A testpmd that has ended or does not come back to its prompt.
    pub fn command(&mut self, command: &str) -> Result<String> {
        let said = self.conversation.say(&format!("{command}\n"));
        said.with_context(|| self.failure(command))?;
        self.answer(command)
    }

    /// Counters of all ports, by their numbers.
    ///
    /// # Errors
    /// As [`Testpmd::command`]; or an answer without counters.
    pub fn stats(&mut self) -> Result<Vec<PortStats>> {
        let text = self.command("show port stats all")?;
        let stats = port_stats(&text);
        ensure!(!stats.is_empty(), "{}: no counters", self.failure("show port stats all"));
        Ok(stats)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `dpdk-dumpcap` on a [shared](TestpmdSpec::shared) testpmd, to be given its options.
    ///
    /// A program that joins must have the pools' operations in the same places of a table, and their places come from the order in which libraries are
    /// loaded. Debian's dumpcap is linked with fewer of them than testpmd: on its own it ends testpmd with the first frame that it copies.
    ///
    /// # Errors
    /// It is not installed.
    pub fn dumpcap(&self) -> Result<Command> {
        require(DUMPCAP, "dpdk-dev")?;
        let linked = run(Command::new("ldd").arg(require(PROGRAM, "dpdk-dev")?))?;
        let libraries: Vec<&str> =
            linked.split_whitespace().filter(|word| word.contains("/librte_")).collect();
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.pid().to_string(), "env"]);
        command.arg(format!("LD_PRELOAD={}", libraries.join(":")));
        command.args([DUMPCAP, "--file-prefix", &self.name]);
        command.env("RUNTIME_DIRECTORY", self.directory.path());
        Ok(command)
    }

    fn answer(&mut self, step: &str) -> Result<String> {
        let answer = self.conversation.take_until(PROMPT, Instant::now() + PATIENCE);
        answer.with_context(|| self.failure(step))
    }

    fn failure(&self, step: &str) -> String {
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(10).collect();
        let last: Vec<_> = lines.into_iter().rev().collect();
        format!("testpmd {}: {step} failed\n  {}", self.name, last.join("\n  "))
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the answer to `show port stats all`: a block for each port, in their order.
fn port_stats(text: &str) -> Vec<PortStats> {
    let blocks = text.split("NIC statistics for port").skip(1);
    let number = |block: &str, name: &str| -> u64 {
        let rest = block.split_once(name).map(|(_, rest)| rest.trim_start());
        rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let read = |block: &str| PortStats {
        rx_packets: number(block, "RX-packets:"),
        rx_bytes: number(block, "RX-bytes:"),
        rx_missed: number(block, "RX-missed:"),
        tx_packets: number(block, "TX-packets:"),
        tx_errors: number(block, "TX-errors:"),
    };
    blocks.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_port_by_port() {
        let block = |port, rx, tx| {
            format!(
                "  ###### NIC statistics for port {port}  ######\n  RX-packets: {rx}   RX-missed: 3   RX-bytes:  9\n  RX-errors: 0\n\
                 \x20 TX-packets: {tx}    TX-errors: 1    TX-bytes:  9\n"
            )
        };
        let stats = port_stats(&(block(0, 12, 0) + &block(1, 7, 12)));
        let port = |rx_packets, tx_packets| PortStats {
            rx_packets,
            tx_packets,
            rx_bytes: 9,
            rx_missed: 3,
            tx_errors: 1,
        };
        assert_eq!(stats, [port(12, 0), port(7, 12)]);
    }

    #[test]
    fn frames_pass_from_driver_to_driver_through_dpdks_own_back_end_and_none_is_lost() {
        if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let sockets = ["0", "1"].map(|name| directory.path().join(name));
        let [first, second] = &sockets;
        let spec = TestpmdSpec::new("back-end", 0).back_end(first).back_end(second);
        let mut back_end = Testpmd::start(&spec).unwrap();
        back_end.command("set fwd io").unwrap();
        back_end.command("start").unwrap();
        let devices = sockets.each_ref().map(|socket| VirtioUser::new(socket));
        let spec = TestpmdSpec::new("driver", 1).option("--forward-mode=rxonly");
        let mut driver = Testpmd::start(&devices.iter().fold(spec, TestpmdSpec::driver)).unwrap();
        // Two bursts of 32 from each port.
        driver.command("start tx_first 2").unwrap();
        let all_is_there = |stats: &[PortStats]| stats.iter().all(|port| port.rx_packets == 64);
        let deadline = Instant::now() + PATIENCE;
        while !all_is_there(&driver.stats().unwrap()) {
            assert!(Instant::now() < deadline, "{:?}", driver.stats());
        }
        assert!(driver.stats().unwrap().iter().all(|port| port.tx_packets == 64));
        let pid = driver.pid();
        drop(driver);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
