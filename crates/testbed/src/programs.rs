//! Is a program of another package here?

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Where in `PATH`'s directories `program` is, so that whoever needs it late can say early that it is missing.
///
/// # Errors
/// It is not; the error names its Debian package.
pub fn require(program: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(program));
    files.find(|file| file.is_file()).with_context(|| {
        format!("{program} is in no directory of PATH (Debian: {package}); run 'make setup'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_misses_a_program_is_told_its_package() {
        assert!(require("sh", "dash").is_ok());
        let error = require("no-such-program", "some-package").unwrap_err().to_string();
        assert!(error.starts_with("no-such-program is in no directory of PATH"), "{error}");
        assert!(error.contains("Debian: some-package"), "{error}");
    }
}
