//! What is in a guest?
//!
//! Debian's static busybox, iperf3, ethtool, iproute2 and setpriv as installed on the host, with the libraries that `ldd` names; the
//! modules of the network; what a [`GuestSpec`] wants beside them; and `init.sh`. An archive without such wishes is named after a hash
//! of its content, so a newer package or a changed script gives a new file, and all guests share one; any other is its guest's own.

use super::cpio::Archive;
use super::kernel::Kernel;
use super::spec::GuestSpec;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const INIT: &str = include_str!("init.sh");

/// Programs besides busybox, with the Debian package that has each.
const PROGRAMS: [(&str, &str); 5] = [
    ("iperf3", "iperf3"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("bridge", "iproute2"),
    ("setpriv", "util-linux"),
];

/// Modules that the guest loads at its start, in this order: its bus, the port to the host, the network.
const MODULES: [&str; 5] = ["virtio_pci", "virtio_console", "virtio_net", "8021q", "af_packet"];

/// The archive's file; written now unless it is one that all share and is there. `directory` is the guest's own.
pub fn prepare(kernel: &Kernel, spec: &GuestSpec, directory: &Path) -> Result<PathBuf> {
    let bytes = build(kernel, spec)?;
    let is_own = !spec.programs.is_empty() || !spec.modules.is_empty();
    let path = if is_own {
        directory.join("initramfs.cpio")
    } else {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        kernel.cache().join(format!("initramfs-{:016x}.cpio", hasher.finish()))
    };
    if !path.exists() {
        store(&path, &bytes).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(path)
}

/// Under its name only when complete: another process may be about to boot from it.
fn store(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().context("no directory")?)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

fn build(kernel: &Kernel, spec: &GuestSpec) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    // The kernel gives `init` this as its output before anything is mounted.
    archive.character_device("/dev/console", (5, 1));
    archive.file("/init", INIT.as_bytes());
    archive.file("/bin/busybox", &read(&find("busybox", "busybox-static")?)?);
    add_programs(&mut archive, &spec.programs)?;
    add_modules(&mut archive, kernel, &[&MODULES[..], &spec.modules].concat())?;
    Ok(archive.finish())
}

fn add_programs(archive: &mut Archive, others: &[PathBuf]) -> Result<()> {
    let usual = PROGRAMS.iter().map(|(name, package)| find(name, package));
    let mut libraries = BTreeSet::new();
    for path in usual.chain(others.iter().cloned().map(Ok)) {
        let path = path?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{}: no name for a program", path.display()))?;
        archive.file(&format!("/bin/{name}"), &read(&path)?);
        libraries.extend(libraries_of(&path)?);
    }
    libraries.iter().try_for_each(|path| {
        archive.file(path, &read(Path::new(path))?);
        Ok(())
    })
}

fn add_modules(archive: &mut Archive, kernel: &Kernel, wanted: &[&str]) -> Result<()> {
    let lines = kernel.dependencies(wanted)?;
    let directory = kernel.modules_directory();
    for file in lines.iter().filter_map(|line| line.split(':').next()) {
        archive.file(&format!("{directory}{file}"), &read(&kernel.file(file))?);
    }
    let is_there =
        |module: &&&str| lines.iter().any(|line| line.contains(&format!("/{module}.ko:")));
    let names: Vec<_> = wanted.iter().filter(is_there).copied().collect();
    archive.file("/etc/modules", names.join("\n").as_bytes());
    archive.file(&format!("{directory}modules.dep"), (lines.join("\n") + "\n").as_bytes());
    Ok(())
}

fn find(name: &str, package: &str) -> Result<PathBuf> {
    let directories = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    let mut candidates = directories.iter().map(|directory| Path::new(directory).join(name));
    let missing = || format!("{name}: not installed (Debian: {package}); run 'make setup'");
    candidates.find(|path| path.exists()).with_context(missing)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))
}

/// Every file in `ldd`'s answer: "name => /path (address)" for a library, "/path (address)" for the loader.
fn libraries_of(program: &Path) -> Result<Vec<String>> {
    let text = crate::netns::run(Command::new("ldd").arg(program))?;
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(words.map(str::to_owned).collect())
}
