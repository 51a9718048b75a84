//! The lab's portal: who may sign in there, and where it is.

use super::layout::Layout;
use super::user::{keep_secret, suiro, suiro_reads};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Its users: name, tenant, role.
const USERS: [(&str, Option<&str>, &str); 3] =
    [("alice", Some("red"), "user"), ("bob", Some("blue"), "user"), ("ops", None, "operator")];
/// Random bytes of their password.
const RANDOM: usize = 8;

/// Makes the users, unless they are there. All have one password, which is kept for root alone.
pub fn users(layout: &Layout) -> Result<String> {
    let path = password_file(layout);
    if !path.exists() {
        let mut random = [0; RANDOM];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        for (name, tenant, role) in USERS {
            let mut words = vec!["domain", "user", "add", name, "--role", role];
            words.extend(tenant.into_iter().flat_map(|tenant| ["--tenant", tenant]));
            suiro(layout, &words)?;
            suiro_reads(layout, &["domain", "user", "password", name], &password)?;
        }
        keep_secret(&path, &password)?;
    }
    Ok("alice (tenant red), bob (tenant blue), ops (operator)".into())
}

/// Where to sign in, and how.
pub fn address(layout: &Layout) -> Result<String> {
    let path = layout.controller.run_dir().join("portal");
    let at = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let password = std::fs::read_to_string(password_file(layout)).context("the users' password")?;
    Ok(format!("{} user alice, password {password}", at.trim()))
}

fn password_file(layout: &Layout) -> PathBuf {
    layout.directory.join("password")
}
