//! The commit that `suiro version` tells: what the build script says of a program of one line, as its repository changes.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../suiro/build.rs");
const PACKAGE: &str = "[package]\nname = \"suiro\"\nversion = \"0.2.0\"\nedition = \"2024\"\n";
const PROGRAM: &str = "fn main() { print!(\"{}\", env!(\"SUIRO_COMMIT\")); }\n";

/// A working tree, and what is built in it.
struct Tree(PathBuf);

impl Tree {
    /// A repository with one commit of the program and its script.
    fn new(home: &Path) -> Self {
        let (tree, package) = (Self(home.join("tree")), home.join("tree/crates/suiro"));
        std::fs::create_dir_all(package.join("src")).unwrap();
        std::fs::copy(SCRIPT, package.join("build.rs")).unwrap();
        let files = [
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/suiro\"]\nresolver = \"3\"\n"),
            ("crates/suiro/Cargo.toml", PACKAGE),
            ("crates/suiro/src/main.rs", PROGRAM),
            (".gitignore", "target\nCargo.lock\n"),
        ];
        for (name, text) in files {
            std::fs::write(tree.0.join(name), text).unwrap();
        }
        tree.git(&["init", "--quiet"]);
        tree.git(&["add", "."]);
        tree.commit();
        tree
    }

    fn run(&self, program: &str, words: &[&str]) -> String {
        let mut command = Command::new(program);
        let command = command.args(words).current_dir(&self.0).env_remove("SUIRO_COMMIT");
        let output = command.env("CARGO_TARGET_DIR", self.0.join("target")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn git(&self, words: &[&str]) -> String {
        let who = ["-c", "user.name=a tester", "-c", "user.email=tester@example.org"];
        self.run("git", &[&who, words].concat())
    }

    fn commit(&self) {
        self.git(&["commit", "--quiet", "--all", "--allow-empty", "--message", "another"]);
    }

    /// What the program tells, built anew if cargo thinks that it must be.
    fn told(&self) -> String {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        self.run(&cargo, &["build", "--quiet", "--offline"]);
        self.run("target/debug/suiro", &[])
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "--short=10", "HEAD"]).trim().to_owned()
    }

    #[track_caller]
    fn assert_tells_its_commit(&self) {
        assert_eq!(self.told(), self.head());
    }
}

#[test]
fn the_version_tells_the_commit_of_every_working_tree_and_what_is_not_committed() {
    let home = TempDir::new().unwrap();
    let tree = Tree::new(home.path());
    tree.assert_tells_its_commit();
    tree.git(&["pack-refs", "--all"]);
    tree.commit();
    tree.assert_tells_its_commit();

    // Another working tree, with what was built in the first one.
    tree.git(&["worktree", "add", "--quiet", "-b", "other", "../other"]);
    let other = Tree(home.path().join("other"));
    other.run("cp", &["--archive", "../tree/target", "."]);
    other.assert_tells_its_commit();
    other.commit();
    other.assert_tells_its_commit();

    // From there the first one's branch is moved: with a file of its own, and packed.
    let branch = tree.git(&["symbolic-ref", "HEAD"]);
    other.git(&["update-ref", branch.trim(), "HEAD"]);
    tree.assert_tells_its_commit();
    tree.git(&["pack-refs", "--all"]);
    tree.assert_tells_its_commit();
    other.git(&["update-ref", branch.trim(), "HEAD~1"]);
    tree.assert_tells_its_commit();

    std::fs::write(tree.0.join("crates/suiro/src/more.rs"), "// Not committed.\n").unwrap();
    assert_eq!(tree.told(), format!("{} with changes", tree.head()));
    tree.git(&["add", "."]);
    tree.commit();
    tree.assert_tells_its_commit();
}
