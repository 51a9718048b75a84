//! The binary under test: `$SUIRO`, else the one that was built beside the test.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

static SUIRO: LazyLock<Result<String, String>> =
    LazyLock::new(|| match std::env::var_os("SUIRO") {
        Some(path) => given(Path::new(&path)),
        None => beside(&std::env::current_exe().unwrap()),
    });

/// The binary under test.
///
/// # Panics
/// It is not there, or older than its sources; the message names the remedy.
#[track_caller]
pub fn suiro() -> &'static str {
    match &*SUIRO {
        Ok(path) => path,
        Err(why) => panic!("{why}"),
    }
}

fn given(path: &Path) -> Result<String, String> {
    let full = path.canonicalize().map_err(|error| format!("SUIRO={}: {error}", path.display()))?;
    Ok(text(full))
}

/// Cargo puts tests into `deps` below the directory of the binaries of one profile.
fn beside(test: &Path) -> Result<String, String> {
    let suiro = test.ancestors().nth(2).unwrap().join("suiro");
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    let remedy = format!("run cargo build{release} -p suiro, or let SUIRO name the binary to test");
    if !suiro.is_file() {
        return Err(format!("{}: no such file; {remedy}", suiro.display()));
    }
    match newer_source(&suiro) {
        Some(source) => Err(format!("{} is older than {source}; {remedy}", suiro.display())),
        None => Ok(text(suiro)),
    }
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("the path of the binary under test is UTF-8")
}

/// A source that was changed after the binary was built. Cargo lists them in `suiro.d`, as a rule for make: `\ ` is a space in a name.
fn newer_source(suiro: &Path) -> Option<String> {
    let rule = std::fs::read_to_string(suiro.with_extension("d")).unwrap_or_default();
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let built = changed(suiro).unwrap_or(SystemTime::UNIX_EPOCH);
    let (_, sources) = rule.split_once(": ")?;
    let sources = sources.trim().replace("\\ ", "\0");
    let mut names = sources.split(' ').map(|name| name.replace('\0', " "));
    names.find(|name| changed(Path::new(name)).is_some_and(|time| time > built))
}
