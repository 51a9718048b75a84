//! Which node this is: a secret in its state directory, from which datapath ids and addresses are derived.
//!
//! Machines made from one image have one machine-id, so it cannot tell nodes apart. It tells, however, whether a state directory is still on the
//! machine that it was made on: a copied one has the ids of the node that it was copied from.

use crate::durable;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The file in the state directory.
pub const IDENTITY_FILE: &str = "identity";

/// What is known of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Machine {
    /// Its machine-id(5); `None` in containers that have none.
    pub id: Option<String>,
    /// The id that its firmware has, which an image does not carry along.
    pub firmware: Option<String>,
}

/// Who a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// What its ids are derived from.
    pub node_id: String,
    /// The machine that the state directory was made on, in words, if it is another one.
    pub copied_from: Option<String>,
}

/// The identity file as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    node_id: String,
    machine: Machine,
}

impl Machine {
    /// Looks at the machine.
    pub fn look() -> Self {
        let read = |path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let known = |text: &String| !text.is_empty() && text != "uninitialized";
        Self {
            id: read("/etc/machine-id").filter(known),
            firmware: read("/sys/class/dmi/id/product_uuid").filter(known),
        }
    }

    /// How `self`, which was kept, differs from the machine of now; what either does not know is no difference.
    fn other_than(&self, now: &Self) -> Option<String> {
        let differs = |kept: &Option<String>, now: &Option<String>| match (kept, now) {
            (Some(kept), Some(now)) => (kept != now).then(|| kept.clone()),
            _ => None,
        };
        let id = differs(&self.id, &now.id).map(|id| format!("machine-id {id}"));
        let firmware = || {
            let firmware = differs(&self.firmware, &now.firmware)?;
            Some(format!("firmware id {firmware}"))
        };
        id.or_else(firmware)
    }
}

impl Identity {
    /// The identity that a state directory has now, if it has one.
    pub fn of(directory: &Path, machine: &Machine) -> io::Result<Option<Self>> {
        let mut text = String::new();
        match File::open(directory.join(IDENTITY_FILE)) {
            Ok(mut file) => file.read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let kept = Kept::read(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "it has no line node_id = \"…\"")
        })?;
        let copied_from = kept.machine.other_than(machine);
        Ok(Some(Self { node_id: kept.node_id, copied_from }))
    }

    /// Keeps an identity for a state directory that has none: `inherited`, what its ids are derived from already, or a new secret.
    pub fn make(directory: &Path, machine: &Machine, inherited: Option<&str>) -> io::Result<Self> {
        let node_id = inherited.map_or_else(secret, |id| Ok(id.to_owned()))?;
        let kept = Kept { node_id, machine: machine.clone() };
        std::fs::create_dir_all(directory)?;
        durable::write(&directory.join(IDENTITY_FILE), kept.text().as_bytes())?;
        Ok(Self { node_id: kept.node_id, copied_from: None })
    }
}

impl Kept {
    fn text(&self) -> String {
        let line = |key, value: &Option<String>| {
            value.as_ref().map_or_else(String::new, |value| format!("{key} = \"{value}\"\n"))
        };
        format!("node_id = \"{}\"\n", self.node_id)
            + &line("machine_id", &self.machine.id)
            + &line("firmware_id", &self.machine.firmware)
    }

    fn read(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
            let value = line.trim().strip_prefix('"')?.strip_suffix('"')?;
            (!value.is_empty()).then(|| value.to_owned())
        };
        let machine = Machine { id: value("machine_id"), firmware: value("firmware_id") };
        Some(Self { node_id: value("node_id")?, machine })
    }
}

/// 128 random bits.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(id: &str, firmware: &str) -> Machine {
        Machine { id: Some(id.into()), firmware: Some(firmware.into()) }
    }

    #[test]
    fn two_directories_on_one_machine_are_two_nodes_and_each_stays_itself() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let clone = machine("m", "f");
        let first = Identity::make(here.path(), &clone, None).unwrap();
        let second = Identity::make(there.path(), &clone, None).unwrap();
        assert_ne!(first.node_id, second.node_id);
        assert_eq!(Identity::of(here.path(), &clone).unwrap(), Some(first));
        assert_eq!(Identity::of(&here.path().join("none"), &clone).unwrap(), None);
    }

    #[test]
    fn a_directory_from_before_keeps_what_its_ids_came_from() {
        let here = tempfile::tempdir().unwrap();
        let made = Identity::make(here.path(), &machine("m", "f"), Some("m")).unwrap();
        assert_eq!((made.node_id.as_str(), made.copied_from), ("m", None));
    }

    #[test]
    fn a_copied_directory_names_the_machine_that_it_was_made_on() {
        let here = tempfile::tempdir().unwrap();
        Identity::make(here.path(), &machine("m", "f"), None).unwrap();
        let copied =
            |machine: &Machine| Identity::of(here.path(), machine).unwrap().unwrap().copied_from;
        assert_eq!(copied(&machine("m", "f")), None);
        assert_eq!(copied(&machine("other", "f")).as_deref(), Some("machine-id m"));
        assert_eq!(copied(&machine("m", "other")).as_deref(), Some("firmware id f"));
        assert_eq!(copied(&Machine::default()), None, "a container that knows nothing");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_new_identity() {
        let here = tempfile::tempdir().unwrap();
        for text in ["", "node_id = \"\"", "node_id = 7", "machine_id = \"m\"\n"] {
            std::fs::write(here.path().join(IDENTITY_FILE), text).unwrap();
            assert!(Identity::of(here.path(), &Machine::default()).is_err(), "{text}");
        }
    }
}
