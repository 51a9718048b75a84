//! As whom a controller is asked: what `suiro login` has kept.
//!
//! One file, its owner's alone: where the controller is, and the token, which names the authority that the controller must be of.

use crate::failure::Failure;
use crate::place::ControllerPlace;
use crate::secret;
use api::{As, Client, ControllerAt, Fault, Token};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The socket of the controller of this host.
const HERE: &str = "/run/suiro-control/api.sock";

/// What is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// `HOST:PORT`.
    pub address: String,
    /// The user's token.
    pub token: Token,
}

/// A client of the controller that was named, or of the one that was logged in to, or of this host's. What keeps it from asking is said when it asks: most
/// commands ask no controller.
pub fn controller(named: Option<ControllerPlace>, patience: Duration) -> Client {
    chosen(named, patience).unwrap_or_else(|failure| Client::nowhere(failure.fault(), patience))
}

fn chosen(named: Option<ControllerPlace>, patience: Duration) -> Result<Client, Failure> {
    let (named, kept) = match named {
        Some(ControllerPlace::Socket(path)) => return Ok(Client::new(path, patience)),
        Some(ControllerPlace::Address(address)) => (Some(address), kept()?),
        None => (None, kept()?),
    };
    let Some(address) = named.or_else(|| kept.as_ref().map(|kept| kept.address.clone())) else {
        return Ok(Client::new(HERE.into(), patience));
    };
    let token = match secret::token(None, secret::USER)? {
        Some(token) => Some(token),
        None => kept.filter(|kept| kept.address == address).map(|kept| kept.token),
    };
    let token = token.ok_or_else(|| {
        let thing = format!("controller {address}");
        let remedy = format!(
            "log in: suiro login {address}, with a token that an operator makes (suiro domain user add)"
        );
        Failure::Usage(Fault::new(thing, "ask it", "there is no token for it", remedy))
    })?;
    client(&address, token, patience)
}

/// A client of the controller at an address, for who has that token.
///
/// # Errors
/// None today.
pub fn client(address: &str, token: Token, patience: Duration) -> Result<Client, Failure> {
    let controller = ControllerAt::new(address, &token.authority(), As::Bearer(token));
    Ok(Client::remote(controller.map_err(Failure::Refused)?, patience))
}

/// Keeps a login.
///
/// # Errors
/// The disk, or nobody's home.
pub fn keep(login: &Login) -> Result<PathBuf, Failure> {
    let path = file().ok_or_else(|| {
        let remedy = "set HOME; or do without a login: SUIRO_CONTROL=HOST:PORT and SUIRO_TOKEN";
        Failure::Refused(Fault::new("login", "keep it", "there is no home directory", remedy))
    })?;
    let text = serde_json::to_vec_pretty(login).expect("a login is plain data");
    let write = || {
        std::fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        let new = path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&text)?;
        std::fs::rename(new, &path)
    };
    write().map_err(|error: io::Error| of_file(&path, "keep it", &error))?;
    Ok(path)
}

/// Forgets the login. The token stays good until its time is over, or an operator takes it back.
///
/// # Errors
/// The disk.
pub fn forget() -> Result<(), Failure> {
    let Some(path) = file() else { return Ok(()) };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(of_file(&path, "remove it", &error))
        }
        _ => Ok(()),
    }
}

fn kept() -> Result<Option<Login>, Failure> {
    let Some(path) = file() else { return Ok(None) };
    let Ok(text) = std::fs::read(&path) else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| of_file(&path, "read it", &error))
}

fn of_file(path: &Path, step: &str, error: &dyn Error) -> Failure {
    let remedy = "see that it is yours; or remove it and log in again";
    let thing = format!("login {}", path.display());
    Failure::Refused(Fault::new(thing, step, error.to_string(), remedy))
}

/// Where it is kept (XDG Base Directory Specification).
fn file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("suiro/login.json"))
}
