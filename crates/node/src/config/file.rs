//! The configuration file on disk, and the last that worked.
//!
//! A file that is broken must not cut guests off at a restart: the text of the last one that was put in force is kept beside the state, and
//! runs until the file is mended. It is loud: `suiro status` and the log name every error of the broken one.

use super::{Config, ConfigError, Host};
use crate::durable;
use api::Fault;
use std::fs;
use std::io;
use std::mem;
use std::path::PathBuf;

/// Where the configuration is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConfigFile {
    /// The file; an empty node without one.
    pub path: Option<PathBuf>,
    /// Where the last one that worked is kept, if it is.
    pub last_good: Option<PathBuf>,
    /// What the command line says otherwise.
    pub instead: Instead,
}

/// What stands in place of the file's words, at the start and at each reload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Instead {
    /// Directory of sockets and lock.
    pub run_dir: Option<PathBuf>,
    /// Directory of what must survive.
    pub state_dir: Option<PathBuf>,
    /// Cores of the workers.
    pub cores: Option<Vec<usize>>,
}

impl Instead {
    fn of(&self, mut config: Config) -> Config {
        let Self { run_dir, state_dir, cores } = self.clone();
        let node = &mut config.node;
        node.run_dir = run_dir.unwrap_or(mem::take(&mut node.run_dir));
        node.state_dir = state_dir.unwrap_or(mem::take(&mut node.state_dir));
        node.cores = cores.unwrap_or(mem::take(&mut node.cores));
        config
    }
}

/// What a node starts with.
#[derive(Debug)]
pub struct Found {
    /// The configuration to run.
    pub config: Config,
    /// What is wrong with the file, if this is the last good one instead.
    pub faults: Vec<Fault>,
}

impl ConfigFile {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// It is unreadable, or wrong.
    pub fn read(&self, host: &Host) -> Result<Config, ConfigError> {
        let read = match &self.path {
            Some(path) => Config::load(path, host)?,
            None => Config::empty(host),
        };
        Ok(self.instead.of(read))
    }

    /// The file's configuration, or the last good one if the file is broken.
    ///
    /// # Errors
    /// The file is broken, and none worked before.
    pub fn read_or_last_good(&self, host: &Host) -> Result<Found, ConfigError> {
        let error = match self.read(host) {
            Ok(config) => return Ok(Found { config, faults: Vec::new() }),
            Err(error) => error,
        };
        match self.last_good.as_ref().filter(|kept| kept.exists()) {
            Some(kept) => {
                let config = self.instead.of(Config::load(kept, host)?);
                Ok(Found { config, faults: error.faults() })
            }
            None => Err(error),
        }
    }

    /// Keeps a text that works, whole or not at all.
    ///
    /// # Errors
    /// The disk.
    pub fn keep(&self, text: &str) -> io::Result<()> {
        let Some(kept) = &self.last_good else { return Ok(()) };
        if fs::read_to_string(kept).is_ok_and(|before| before == text) {
            return Ok(());
        }
        durable::write(kept, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host { cores: vec![0], node_id: "here".into(), copied_from: None }
    }

    #[test]
    fn a_broken_file_is_replaced_by_the_last_that_worked_and_its_errors_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        let file = ConfigFile {
            path: Some(path.clone()),
            last_good: Some(directory.path().join("node.toml.good")),
            instead: Instead::default(),
        };
        fs::write(&path, "[[switch]]\nname = 'sw0'\ncolour = 'red'\n").unwrap();
        assert!(file.read_or_last_good(&host()).is_err(), "none worked before");
        fs::write(&path, "[[switch]]\nname = 'sw0'\n").unwrap();
        let found = file.read_or_last_good(&host()).unwrap();
        assert!(found.faults.is_empty());
        file.keep(&found.config.text).unwrap();
        fs::write(&path, "[[switch]]\nname = 'sw0'\ncolour = 'red'\n").unwrap();
        let found = file.read_or_last_good(&host()).unwrap();
        assert_eq!(found.config.switches.len(), 1);
        assert_eq!(found.faults.len(), 1);
        assert!(found.faults[0].to_string().contains("node.toml:3"), "{}", found.faults[0]);
        fs::remove_file(&path).unwrap();
        let found = file.read_or_last_good(&host()).unwrap();
        assert!(found.faults[0].to_string().contains("No such file"), "{}", found.faults[0]);
    }

    #[test]
    fn what_the_command_line_says_stands_whatever_the_file_says_and_the_rest_is_the_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        fs::write(&path, "[node]\ncores = [0]\nrun_dir = '/run/file'\nstate_dir = '/state'\n")
            .unwrap();
        let instead = Instead {
            run_dir: Some("/run/line".into()),
            cores: Some(vec![0, 1]),
            ..Instead::default()
        };
        for path in [Some(path), None] {
            let file = ConfigFile { path, last_good: None, instead: instead.clone() };
            let without = ConfigFile { instead: Instead::default(), ..file.clone() };
            let [node, before] = [file, without].map(|file| file.read(&host()).unwrap().node);
            assert_eq!((&node.cores, &node.run_dir), (&vec![0, 1], &"/run/line".into()));
            assert_eq!(node.state_dir, before.state_dir);
        }
    }
}
