//! Network namespaces and veth pairs of one run, gone when the run is.
//!
//! iproute2 makes them (it is on every host that can run a switch); entering one is ours. Names carry the process id, so two
//! runs never meet.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// A namespace that is deleted, with all that runs and lives in it, when the value is dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates `su-<role>-<pid>` with its loopback up.
    pub fn create(role: &str) -> Result<Self> {
        let name = format!("su-{role}-{}", std::process::id());
        ip(&["netns", "add", &name])?;
        let namespace = Self { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ip -n <name> …`.
    pub fn ip(&self, arguments: &[&str]) -> Result<String> {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    /// A command that will run inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// A command that will run inside, and see the host's mounts: of those, `ip netns exec` hides `/sys/fs/bpf`.
    pub fn command_with_mounts(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args([&format!("--net=/run/netns/{}", self.name), program]);
        command
    }

    /// Runs `work` with the calling thread's double inside: sockets opened there stay there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        enter(&self.name, work)
    }

    /// Frames and bytes that an interface inside has received so far.
    pub fn received(&self, interface: &str) -> Result<u64> {
        let text = self.ip(&["-j", "-s", "link", "show", "dev", interface])?;
        let value: serde_json::Value = serde_json::from_str(&text)?;
        value[0]["stats64"]["rx"]["packets"]
            .as_u64()
            .with_context(|| format!("{interface}: no statistics"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ =
            Command::new("ip").args(["netns", "del", &self.name]).stderr(Stdio::null()).status();
    }
}

/// Runs `work` with the calling thread's double in a namespace. Sockets opened there stay there, and so do programs that are started there; unlike
/// with `ip netns exec`, namespaces that those make are seen by all.
pub fn enter<T: Send>(name: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let file = std::fs::File::open(format!("/run/netns/{name}"))
        .with_context(|| format!("namespace {name}: open failed"))?;
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            rustix::thread::move_into_link_name_space(
                std::os::fd::AsFd::as_fd(&file),
                Some(rustix::thread::LinkNameSpaceType::Network),
            )
            .with_context(|| "entering the namespace failed; run as root")?;
            work()
        });
        inside.join().expect("the work in a namespace does not panic")
    })
}

/// Runs `ip`, naming the whole command when it fails.
pub fn ip(arguments: &[&str]) -> Result<String> {
    run(Command::new("ip").args(arguments))
}

/// Runs a command to its end; its standard error is the error.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{command:?}: cannot be started; run 'make setup'"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A guest: a namespace with one interface `eth0`, whose other end stands in the switch's namespace.
pub struct Guest {
    /// The namespace.
    pub namespace: Namespace,
    /// Address of `eth0`.
    pub address: String,
    /// MAC address of `eth0`.
    pub mac: String,
    /// The switch's end, or the interface itself when it is a TAP.
    pub port: String,
}

impl Guest {
    /// A guest on a veth pair: `eth0` inside, `v<number>` in `switch`.
    pub fn on_veth(switch: &Namespace, number: u8) -> Result<Self> {
        let guest = Self::bare(number)?;
        let (inside, port) = (guest.namespace.name(), guest.port.as_str());
        switch
            .ip(&["link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", inside])?;
        switch.ip(&["link", "set", port, "up"])?;
        guest.configure("eth0")?;
        Ok(guest)
    }

    /// A guest without an interface yet: the switch will make one, which [`Guest::configure`] then sets up.
    pub fn bare(number: u8) -> Result<Self> {
        Ok(Self {
            namespace: Namespace::create(&format!("g{number}"))?,
            address: format!("10.77.0.{number}"),
            mac: format!("02:00:00:00:00:{number:02x}"),
            port: format!("v{number}"),
        })
    }

    /// Gives the interface its address and brings it up.
    pub fn configure(&self, interface: &str) -> Result<()> {
        let address = format!("{}/24", self.address);
        self.namespace.ip(&["link", "set", interface, "address", &self.mac])?;
        self.namespace.ip(&["addr", "replace", &address, "dev", interface])?;
        self.namespace.ip(&["link", "set", interface, "up"])?;
        Ok(())
    }
}
