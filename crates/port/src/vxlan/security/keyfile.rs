//! The file of keys, as far as it is a file: whose it is, who may read it, what is in it.

use crate::error::OpenError;
use esp::keys::{SaPair, parse};
use files::regular;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// No file of keys is longer. Chosen: thousands of SAs.
const LONGEST: u64 = 1 << 20;

/// Reads a file of keys.
///
/// # Errors
/// It is not there, others may read or write it, or what it says is wrong; each with a remedy.
pub(super) fn read(name: &str, path: &Path) -> Result<Vec<SaPair>, OpenError> {
    let own = rustix::process::geteuid().as_raw();
    let wrong = |cause: String, remedy: String| OpenError::Keys {
        interface: name.to_owned(),
        file: path.to_owned(),
        cause,
        remedy,
    };
    let shown = path.display();
    let unreadable = |error: regular::ReadError| {
        let remedy = error.remedy(|_| {
            format!(
                "write it as user {own} may read it, mode 600: see the guide, Encrypted tunnels"
            )
        });
        wrong(error.to_string(), remedy)
    };
    let file = regular::open(path, LONGEST).map_err(unreadable)?;
    let meta = file.meta();
    if meta.uid() != own && meta.uid() != 0 {
        let cause = format!("it belongs to user {}, who could change it", meta.uid());
        return Err(wrong(cause, format!("chown {own} {shown}")));
    }
    if meta.mode() & 0o077 != 0 {
        let cause = format!("others may read or write it (mode {:o})", meta.mode() & 0o777);
        return Err(wrong(
            cause,
            format!("chmod 600 {shown}, and make new keys if others have read these"),
        ));
    }
    let bytes = Zeroizing::new(file.read().map_err(unreadable)?);
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable(regular::ReadError::NotText))?;
    parse(text).map_err(|error| wrong(error.to_string(), error.remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_others_may_read_is_refused_with_its_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let key = |digit: &str| digit.repeat(40);
        let text = format!(
            "[[sa]]\nspi_in = 256\nspi_out = 257\nkey_in = \"{}\"\nkey_out = \"{}\"\n",
            key("a"),
            key("b")
        );
        write(&path, text).unwrap();
        for (mode, is_right) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let said = read("tun0", &path).map(|pairs| pairs.len());
            match said {
                Ok(count) => assert!(is_right && count == 1),
                Err(error) => assert!(!is_right && error.remedy().starts_with("chmod 600")),
            }
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        write(&path, "[[sa]]\ncolour = 1").unwrap();
        let error = read("tun0", &path).map(drop).unwrap_err();
        assert!(error.to_string().contains("line 2: `colour`"), "{error}");
        let error = read("tun0", dir.path()).map(drop).unwrap_err();
        assert!(error.to_string().contains("a directory, not a regular file"), "{error}");
        assert_eq!(error.remedy(), "give the path of a regular file");
    }
}
