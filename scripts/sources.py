"""Rust sources as text: what is test code, what a crate's rooms are, which rooms stand in a circle.

A room is a top-level module of a crate: `src/NAME.rs` with `src/NAME/`. One room points at another if a path in it leads there:
`use` trees and inline paths that begin with `crate` or `super`, through what the crate's root re-exports. Tests are left out.
"""

import pathlib
import re

TEST_PARTS = {"tests", "benches", "fuzz", "examples", "acceptance"}
LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'""", re.S)
TEST_MODULE = re.compile(
    r"^(?P<indent> *)#\[cfg\((?:test|all\(test[^\n]*)\)\]\n(?: *(?:#!?\[[^\n]*|//[^\n]*)\n)* *(?:pub(?:\(\w+\))? )?mod \w+(?:;|\s*\{\n.*?^(?P=indent)\})\n?",
    re.S | re.M)
PATH = re.compile(r"(?<![\w:])(?:crate|super)(?:::(?:\w+|\{))+")
STATE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?static (?:mut )?(?P<name>\w+): (?P<type>[^=;]+)", re.M)
INTERIOR = re.compile(r"\bstatic mut |Atomic|Mutex|RwLock|RefCell|\bCell<|OnceCell|OnceLock|LazyLock|LazyCell|UnsafeCell")
PUBLIC = re.compile(r"^\s*pub (?:(?:const|async|unsafe|extern \"C\") )*(?:fn|struct|enum|trait|type|const|static|mod|union|use) ", re.M)


def is_test(path):
    """Whether a file, given relative to its repository, holds test code only."""
    return bool(TEST_PARTS & set(path.parts)) or path.name.endswith("tests.rs") or path.name == "testing.rs"


def product(text):
    """The text without its test modules."""
    return TEST_MODULE.sub(lambda found: "", text)


def code(text):
    """The text without comments and the contents of literals; lines stay where they are."""
    def blank(found):
        literal = found.group()
        return ("" if literal.startswith("/") else '""') + "\n" * literal.count("\n")
    return LITERAL.sub(blank, text)


def files(source):
    """The product files of a crate: path relative to `src`, and code."""
    for path in sorted(source.rglob("*.rs")):
        relative = path.relative_to(source)
        if not is_test(relative):
            yield relative, code(product(path.read_text(errors="replace")))


def module(relative):
    """The module path of a file: `a/b/mod.rs` and `a/b.rs` are `(a, b)`, `lib.rs` and `main.rs` are `()`."""
    parts = relative.with_suffix("").parts
    if parts[-1] == "mod" or parts in {("lib",), ("main",)}:
        parts = parts[:-1]
    return parts


def leaves(text, start):
    """The paths below a `{` of a `use` tree that ends just before `start`, one step deep."""
    depth, name, names = 1, "", []
    for sign in text[start:]:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 0 or sign == "," and depth == 1:
            names.append(name.strip())
            name = ""
            if depth == 0:
                return [re.split(r"::| as |\{", name)[0] for name in names if name]
        else:
            name += sign
    return []


def targets(text, here):
    """The absolute paths, two steps at most, to which the paths in a file lead."""
    for found in PATH.finditer(text):
        steps = [step for step in found.group().split("::") if step != "{"]
        base = list(here) if steps[0] == "super" else []
        while steps and steps[0] in {"super", "crate"}:
            base = base[:-1] if steps[0] == "super" else []
            steps = steps[1:]
        ends = [[end] for end in leaves(text, found.end())] if found.group().endswith("{") else [[]]
        for end in ends:
            full = [*base, *steps, *end]
            if end == ["self"]:
                full.pop()
            yield tuple(full), (steps + end or ["*"])[-1]


def exports(text):
    """What a crate's root re-exports: name to room."""
    names = {}
    for found in re.finditer(r"\buse (?:self::|crate::)?(\w+)::([^;]+);", text):
        for name in re.findall(r"(?:\w+ as )?(\w+)(?=\s*[,;}]|\s*$)", found[2]):
            names[name] = found[1]
    return names


def arrows(source):
    """Room to room, with the names that tie them: `{room: {room: {names}}}`."""
    texts = list(files(source))
    rooms = {module(relative)[0] for relative, _ in texts if module(relative)}
    root = exports("".join(text for relative, text in texts if not module(relative)))
    graph = {room: {} for room in rooms}
    for relative, text in texts:
        here = module(relative)
        if not here:
            continue
        for path, name in targets(text, here):
            room = path[0] if path and path[0] in rooms else root.get(path[0]) if path else None
            if room in rooms and room != here[0]:
                graph[here[0]].setdefault(room, set()).add(name)
    return graph


def circles(graph):
    """The circles of a graph: strongly connected rooms, two and more, the largest first (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(room):
        index[room] = low[room] = len(index)
        stack.append(room)
        for other in graph[room]:
            if other not in index:
                visit(other)
            if other in stack:
                low[room] = min(low[room], low[other])
        if low[room] == index[room]:
            at = stack.index(room)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for room in sorted(graph):
        if room not in index:
            visit(room)
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def statics(source):
    """The statics of a crate that can change: file and name."""
    for relative, text in files(source):
        for found in STATE.finditer(text):
            if INTERIOR.search(found.group()):
                yield f"{relative}: {found['name']}"


def public_items(source):
    """How many items of a crate are `pub`."""
    return sum(len(PUBLIC.findall(text)) for _, text in files(source))
