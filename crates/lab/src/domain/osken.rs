//! os-ken for a guest: Python packages of this host, shown where guests see them.
//!
//! A guest sees the host's programs, and neither homes nor `/tmp`, where a repository often is. So the packages are mounted below `/var/lib`, to be read only;
//! the guest runs them by the host's own `python3`. The mount belongs to the lab and goes with it.

use super::layout::Layout;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::netns::run;

/// Where the repository's environment is, seen from its root.
const PYTHON: &str = ".venv/bin/python";
/// Says where os-ken is.
const WHERE: &str = "import os_ken, os; print(os.path.dirname(os.path.dirname(os_ken.__file__)))";

/// Shows os-ken to the lab's guests; returns where they find it.
pub fn show(layout: &Layout) -> Result<PathBuf> {
    let python = std::env::var_os("SUIRO_PYTHON").unwrap_or_else(|| PYTHON.into());
    let packages = run(Command::new(&python).args(["-c", WHERE])).with_context(|| {
        let python = python.display();
        format!("{python} has no os-ken; run scripts/setup demo, and this from the repository's root, or name a Python that has it in SUIRO_PYTHON")
    })?;
    let at = place(layout);
    hide(layout)?;
    fs::create_dir_all(&at).with_context(|| format!("{}: cannot be made", at.display()))?;
    run(Command::new("mount").args(["-o", "bind,ro", packages.trim()]).arg(&at))?;
    Ok(at)
}

/// Takes it away again.
pub fn hide(layout: &Layout) -> Result<()> {
    let at = place(layout);
    if !at.exists() {
        return Ok(());
    }
    if is_mounted(&at)? {
        run(Command::new("umount").arg(&at))?;
    }
    // Empty, or somebody else's: then it stays.
    fs::remove_dir(&at).with_context(|| format!("{}: cannot be removed", at.display()))
}

fn place(layout: &Layout) -> PathBuf {
    Path::new("/var/lib").join(format!("suiro-{}-osken", layout.name))
}

fn is_mounted(at: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
    let at = at.to_string_lossy();
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(&at)))
}
