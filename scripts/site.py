"""What makes docs/ a site, as hooks of mkdocs: the shelves, and pages for the files of this project that documents point at.

docs/index.md says which page stands on which shelf, and in which order; decisions and benchmarks follow it, all of them.
Documents link to source files as they lie in the tree. Such a file becomes a page of the site, so that no link leads out of it.
"""

import os
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
STYLE = ROOT / "scripts" / "site.css"
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^ *```.*?^ *```", re.S | re.M)
LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".h": "c", ".c": "c", ".json": "json", ".sh": "bash"}


def title(page):
    return re.search(r"^# +(.*)$", page.read_text(), re.M)[1].replace("`", "")


def on_config(config):
    index = (DOCS / "index.md").read_text()
    shelves = [{"suiro": "index.md"}]
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        paths = dict.fromkeys(path for _, path, _ in LINK.findall(section) if path.endswith(".md") and not path.endswith("README.md"))
        shelves.append({section.split("\n", 1)[0]: [{title(DOCS / path): path} for path in paths]})
    for name in ("decisions", "benchmarks"):
        pages = sorted(page for page in (DOCS / name).glob("*.md") if page.name != "README.md")
        below = [f"{name}/README.md"] + [{title(page): f"{name}/{page.name}"} for page in pages]
        shelves.append({name.capitalize(): below})
    config.nav = shelves
    config.extra_css = [STYLE.name]
    return config


def elsewhere(page):
    """The files outside docs/ that a page points at."""
    for _, path, _ in LINK.findall(BLOCK.sub("", page.read_text())):
        target = (page.parent / path).resolve()
        if "://" not in path and target.is_file() and ROOT in target.parents and DOCS not in target.parents:
            yield target


def place(path):
    """Where a file of the project lies on the site: docs/ as it is, all else below files/ as a page."""
    if DOCS in path.parents:
        return str(path.relative_to(DOCS))
    name = str(path.relative_to(ROOT))
    return "files/" + (name if name.endswith(".md") else name + ".md")


def on_files(files, config):
    files.append(File.generated(config, STYLE.name, content=STYLE.read_text()))
    todo, seen = list(DOCS.rglob("*.md")), set()
    while todo:
        for target in elsewhere(todo.pop()):
            if target in seen:
                continue
            seen.add(target)
            if target.suffix == ".md":
                todo.append(target)
                text = target.read_text()
            else:
                name, language = target.relative_to(ROOT), LANGUAGES.get(target.suffix, "text")
                text = f"---\nsearch: {{exclude: true}}\n---\n# {name}\n\n````{language}\n{target.read_text()}\n````\n"
            file = File.generated(config, place(target), content=text)
            file.suiro_source = target
            files.append(file)
    return files


def on_page_markdown(markdown, page, **_):
    source = getattr(page.file, "suiro_source", DOCS / page.file.src_uri)
    if source.suffix != ".md":
        return markdown
    here = pathlib.PurePosixPath(page.file.src_uri).parent

    def moved(link):
        path = (source.parent / link[2]).resolve()
        if "://" in link[2] or ROOT not in path.parents or not path.exists():
            return link[0]
        if path.is_dir():
            path /= "README.md"
            if not path.is_file():
                return link[1]
        return f"[{link[1]}]({os.path.relpath(place(path), here)}{link[3] or ''})"

    out, end = [], 0
    for block in BLOCK.finditer(markdown):  # what looks like a link there is none
        out += [LINK.sub(moved, markdown[end:block.start()]), block[0]]
        end = block.end()
    return "".join(out) + LINK.sub(moved, markdown[end:])
