#!/usr/bin/env python3
"""What documents promise without being read: relative links and anchors lead somewhere, decisions fit on a page, tests that are named exist."""

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
    for error in errors:
        print(f"docs: {error}", file=sys.stderr)
    print(f"docs: {len(pages())} pages, {len(errors)} errors")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
