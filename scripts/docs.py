#!/usr/bin/env python3
"""What documents promise without being read: relative links and anchors lead somewhere, decisions fit on a page, tests that are named exist.

Of the pages that users type from, each block is run by a test (`console`), or is a file, or says why it is only read. It counts them.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECISION_LINES = 60
CODE = re.compile(r"^ *```.*?^ *```|^ {4,}(?![-*\d]).*?$|`[^`\n]*`", re.S | re.M)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# `suite: a_test` and `module::a_case`, as docs/explanation/field-reports.md names tests.
TEST = re.compile(r"`(?:[a-z]+: (?P<test>[a-z0-9_]+)|(?P<case>[a-z]+::[a-z0-9_]+))`")
# Pages that users type from, and blocks of theirs that are no commands.
TYPED = ("README.md", "docs/tutorials/", "docs/how-to/")
FILES = {"json", "python", "toml", "xml", "yaml"}
READ = re.compile(r" *<!-- only read: (.+) -->$")
HEADING = re.compile(r"^#{1,6} +(.*)$", re.M)


def pages():
    listed = subprocess.check_output(["git", "ls-files", "*.md"], cwd=ROOT, text=True).split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def anchors(page):
    """The anchors of a page's headings, as the usual viewers make them."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.S | re.M)
    plain = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading) for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def link_errors(page):
    text = CODE.sub(lambda found: "\n" * found.group().count("\n"), page.read_text())
    for found in LINK.finditer(text):
        path, _, anchor = found[1].partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{place}: {found[1]} is not there"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{place}: {found[1]}: no heading makes #{anchor}"


def blocks(page):
    """The blocks of a page: line, language (None: indented), text, and why it is only read."""
    lines, at = page.read_text().split("\n"), 0
    while at < len(lines):
        start, fence = at, re.match(r"( *)```(\w*)", lines[at])
        at += 1
        # What is indented after an empty line is a block, unless it goes on with a list's item.
        indented = re.match(r" {4,}(?![-*\d ])\S", lines[start]) and start > 0 and not lines[start - 1]
        if fence:
            while lines[at].strip() != "```":
                at += 1
            at += 1
        elif indented:
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
        else:
            continue
        why = READ.match(lines[start - 1])
        yield start + 1, fence[2] if fence else None, lines[start:at], why and why[1]


def block_errors(page, counts):
    for line, language, text, why in blocks(page):
        place = f"{page.relative_to(ROOT)}:{line}"
        if language is None:
            yield f"{place}: an indented block: mark it console, and the tests run it; or sh, with <!-- only read: WHY --> above"
        elif language == "console":
            counts["run"] += 1
            counts["commands"] += sum(line.lstrip().startswith("# ") for line in text)
        elif language in FILES:
            counts["files"] += 1
        elif why:
            counts["read"] += 1
        else:
            yield f"{place}: nobody runs it: mark it console, or say why with <!-- only read: WHY --> above"


def length_errors():
    for page in sorted((ROOT / "docs/decisions").glob("0*.md")):
        lines = page.read_text().count("\n")
        if lines > DECISION_LINES:
            yield f"{page.relative_to(ROOT)}: {lines} lines, {DECISION_LINES} is the most: keep the decision, move tables to docs/benchmarks"


def test_errors(page):
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "crates").rglob("*.rs")))
    for found in TEST.finditer(page.read_text()):
        claim = f"fn {found['test']}(" if found["test"] else f'"{found["case"]}"'
        if claim not in sources:
            yield f"{page.relative_to(ROOT)}: no test is called {found[0]}"


def main():
    errors = [*length_errors(), *(error for name in ("field-reports", "threat-model") for error in test_errors(ROOT / f"docs/explanation/{name}.md"))]
    for page in pages():
        errors += link_errors(page)
    counts = collections.Counter()
    typed = [page for page in pages() if str(page.relative_to(ROOT)).startswith(TYPED)]
    errors += [error for page in typed for error in block_errors(page, counts)]
    for error in errors:
        print(f"docs: {error}", file=sys.stderr)
    if "--read" in sys.argv:
        for page in typed:
            for line, _, _, why in blocks(page):
                print(f"docs: {page.relative_to(ROOT)}:{line}: only read: {why}\n" if why else "", end="")
    run = f"{counts['run']} blocks with {counts['commands']} commands run by a test"
    print(f"docs: {len(typed)} pages to type from: {run}, {counts['files']} files, {counts['read']} only read (--read: why)")
    print(f"docs: {len(pages())} pages, {len(errors)} errors")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
