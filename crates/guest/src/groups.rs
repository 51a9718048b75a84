//! Control groups of guests: made, limited, counted, emptied and removed.

use crate::GuestError;
use crate::limits::{Controller, Setting, Version, settings, uses};
use api::{GuestSpec, GuestUse};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How often processes are looked for that a group's others start meanwhile. Chosen: a fork bomb is over in a few.
const ROUNDS: usize = 1000;

/// One control group in all trees that matter.
#[derive(Clone, Debug)]
pub struct Groups {
    version: Version,
    /// Its directory in each controller's tree; one and the same in v2.
    directories: Vec<(Controller, PathBuf)>,
}

impl Groups {
    /// The group at `path` of the trees under `root`, `/sys/fs/cgroup` as a rule. Nothing is made yet.
    pub fn at(root: &Path, path: &str) -> Self {
        // Hybrid hosts have v2 beside v1, without these controllers.
        let is_v2 = root.join("cgroup.controllers").exists();
        let version = if is_v2 { Version::V2 } else { Version::V1 };
        let directory = |controller: &Controller| {
            let tree = if is_v2 { root.into() } else { root.join(controller.word()) };
            let is_there =
                is_v2 || tree.join("cgroup.procs").exists() || tree.join("tasks").exists();
            is_there.then(|| (*controller, tree.join(path)))
        };
        let directories = Controller::of(version).iter().filter_map(directory).collect();
        Self { version, directories }
    }

    fn unique(&self) -> Vec<&Path> {
        let mut found: Vec<_> = self.directories.iter().map(|(_, path)| path.as_path()).collect();
        found.dedup();
        found
    }

    /// Makes it. False: this host has no such trees.
    ///
    /// # Errors
    /// The host refuses.
    pub fn make(&self) -> Result<bool, GuestError> {
        for directory in self.unique() {
            fs::create_dir_all(directory).map_err(GuestError::of("making its group", directory))?;
            if self.version == Version::V2 {
                self.enable_above(directory);
            }
        }
        Ok(!self.directories.is_empty())
    }

    /// In v2 a group has the controllers that its parents hand down. What they do not, is told by the limit that cannot be set.
    fn enable_above(&self, directory: &Path) {
        let words = self.directories.iter().map(|(controller, _)| controller.word());
        let all: Vec<_> = words.map(|word| format!("+{word}")).collect();
        let mut above: Vec<_> = directory.ancestors().skip(1).collect();
        above.retain(|path| path.join("cgroup.subtree_control").exists());
        for path in above.into_iter().rev() {
            let _ = fs::write(path.join("cgroup.subtree_control"), all.join(" "));
        }
    }

