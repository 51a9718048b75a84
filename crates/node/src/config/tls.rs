//! `tls = { certificate, key, ca, pins }`, of the node and of a switch.

use super::read::{Located, Notes, Scope};
use crate::tls::Credentials;
use api::{TlsSpec, chain};
use std::path::PathBuf;

/// Cause and remedy of TLS without certificates.
pub const NO_CERTIFICATE: (&str, &str) = (
    "ssl: and pssl: need certificates, and neither the switch nor the node names any",
    "add tls = { certificate = \"...\", key = \"...\", ca = \"...\" } to the switch or to [node]",
);

/// Certificates named in the file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsTable {
    thing: String,
    spec: TlsSpec,
    /// Lines of `certificate`, `key` and `ca`.
    lines: [usize; 3],
}

const KEYS: [&str; 3] = ["certificate", "key", "ca"];

/// The table `tls` of a node or a switch, noted in `tables` for [`check_files`].
pub fn read(scope: &Scope<'_>, tables: &mut Vec<TlsTable>) -> Option<TlsSpec> {
    let table = scope.table("tls", &format!("{} tls", scope.thing))?;
    let found = KEYS.map(|key| read_file(&table, key));
    let pins = table.texts("pins").into_iter().map(|pin| pin.value).collect();
    table.close();
    let [certificate, key, ca] = found;
    let (certificate, key, ca) = (certificate?, key?, ca?);
    let lines = [certificate.line, key.line, ca.line];
    let spec = TlsSpec { certificate: certificate.value, key: key.value, ca: ca.value, pins };
    tables.push(TlsTable { thing: scope.thing.clone(), spec: spec.clone(), lines });
    Some(spec)
}

fn read_file(table: &Scope<'_>, key: &'static str) -> Option<Located<PathBuf>> {
    let Some(found) = table.string(key) else {
        let remedy = format!("add {key} = \"/path/of/{key}.pem\"");
        table.missing(key, &format!("{key} is missing"), remedy);
        return None;
    };
    if !found.value.starts_with('/') {
        let cause = format!("{key} = {:?} is not an absolute path", found.value);
        table.problem(key, cause, "begin it with /");
        return None;
    }
    Some(Located { value: found.value.into(), line: found.line })
}

/// Notes files that cannot be read or do not belong together.
pub fn check_files(tables: &[TlsTable], notes: &Notes) {
    for TlsTable { thing, spec, lines } in tables {
        for fault in Credentials::faults(spec) {
            let at = KEYS.iter().position(|&key| key == fault.key()).unwrap_or_default();
            notes.add(lines[at], thing, chain(&fault), fault.remedy());
        }
    }
}
