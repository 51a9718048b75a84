//! Compiles the XDP program with clang; the object is embedded in the crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    for program in [
        "hook",
        "worker",
        "transmit",
        "offload_tc",
        "offload_try",
        "offload_xdp",
        "steer",
        "trace",
        "dissect",
        "tunnel",
        "spi",
        "outer",
    ] {
        compile(program, program, &[]);
    }
    // For kernels before 5.18.
    for program in ["hook", "worker"] {
        compile(program, &format!("{program}_whole"), &["-DSUIRO_WHOLE_FRAMES"]);
    }
}

/// `bpf/<program>.bpf.c` to `<object>.bpf.o` in `OUT_DIR`.
fn compile(program: &str, object: &str, defines: &[&str]) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
        .join(format!("{object}.bpf.o"));
    let source = format!("bpf/{program}.bpf.c");
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"]);
    command.args(defines);
    if let Some(headers) = multiarch_headers() {
        command.arg("-idirafter").arg(headers);
    }
    command.arg(&source).arg("-o").arg(&out);
    match command.output() {
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
fn multiarch_headers() -> Option<PathBuf> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").ok()?;
    let candidates =
        fs::read_dir(Path::new("/usr/include")).ok()?.flatten().map(|entry| entry.path());
    candidates.filter(|path| path.join("asm/types.h").is_file()).find(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(&format!("{arch}-linux")))
    })
}
