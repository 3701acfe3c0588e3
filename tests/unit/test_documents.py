"""What the documents name is there: links, files, symbols, tests, and the configuration that they show."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    *("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "recordings/README.md"),
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
)
#: `stores/journal.Journal.open`, `wire/lines`, `intake.MAX_ERROR_BODY`: a module by its path or name, and its symbols.
MODULE = re.compile(r"(?P<module>[a-z_]+(?:/[a-z_]+)*)(?P<symbols>(?:\.[A-Za-z_]+)*)")
CLASS = re.compile(r"(?P<name>[A-Z][A-Za-z]+)\.(?P<attribute>_?[a-z_]+)")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def sources() -> dict[str, str]:
    """The package's modules by their path below `proxy/`, without the suffix."""
    found = (ROOT / "proxy").rglob("*.py")
    return {path.relative_to(ROOT / "proxy").with_suffix("").as_posix(): path.read_text() for path in found}


def named(text: str) -> list[str]:
    """What stands between backticks, outside blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    """Every relative link names a file of the checkout."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", read(document))

    assert [link for link in links if not (ROOT / document).parent.joinpath(link).exists()] == []


def test_the_smallest_configuration_is_the_example() -> None:
    """The README shows examples/sluice.yaml, less its head."""
    example = "".join(line for line in read("examples/sluice.yaml").splitlines(True) if not line.startswith("#"))

    assert f"```yaml\n{example}```" in read("README.md")


def has_module(path: str, symbols: list[str]) -> bool | None:
    """Whether a module of that path or name has these symbols; None if no module is meant."""
    meant = [text for module, text in sources().items() if f"/{module.removesuffix('/__init__')}".endswith(f"/{path}")]
    if not meant:
        return False if path.split("/")[0] in {module.split("/")[0] for module in sources()} else None
    return any(all(re.search(rf"\b{symbol}\b", text) for symbol in symbols) for text in meant)


def has_attribute(name: str, attribute: str) -> bool:
    return any(f"class {name}" in text and re.search(rf"\b{attribute}\b", text) for text in sources().values())


def test_what_the_architecture_names_is_in_the_source() -> None:
    """Modules, symbols, classes and tests, by the names that they have today."""
    tests = {path.stem: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    found: dict[str, bool | None] = {}
    for name in named(read("ARCHITECTURE.md")):
        if name.startswith("test_"):
            file, _, function = name.partition("::")
            found[name] = f"def {function}" in tests.get(file, "")
        elif match := CLASS.fullmatch(name):
            found[name] = has_attribute(match["name"], match["attribute"])
        elif (match := MODULE.fullmatch(name)) and ("/" in name or match["symbols"]):
            found[name] = has_module(match["module"], match["symbols"].split(".")[1:])

    assert [name for name, there in found.items() if there is False] == []
    assert sum(there is True for there in found.values()) > 50


def test_every_module_of_the_books_is_on_the_map() -> None:
    """By its name in their row of the codemap; of a folder with a row of its own in a page, the folder's."""
    (row,) = re.findall(r"^\| \d+ \| `books/` \|.*$", read("ARCHITECTURE.md"), re.MULTILINE)
    named_there = {word for name in named(row) for word in name.removesuffix("/").split()}
    modules = {path.removeprefix("books/") for path in sources() if path.startswith("books/")}
    told = {path.split("/")[0] if "/" in path and "render" not in path else path.split("/")[-1] for path in modules}

    assert told - {"__init__"} - named_there == set()


def test_every_part_of_the_package_is_on_the_map() -> None:
    """The codemap has a row for each package and module at the top."""
    rows = re.findall(r"^\| \d+ \| `([a-z_]+)/?`", read("ARCHITECTURE.md"), re.MULTILINE)
    parts = {path.split("/")[0] for path in sources()} - {"__init__"}

    assert set(rows) == parts
