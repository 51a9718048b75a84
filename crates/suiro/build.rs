//! What `suiro --version` says of its making: the commit, and the parts that are in it.
//!
//! The commit is `SUIRO_COMMIT`'s if that is set (a build without the repository), else the repository's.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SUIRO_COMMIT");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let named = std::env::var("SUIRO_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| git(&["rev-parse", "--short=10", "HEAD"]));
    println!("cargo::rustc-env=SUIRO_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    let parts = [
        ("client", true),
        ("node", feature("NODE")),
        ("lab", feature("LAB")),
        ("control", feature("CONTROL")),
    ];
    let built: Vec<&str> = parts.iter().filter(|part| part.1).map(|part| part.0).collect();
    println!("cargo::rustc-env=SUIRO_FEATURES={}", built.join(" + "));
}

fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
