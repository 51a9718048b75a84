//! Compiles the experiments' programs with clang; the objects are embedded in the crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Below `bpf`, without ending.
const PROGRAMS: [&str; 4] = ["headers", "redirect", "stage", "witness"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for program in PROGRAMS {
        compile(&clang, program, &out);
    }
}

fn compile(clang: &str, program: &str, out: &Path) {
    let source = format!("bpf/{program}.bpf.c");
    let mut command = Command::new(clang);
    command.args(["-target", "bpf", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter"]);
    command.args(["-Werror", "-c", &source]).args(multiarch_headers());
    match command.arg("-o").arg(out.join(format!("{program}.bpf.o"))).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!(
            "{clang} cannot compile {source} (needs the packages clang, libbpf-dev and linux-libc-dev):\n{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => {
            panic!("{clang} cannot be run ({error}): install the package clang, or set CLANG")
        }
    }
}

/// Debian keeps `asm/types.h` below the host's architecture, where `-target bpf` does not look.
fn multiarch_headers() -> Vec<PathBuf> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let entries = fs::read_dir(Path::new("/usr/include")).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("{arch}-linux")) && path.join("asm/types.h").is_file()
    };
    let found = entries.map(|entry| entry.path()).find(is_ours);
    found.map_or_else(Vec::new, |path| vec!["-idirafter".into(), path])
}
