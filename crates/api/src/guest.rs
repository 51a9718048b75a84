//! Guests that a part declares: programs in a network namespace of their own, whose ports are TAPs of the part's switches.
//!
//! In a part's text a guest is a table of its own. The node makes its namespace before ports are opened in it.
//!
//! ```toml
//! [[guest]]
//! name = "h1"
//! netns = "su-9f31c2aa-h1"
//! command = ["python3", "-m", "http.server"]
//!
//! [[guest.interface]]
//! name = "eth0"
//! addresses = ["10.0.0.1/24"]
//! ```

use crate::{Fault, IfName, Netns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use utoipa::ToSchema;

/// When a guest that has ended is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Always.
    #[default]
    Always,
    /// When it failed.
    OnFailure,
    /// Never.
    Never,
}

impl Restart {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["always", "on-failure", "never"];
}

/// A guest of kind `process`, as a part declares it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestSpec {
    /// Its name, unique in the part.
    pub name: String,
    /// Its network namespace, a name. It is made with the guest and goes with it.
    pub netns: Netns,
    /// Program and arguments. None: the namespace alone is there, with its interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Text of files that it finds in `/files`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Names that it finds in `/etc/hosts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
    /// When it is started again.
    #[serde(default)]
    pub restart: Restart,
    /// Thousandths of a core that it may use; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u32>,
    /// Bytes of memory that it may use; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processes and threads that it may have; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Its interfaces. Each is a TAP port of a switch of the part, which names it by `netns` and `interface`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interface: Vec<GuestInterface>,
}

/// Most bytes of all files of a guest. Chosen: scripts and settings fit, images do not.
pub const FILES_MAX: usize = 1 << 20;

impl GuestSpec {
    /// Whether its processes may go on while it becomes that one.
    pub fn can_become(&self, other: &Self) -> bool {
        let with = Self {
            restart: other.restart,
            cpu_milli: other.cpu_milli,
            memory: other.memory,
            pids: other.pids,
            interface: other.interface.clone(),
            ..self.clone()
        };
        with == *other
    }

    /// Everything that its keys say wrong: cause and remedy.
    pub fn faults(&self) -> Vec<(String, &'static str)> {
        let mut found = Vec::new();
        let mut check = |wrong: bool, cause: String, remedy: &'static str| {
            if wrong {
                found.push((cause, remedy));
            }
        };
        let plain =
            |text: &str| !text.is_empty() && !text.contains(['/', '\0']) && !text.starts_with('.');
        check(
            !plain(&self.name) || self.name.len() > 64,
            format!("{:?} is not a guest's name", self.name),
            "write 1 to 64 characters without a slash, not beginning with a dot",
        );
        check(
            self.netns.contains('/'),
            format!("its namespace {} is a path", self.netns),
            "write a name: suiro makes the namespace under /run/netns",
        );
        check(
            self.command.first().is_some_and(String::is_empty),
            "its command has no program".into(),
            "write command = [\"PROGRAM\", \"ARGUMENT\", ...]",
        );
        check(
            [self.cpu_milli == Some(0), self.memory == Some(0), self.pids == Some(0)]
                .contains(&true),
            "a limit of 0 lets nothing run".into(),
            "choose a greater one, or leave it out",
        );
        check(
            self.files.values().map(String::len).sum::<usize>() > FILES_MAX,
            format!("its files take more than {FILES_MAX} bytes together"),
            "shorten them",
        );
        for name in self.files.keys().filter(|name| !plain(name)) {
            check(true, format!("{name:?} is not a file's name"), "write a name without a slash");
        }
        for address in self.interface.iter().flat_map(|interface| &interface.addresses) {
            check(
                prefix(address).is_none(),
                format!("{address:?} is not an address with the length of its prefix"),
                "write it as 10.0.0.1/24 or 2001:db8::1/64",
            );
        }
        found
    }
}

/// An address and the length of its prefix.
pub fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, len) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let len = len.parse().ok().filter(|len| *len <= longest)?;
    Some((address, len))
}

/// A guest's interface: what the guest's side needs beside the port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestInterface {
    /// Its name in the guest's namespace.
    #[schema(value_type = String)]
    pub name: IfName,
    /// Addresses with the length of their prefixes, such as `10.0.0.1/24`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// How a guest is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestCondition {
    /// It waits for something that is not there: an interface, or a limit that the host refuses.
    #[default]
    Waiting,
    /// Its command runs; without a command, all that it needs is there.
    Running,
    /// Its command has ended and is started again soon.
    BackingOff,
    /// Its command has ended and is not started again.
    Ended,
}

impl GuestCondition {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::BackingOff => "backing-off",
            Self::Ended => "ended",
        }
    }
}

/// What a guest's processes use, as its control groups count it; nothing where the host does not count it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GuestUse {
    /// Processor time, in microseconds.
    pub cpu_us: Option<u64>,
    /// How many periods ended with its share used up.
    pub throttled: Option<u64>,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// A guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GuestView {
    /// The part that declares it; `file` is the configuration file.
    pub part: String,
    /// As it is wanted, without the text of its files.
    pub spec: GuestSpec,
    /// How it is.
    pub condition: GuestCondition,
    /// Since when, in nanoseconds since 1970.
    pub since_ns: u64,
    /// The process that holds it, as the host numbers it.
    pub pid: Option<u32>,
    /// How often its command was started again.
    pub restarts: u64,
    /// How it ended last.
    pub last_end: Option<String>,
    /// What its processes use.
    pub uses: GuestUse,
    /// What it waits for.
    pub fault: Option<Fault>,
}

/// The end of what a guest's command has written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogView {
    /// Its last lines.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = r#"{"name":"h1","netns":"su-9f31c2aa-h1","command":["osken-manager","/files/stp.py"],"restart":"on-failure",
        "cpu_milli":100,"memory":67108864,"pids":100,"interface":[{"name":"eth0","addresses":["10.0.0.1/24","2001:db8::1/64"]}],
        "files":{"stp.py":"pass\n"},"hosts":{"ctl":["10.0.0.1"]}}"#;

    #[test]
    fn a_guest_is_read_as_it_is_written() {
        let spec: GuestSpec = serde_json::from_str(ALL).unwrap();
        assert_eq!(spec.faults(), []);
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<GuestSpec>(&text).unwrap(), spec);
    }

    #[test]
    fn what_its_keys_say_wrong_is_said_all_at_once() {
        let bad = ALL
            .replace("10.0.0.1/24", "10.0.0.1/33")
            .replace("\"stp.py\"", "\"../stp.py\"")
            .replace("su-9f31c2aa-h1", "/proc/1/ns/net")
            .replace(":100,\"memory", ":0,\"memory");
        let spec: GuestSpec = serde_json::from_str(&bad).unwrap();
        assert_eq!(spec.faults().len(), 4, "{:?}", spec.faults());
    }
}
