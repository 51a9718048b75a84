//! Compiles what is not Rust and is fuzzed all the same: the steering program's dissector, with address sanitizer and coverage.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rerun-if-changed=../crates/xdp/bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let (object, library) = (out.join("dissect.o"), out.join("libdissect.a"));
    let flags = [
        "-O1",
        "-g",
        "-Wall",
        "-Werror",
        "-fPIC",
        "-fsanitize=address",
        "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp",
        "-c",
        "native/dissect.c",
        "-o",
    ];
    run(Command::new("clang").args(flags).arg(&object));
    run(Command::new("ar").arg("crs").arg(&library).arg(&object));
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=dissect");
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
