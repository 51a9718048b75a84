//! What `suiro --version` says of its making: the commit, and the parts that are in it.
//!
//! The commit is `SUIRO_COMMIT`'s if that is set (a build without the repository), else the repository's, `with changes` if a source differs from it.

use std::path::Path;
use std::process::Command;

/// Every crate's sources, seen from this one.
const SOURCES: &str = ":(glob)../*/src/**";

fn main() {
    println!("cargo::rerun-if-env-changed=SUIRO_COMMIT");
    places().iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
    let named = std::env::var("SUIRO_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(checked_out);
    println!("cargo::rustc-env=SUIRO_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    let parts = [
        ("client", true),
        ("node", feature("NODE")),
        ("lab", feature("LAB")),
        ("control", feature("CONTROL")),
        ("portal", feature("PORTAL")),
    ];
    let built: Vec<&str> = parts.iter().filter(|part| part.1).map(|part| part.0).collect();
    println!("cargo::rustc-env=SUIRO_FEATURES={}", built.join(" + "));
}

/// The commit that is checked out, and whether the sources are its own.
fn checked_out() -> Option<String> {
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changes = git(&["--no-optional-locks", "status", "--porcelain", "--", SOURCES])?;
    Some(if changes.is_empty() { commit } else { format!("{commit} with changes") })
}

/// What changes with the commit and with the sources. A path that is not there would have this run at each build.
///
/// A commit changes HEAD's log. From another working tree HEAD's branch may be moved without that: it stands in a file of its own, which comes when a packed
/// one is moved.
fn places() -> Vec<String> {
    let at = |name: &str| {
        git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
    };
    let branch = git(&["symbolic-ref", "-q", "HEAD"]).and_then(|branch| at(&branch));
    let kept = [at("HEAD"), at("logs/HEAD"), branch.or_else(|| at("refs/heads"))];
    let crates = std::fs::read_dir("..").into_iter().flatten().flatten();
    let sources = crates.map(|one| format!("../{}/src", one.file_name().to_string_lossy()));
    kept.into_iter().flatten().chain(sources.filter(|path| Path::new(path).exists())).collect()
}

fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