    /// Sets its limits, while processes run in it or before.
    ///
    /// # Errors
    /// The host cannot keep a limit that the guest asks for.
    pub fn limit(&self, spec: &GuestSpec) -> Result<(), GuestError> {
        for one in settings(spec, self.version) {
            let directory = self.directories.iter().find(|(of, _)| *of == one.controller);
            let set = match directory {
                Some((_, path)) => fs::write(path.join(one.file), &one.text),
                None => Err(io::ErrorKind::Unsupported.into()),
            };
            match set {
                Err(error) if one.is_limit => {
                    return Err(GuestError::of("setting a limit", one.file)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Limits that it does not have as they are declared.
    pub fn unlike(&self, spec: &GuestSpec) -> Vec<String> {
        let wanted = settings(spec, self.version).into_iter().filter(|setting| setting.is_limit);
        let differs = |setting: Setting| {
            let (_, path) = self.directories.iter().find(|(of, _)| *of == setting.controller)?;
            let file = path.join(setting.file);
            let found = fs::read_to_string(&file).unwrap_or_else(|_| "not there".into());
            let (found, shall) = (found.trim(), setting.text.as_str());
            (!is_same(found, shall))
                .then(|| format!("{} is {found}, and shall be {shall}", file.display()))
        };
        wanted.filter_map(differs).collect()
    }

    /// The names of groups in it.
    pub fn inside(&self) -> BTreeSet<String> {
        let entries = self.unique().into_iter().filter_map(|path| fs::read_dir(path).ok());
        let groups = entries.flatten().flatten().filter(|entry| entry.path().is_dir());
        groups.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The files that a process writes itself into.
    pub fn doors(&self) -> Vec<PathBuf> {
        self.unique().into_iter().map(|path| path.join("cgroup.procs")).collect()
    }

    /// What its processes use.
    pub fn uses(&self) -> GuestUse {
        uses(self.version, |controller, file| {
            let (_, path) = self.directories.iter().find(|(of, _)| *of == controller)?;
            fs::read_to_string(path.join(file)).ok()
        })
    }

    /// Its processes.
    pub fn processes(&self) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        for door in self.doors() {
            let text = fs::read_to_string(door).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Sends a signal to all its processes but these.
    pub fn signal(&self, signal: Signal, but: &[u32]) {
        for pid in self.processes().into_iter().filter(|pid| !but.contains(pid)) {
            // It may have ended already.
            let _ = Pid::from_raw(pid as i32).map(|pid| kill_process(pid, signal));
        }
    }

    /// Ends all its processes and removes it; false if something of it stays.
    pub fn remove(&self) -> bool {
        for _ in 0..ROUNDS {
            if self.processes().is_empty() {
                break;
            }
            self.signal(Signal::KILL, &[]);
            std::thread::yield_now();
        }
        let mut gone = true;
        for directory in self.unique() {
            for _ in 0..ROUNDS {
                match fs::remove_dir(directory) {
                    // A process that was killed is still on its way out.
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    _ => break,
                }
            }
            gone &= !directory.exists();
            // The parents are all guests': they go with the last one.
            for parent in directory.ancestors().skip(1).take(2) {
                if fs::remove_dir(parent).is_err() {
                    break;
                }
            }
        }
        gone
    }
}

/// Equal, or as many whole pages: the kernel keeps memory's limits in those.
fn is_same(found: &str, shall: &str) -> bool {
    const PAGE: u64 = 4096;
    let pages = |text: &str| text.parse::<u64>().ok().map(|bytes| bytes / PAGE);
    found == shall || matches!((pages(found), pages(shall)), (Some(a), Some(b)) if a == b && a > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(memory: Option<u64>) -> GuestSpec {
        let text = r#"{"name":"h1","netns":"h1","cpu_milli":100}"#;
        GuestSpec { memory, ..serde_json::from_str(text).unwrap() }
    }

    /// A tree of files as a v2 host has it.
    fn v2() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in ["cgroup.controllers", "cgroup.subtree_control"] {
            fs::write(root.path().join(file), "").unwrap();
        }
        root
    }

    #[test]
    fn in_v2_controllers_are_handed_down_and_limits_are_one_file_each() {
        let root = v2();
        let groups = Groups::at(root.path(), "suiro/n/h1");
        assert!(groups.make().unwrap());
        groups.limit(&spec(Some(1 << 26))).unwrap();
        let read = |file: &str| fs::read_to_string(root.path().join(file)).unwrap();
        assert_eq!(read("cgroup.subtree_control"), "+cpu +memory +pids");
        assert_eq!(read("suiro/n/h1/cpu.max"), "10000 100000");
        assert_eq!(read("suiro/n/h1/memory.max"), "67108864");
        groups.limit(&spec(None)).unwrap();
        assert_eq!(read("suiro/n/h1/memory.max"), "max");
        assert_eq!(groups.doors(), [root.path().join("suiro/n/h1/cgroup.procs")]);
    }

    #[test]
    fn in_v1_each_controller_has_its_tree_and_a_missing_one_is_told_where_it_matters() {
        let root = tempfile::tempdir().unwrap();
        for tree in ["cpu", "cpuacct"] {
            fs::create_dir(root.path().join(tree)).unwrap();
            fs::write(root.path().join(tree).join("cgroup.procs"), "").unwrap();
        }
        let groups = Groups::at(root.path(), "suiro/n/h1");
        assert!(groups.make().unwrap());
        groups.limit(&spec(None)).unwrap();
        let quota = root.path().join("cpu/suiro/n/h1/cpu.cfs_quota_us");
        assert_eq!(fs::read_to_string(quota).unwrap(), "10000");
        assert_eq!(groups.doors().len(), 2);
        let error = groups.limit(&spec(Some(1))).unwrap_err();
        assert_eq!(error.at, Path::new("memory.limit_in_bytes"));
    }

    #[test]
    fn a_host_without_control_groups_has_guests_without_limits() {
        let root = tempfile::tempdir().unwrap();
        let groups = Groups::at(root.path(), "suiro/n/h1");
        assert!(!groups.make().unwrap());
        let free = GuestSpec { cpu_milli: None, ..spec(None) };
        groups.limit(&free).unwrap();
        assert!(groups.limit(&spec(None)).is_err());
        assert!(groups.remove() && groups.processes().is_empty());
    }
}
