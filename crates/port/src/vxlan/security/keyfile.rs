//! The file of keys, as far as it is a file: whose it is, who may read it, what is in it.

use crate::error::OpenError;
use esp::keys::{SaPair, parse};
use std::fs::File;
use std::io::{self, Read};
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
    let unreadable = |error: io::Error| {
        wrong(
            error.to_string(),
            format!(
                "write it as user {own} may read it, mode 600: see the guide, Encrypted tunnels"
            ),
        )
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(wrong("it is no file of keys".into(), "give the file's own path".into()));
    }
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
    // Room from the beginning: a text that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(meta.len() as usize + 1));
    file.read_to_string(&mut text).map_err(unreadable)?;
    parse(&text).map_err(|error| wrong(error.to_string(), error.remedy))
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
        assert!(read("tun0", dir.path()).is_err());
    }
}
