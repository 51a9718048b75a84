//! What the Debian package and the tarball are made from: `scripts/lay-out`. `make try-package` installs the package itself.

use acceptance::Said;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FILES: [&str; 11] = [
    "etc/suiro/node.toml",
    "usr/bin/suiro",
    "usr/share/bash-completion/completions/suiro",
    "usr/share/zsh/vendor-completions/_suiro",
    "usr/share/fish/vendor_completions.d/suiro.fish",
    "usr/share/man/man1/suiro.1",
    "usr/share/man/man5/suiro-node.toml.5",
    "usr/share/suiro/mininet/suiro_mininet.py",
    "usr/share/suiro/grafana/suiro.json",
    "usr/share/doc/suiro/README.md",
    "usr/share/doc/suiro/docs/index.md",
];

#[test]
fn it_has_the_command_a_manual_page_of_each_completions_and_helpers() {
    let root = tempfile::tempdir().unwrap();
    let mut lay_out = Command::new(Path::new(ROOT).join("scripts/lay-out"));
    let made =
        Said::of(lay_out.arg(root.path()).env("SUIRO", acceptance::suiro()).output().unwrap());
    assert_eq!(made.code, 0, "{}", made.err);
    for file in FILES {
        assert!(root.path().join(file).is_file(), "{file}");
    }
    let suiro = root.path().join("usr/bin/suiro");
    let help = Said::of(Command::new(&suiro).arg("--help").output().unwrap()).out;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        let page = root.path().join(format!("usr/share/man/man1/suiro-{name}.1"));
        assert!(page.is_file(), "{}", page.display());
    }
    let machine = std::env::consts::ARCH;
    let extcap = root.path().join(format!("usr/lib/{machine}-linux-gnu/wireshark/extcap/suirocap"));
    assert_eq!(std::fs::read_link(&extcap).unwrap(), Path::new("/usr/bin/suiro"));
}
