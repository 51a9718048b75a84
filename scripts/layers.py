#!/usr/bin/env python3
"""The layer rule and the dependency rule, checked on `cargo metadata` and on the sources.

Layers: a crate may use only crates of lower bands (docs/decisions/0001-layers.md), whatever features are on, and `suiro`
without features links no node. Pure crates may use no crate that does I/O, and say `unsafe` nowhere; elsewhere `unsafe` lives
in modules named `sys`. Tests of every crate may use the testbed, and none the lab.
Rooms: the top-level modules of a crate stand in no circle, and nothing that can change is `static`, but for what is listed here.
Both lists may only shrink.
Dependencies: only from the package registry, only under licences on the list below.
"""

import json
import pathlib
import re
import subprocess
import sys

import sources

# Low to high. Crates of one band do not use each other; some are still to come.
BANDS = [
    {"suiro-wire", "suiro-openflow", "suiro-place", "suiro-esp"},
    {"suiro-flow", "suiro-api", "suiro-capture"},
    {"suiro-netlink", "suiro-offload", "suiro-steer", "suiro-domain", "suiro-serve", "suiro-metrics", "suiro-files"},
    {"suiro-xdp", "suiro-vhost", "suiro-guest", "suiro-program"},
    {"suiro-port"},
    {"suiro-datapath"},
    {"suiro-node", "suiro-control"},
    {"suiro-testbed"},
    {"suiro-lab"},
    {"suiro"},
    {"suiro-acceptance"},
]
# What a pure crate may use besides crates of lower bands.
PURE = {
    "suiro-wire": set(),
    "suiro-openflow": {"thiserror", "bitflags"},
    "suiro-place": {"thiserror"},
    "suiro-esp": {"thiserror", "ring", "zeroize"},
    "suiro-flow": {"thiserror", "arrayvec"},
    "suiro-offload": {"thiserror", "arrayvec"},
    "suiro-capture": {"thiserror"},
    "suiro-metrics": set(),
    "suiro-api": {"thiserror", "serde", "serde_json", "utoipa"},
    "suiro-domain": {"thiserror", "serde", "serde_json", "utoipa", "saphyr-parser", "toml"},
    # What it says to the log goes nowhere unless somebody listens.
    "suiro-steer": {"thiserror", "tracing"},
}
# What a pure crate may use with a feature on.
WITH_FEATURES = {"suiro-api": {"http-body-util", "hyper", "hyper-util", "ring", "rustls", "tokio", "tokio-rustls"}}
# Circles of rooms, by their sizes. `openflow`: a message names its codecs; `vhost`: a ring its memory.
CIRCLES = {
    "api": [2], "openflow": [14], "place": [2], "suiro": [2],
    "vhost": [8], "xdp": [2],
}
# Statics that can change. `vhost`: a signal handler has nothing else, and a processor is looked at once.
STATICS = {
    "acceptance": {"binary.rs: SUIRO", "place.rs: NEXT"},
    "datapath": {"clock.rs: NEAR"},
    "vhost": {
        "sys/guard.rs: HITS", "sys/guard.rs: INSTALLED", "sys/guard.rs: PREVIOUS", "sys/guard.rs: USED", "sys/processor.rs: HERE",
    },
}
LICENCES = {
    "Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unlicense", "CC0-1.0",
    "Unicode-3.0", "BSL-1.0", "0BSD", "Apache-2.0 WITH LLVM-exception",
}
CLIENT_CRATES_MAX = 80  # chosen: the client is a small package of its own; twelve of them are TLS (decision 33)
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"  # the name cargo gives it, not an address we use


def band(name):
    return next((i for i, crates in enumerate(BANDS) if name in crates), None)


def licence_is_allowed(expression):
    """SPDX, as far as it is used on the registry: AND of ORs, parentheses, `/` as OR."""
    def allowed(text):
        text = text.strip()
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1]
        return any(choice.strip(" ()") in LICENCES for choice in re.split(r" OR |/", text))
    return all(allowed(part) for part in expression.split(" AND "))


