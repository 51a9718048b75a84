//! What the documents show is what the programs take.

use std::path::Path;
use std::process::Command;

/// libvirt's own grammar of a domain, unpacked by `make setup`.
fn grammar() -> String {
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target directory");
    target.join("libvirt/domain.rng").display().to_string()
}

fn xmllint(options: &[&str], file: &str) -> (bool, String) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/libvirt.xml");
    let file = if file.is_empty() { example } else { file };
    let output = Command::new("xmllint").args(options).args(["--noout", file]).output();
    let output = output.expect("xmllint runs: `make setup` installs libxml2-utils");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_domain_of_the_guide_is_one_by_libvirts_own_grammar() {
    let grammar = grammar();
    assert!(Path::new(&grammar).exists(), "{grammar} is missing: run `make setup`");
    let (valid, errors) = xmllint(&["--relaxng", &grammar], "");
    assert!(valid, "{errors}");
}

#[test]
fn the_grammar_tells_a_wrong_domain() {
    let home = tempfile::tempdir().unwrap();
    let wrong = home.path().join("wrong.xml");
    let example = include_str!("../../../../docs/how-to/libvirt.xml");
    std::fs::write(&wrong, example.replace("mode=\"server\"", "mode=\"listener\"")).unwrap();
    let (valid, _) = xmllint(&["--relaxng", &grammar()], &wrong.display().to_string());
    assert!(!valid);
}
