//! Puts the portal's files into the binary, each also as gzip, if the feature `portal` is on.

use flate2::{Compression, write::GzEncoder};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const DIST: &str = "../../web/dist";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut text = String::from("/// All files.\nconst PAGES: &[Page] = &[\n");
    if std::env::var_os("CARGO_FEATURE_PORTAL").is_some() {
        println!("cargo::rerun-if-changed={DIST}");
        let dist = Path::new(DIST).canonicalize().unwrap_or_else(|error| {
            panic!("{DIST}: {error}: check it out, or build without the feature portal")
        });
        let mut files = Vec::new();
        collect(&dist, &mut files);
        for (number, file) in files.iter().enumerate() {
            let path =
                file.strip_prefix(&dist).expect("it is below").to_str().expect("plain names");
            let plain = std::fs::read(file).expect("it was listed");
            let gzip = out.join(format!("{number}.gz"));
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&plain).expect("memory takes it");
            std::fs::write(&gzip, encoder.finish().expect("memory takes it"))
                .expect("OUT_DIR takes it");
            let line = writeln!(
                text,
                "    Page {{ path: {path:?}, plain: include_bytes!({file:?}), gzip: include_bytes!({gzip:?}) }},"
            );
            line.expect("a text takes it");
        }
    }
    text += "];\n";
    std::fs::write(out.join("pages.rs"), text).expect("OUT_DIR takes it");
}

/// All files below a directory, in order.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("it is a directory").flatten();
    let mut entries: Vec<_> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