def layer_errors(package):
    name, own = package["name"], band(package["name"])
    if own is None:
        yield f"{name}: not in any band; add it to scripts/layers.py and docs/decisions/0001-layers.md"
        return
    for dependency in package["dependencies"]:
        other, used = band(dependency["name"]), dependency["name"]
        if dependency["kind"] == "dev":
            if used == "suiro-lab":
                yield f"{name}: its tests use suiro-lab; what they need of it belongs into suiro-testbed"
            continue
        if other is not None and other >= own:
            yield f"{name} uses {used}, which is not in a lower band"
        may = PURE.get(name, set()) | (WITH_FEATURES.get(name, set()) if dependency["optional"] else set())
        if name in PURE and other is None and used not in may:
            yield f"{name} is pure and may not use {used}"


def room_errors(crate, source):
    found, listed = [len(circle) for circle in sources.circles(sources.arrows(source))], CIRCLES.get(crate, [])
    if found != listed:
        verb = "shrink the list" if sum(found) < sum(listed) else "move what ties them (scripts/figures names it)"
        yield f"{crate}: circles of rooms {found}, listed in scripts/layers.py {listed}: {verb}"
    changing, listed = set(sources.statics(source)), STATICS.get(crate, set())
    for static in sorted(changing - listed):
        yield f"{crate}/src/{static} is a static that can change; let its owner hand it on"
    for static in sorted(listed - changing):
        yield f"{crate}/src/{static} is gone; shrink the list in scripts/layers.py"


def unsafe_errors(package):
    root = pathlib.Path(package["manifest_path"]).parent
    for path in sorted((root / "src").rglob("*.rs")):
        in_sys = "sys" in path.relative_to(root).with_suffix("").parts
        uses = re.search(r"^[^/\n]*\bunsafe\s*(\{|fn|impl|extern)", path.read_text(), re.M)
        if uses and (package["name"] in PURE or not in_sys):
            yield f"{path.relative_to(root.parent.parent)}: `unsafe` outside a `sys` module"


def dependency_errors(package):
    if package["source"] != REGISTRY:
        yield f"{package['name']}: comes from {package['source']}, not from the registry"
    expression = package["license"] or ""
    if not licence_is_allowed(expression):
        yield f"{package['name']}: licence '{expression}' is not on the list"


def client_errors():
    """`suiro` without its features is a client: it links no part of a node, and little else."""
    tree = ["cargo", "tree", "--locked", "--package", "suiro", "--no-default-features", "--edges", "normal", "--prefix", "none", "--format", "{p}"]
    crates = {line.split()[0] for line in subprocess.check_output(tree, text=True).splitlines() if line}
    for name in sorted(crates & {"suiro-node", "suiro-control", "suiro-datapath", "suiro-lab"}):
        yield f"suiro without features links {name}"
    if len(crates) >= CLIENT_CRATES_MAX:
        yield f"suiro without features links {len(crates)} crates, and {CLIENT_CRATES_MAX} is too many"


def main():
    metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--format-version=1", "--locked"]))
    members = set(metadata["workspace_members"])
    errors, public = [*client_errors()], []
    for package in metadata["packages"]:
        if package["id"] in members:
            root = pathlib.Path(package["manifest_path"]).parent
            errors += [*layer_errors(package), *unsafe_errors(package), *room_errors(root.name, root / "src")]
            public.append(f"{root.name} {sources.public_items(root / 'src')}")
        else:
            errors += dependency_errors(package)
    for error in errors:
        print(f"layers: {error}", file=sys.stderr)
    print(f"layers: public items: {', '.join(sorted(public))}")
    print(f"layers: {len(members)} crates, {len(metadata['packages']) - len(members)} dependencies, {len(errors)} errors")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
