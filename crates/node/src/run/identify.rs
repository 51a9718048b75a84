//! Who the node is: settled before anything is derived from it.

use super::RunError;
use crate::config::Host;
use crate::host::{IDENTITY_FILE, Identity, Machine};
use crate::store::FILE_NAME;
use api::Fault;
use std::io;
use std::path::Path;

/// Has `host` be the node of this state directory, whose ids it keeps; a directory without any gets new ones.
///
/// # Errors
/// The directory's identity cannot be read or kept.
pub fn identify(state_dir: &Path, host: &mut Host) -> Result<(), RunError> {
    let machine = Machine::look();
    let path = state_dir.join(IDENTITY_FILE);
    let failed = |step: &'static str| {
        let thing = format!("state directory {}", state_dir.display());
        let remedy = format!("check {} and its rights, or set [node] state_dir", path.display());
        move |error: io::Error| RunError::from(Fault::new(thing, step, error.to_string(), remedy))
    };
    let found = match Identity::of(state_dir, &machine).map_err(failed("read its identity"))? {
        Some(found) => found,
        None => {
            // Before there were identities, ids were derived from the machine's.
            let is_older = state_dir.join(FILE_NAME).exists();
            let inherited = is_older.then_some(&*host.node_id);
            match (Identity::make(state_dir, &machine, inherited), inherited) {
                (Ok(made), _) => made,
                // A full disk: the next start finds out the same.
                (Err(error), Some(id)) => {
                    tracing::error!(
                        remedy = "make room, or let it write",
                        "{}: not kept: {error}",
                        path.display()
                    );
                    Identity { node_id: id.into(), copied_from: None }
                }
                (Err(error), None) => return Err(failed("keep its identity")(error)),
            }
        }
    };
    if let Some(origin) = &found.copied_from {
        tracing::warn!(
            remedy = "if that machine still runs suiro, remove this copy (suiro node --purge) and give its tunnels new keys; if it does not, write this machine's ids into the file",
            "{} was made on another machine ({origin}): both have the same datapath ids and addresses",
            path.display()
        );
    }
    (host.node_id, host.copied_from) = (found.node_id, found.copied_from);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host { cores: vec![0], node_id: "machine".into(), copied_from: None }
    }

    fn identified(directory: &Path) -> String {
        let mut host = host();
        identify(directory, &mut host).unwrap();
        host.node_id
    }

    #[test]
    fn a_new_directory_is_a_new_node_and_an_older_one_the_one_it_was() {
        let (new, older) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(older.path().join(FILE_NAME), "").unwrap();
        let first = identified(new.path());
        assert!(first != "machine" && identified(new.path()) == first);
        assert_eq!(
            (identified(older.path()), identified(older.path())),
            ("machine".into(), "machine".into())
        );
    }

    /// The name of its file is taken, so that it cannot be written: root may write to any directory.
    #[test]
    fn a_full_disk_keeps_no_older_directory_from_being_the_node_that_it_was() {
        let (new, older) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(older.path().join(FILE_NAME), "").unwrap();
        for directory in [&new, &older] {
            std::fs::create_dir(directory.path().join("identity.new")).unwrap();
        }
        assert_eq!([identified(older.path()), identified(older.path())], ["machine", "machine"]);
        let error = identify(new.path(), &mut host()).unwrap_err().to_string();
        assert!(error.contains("keep its identity"), "ids that change at each start: {error}");
    }

    #[test]
    fn an_identity_that_cannot_be_read_names_its_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(IDENTITY_FILE), "?").unwrap();
        let error = identify(directory.path(), &mut host()).unwrap_err().to_string();
        assert!(error.contains("read its identity") && error.contains(IDENTITY_FILE), "{error}");
    }
}
