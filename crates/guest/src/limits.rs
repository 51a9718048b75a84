//! Which control files get which text for a limit. Pure.
//!
//! Sources: Linux `Documentation/admin-guide/cgroup-v1` (sched-bwc, memory, pids) and `cgroup-v2.rst`.

use api::{GuestSpec, GuestUse};

/// Length of a period of processor time, in microseconds (the kernel's default).
const PERIOD_US: u64 = 100_000;
/// Least processor time of a period (the kernel's bound).
const QUOTA_MIN_US: u64 = 1000;

/// Which interface the host's controllers have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// A tree for each controller.
    V1,
    /// One tree.
    V2,
}

/// A controller that limits or counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Controller {
    /// Processor time.
    Cpu,
    /// Counts processor time, in v1.
    Cpuacct,
    /// Memory.
    Memory,
    /// Processes.
    Pids,
}

impl Controller {
    /// Those of a version.
    pub fn of(version: Version) -> &'static [Self] {
        match version {
            Version::V1 => &[Self::Cpu, Self::Cpuacct, Self::Memory, Self::Pids],
            Version::V2 => &[Self::Cpu, Self::Memory, Self::Pids],
        }
    }

    /// The kernel's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// A control file and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Whose it is.
    pub controller: Controller,
    /// Its name.
    pub file: &'static str,
    /// What it gets.
    pub text: String,
    /// Whether the guest asks for it: a host that cannot do it is told of then.
    pub is_limit: bool,
}

/// What to write for a guest. What it has no limit of is set free, for it may have had one before.
pub fn settings(spec: &GuestSpec, version: Version) -> Vec<Setting> {
    let quota = spec.cpu_milli.map(|milli| (u64::from(milli) * PERIOD_US / 1000).max(QUOTA_MIN_US));
    let setting = |controller, file, text: Option<String>, free: &str| Setting {
        controller,
        file,
        is_limit: text.is_some(),
        text: text.unwrap_or_else(|| free.into()),
    };
    let (memory, pids) = (spec.memory.map(|bytes| bytes.to_string()), spec.pids);
    let pids = setting(Controller::Pids, "pids.max", pids.map(|pids| pids.to_string()), "max");
    match version {
        Version::V1 => vec![
            setting(Controller::Cpu, "cpu.cfs_quota_us", quota.map(|us| us.to_string()), "-1"),
            setting(Controller::Memory, "memory.limit_in_bytes", memory, "-1"),
            pids,
        ],
        Version::V2 => {
            let quota = quota.map(|us| format!("{us} {PERIOD_US}"));
            let free = format!("max {PERIOD_US}");
            vec![
                setting(Controller::Cpu, "cpu.max", quota, &free),
                setting(Controller::Memory, "memory.max", memory, "max"),
                pids,
            ]
        }
    }
}

/// What a guest uses, as control files tell it; `read` has the text of one.
pub fn uses(version: Version, read: impl Fn(Controller, &str) -> Option<String>) -> GuestUse {
    let number = |controller, file| read(controller, file)?.trim().parse::<u64>().ok();
    let of_stat = |key: &str| {
        let text = read(Controller::Cpu, "cpu.stat")?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key).and_then(|(_, value)| value.trim().parse().ok())
    };
    let pids = number(Controller::Pids, "pids.current");
    let throttled = of_stat("nr_throttled");
    match version {
        Version::V1 => GuestUse {
            cpu_us: number(Controller::Cpuacct, "cpuacct.usage").map(|ns| ns / 1000),
            throttled,
            memory: number(Controller::Memory, "memory.usage_in_bytes"),
            pids,
        },
        Version::V2 => GuestUse {
            cpu_us: of_stat("usage_usec"),
            throttled,
            memory: number(Controller::Memory, "memory.current"),
            pids,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> GuestSpec {
        serde_json::from_str(
            r#"{"name":"h1","netns":"h1","cpu_milli":250,"memory":67108864,"pids":50}"#,
        )
        .unwrap()
    }

    fn texts(spec: &GuestSpec, version: Version) -> Vec<(String, bool)> {
        let shown = |one: Setting| (format!("{}={}", one.file, one.text), one.is_limit);
        settings(spec, version).into_iter().map(shown).collect()
    }

    #[test]
    fn each_limit_has_its_file_in_both_versions() {
        let v1 = ["cpu.cfs_quota_us=25000", "memory.limit_in_bytes=67108864", "pids.max=50"];
        assert_eq!(texts(&spec(), Version::V1), v1.map(|text| (text.to_owned(), true)));
        let v2 = ["cpu.max=25000 100000", "memory.max=67108864", "pids.max=50"];
        assert_eq!(texts(&spec(), Version::V2), v2.map(|text| (text.to_owned(), true)));
    }

    #[test]
    fn a_limit_that_is_taken_away_is_set_free() {
        let free = GuestSpec { cpu_milli: None, memory: None, pids: None, ..spec() };
        let v1 = ["cpu.cfs_quota_us=-1", "memory.limit_in_bytes=-1", "pids.max=max"];
        assert_eq!(texts(&free, Version::V1), v1.map(|text| (text.to_owned(), false)));
        let least = GuestSpec { cpu_milli: Some(1), ..spec() };
        assert_eq!(texts(&least, Version::V1)[0].0, "cpu.cfs_quota_us=1000");
    }

    #[test]
    fn uses_are_read_from_both_versions() {
        let v2 = uses(Version::V2, |_, file| match file {
            "cpu.stat" => Some("usage_usec 1234\nnr_throttled 7\n".into()),
            "memory.current" => Some("4096\n".into()),
            _ => None,
        });
        let memory = Some(4096);
        let wanted = GuestUse { cpu_us: Some(1234), throttled: Some(7), memory, pids: None };
        assert_eq!(v2, wanted);
        let v1 = uses(Version::V1, |_, file| (file == "cpuacct.usage").then(|| "5000000".into()));
        assert_eq!(v1.cpu_us, Some(5000));
    }
}
