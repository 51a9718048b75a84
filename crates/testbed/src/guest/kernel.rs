//! Which kernel do the guests run?
//!
//! Debian's for virtual machines (`linux-image-cloud-amd64`), unpacked by `scripts/setup` below the build directory and not
//! installed: a machine that builds suiro needs neither a boot loader nor another kernel.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directory of everything for guests, below the build directory.
const DIRECTORY: &str = "guest";

/// A kernel and its modules.
pub struct Kernel {
    directory: PathBuf,
    /// Release, as `uname -r` says it; names the directory of the modules.
    release: String,
}

impl Kernel {
    /// The one that `scripts/setup` has put into the build directory that the running program is in.
    pub fn find() -> Result<Self> {
        let program = std::env::current_exe().context("own program: path is unknown")?;
        let candidates = program.ancestors().map(|above| above.join(DIRECTORY));
        let directory =
            candidates.into_iter().find(|path| path.join("vmlinuz").exists()).with_context(|| {
                format!(
                    "no kernel for guests ({DIRECTORY}/vmlinuz) in any directory above {}; run 'make setup' in the source tree and \
                     start what was built there",
                    program.display()
                )
            })?;
        let modules = directory.join("lib/modules");
        let entry = std::fs::read_dir(&modules).ok().and_then(|mut entries| entries.next());
        let release =
            entry.and_then(Result::ok).and_then(|entry| entry.file_name().into_string().ok());
        let release = release.with_context(|| {
            format!(
                "{}: empty; remove {} and run 'make setup'",
                modules.display(),
                directory.display()
            )
        })?;
        Ok(Self { directory, release })
    }

    /// The image.
    pub fn image(&self) -> PathBuf {
        self.directory.join("vmlinuz")
    }

    /// Where files made from the kernel and other packages are kept.
    pub fn cache(&self) -> &Path {
        &self.directory
    }

    /// Where modules are in the guest, with a slash at both ends.
    pub fn modules_directory(&self) -> String {
        format!("/lib/modules/{}/", self.release)
    }

    /// The lines of `modules.dep` for these modules and all that they need (modules.dep(5): "file: what it needs, …"); a module
    /// that is built in has no line.
    pub fn dependencies(&self, wanted: &[&str]) -> Result<Vec<String>> {
        let path = self.file("modules.dep");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{}: cannot be read; run 'make setup'", path.display()))?;
        Ok(closure(&text, wanted))
    }

    /// A file of the directory of modules, on the host.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join("lib/modules").join(&self.release).join(name)
    }
}

fn closure(dependencies: &str, wanted: &[&str]) -> Vec<String> {
    let line_of = |is_it: &dyn Fn(&str) -> bool| {
        dependencies.lines().find(|line| line.split(':').next().is_some_and(is_it))
    };
    let named = |name: &&str| {
        let file = format!("/{name}.ko");
        line_of(&move |path| path.ends_with(&file))
    };
    let mut lines: BTreeSet<_> = wanted.iter().filter_map(named).collect();
    let needed: Vec<_> = lines.iter().flat_map(|line| line.split(' ').skip(1)).collect();
    lines.extend(needed.into_iter().filter_map(|file| line_of(&|path| path == file)));
    lines.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_brings_what_it_needs_and_one_built_in_brings_nothing() {
        let text = "kernel/net/core/failover.ko:\n\
                    kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko\n\
                    kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko\n\
                    kernel/drivers/net/not_virtio_net.ko:\n";
        let lines = closure(text, &["virtio_net", "af_packet"]);
        let files: Vec<_> = lines.iter().map(|line| line.split(':').next().unwrap()).collect();
        let wanted = ["net/net_failover.ko", "net/virtio_net.ko", "core/failover.ko"];
        assert_eq!(files.len(), wanted.len());
        assert!(files.iter().zip(wanted).all(|(file, wanted)| file.ends_with(wanted)), "{files:?}");
    }
}
