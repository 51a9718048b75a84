//! Is a program of another package here?

use anyhow::{Context, Result};

/// That `program` is in one of `PATH`'s directories, so that whoever needs it late can say so early.
///
/// # Errors
/// It is not; the error names its Debian package.
pub fn require(program: &str, package: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    is_here.then_some(()).with_context(|| {
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
