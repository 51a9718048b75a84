//! Bad files and what a user reads about each: every fault at once, with line, what is short, what would fit.
//!
//! A file of `tests/bad` begins as the design's example does; its first line, `# s/OLD/NEW/`, says what is changed in it. What follows is
//! the message. `SUIRO_WRITE_DOCS=1` writes the messages anew.

mod common;

use common::{DEMO, DOMAIN, UID, all, slice, world};
use domain::{Domain, Fault, Slice, World, admit};
use std::path::{Path, PathBuf};

/// What the world says of a text.
fn verdict(world: &World, text: &str) -> Result<(), Vec<Fault>> {
    let slice = Slice::parse("demo.yaml", text)?;
    admit(world, &slice, UID).map(drop)
}

/// Half of two nodes is another tenant's.
fn busy() -> World {
    let mut world = world();
    let text = "suiro: slice/1\nname: other\ntenant: blue\nguests:\n  big: {kind: process, site: tokyo, place: {node: t2}, cpu: 3.5, memory: 7G}\n  wide: {kind: process, site: osaka, place: {node: o2}, cpu: 1, memory: 6.5G}\nswitches: {s1: {site: osaka}}\nexternals: {out: {use: campus-122, to: \"s1:1\"}}\n";
    let other = slice(text);
    let decision =
        admit(&world, &other, domain::Uid(7)).unwrap_or_else(|faults| panic!("{}", all(&faults)));
    world.insert(domain::Admitted { spec: other.spec, decision });
    world
}

fn changed(base: &str, line: &str) -> String {
    let change = |text: String, edit: &str| {
        let (old, new) = edit.split_once(" => ").unwrap_or_else(|| panic!("{edit}: OLD => NEW"));
        let new = new.replace("\\n", "\n");
        assert!(text.contains(old), "{old:?} is not in the example");
        text.replace(old, &new)
    };
    line.split(" ;; ").fold(base.to_owned(), change)
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let entries = std::fs::read_dir(folder).expect("tests/bad is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it is read").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_bad_file_has_its_message() {
    let (world, busy, write) = (world(), busy(), std::env::var_os("SUIRO_WRITE_DOCS").is_some());
    let mut wrong = Vec::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, expected) = text.split_once('\n').unwrap();
        let (kind, edit) = head.split_once(": ").unwrap();
        let result = match kind {
            "slice" => verdict(&world, &changed(DEMO, edit)),
            "slice in a busy domain" => verdict(&busy, &changed(DEMO, edit)),
            "domain" => Domain::parse("domain.yaml", &changed(DOMAIN, edit)).map(drop),
            other => panic!("{other}: slice, or domain"),
        };
        let found = all(&result.expect_err(&path.display().to_string()));
        if write {
            std::fs::write(&path, format!("{head}\n{found}")).unwrap();
        } else if found != expected {
            wrong.push(format!("{}:\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases().len() >= 20);
}

#[test]
fn every_fault_of_a_file_has_a_line_and_a_way_out() {
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().skip(1).filter(|line| !line.starts_with("    ")) {
            assert!(line.starts_with("demo.yaml:") || line.starts_with("domain.yaml:"), "{line}");
        }
    }
}

#[test]
fn a_stage_tells_all_its_faults_at_once() {
    let text = DEMO.replace("site: osaka", "site: osaca").replace("site: sendai", "site: sendia");
    let faults = verdict(&world(), &text).unwrap_err();
    assert_eq!(faults.len(), 5, "{}", all(&faults));
}
